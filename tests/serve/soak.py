"""Random clients for a while: slow readers, half-open connections, garbage, long bodies, floods, clients that leave, together with proper ones.

soak.py URL PID SECONDS [SEED]; PID 0: its memory is not looked at. Python's own modules only. Status 1: a proper request got another text than before, or none; the server did not
answer /health within ten seconds; it has ended; or its memory grew by more than 2 % from the second fifth of the time to the last one.
"""

import http.client
import json
import os
import random
import socket
import statistics
import sys
import threading
import time
import urllib.parse

URL = urllib.parse.urlparse(sys.argv[1])
PID, SECONDS = int(sys.argv[2]), float(sys.argv[3])
SEED = int(sys.argv[4]) if len(sys.argv) > 4 else 1
CLIENTS, HEALTH_SECONDS = 16, 10
AT = (URL.hostname, URL.port)
PROMPTS = ["It was a dark night, and", "Once there was a girl who had a red ball. " * 12, "A", "The sun was over the hill. " * 20 + "The dog"]
END = time.time() + SECONDS
faults, counts, texts, lock = [], {}, {}, threading.Lock()


def fault(line):
    with lock:
        faults.append(line)


def post(body, route="/v1/completions", seconds=120):
    c = http.client.HTTPConnection(*AT, timeout=seconds)
    c.request("POST", route, body if isinstance(body, bytes) else json.dumps(body).encode())
    answer = c.getresponse()
    text = answer.read()
    c.close()
    return answer.status, text


def raw(first):
    s = socket.create_connection(AT, timeout=10)
    s.sendall(first)
    return s


def head(n, route="/v1/completions"):
    return f"POST {route} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {n}\r\n\r\n".encode()


def garbage(r):
    raw(r.randbytes(r.randint(1, 3000))).close()


def half_open(r):
    s = raw(head(1000) + b'{"pro')
    time.sleep(r.random() * 0.5)
    s.close()


def slow_reader(r):
    body = json.dumps({"prompt": r.choice(PROMPTS), "max_tokens": 300, "stream": True, "ignore_eos": True, "dtrun": {"trace": r.random() < 0.5}}).encode()
    s = raw(head(len(body)) + body)
    s.settimeout(10)
    for _ in range(r.randint(1, 20)):
        time.sleep(0.03)
        s.recv(300)
    s.close()


def leaver(r):
    body = json.dumps({"prompt": r.choice(PROMPTS), "max_tokens": 2000, "ignore_eos": True, "n": 4, "temperature": 1}).encode()
    s = raw(head(len(body)) + body)
    time.sleep(r.random() * 0.2)
    s.close()


def wrong(r):
    body = '{"prompt": ["a", [1, 2], "' + "".join(chr(r.randint(32, 1000)) for _ in range(50)) + '"], "n": %d, "logit_bias": {"1": %d}, "dtrun": {"source": "return %s"}}' % (
        r.randint(-1, 3), r.randint(-200, 2000), r.choice(["1", "{}", "nil", "error", "while true do end"]))
    post(body[: r.randint(1, len(body))].encode())
    route = r.choice(["/v1/completions", "/v1/chat/completions", "/tokenize", "/apply-template", "/detokenize", "/v1/policies/check"])
    post(r.choice([b"[" * 5000, b'{"messages": [{"role": "user"}], "tokens": [1, -1, 9e99], "content": 5}', b"\x00\xff"]), route)


def long_body(r):
    try:
        post(b" " * 10_000_000)
    except OSError:
        pass  # the rest of it was not read


def flood(r):
    connections = []
    for _ in range(60):
        try:
            connections.append(socket.create_connection(AT, timeout=5))
        except OSError:
            break
    time.sleep(r.random() * 0.2)
    for s in connections:
        s.close()


def proper(r):
    i, policy = r.randrange(len(PROMPTS)), r.choice(["rate", "linear", "suffix", "ar"])
    body = {"prompt": PROMPTS[i], "max_tokens": 30, "temperature": 0.7, "seed": 5, "dtrun": {"policy": policy}}
    status, answer = post(body)
    if status == 503:
        return
    if status != 200:
        return fault(f"a proper request: {status} {answer[:200]}")
    text = json.loads(answer)["choices"][0]["text"]
    with lock:
        before = texts.setdefault(i, text)
    if text != before:
        fault(f"another text: {text!r}, before {before!r}")


KINDS = {garbage: 3, half_open: 3, slow_reader: 3, leaver: 2, wrong: 4, long_body: 0.3, flood: 0.3, proper: 6}


def client(seed):
    r = random.Random(seed)
    while time.time() < END and not faults:
        kind = r.choices(list(KINDS), KINDS.values())[0]
        name = kind.__name__
        try:
            kind(r)
        except (OSError, http.client.HTTPException) as e:
            name += ", cut"
            if kind is proper:
                fault(f"a proper request got no answer: {e!r}")
        with lock:
            counts[name] = counts.get(name, 0) + 1


def memory():
    if not PID:
        return 1
    with open(f"/proc/{PID}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


threads = [threading.Thread(target=client, args=(SEED * 1000 + i,)) for i in range(CLIENTS)]
for t in threads:
    t.start()
samples = []
while time.time() < END and not faults:
    time.sleep(min(1, SECONDS / 50))
    try:
        c = http.client.HTTPConnection(*AT, timeout=HEALTH_SECONDS)
        c.request("GET", "/health")
        c.getresponse().read()
        c.close()
        samples.append(memory())
    except OSError as e:
        fault(f"no health within {HEALTH_SECONDS} s: {e!r}")
for t in threads:
    t.join()
print(", ".join(f"{n} {name}" for name, n in sorted(counts.items())))
fifth = len(samples) // 5
if fifth:
    early, late = statistics.median(samples[fifth : 2 * fifth]), statistics.median(samples[-fifth:])
    print(f"memory {early / 1024:.1f} MiB in the second fifth, {late / 1024:.1f} in the last: {100 * (late / early - 1):+.2f} %")
    if late > early * 1.02:
        fault("its memory grows")
for line in faults[:5]:
    print(line)
sys.exit(1 if faults or not fifth else 0)
