"""Compares dtrun serve with dtrun --prompts and llama.cpp's server, alternately; measures how a long prompt affects
texts that stream, and how much time the prefix cache saves.

    server.py DTRUN MODEL PROMPTS.jsonl [--peer LLAMA_SERVER]   speed
    server.py DTRUN MODEL PROMPTS.jsonl --stall N | --prefix N

Speed: the same chats, 64 tokens each, with 1, 4 and 8 at once, in three rounds of each side, alternately; the median
counts, and loading is left out. Each prompt of a round begins with a number that no other round has, so that prompts
share no cached tokens except for the beginning of the template; all sides of a round have the same prompts. The peer
has two threads and decodes plainly. Stall: the longest wait between two pieces of four streams while a prompt of N
tokens runs, and without it. Prefix: the time to the first token of a prompt of N + 8 tokens whose first N are
cached, in its slot or displaced by another text, compared with the time without a cache. Uses Python's own modules
only.
"""

import argparse
import http.client
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

parser = argparse.ArgumentParser()
for name in ("dtrun", "model", "prompts"):
    parser.add_argument(name)
parser.add_argument("--peer")
parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 8])
parser.add_argument("--stall", type=int)
parser.add_argument("--prefix", type=int)
options = parser.parse_args()
DTRUN, MODEL, PROMPTS = options.dtrun, options.model, options.prompts
TOKENS, ROUNDS = 64, 3
prompts = [json.loads(line)["prompt"] for line in open(PROMPTS)]


def post(port, route, body):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    c.request("POST", route, json.dumps(body))
    return c, c.getresponse()


def ready(p, port):
    """Waits until the server answers. port() fails with ValueError or OSError while it does not run yet."""
    for _ in range(600):
        time.sleep(0.1)
        try:
            c = http.client.HTTPConnection("127.0.0.1", port(), timeout=5)
            c.request("GET", "/health")
            if c.getresponse().status == 200:
                return p, port()
        except (OSError, ValueError):
            pass
    sys.exit("the server did not start")


def start(places):
    path = os.path.join(tempfile.mkdtemp(), "port")
    p = subprocess.Popen([DTRUN, "serve", "-q", "-m", MODEL, "-np", str(places), "--port", "0", "--port-file", path])
    return ready(p, lambda: int(open(path).read()))


def start_peer(places):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    command = [options.peer, "-m", MODEL, "-np", str(places), "-c", str(4096 * places), "-t", "2", "--cache-ram", "0", "--host", "127.0.0.1"]
    p = subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return ready(p, lambda: port)


def stream(port, body, route="/v1/chat/completions"):
    """Returns the times of pieces, and the number of tokens."""
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


def numbered():
    return [f"{next(numbers)}. {prompt}" for prompt in prompts]


def served(port, clients, asked):
    left, first, total, lock = list(asked), [], [0], threading.Lock()

    def client():
        while True:
            with lock:
                if not left:
                    return
                prompt = left.pop(0)
            begun = time.time()
            times, n = stream(port, {"messages": [{"role": "user", "content": prompt}], "max_tokens": TOKENS, "temperature": 0})
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


def alone(clients, asked):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps({"prompt": prompt}) + "\n" for prompt in asked)
        file.flush()
        said = subprocess.run(
            [DTRUN, "-m", MODEL, "--chat", "--prompts", file.name, "-np", str(clients), "-n", str(TOKENS)],
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


def prefix(n):
    """Measures each time alternately, with tokens of its own."""
    p, port = start(1)

    def first(body):
        begun = time.time()
        times, _ = stream(port, {"prompt": body, "max_tokens": 4, "ignore_eos": True}, "/v1/completions")
        return times[0] - begun

    cold, placed, displaced = [], [], []
    for turn in range(ROUNDS + 1):
        ids = [1000 + (i * 7 + turn) % 5000 for i in range(n)]
        cold.append(first(ids + [2000 + turn] * 8))
        placed.append(first(ids + [3000 + turn] * 8))
        first([4000 + turn] * 40)  # it takes the only slot
        displaced.append(first(ids + [3500 + turn] * 8))
    p.terminate()
    p.wait()
    cold, placed, displaced = (statistics.median(times[1:]) * 1e3 for times in (cold, placed, displaced))  # during the first runs, costs are learned
    print(f"a prefix of {n} tokens: first token after {cold:.0f} ms; cached in its slot {placed:.1f} ms ({100 * placed / cold:.2f} %), "
          f"cached but displaced {displaced:.1f} ms ({100 * displaced / cold:.2f} %)")


def speeds():
    for clients in options.clients:
        servers = [start(clients)] + ([start_peer(clients)] if options.peer else [])
        for p, port in servers:
            served(port, clients, numbered())  # pass costs are learned
            p.send_signal(19)  # SIGSTOP
        runs, there = [[] for _ in servers], []
        for _ in range(ROUNDS):
            asked = numbered()
            for (p, port), times in zip(servers, runs):
                p.send_signal(18)
                times.append(served(port, clients, asked))
                p.send_signal(19)
            alone(clients, asked)  # not counted: after a pause a virtual machine gives a new process its memory slowly
            there.append(alone(clients, asked))
        for p, _ in servers:
            p.send_signal(18)
            p.terminate()
            p.wait()
        (speed, first), *peers = [[statistics.median(column) for column in zip(*times)] for times in runs]
        there = statistics.median(there)
        print(f"{clients} at once: {speed:.1f} tokens/s, first token after {first:.0f} ms; --prompts {there:.1f} tokens/s: {speed / there:.3f}")
        for other, its_first in peers:
            print(f"  llama.cpp's server: {other:.1f} tokens/s, first token after {its_first:.0f} ms: {speed / other:.2f}x")


if options.stall:
    stall([1000 + i % 5000 for i in range(options.stall)])
elif options.prefix:
    prefix(options.prefix)
else:
    speeds()
