"""Debian's chromium, headless, driven as a person would: by its DevTools protocol over a pipe, with nothing but Python's library."""
import base64
import json
import os
import select
import subprocess
import time

KEYS = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35}


class Failure(Exception):
    pass


class Browser:
    """A page. `errors` collects the errors on its console, `asked` the addresses that it loads."""

    def __init__(self, profile, width=1200, height=900):
        to_read, to_write = os.pipe(), os.pipe()
        ends = {3: os.dup(to_read[0]), 4: os.dup(to_write[1])}  # chromium reads at 3 and writes at 4

        def place():
            spare = {fd: os.dup2(end, fd + 100) for fd, end in ends.items()}
            for fd, end in spare.items():
                os.dup2(end, fd)

        self.process = subprocess.Popen(
            ["chromium", "--no-sandbox", "--headless=new", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
             "--user-data-dir=" + profile, f"--window-size={width},{height}", "about:blank"],
            preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for end in (to_read[0], to_write[1], *ends.values()):
            os.close(end)
        self.into, self.out = to_read[1], to_write[0]
        self.rest, self.number, self.errors, self.asked = b"", 0, [], []
        self.session = None
        target = self._wait_for_page()
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def _wait_for_page(self):
        for _ in range(200):
            for target in self.call("Target.getTargets")["targetInfos"]:
                if target["type"] == "page":
                    return target["targetId"]
            time.sleep(0.05)
        raise Failure("chromium opens no page")

    def close(self):
        try:
            self.call("Browser.close")
        except (Failure, OSError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _next(self, seconds):
        while b"\0" not in self.rest:
            if not select.select([self.out], [], [], seconds)[0]:
                raise Failure(f"chromium says nothing for {seconds} s")
            more = os.read(self.out, 1 << 20)
            if not more:
                raise Failure("chromium has ended")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def _note(self, event):
        what, about = event.get("method"), event.get("params", {})
        if what == "Runtime.exceptionThrown":
            details = about["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif what == "Log.entryAdded" and about["entry"]["level"] == "error":
            self.errors.append(about["entry"]["text"] + " " + about["entry"].get("url", ""))
        elif what == "Network.requestWillBeSent":
            self.asked.append(about["request"]["url"])

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.into, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next(60)
            if answer.get("id") != self.number:
                self._note(answer)
                continue
            if "error" in answer:
                raise Failure(f"{method}: {answer['error']['message']}")
            return answer["result"]

    # ---- what a person does and sees

    def go(self, url):
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def value(self, script):
        """The value of an expression, which may be a promise."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise Failure(f"{script}: {result['exceptionDetails'].get('exception', {}).get('description')}")
        return result["result"].get("value")

    def until(self, script, seconds=30):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                found = self.value(script)
            except Failure:
                found = None  # the page is being loaded
            if found not in (None, False, 0, ""):  # an element is {}
                return found
            time.sleep(0.03)
        raise Failure(f"waited {seconds} s for: {script}\nerrors: {self.errors}")

    def press(self, key, modifiers=0):
        """A key; modifiers: 2 with Ctrl, 8 with Shift."""
        about = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS.get(key, 0), "modifiers": modifiers}
        if key == "Enter":
            about["text"] = "\r"
        self.call("Input.dispatchKeyEvent", type="keyDown", **about)
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def show(self, width=None, dark=False):
        """Another width (None: the window's), and theme."""
        if width:
            self.call("Emulation.setDeviceMetricsOverride", width=width, height=780, deviceScaleFactor=1, mobile=width < 500)
        else:
            self.call("Emulation.clearDeviceMetricsOverride")
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot")["data"]))
