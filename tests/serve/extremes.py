"""Every text of a request with a NUL character, a lone surrogate, invalid UTF-8 and 8 MiB; every number at and beyond its bounds: extremes.py URL [long], on a server
with the layout chatml. Python's own modules only. long: the texts of 8 MiB too.

No request ends the server or gets a status of 500 or more, and what is refused names the place.
"""

import json
import math
import re
import sys
import time

from asking import CHAT, TEXT, USER, ask, exchange, gets, refused

HERE = "@@"  # where the text goes
GOES, SAYS = {"prompt": "a", "max_tokens": 1}, {"messages": USER, "max_tokens": 1}
PARTS = [{"type": "text", "text": "a"}, {"type": "text", "text": HERE}]


def says(**more):
    return {"messages": [{"role": "user", "content": "a", **more}], "max_tokens": 1}


# place -> a request with a text there: the route, and the body
TEXTS = {
    "prompt": (TEXT, {**GOES, "prompt": HERE}),
    "prompt[1]": (TEXT, {**GOES, "prompt": ["a", HERE]}),
    "model": (TEXT, {**GOES, "model": HERE}),
    "user": (TEXT, {**GOES, "user": HERE}),
    "metadata.k": (TEXT, {**GOES, "metadata": {"k": HERE}}),
    "metadata.@@": (TEXT, {**GOES, "metadata": {HERE: "v"}}),
    "suffix": (TEXT, {**GOES, "suffix": HERE}),
    "stop": (TEXT, {**GOES, "stop": HERE}),
    "stop[1]": (TEXT, {**GOES, "stop": ["x", HERE]}),
    "grammar": (TEXT, {**GOES, "grammar": HERE}),
    "json_schema.const": (TEXT, {**GOES, "json_schema": {"const": HERE}}),
    "json_schema.title": (TEXT, {**GOES, "json_schema": {"title": HERE}}),
    "json_schema.pattern": (TEXT, {**GOES, "json_schema": {"pattern": HERE}}),
    "json_schema.properties.@@": (TEXT, {**GOES, "json_schema": {"properties": {HERE: {}}}}),
    "response_format.type": (TEXT, {**GOES, "response_format": {"type": HERE}}),
    "response_format.json_schema.name": (TEXT, {**GOES, "response_format": {"type": "json_schema", "json_schema": {"name": HERE, "schema": {}}}}),
    "logit_bias.@@": (TEXT, {**GOES, "logit_bias": {HERE: 1}}),
    "logit_bias[0][0]": (TEXT, {**GOES, "logit_bias": [[HERE, 1]]}),
    "dtrun.policy": (TEXT, {**GOES, "dtrun": {"policy": HERE}}),
    "dtrun.source": (TEXT, {**GOES, "dtrun": {"source": HERE}}),
    "dtrun.preset": (TEXT, {**GOES, "dtrun": {"policy": "linear", "preset": HERE}}),
    "dtrun.params.@@": (TEXT, {**GOES, "dtrun": {"policy": "linear", "params": {HERE: 1}}}),
    "dtrun.params.K": (TEXT, {**GOES, "dtrun": {"policy": "linear", "params": {"K": HERE}}}),
    "dtrun.@@": (TEXT, {**GOES, "dtrun": {HERE: 1}}),
    "@@": (TEXT, {**GOES, HERE: 1}),
    "messages[0].role": (CHAT, says(role=HERE)),
    "messages[0].content": (CHAT, says(content=HERE)),
    "messages[0].content[1].text": (CHAT, says(content=PARTS)),
    "messages[0].content[0].type": (CHAT, says(content=[{"type": HERE, "text": "a"}])),
    "messages[0].name": (CHAT, says(name=HERE)),
    "messages[0].@@": (CHAT, says(**{HERE: 1})),
    "reasoning_format": (CHAT, {**SAYS, "reasoning_format": HERE}),
    "reasoning_effort": (CHAT, {**SAYS, "reasoning_effort": HERE}),
    "tool_choice": (CHAT, {**SAYS, "tool_choice": HERE}),
    "stream_options.@@": (CHAT, {**SAYS, "stream_options": {HERE: 1}}),
    "prediction.content": (CHAT, {**SAYS, "prediction": {"type": "content", "content": HERE}}),
    "content": ("/tokenize", {"content": HERE}),
    "tokens[0]": ("/detokenize", {"tokens": [HERE]}),
    "messages[1].content": ("/apply-template", {"messages": [*USER, {"role": "assistant", "content": HERE}, *USER]}),
    "source": ("/v1/policies/check", {"source": HERE}),
}
WRONG = {  # what a text holds, and why it is refused
    b"a\\u0000b c": r"a NUL character, which no text here may hold \(byte \d+ of the body\)$",
    b"a\0b": r"a NUL character, which no text here may hold \(byte \d+ of the body\)$",
    b"a\\ud800b": r"a lone surrogate, half of a character \(byte \d+ of the body\)$",
    b"\\udfff": r"a lone surrogate, half of a character \(byte \d+ of the body\)$",
    b"a\xffb": r"invalid UTF-8 \(byte \d+ of the body\)$",
    b"\xe2\x82": r"invalid UTF-8 \(byte \d+ of the body\)$",
}


def filled(body, text):
    raw = json.dumps(body).encode()
    assert raw.count(HERE.encode()) == 1, body
    return raw.replace(HERE.encode(), text)


for place, (route, body) in TEXTS.items():
    for text, reason in WRONG.items():
        path = re.escape(place).replace("@@", ".*") if b"\xff" not in text and b"\xe2" not in text else ".*"
        error = refused(route, filled(body, text), rf"^{path}: (not valid JSON: )?{reason}")
        byte = int(re.search(r"byte (\d+)", error["message"])[1])
        raw = filled(body, text)
        assert raw[byte - 1 : byte] in (b"\\", b"\0", text[-1:], text[1:2], text[:1]), (place, text, byte, raw[byte - 3 : byte + 3])
    status, answer = ask(route, filled(body, b"\\u00e9\\ud83d\\ude0a\\n\\\"\\\\/"))  # what JSON may escape
    assert status in (200, 400), (place, status, answer)

if "long" in sys.argv[2:]:
    slowest = (0, "")
    for place, (route, body) in TEXTS.items():
        for unit in (b"a", b"\\n", b"the dog ", "😊".encode()):
            room = (8 << 20) - len(filled(body, b""))
            raw = filled(body, unit * (room // len(unit)))
            begun = time.monotonic()
            status, _, answer = exchange("POST", route, raw)
            slowest = max(slowest, (time.monotonic() - begun, place))
            assert status in (200, 400), (place, unit, status, answer[:200])
            assert len(answer) < 64 << 20
    status, _, _ = exchange("POST", TEXT, filled(TEXTS["prompt"][1], b"a" * (8 << 20)))
    assert status == 413
    assert exchange("GET", "/health")[0] == 200
    print(f"the slowest text of 8 MiB took {slowest[0]:.1f} s: {slowest[1]}")

# name, least, most, whether it is whole, and routes; None: none that a request can state
NUMBERS = [
    ("temperature", 0, 100, False, (TEXT, CHAT)),
    ("top_p", 0, 1, False, (TEXT, CHAT)),
    ("min_p", 0, 1, False, (TEXT, CHAT)),
    ("top_k", -1, 2**31 - 1, True, (TEXT, CHAT)),
    ("seed", -(2**63), 2**64 - 1, True, (TEXT, CHAT)),
    ("n", 1, 128, True, (TEXT,)),
    ("best_of", 1, 1, True, (TEXT,)),
    ("max_tokens", -1, 2**31 - 1, True, (TEXT, CHAT)),
    ("max_completion_tokens", -1, 2**31 - 1, True, (TEXT, CHAT)),
    ("n_predict", -1, 2**31 - 1, True, (TEXT, CHAT)),
    ("min_tokens", 0, 1, True, (TEXT,)),
    ("thinking_budget", -1, 2**31 - 1, True, (TEXT, CHAT)),
    ("logprobs", 0, 20, True, (TEXT,)),
    ("top_logprobs", 0, 20, True, (CHAT,)),
    ("presence_penalty", -100, 100, False, (TEXT, CHAT)),
    ("frequency_penalty", -100, 100, False, (TEXT, CHAT)),
    ("repetition_penalty", 0.01, 100, False, (TEXT, CHAT)),
    ("repeat_penalty", 0.01, 100, False, (TEXT, CHAT)),
]
tried = 0
for name, least, most, whole, routes in NUMBERS:
    for route in routes:
        body = {k: v for k, v in (GOES if route == TEXT else SAYS).items() if not (k == "max_tokens" and name in ("max_completion_tokens", "n_predict"))}
        body.update({"temperature": 1} if name in ("n", "seed", "top_p", "min_p", "top_k") else {})
        body.update({"logit_bias": [["<|endoftext|>", 1000]], "max_tokens": None} if most == 2**31 - 1 and name != "top_k" else {})  # it ends at once

        def sent(value):
            rest = json.dumps({k: v for k, v in body.items() if k != name})
            return f'{rest[:-1]}, "{name}": {value}}}'.encode()

        def step(x, way):
            """The next number; the engine's have 24 bits."""
            return x + way if whole else x + way * abs(x) * 2**-23 if x else way * 5e-324

        for value in {str(least), str(most), str(step(least, 1) if least != most else least), str(step(most, -1) if least != most else most), "null"}:
            if value == "0" and least == -1 and name != "top_k":
                continue  # wants echo
            status, answer = ask(route, sent(value))
            assert status == 200, (name, value, status, answer)
        beyond = [str(step(least, -1)), str(step(most, 1)), "1e999", "-1e999", str(10**60), '"1"', "true", "[]", "{}"]
        beyond += ["0.5", "1.0000001", "1e-999999"] if whole else ["-1e-300"] if least == 0 else []
        for value in beyond:
            if (value == "true" and name == "logprobs") or (value in ("1e-999999",) and least <= 0):
                continue  # true: as a chat's; 1e-999999 is 0
            refused(route, sent(value), rf"^{name}: ")
            tried += 1
for value, fine in (("1000", 1), ("-1000", 1), ("1000.0001", 0), ("-1000.0001", 0), ("1e999", 0), ("true", 0), ("null", 0), ('"1"', 0)):
    for bias in ('{"5": %s}', '[[5, %s]]', '[["a", %s]]'):
        raw = f'{json.dumps(GOES)[:-1]}, "logit_bias": {bias % value}}}'.encode()
        gets(TEXT, raw) if fine else refused(TEXT, raw, r"^logit_bias")
for value, fine in (("0", 1), ("4095", 1), ("4096", 0), ("-1", 0), ("0.5", 0), ("1e999", 0), (str(2**32), 0), (str(2**64), 0)):
    for route, raw, place in ((TEXT, '{"max_tokens": 1, "prompt": [1, %s]}', r"prompt\[1\]"), (TEXT, '{"max_tokens": 1, "prompt": [[1], [%s]]}', r"prompt\[1\]\[0\]"),
                              (TEXT, '{"max_tokens": 1, "prompt": "a", "logit_bias": [[%s, 1]]}', r"logit_bias\[0\]"), ("/detokenize", '{"tokens": [%s]}', r"tokens\[0\]")):
        gets(route, (raw % value).encode()) if fine else refused(route, (raw % value).encode(), rf"^{place}: expected a whole number from 0 to 4095$")
print(f"{len(TEXTS)} places of texts, {len(NUMBERS)} numbers: {tried} values beyond their bounds are refused")
