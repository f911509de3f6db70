"""dtrun serve beside dtrun --prompts, in turns; and what a long prompt does to texts that stream: server.py DTRUN MODEL PROMPTS.jsonl.

Speed: the same chats, 64 tokens each, at 1, 4 and 8 at once, two rounds of each side, the better one counts; loading is left out of both.
Each prompt begins with a number that no other has, so that no rows are kept between them but those of the template's beginning. Stall: the longest wait
between two pieces of four streams while a prompt of N tokens runs, and without it. Python's own modules only.
"""

import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

DTRUN, MODEL, PROMPTS = sys.argv[1:4]
TOKENS, CLIENTS, ROUNDS = 64, (1, 4, 8), 2
prompts = [json.loads(line)["prompt"] for line in open(PROMPTS)]


def post(port, route, body):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    c.request("POST", route, json.dumps(body))
    return c, c.getresponse()


def start(places):
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "port")
    p = subprocess.Popen([DTRUN, "serve", "-q", "-m", MODEL, "-np", str(places), "--port", "0", "--port-file", path])
    for _ in range(600):
        time.sleep(0.1)
        try:
            c = http.client.HTTPConnection("127.0.0.1", int(open(path).read()), timeout=5)
            c.request("GET", "/health")
            if c.getresponse().status == 200:
                return p, int(open(path).read())
        except (OSError, ValueError):
            pass
    sys.exit("no server")


def stream(port, body, route="/v1/chat/completions"):
    """Times of pieces, and the number of tokens."""
    c, answer = post(port, route, {**body, "stream": True, "stream_options": {"include_usage": True}})
    times, n = [], 0
    for line in answer:
        if line.startswith(b"data: {"):
            chunk = json.loads(line[6:])
            if chunk["choices"]:
                choice = chunk["choices"][0]
                if choice.get("text") or choice.get("delta", {}).get("content"):
                    times.append(time.time())
            else:
                n = chunk["usage"]["completion_tokens"]
    c.close()
    return times, n


numbers = iter(range(10**6, 10**7))


def served(port, clients):
    left, first, total, lock = list(prompts), [], [0], threading.Lock()

    def client():
        while True:
            with lock:
                if not left:
                    return
                prompt = f"{next(numbers)}. {left.pop(0)}"
            begun = time.time()
            times, n = stream(port, {"messages": [{"role": "user", "content": prompt}], "max_tokens": TOKENS})
            with lock:
                total[0] += n
                if times:
                    first.append(times[0] - begun)

    begun = time.time()
    threads = [threading.Thread(target=client) for _ in range(clients)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    first.sort()
    return total[0] / (time.time() - begun), first[len(first) // 2] * 1e3


def alone(clients):
    said = subprocess.run(
        [DTRUN, "-m", MODEL, "--chat", "--prompts", PROMPTS, "-np", str(clients), "-n", str(TOKENS)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ).stderr
    return float(re.findall(r"([0-9.]+) tokens/s", said)[-1])


def stall(long_prompt):
    p, port = start(8)
    texts = [[] for _ in range(4)]

    def run(i):
        body = {"prompt": f"{i}. Once upon a time", "max_tokens": 400, "ignore_eos": True}
        texts[i] = stream(port, body, "/v1/completions")[0]

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    time.sleep(1.5)
    begun = time.time()
    times, _ = stream(port, {"prompt": long_prompt, "max_tokens": 2}, "/v1/completions")
    for t in threads:
        t.join()
    p.terminate()
    p.wait()
    during = max(b - a for t in texts for a, b in zip(t, t[1:]) if b > begun and a < times[0])
    before = max(b - a for t in texts for a, b in zip(t[3:], t[4:]) if b < begun)
    print(f"a prompt of {len(long_prompt)} tokens: first token after {times[0] - begun:.2f} s; the longest wait of four streams "
          f"{during * 1e3:.0f} ms, before it {before * 1e3:.0f} ms")


if len(sys.argv) > 4:
    stall([1000 + i % 5000 for i in range(int(sys.argv[4]))])
    sys.exit()
for clients in CLIENTS:
    p, port = start(clients)
    served(port, clients)  # costs of passes are learned
    here, there = [], []
    for _ in range(ROUNDS):
        here.append(served(port, clients))
        p.send_signal(19)  # stopped
        there.append(alone(clients))
        p.send_signal(18)
    p.terminate()
    p.wait()
    speed, first = max(here)
    print(f"{clients} at once: {speed:.1f} tokens/s, first token after {first:.0f} ms; --prompts {max(there):.1f} tokens/s: {speed / max(there):.3f}")
