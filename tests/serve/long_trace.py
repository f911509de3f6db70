"""The trace of a whole answer has at most 32 MiB, but its texts have all their tokens: long_trace.py URL. Python's own modules only."""

import json
import sys
import urllib.request

URL, MOST = sys.argv[1], 32 << 20
TEXTS, TOKENS = 20, 300
WIDE = """local P = require("dt.policy").define { name = "wide", doc = "64 guesses, all wrong", uses = { draft = false } }
function P:draft(tree)
  for i = 1, 64 do tree:add(tree.root, i) end
end
return P"""
body = {"prompt": "It was a dark night, and", "n": TEXTS, "temperature": 1, "seed": 1, "max_tokens": TOKENS, "ignore_eos": True,
        "dtrun": {"source": WIDE, "trace": True}}
with urllib.request.urlopen(URL + "/v1/completions", json.dumps(body).encode(), timeout=900) as answer:
    text = answer.read().decode()
whole = json.loads(text)
lines, told, longest, passes = 0, 0, 0, 0
decode, begin, at = json.JSONDecoder().raw_decode, '"trace":[', 0
for choice in whole["choices"]:
    at = text.index(begin, at) + len(begin)
    for _ in choice["dtrun"]["trace"]:
        _, end = decode(text, at)
        told, longest, lines = told + end - at, max(longest, end - at), lines + 1
        at = end + 1
    passes += choice["dtrun"]["stats"]["iterations"] + 2  # and the first and the last line
print(f"{lines} of {passes} lines, {told} bytes, {longest} the longest")
assert whole["usage"]["completion_tokens"] == TEXTS * TOKENS
assert MOST - longest < told <= MOST and lines < passes
