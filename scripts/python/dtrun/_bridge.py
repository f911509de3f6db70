"""Calls libdtrun.so, with JSON in and JSON out, one call at a time; handles signals and fork() during calls."""
import ctypes
import json
import operator
import os
import re
import shutil
import signal
import threading
from pathlib import Path


def _bring(match):
    """The command that downloads a model, for messages of the library that say dtrun pull NAME."""
    name, spec = match.group(1), match.group(2) or ""
    if "/" not in name or shutil.which("dtrun"):
        return f"python -m dtrun pull {name}{spec}"
    include = f" --include '*{spec[1:]}*'" if spec else ""
    return f"hf download {name}{include} (of the package huggingface_hub)"


def _in_python(message):
    """A message of the library, without commands of the program dtrun, which a wheel does not contain."""
    message = message.replace("dtrun ls lists the models that are here, dtrun pull downloads others",
                              "python -m dtrun pull NAME downloads others")
    return re.sub(r"(?<!-m )dtrun pull ([\w./-]*\w)(:[\w.-]+)?(?= )", _bring, message)


class Error(Exception):
    """A failure: kind ("policy", "input", "context", "device"), message, file, line, partial (the result so far)."""

    def __init__(self, failure):
        message = _in_python(failure.get("message") or "failed")
        super().__init__(message)
        self.kind = failure.get("kind")
        self.message = message
        self.file = failure.get("file")
        self.line = failure.get("line")
        self.partial = failure.get("partial")


def wrong(message):
    """The error for a mistake of the caller."""
    return Error({"kind": "input", "message": message})


_Listener = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t)
_SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGALRM]  # signals whose handlers usually raise


def _open_library():
    here = Path(__file__).resolve().parent
    for needed in sorted(here.glob("needed/*")):  # a wheel contains the libraries that libdtrun.so needs
        ctypes.CDLL(str(needed), mode=ctypes.RTLD_GLOBAL)
    places = [os.environ.get("DTRUN_LIBRARY"), here / "libdtrun.so", here.parents[2] / "build" / "libdtrun.so"]
    found = next((str(place) for place in places if place and Path(place).exists()), "libdtrun.so.0")
    library = ctypes.CDLL(found)
    library.dtl_bridge_open.restype = ctypes.c_void_p
    library.dtl_bridge_call.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, _Listener, ctypes.c_void_p]
    library.dtl_bridge_call.restype = ctypes.c_void_p  # freed by dtl_bridge_free
    library.dtl_bridge_free.argtypes = [ctypes.c_void_p]
    library.dtl_bridge_interrupt.argtypes = [ctypes.c_void_p, ctypes.c_bool]
    library.dtl_bridge_catch.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.dtl_bridge_catch.restype = ctypes.c_bool
    return library


def _plain(value):
    """Convert types that JSON does not have: paths, and numbers of other packages."""
    if isinstance(value, (bytes, bytearray)):
        raise TypeError("expected a str, got bytes: decode them")
    for convert in (os.fspath, operator.index, float):
        try:
            return convert(value)
        except TypeError:
            pass
    raise TypeError(f"a {type(value).__name__} is not a text, number, list or dict")


def _as_json(function, options):
    options = {name: value for name, value in options.items() if value is not None}
    if isinstance(options.get("seed"), int):
        options["seed"] = str(options["seed"])  # Lua's integers end at 2^63 - 1
    try:
        return json.dumps(options, default=_plain, allow_nan=False).encode()
    except RecursionError:
        raise wrong(f"{function}: an option is nested too deeply") from None
    except TypeError as error:
        raise wrong(f"{function}: {error}") from None
    except ValueError as error:
        what = "refers to itself" if "Circular" in str(error) else "is NaN or infinite"
        raise wrong(f"{function}: an option {what}") from None


class _Call:
    """One call to the library. During a call Python would run signal handlers in the listener, before its first line, where ctypes
    would lose the exceptions that they raise. So handlers run here while the library works in the main thread; an exception of
    theirs is kept, ends the call, and is raised after it. Within the caller's own code (tell) handlers raise as usual."""

    def __init__(self, bridge, tell):
        self.bridge, self.tell = bridge, tell
        self.raised, self.handlers = [], {}
        self.telling = self.over = False
        self.listener = _Listener(self._listen)

    def _listen(self, _, text, size):
        try:
            self.telling = True
            try:
                more = self.tell is None or self.tell(ctypes.string_at(text, size)) is not False
            finally:
                self.telling = False
            return more and not self.raised
        except BaseException as error:
            self.raised.append(error)
            return False

    def _on_signal(self, number, frame):
        if self.telling or self.over:
            self.bridge.interrupt(False)  # whether to continue is for the caller's code to decide
            return self.handlers[number](number, frame)
        try:
            self.handlers[number](number, frame)
        except BaseException as error:
            self.raised.append(error)
            self.bridge.interrupt(True)

    def __enter__(self):
        self.bridge.interrupt(False)
        try:
            if threading.current_thread() is threading.main_thread():
                self._take_signals()
        except BaseException:  # from a signal handler that ran here
            self.__exit__()
            raise
        return self

    def _take_signals(self):
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                self.handlers[number] = handler
                signal.signal(number, self._on_signal)
        if self.handlers.get(signal.SIGINT) is signal.default_int_handler:
            self.bridge.catch(signal.SIGINT)  # for times when no listener is called

    def __exit__(self, *_):
        if self.handlers:
            self.bridge.catch(0)
        for number, handler in self.handlers.items():
            signal.signal(number, handler)  # handlers of earlier signals run first
        self.over = True


class Bridge:
    """One state of the library, whose calls take turns."""

    def __init__(self):
        self.library = _open_library()
        self.handle = self.library.dtl_bridge_open()
        self.lock = threading.RLock()
        self.busy = False
        self.process = os.getpid()
        if not self.handle:
            raise MemoryError("dtrun")

    def interrupt(self, interrupted):
        self.library.dtl_bridge_interrupt(self.handle, interrupted)

    def catch(self, number):
        self.library.dtl_bridge_catch(self.handle, number)

    def call(self, function, options, tell=None):
        """Call a function and return its value. tell(bytes) receives the output, and ends the call by returning False; its
        exceptions are raised here."""
        text = _as_json(function, options)
        if self.process != os.getpid():
            raise wrong(f"{function}: the pair was loaded before fork() and cannot be used in this process: load another")
        with self.lock:
            if self.busy:
                raise wrong(f"{function}: the pair is busy: call it after generate has returned, not from on_text")
            self.busy = True
            try:
                call = _Call(self, tell)
                with call:
                    answer = self.library.dtl_bridge_call(self.handle, function.encode(), text, call.listener, None)
            finally:
                self.busy = False
        if not answer:
            raise MemoryError("dtrun")
        try:
            said = json.loads(ctypes.string_at(answer).decode(errors="replace"))
        finally:
            self.library.dtl_bridge_free(answer)
        if call.raised:
            raise call.raised[0]
        if "value" not in said:
            raise Error(said["error"])
        return said["value"]


_bridge = None


def the_bridge():
    """The bridge of this process; one made before fork() has no threads here."""
    global _bridge
    if _bridge is None or _bridge.process != os.getpid():
        _bridge = Bridge()
    return _bridge
