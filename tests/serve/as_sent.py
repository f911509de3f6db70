"""Requests as clients send them: as_sent.py URL, of a server with the layout chatml and the bundled target alone. Python's own modules only."""

import json

from asking import CHAT, TEXT, USER, ask, events, gets, refused, streamed, text_of

SAYS = {"messages": USER, "max_tokens": 4}
GOES = {"prompt": "It was a dark night, and", "max_tokens": 4}
PLAIN, PLAIN_CHAT = text_of(gets(TEXT, GOES)), text_of(gets(CHAT, SAYS))


def template(messages, **more):
    return gets("/apply-template", {"messages": messages, **more})["prompt"]


def says(role, content, **more):
    return {"role": role, "content": content, **more}


def turn(role, text):
    return f"<|im_start|>{role}\n{text}<|im_end|>\n"


# A body must be JSON.
for body, pattern in {
    b"": r"it ends too early \(byte 1 ",
    b'{"prompt":"a"': r"it ends too early \(byte 14 ",
    b'{"prompt":"a",}': r"expected a name in quotes \(byte 15 ",
    b'{"prompt":"a"} trailing': r"expected nothing after the value \(byte 16 ",
    b'{"prompt":"a"}}': r"expected nothing after the value \(byte 15 ",
    b'{"prompt":"a"}\0': r"expected nothing after the value \(byte 15 ",
    b'{"prompt":"a","n":01}': r"^n: .*number that is not valid in JSON \(byte 19 ",
    b'{"prompt":"a","n":+1}': r"^n: .*expected a value",
    b'{"prompt":"a","n":1.}': r"^n: .*number",
    b'{"prompt":"a","n":.5}': r"^n: .*expected a value",
    b'{"prompt":"a","n":NaN}': r"^n: .*expected a value",
    b'{"prompt":"a","n":0x1}': r"expected a comma or }",
    b'{"prompt":"a","n":1' + b"0" * 63 + b"}": r"^n: a number of more than 63 characters",
    b'{"prompt":"a" "n":1}': r"expected a comma or } \(byte 15 ",
    b'{"prompt" "a"}': r"^prompt: .*expected a colon",
    b'{"prompt":["a" "b"]}': r"^prompt: .*expected a comma or \]",
    b"{'prompt':'a'}": r"expected a name in quotes \(byte 2 ",
    b'{"prompt":"a\nb"}': r"^prompt: .*control character .* \(byte 13 ",
    b'{"prompt":"a\\x"}': r"^prompt: .*unknown escape \(byte 13 ",
    b'{"prompt":"a\\u12g4"}': r"^prompt: .*four hexadecimal digits .* \(byte 13 ",
    b'{"prompt":"\xff"}': r"^prompt: .*invalid UTF-8 \(byte 12 ",
    b'{"prompt":"\xed\xa0\x80"}': r"^prompt: .*invalid UTF-8",
    b'{"prompt":"\xc0\x80"}': r"^prompt: .*invalid UTF-8",
    b'{"prompt":"\\ud83d\\ud83d"}': r"^prompt: a lone surrogate, half of a character \(byte 12 ",
    b'{"messages":[{"role":"user","content":"\\udc00"}]}': r"^messages\[0\].content: a lone surrogate",
    b'{"a":' * 501 + b"1" + b"}" * 501: r"more than 500 levels",
    b"[" * 100000: r"more than 500 levels",
    b"[1]": r"^the body is not a JSON object",
    b"null": r"^the body is not a JSON object",
}.items():
    refused(TEXT, body, pattern)
gets(TEXT, b'\xef\xbb\xbf {"prompt":"a","max_tokens":1,"n":1e0} \r\n')
assert text_of(gets(TEXT, b'{"prompt":"It was a dark night, \\u0061nd","max_tokens":4}')) == PLAIN
for body, pattern in {
    b'{"prompt":"a","logit_bias":{"a":1,"\\u0061":2}}': r"^logit_bias.a: it is given twice",
    b'{"prompt":"a","dtrun":{"params":{"K":1,"K":1}}}': r"^dtrun.params.K: it is given twice",
    b'{"prompt":"a","response_format":{"type":"text","type":"text"}}': r"^response_format.type: it is given twice",
}.items():
    refused(TEXT, body, pattern)
refused(CHAT, b'{"messages":[{"role":"user","content":"a","role":"user"}]}', r"^messages\[0\].role: it is given twice")
for route, body in {"/tokenize": b'{"content":"a"} x', "/detokenize": b'{"tokens":[1],}', "/apply-template": b'{"messages":[01]}', "/v1/policies/check": b'{"source":"\\u0000"}'}.items():
    refused(route, body, r"\(byte \d+ of the body\)$")

# Messages: roles in any order that the templates of this layout allow, and their contents.
user, assistant, system = says("user", "a"), says("assistant", "b"), says("system", "s")
for roles in (("system", "user", "user"), ("user", "system"), ("system",), ("user", "assistant"), ("assistant", "user"), ("system", "system", "user"), ("user", "assistant", "assistant", "user")):
    given = [says(role, f"text {i}") for i, role in enumerate(roles)]
    expected = "".join(turn(role, f"text {i}") for i, role in enumerate(roles))
    assert template(given, add_generation_prompt=True) == template(given, continue_final_message=False) == expected + "<|im_start|>assistant\n", roles
    assert template(given, add_generation_prompt=False) == expected, roles
    if roles[-1] == "assistant":  # the answer continues it
        assert template(given) == template(given, continue_final_message=True) == template(given, continue_final_message=True, add_generation_prompt=False) == expected.removesuffix("<|im_end|>\n")
    else:
        assert template(given) == expected + "<|im_start|>assistant\n", roles
refused(CHAT, {"messages": [user], "continue_final_message": True}, r"^messages: only an answer of the assistant, without calls, can be continued")
refused(CHAT, {"messages": [user, assistant], "continue_final_message": True, "add_generation_prompt": True}, r"^continue_final_message: expected add_generation_prompt to be false")
refused(CHAT, {"messages": [user], "chat_template_kwargs": {"messages": []}}, r"^chat_template_kwargs: messages is a member of the request")
refused(CHAT, {"messages": [user], "chat_template_kwargs": []}, r"^chat_template_kwargs: expected an object")
refused(CHAT, {"messages": [user], "documents": {}}, r"^documents: expected a list")
refused(CHAT, {"messages": [user], "reasoning_effort": 1}, r"^reasoning_effort: expected a text")
assert template([user, says("tool", "42", tool_call_id="1", name="f")]) == turn("user", "a") + turn("tool", "42") + "<|im_start|>assistant\n"
assert template([says("developer", "s"), user]) == template([system, user])
assert template([user, says("assistant", None), user]) == template([user, says("assistant", ""), user])
assert template([user, {"role": "assistant"}, user]) == template([user, says("assistant", ""), user])
text = {"type": "text", "text": "x"}
assert template([says("user", [text, {"type": "text", "text": "y"}, text])]) == template([says("user", "x\ny\nx")])
assert template([says("user", [{**text, "cache_control": {"type": "ephemeral"}}])]) == template([says("user", "x")])
for given, pattern in (
    ([], r"^messages: expected a list"),
    ({}, r"^messages: expected a list"),
    (["a"], r"^messages\[0\]: expected {role, content}"),
    ([user, says("User", "x")], r"^messages\[1\].role: expected system, developer, user, assistant, tool, or a role"),
    ([user, says("tool", None)], r"^messages\[1\].content: expected a text"),
    ([{"content": "x"}], r"^messages\[0\].role: expected"),
    ([says("user", None)], r"^messages\[0\].content: expected a text"),
    ([says("system", None), user], r"^messages\[0\].content: expected a text"),
    ([says("user", 5)], r"^messages\[0\].content: expected a text"),
    ([says("user", [text, {"type": "image_url", "text": "z"}])], r"^messages\[0\].content\[1\]: .*type text.*image_url"),
    ([says("user", [{"type": "image_url", "image_url": {"url": "data:"}}])], r"^messages\[0\].content\[0\]: .*image_url"),
    ([says("user", ["x"])], r"^messages\[0\].content\[0\]: "),
    ([says("user", [{"type": "text"}])], r"^messages\[0\].content\[0\]: "),
    ([says("user", [{**text, "image_url": "z"}])], r"^messages\[0\].content\[0\].image_url: unknown field"),
    ([user, says("assistant", "x", function_call={}), user], r"^messages\[1\].function_call: "),
    ([says("user", "x", frob=1)], r"^messages\[0\].frob: unknown field"),
):
    refused("/apply-template", {"messages": given}, pattern)
    refused(CHAT, {"messages": given}, pattern)
assert text_of(gets(CHAT, {"messages": [says("assistant", None, tool_calls=[], refusal=None, audio=None, annotations=[]), *USER], "max_tokens": 2})) is not None

# Numbers at their bounds.
for least in (1e-4, 1e-9, 0.000999, 1e-300, 0):
    assert text_of(gets(TEXT, {**GOES, "temperature": least})) == PLAIN, least
for seed in range(4):
    assert text_of(gets(TEXT, {**GOES, "temperature": 2, "top_p": 0, "seed": seed})) == PLAIN
    assert text_of(gets(CHAT, {**SAYS, "top_p": 1e-300, "temperature": 2, "seed": seed})) == PLAIN_CHAT
sampled = {}
for seed in (0, 1, 2**53 + 1, 2**53 + 2, 2**63 - 1, 2**63, 2**64 - 1, -2, -(2**53) - 1, -(2**63)):
    body = {**GOES, "temperature": 1.5, "seed": seed, "max_tokens": 12, "dtrun": {}}
    answer = gets(TEXT, body)
    assert answer["choices"][0]["dtrun"]["seed"] == str(seed % 2**64), (seed, answer)
    assert text_of(gets(TEXT, body)) == text_of(answer)
    sampled.setdefault(text_of(answer), []).append(seed)
assert len(sampled) >= 8, sampled  # seeds that doubles cannot tell apart differ
assert len({text_of(gets(TEXT, {**GOES, "temperature": 1.5, "seed": -1, "max_tokens": 12})) for _ in range(6)}) > 1
for seed in ("1", 1.5, True, [1]):
    refused(TEXT, {**GOES, "seed": seed}, r"^seed: expected a whole number of 64 bits")
refused(TEXT, b'{"prompt":"a","logit_bias":{"a":1e999}}', r"^logit_bias: inf for token [0-9]+ is out of range: -1000 to 1000")
refused(TEXT, b'{"prompt":"a","logit_bias":{"a":-1e4}}', r"^logit_bias: -10000 for token [0-9]+ is out of range")
for bias, pattern in (
    ([[1.5, 5]], r"^logit_bias\[0\]: expected a whole number from 0 to 4095"),
    ([[5, 1], [-1, 5]], r"^logit_bias\[1\]: expected a whole number"),
    ([[5, 1, 2]], r"^logit_bias\[0\]: expected \[id or text, bias\]"),
    ([[5]], r"^logit_bias\[0\]: expected \[id or text, bias\]"),
    ([5], r"^logit_bias\[0\]: expected \[id or text, bias\]"),
    ([[5, True]], r"^logit_bias\[0\]: expected a number, or false"),
    ({"4096": 1}, r"^logit_bias: expected a whole number from 0 to 4095"),
    ({"99999999999999999999": 1}, r"^logit_bias: expected a whole number from 0 to 4095"),
    ({" 5x": 1}, r"^logit_bias"),
    ({"": 1}, r"^logit_bias"),
):
    refused(TEXT, {**GOES, "logit_bias": bias}, pattern)
five = gets("/tokenize", {"content": "5"})["tokens"]
assert text_of(gets(TEXT, {**GOES, "logit_bias": [["5", 1000]]})) == "5555"  # a text in a list, an id as a member's name
assert text_of(gets(TEXT, {**GOES, "logit_bias": {str(five[0]): 1000}})) == "5555"

# Several names of one field.
for one, other in (("max_tokens", "n_predict"), ("max_completion_tokens", "max_tokens"), ("repetition_penalty", "repeat_penalty")):
    refused(CHAT, {"messages": USER, one: 4, other: 5}, f"^{one} and {other}: two names of one field")
    gets(CHAT, {"messages": USER, "n_predict": 4, one: 4, other: 4})
assert "logprobs" in gets(CHAT, SAYS)["choices"][0] and gets(CHAT, {**SAYS, "logprobs": False, "top_logprobs": 2})["choices"][0]["logprobs"] is None
assert gets(CHAT, {**SAYS, "top_logprobs": 2, "logprobs": False})["choices"][0]["logprobs"] is None
assert len(gets(CHAT, {**SAYS, "logprobs": True, "top_logprobs": 2})["choices"][0]["logprobs"]["content"][0]["top_logprobs"]) == 2
assert gets(CHAT, {**SAYS, "top_logprobs": 0, "logprobs": True})["choices"][0]["logprobs"]["content"][0]["top_logprobs"] == []

# Log-probabilities of tokens that are parts of characters.
MIXED = "Hi 😊🚀 日本 é"
held = {"messages": USER, "max_tokens": 60, "logprobs": True, "grammar": f'root ::= "{MIXED}"'}
for tokens in (gets(CHAT, held)["choices"][0]["logprobs"]["content"],
               [t for e in events(held) for c in e["choices"] for t in (c["logprobs"] or {}).get("content", [])]):
    whole = b"".join(bytes(t["bytes"]) for t in tokens if "endoftext" not in t["token"])
    assert whole.decode() == MIXED, tokens
    assert all(bytes(t["bytes"]).decode(errors="replace") == t["token"] for t in tokens)
    assert any(len(t["bytes"]) == 1 and t["bytes"][0] > 127 for t in tokens), "no token is a part of a character"
echoed = gets(TEXT, {"prompt": MIXED, "max_tokens": 6, "logprobs": 1, "echo": True})["choices"][0]
offsets, pieces = echoed["logprobs"]["text_offset"], gets("/tokenize", {"content": MIXED, "with_pieces": True})["tokens"]
at = 0
for i, piece in enumerate(pieces):
    raw = piece["piece"].encode() if isinstance(piece["piece"], str) else bytes(piece["piece"])
    before = MIXED.encode()[:at].decode(errors="ignore")
    assert offsets[i] == len(before), (i, offsets, piece)
    at += len(raw)
assert at == len(MIXED.encode()) and offsets[len(pieces)] == len(MIXED), offsets
shown = [t if not t.startswith("bytes:") else bytes(int(x, 16) for x in t[6:].split("\\x")[1:]) for t in echoed["logprobs"]["tokens"][: len(pieces)]]
assert b"".join(t.encode() if isinstance(t, str) else t for t in shown) == MIXED.encode() and any(isinstance(t, bytes) for t in shown), shown
likely = gets(TEXT, {"prompt": "Hi 😊", "max_tokens": 20, "logprobs": 20, "temperature": 1.5, "seed": 3, "logit_bias": [[i, 8] for i in range(130, 250)]})
assert all(len(top) >= 20 for top in likely["choices"][0]["logprobs"]["top_logprobs"]), "two tokens have one name"
generated = {"prompt": "A", "max_tokens": 60, "logprobs": 0, "grammar": f'root ::= "{MIXED}"'}
alone = gets(TEXT, generated)["choices"][0]["logprobs"]["text_offset"]
assert alone == [o for e in events(generated, TEXT) for c in e["choices"] for o in (c["logprobs"] or {}).get("text_offset", [])]
assert alone == sorted(alone) and max(alone) <= len(MIXED)

# Prompts, one of several.
for prompt, pattern in (
    (["a", ""], r"^prompt\[1\]: expected at least one token"),
    ([[1], []], r"^prompt\[1\]: expected at least one token"),
    ([[1], [99999999]], r"^prompt\[1\]\[0\]: expected a whole number from 0 to 4095"),
    ([1, 2, -1], r"^prompt\[2\]: expected a whole number"),
    ([1, "a"], r"^prompt\[1\]: expected a whole number"),
    (["a", 1], r"^prompt\[1\]: expected a text, or a list of ids"),
    (["a", None], r"^prompt\[1\]: expected a text, or a list of ids"),
    ([], r"^prompt: expected"),
    ("", r"^prompt: expected at least one token"),
):
    refused(TEXT, {"prompt": prompt}, pattern)
for prompt, place in (("b " * 3000, "prompt"), (["a", "b " * 3000], "prompt[1]")):
    error = refused(TEXT, {"prompt": prompt}, r"tokens and the context 2048", kind="exceed_context_size_error")
    assert error["message"].startswith(place + ": ") and error["n_prompt_tokens"] > 2048 and error["n_ctx"] == 2048, error
error = refused(CHAT, {"messages": [says("user", "b " * 3000)]}, r"^messages: it has", kind="exceed_context_size_error")
assert error["n_prompt_tokens"] > 2048 and error["n_ctx"] == 2048
refused(TEXT, {**GOES, "stop": ["a", ""]}, r"^stop\[1\]: expected a text that is not empty")
refused(TEXT, {**GOES, "stop": ["a", 1]}, r"^stop\[1\]: expected a text")

# Tokens.
control, spelled = (gets("/tokenize", {"content": "a<|endoftext|>", "parse_special": special})["tokens"] for special in (True, False))
assert len(control) == 2 and len(spelled) > 4 and control[0] == spelled[0], (control, spelled)
pieces = gets("/tokenize", {"content": "Hi 日", "with_pieces": True, "parse_special": True, "add_special": False})["tokens"]
assert b"".join(p["piece"].encode() if isinstance(p["piece"], str) else bytes(p["piece"]) for p in pieces) == "Hi 日".encode()
assert [p["id"] for p in pieces] == gets("/tokenize", {"content": "Hi 日"})["tokens"]
assert gets("/detokenize", {"tokens": [p["id"] for p in pieces]}) == {"content": "Hi 日"}
for route, body, pattern in (
    ("/tokenize", {"content": "a", "parse_special": False, "add_special": True}, r"^parse_special: false is not supported with add_special"),
    ("/tokenize", {"content": "a", "with_pieces": 1}, r"^with_pieces: expected true or false"),
    ("/tokenize", {"content": "a", "frob": 1}, r"^frob: unknown field"),
    ("/tokenize", {}, r"^content: expected a text"),
    ("/detokenize", {"tokens": [1, 99999999]}, r"^tokens\[1\]: expected a whole number from 0 to 4095"),
    ("/detokenize", {"tokens": [1.5]}, r"^tokens\[0\]: expected a whole number"),
    ("/detokenize", {"tokens": "1"}, r"^tokens: expected a list of ids"),
    ("/apply-template", {"messages": USER, "frob": 1}, r"^frob: unknown field"),
    ("/v1/policies/check", {"source": "", "frob": 1}, r"^frob: unknown field"),
):
    refused(route, body, pattern)

# A grammar or schema that allows no text is an error of the request under every policy, not of the policy.
for policy in ("ar", "linear", "rate", "suffix", "dynatree"):
    own = {"dtrun": {"policy": policy}}
    banned = {"grammar": 'root ::= "Q"', "logit_bias": [["Q", False]]}
    refused(TEXT, {**GOES, **banned, **own}, r"^grammar: no token can follow the text: none in the vocabulary matches, or logit_bias")
    ways = 'root ::= [a-c]{3} ((("a"?){0,50}){0,50}){0,50}'
    refused(TEXT, {**GOES, "grammar": ways, "max_tokens": 60, **own}, r"^grammar: a text can be read in more than 4096 ways")
bounds = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 65536}, "b": {"type": "string", "maxLength": 65536}}}
refused(TEXT, {**GOES, "json_schema": bounds}, r"^JSON schema, #/properties/b: maxLength: .* more than 262144 parts")
assert text_of(gets(TEXT, {**GOES, "max_tokens": 60, "grammar": '\ufeffroot ::= "yes"'})) == "yes"  # a byte order mark

# Fields that would change the text are refused with a status after which no client tries again.
for more in ({"tools": {}}, {"functions": [{}]}, {"audio": {"voice": "x"}}, {"tool_choice": "required"}, {"n_probs": 2}, {"modalities": ["text", "audio"]}):
    refused(CHAT, {**SAYS, **more}, rf"^{next(iter(more))}: ")
refused(TEXT, {**GOES, "suffix": "b"}, r"^suffix: ")
assert text_of(gets(CHAT, {**SAYS, "tools": [], "tool_choice": "none", "modalities": ["text"], "functions": None})) == PLAIN_CHAT
assert streamed({**SAYS, "stream_options": {"include_usage": True, "include_obfuscation": False, "continuous_usage_stats": True}}) == PLAIN_CHAT
refused(CHAT, {**SAYS, "stream": True, "stream_options": {"frob": 1}}, r"^stream_options.frob: unknown field")
refused(CHAT, {**SAYS, "stream": True, "stream_options": {"include_usage": 1}}, r"^stream_options: expected include_usage")
assert ask(TEXT, json.dumps(GOES).encode())[0] == 200
print("all requests are answered as they should be")
