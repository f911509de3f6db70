"""Mixed requests to a server, one at a time, then several at once in random order, some cancelled: every text that ends is the same.

many.py URL REQUESTS [SEED]; Python's own modules only. Prints a line for each number of clients; status 1: a text differed.
"""

import http.client
import json
import random
import sys
import threading
import urllib.parse

URL = urllib.parse.urlparse(sys.argv[1])
N = int(sys.argv[2])
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1

TEXTS = [
    "It was a dark night, and",
    "It was a dark night, and the wind was in the trees, but the dog",
    "Once upon a time there was a little girl who had a red ball and a blue ball.",
    "The cat sat on the mat. The cat sat on the mat. The cat",
    "A",
] + [("The sun was over the hill and the man went down to the river to see the boat. " * k)[: 70 * k] for k in (3, 8, 14)]
LONG = "Once there was a girl who had a red ball and a blue one, and she took them to the river. " * 6
TEXTS += [LONG + end for end in ("The ball", "The girl", "And then she saw a dog that")]  # with a common prefix
POLICIES = ["ar", "linear", "rate", "dynatree", "cast", "suffix", "prompt_lookup", "eagle2", "opt_tree"]
SOURCE = """local P = require("dt.policy").define { name = "mine", doc = "d" }
function P:draft(tree)
  local node = tree.root
  for _ = 1, math.min(2, tree:depth_room()) do
    tree:draft_step(node)
    local first, last = tree:branch(node, 2)
    if last < first then return end
    node = first
  end
end
return P"""


def request(r):
    body = {"prompt": r.choice(TEXTS), "max_tokens": r.randint(1, 60), "stream": r.random() < 0.5, "dtrun": {}}
    if r.random() < 0.5:
        body.update(temperature=r.choice([0.3, 0.8, 1.5]), seed=r.randint(0, 9))
    if r.random() < 0.2:
        body["n"] = 1 + r.randint(0, 1) if "temperature" in body else 1
    if r.random() < 0.2:
        body["stop"] = r.choice([" little", [".", " was"]])
    if r.random() < 0.2:
        body.update(presence_penalty=1, repetition_penalty=1.2)
    if r.random() < 0.2:
        body["logit_bias"] = [[261, 3], [300, False]]
    if r.random() < 0.15:
        body["logprobs"] = 2
    if r.random() < 0.1:
        body["cache_prompt"] = False
    if r.random() < 0.15:
        body["response_format"] = {"type": "json_object"}
    if r.random() < 0.8:
        body["dtrun"] = {"policy": r.choice(POLICIES)} if r.random() < 0.8 else {"source": SOURCE}
    return body


def ask(body, cancel):
    """The texts and ends of all choices; None: cancelled."""
    c = http.client.HTTPConnection(URL.hostname, URL.port, timeout=300)
    c.request("POST", "/v1/completions", json.dumps(body))
    if cancel and not body["stream"]:
        c.sock.settimeout(cancel)
        try:
            answer = c.getresponse()
        except TimeoutError:
            c.close()
            return None
        c.sock and c.sock.settimeout(300)
    else:
        answer = c.getresponse()
    if answer.status == 503:
        return None
    if answer.status != 200:
        sys.exit(f"{body}: {answer.status} {answer.read()}")
    n = body.get("n", 1)
    texts, ends, logps = [""] * n, [None] * n, [[] for _ in range(n)]
    if body["stream"]:
        events, last = 0, False
        for line in answer:
            if line.startswith(b"data: [DONE]"):
                last = True
            elif line.startswith(b"data: "):
                choice = json.loads(line[6:])["choices"][0]
                texts[choice["index"]] += choice["text"]
                ends[choice["index"]] = choice["finish_reason"] or ends[choice["index"]]
                logps[choice["index"]] += (choice["logprobs"] or {}).get("token_logprobs", [])
                events += 1
                if cancel and events > 100 * cancel:
                    c.close()
                    return None
        if not last:
            sys.exit(f"{body}: a stream without an end")
    else:
        for choice in json.loads(answer.read())["choices"]:
            i = choice["index"]
            texts[i], ends[i] = choice["text"], choice["finish_reason"]
            logps[i] = (choice["logprobs"] or {}).get("token_logprobs", [])
    c.close()
    return texts, ends, logps


def at_once(bodies, alone, clients, r):
    order = list(range(len(bodies)))
    r.shuffle(order)
    cancels = {i: r.random() * 0.05 + 0.001 for i in order if r.random() < 0.2}
    wrong, ended, lock = [], [0], threading.Lock()

    def client():
        while True:
            with lock:
                if not order:
                    return
                i = order.pop()
            got = ask(bodies[i], cancels.get(i))
            with lock:
                ended[0] += got is not None
                if got is not None and got != alone[i]:
                    wrong.append(i)

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(f"{clients} at once: {ended[0]} of {len(bodies)} requests ended, {len(wrong)} differ")
    for i in wrong[:3]:
        print(f"differs: {json.dumps(bodies[i])}: {alone[i]}")
    return not wrong and ended[0] >= len(bodies) * 0.6


r = random.Random(SEED)
bodies = [request(r) for _ in range(N)]
alone = [ask(b, None) for b in bodies]
if None in alone:
    sys.exit("a request alone was refused")
print(f"1 at once: {N} requests")
good = [at_once(bodies, alone, clients, r) for clients in (8, 32)]
c = http.client.HTTPConnection(URL.hostname, URL.port, timeout=300)
c.request("GET", "/metrics")
hits = [line for line in c.getresponse().read().decode().split("\n") if line.startswith("dtrun:prompt_tokens_cached_total")]
print(*hits)
sys.exit(0 if all(good) and float(hits[0].split()[1]) > 50 * N else 1)
