"""Fill-in-the-middle: infill.py URL marks, on a server whose vocabulary has the marks of infill_model.py; "infill.py URL code" on one with Qwen2.5-Coder;
"infill.py URL none" on one without such marks. Python's own modules only."""

import json
import sys

from asking import TEXT, ask, exchange, gets, refused

INFILL = "/infill"
BEFORE, AFTER = "The little girl saw a", " and was happy.\n<|fim_middle|> is text"
GAP = {"input_prefix": BEFORE, "input_suffix": AFTER, "max_tokens": 12}
NONE = r"the vocabulary of [\w.-]+ has no tokens for fill-in-the-middle, such as <\|fim_prefix\|>$"


def ids(text, **more):
    return gets("/tokenize", {"content": text, **more})["tokens"]


def mark(name):
    (found,) = ids(f"<|{name}|>")
    return found


def plain(text):
    return ids(text, parse_special=False)


def streamed(body):
    status, headers, answer = exchange("POST", INFILL, {**body, "stream": True})
    assert status == 200 and headers["Content-Type"] == "text/event-stream", (status, answer)
    events = [json.loads(line[6:]) for line in answer.decode().split("\n") if line.startswith("data: ")]
    assert all(not e["stop"] for e in events[:-1]) and events[-1]["stop"] and events[-1]["content"] == "", events
    return "".join(e["content"] for e in events), events[-1]


def check_order():
    """The prompt is prefix, suffix, middle, and what texts spell is no mark."""
    prompt = [mark("fim_prefix"), *plain(BEFORE), mark("fim_suffix"), *plain(AFTER), mark("fim_middle")]
    for more in ({}, {"temperature": 1, "seed": 3}, {"temperature": 1, "seed": 4, "top_p": 0.9}):
        body = {"max_tokens": 12, **more}
        expected = gets(TEXT, {"prompt": prompt, **body})["choices"][0]["text"]
        assert gets(TEXT, {"prompt": BEFORE, "suffix": AFTER, **body})["choices"][0]["text"] == expected
        answer = gets(INFILL, {**GAP, **more})
        assert answer["content"] == expected, (answer, expected)
        assert answer["tokens_evaluated"] == len(prompt) and answer["tokens_predicted"] <= 12 and answer["stop"] is True, answer
        assert answer["stop_type"] in ("eos", "limit") and answer["timings"]["predicted_n"] == answer["tokens_predicted"]
        text, last = streamed({**GAP, **more})
        assert text == expected and last["stop_type"] == answer["stop_type"] and last["tokens_predicted"] == answer["tokens_predicted"]
    many = gets(TEXT, {"prompt": [BEFORE, "It"], "suffix": AFTER, "max_tokens": 4})
    assert many["usage"]["prompt_tokens"] == len(prompt) + len(prompt) - len(plain(BEFORE)) + len(plain("It"))
    assert gets(TEXT, {"prompt": BEFORE, "suffix": "", "max_tokens": 4}) ["usage"]["prompt_tokens"] == len(plain(BEFORE))

    # A beginning of the text in the gap, and other files.
    begun = gets(TEXT, {"prompt": [*prompt, *plain(" big")], "max_tokens": 12})["choices"][0]["text"]
    assert gets(INFILL, {**GAP, "prompt": " big"})["content"] == begun
    assert gets(INFILL, {**GAP, "input_extra": []})["content"] == gets(INFILL, {**GAP, "input_extra": None, "prompt": None})["content"]
    files = [{"filename": "dogs.txt", "text": "A dog is big."}, {"text": "A cat <|file_sep|> is small."}]
    with_files = [mark("repo_name"), *plain("myproject\n")]
    for name, text in (("dogs.txt", files[0]["text"]), ("tmp", files[1]["text"])):
        with_files += [mark("file_sep"), *plain(name), *plain("\n"), *plain(text), *plain("\n")]
    with_files += [mark("file_sep"), *plain("filename"), *plain("\n"), *prompt]
    answer = gets(INFILL, {**GAP, "input_extra": files})
    assert answer["tokens_evaluated"] == len(with_files), (answer, len(with_files))
    assert answer["content"] == gets(TEXT, {"prompt": with_files, "max_tokens": 12})["choices"][0]["text"]

    # Where the gap's text ends.
    for name in ("fim_pad", "repo_name", "file_sep"):
        answer = gets(INFILL, {**GAP, "logit_bias": [[mark(name), 100]]})
        assert (answer["content"], answer["stop_type"], answer["tokens_predicted"]) == ("", "eos", 1), (name, answer)
    expected = gets(INFILL, GAP)["content"]
    cut = gets(INFILL, {**GAP, "stop": [expected[3:6]]})
    assert cut["stop_type"] == "word" and cut["content"] == expected[: expected.index(expected[3:6])], cut
    two = gets(INFILL, {**GAP, "temperature": 1, "seed": 3, "n": 2})
    assert [a["index"] for a in two] == [0, 1] and two[0]["content"] == gets(INFILL, {**GAP, "temperature": 1, "seed": 3})["content"]
    assert gets(INFILL, {**GAP, "dtrun": {"policy": "ar"}})["content"] == expected


def check_plugins():
    """Bodies as the plug-ins llama.vim and llama.vscode send them."""
    fields = ["content", "timings/prompt_n", "timings/predicted_ms", "truncated", "nothing", "timings/nothing"]
    sent = {**GAP, "input_extra": [], "prompt": "", "id_slot": 0, "n_predict": 12, "stop": [], "top_k": 40, "top_p": 0.9, "samplers": ["top_k", "top_p", "infill"], "stream": False,
            "cache_prompt": True, "t_max_prompt_ms": 500, "t_max_predict_ms": 5000, "n_indent": 0}
    expected = gets(INFILL, sent)
    assert expected["content"] == gets(INFILL, GAP)["content"], expected
    answer = gets(INFILL, {**sent, "response_fields": fields})
    assert list(answer) == fields[:4] and answer["content"] == expected["content"] and answer["timings/prompt_n"] == expected["timings"]["prompt_n"], answer
    assert gets(INFILL, {**sent, "n_cmpl": 3})["content"] == expected["content"]
    hot = {**sent, "temperature": 1, "seed": 3, "samplers": [*sent["samplers"], "temperature"], "n_cmpl": 2}
    assert len(gets(INFILL, hot)) == 2
    primes = {**GAP, "n_predict": 0, "temperature": 0.0, "samplers": [], "cache_prompt": True, "t_max_prompt_ms": 1, "t_max_predict_ms": 1}
    for name in ("max_tokens", "top_k"): primes.pop(name, None)
    first = gets(INFILL, {**primes, "input_prefix": "A text that no other request has had" + BEFORE})
    assert first["content"] == "" and first["tokens_predicted"] == 0, first
    assert gets(INFILL, {**GAP, "input_prefix": "A text that no other request has had" + BEFORE})["tokens_cached"] >= first["tokens_evaluated"] - 1
    assert gets(INFILL, {**primes, "response_fields": [""]}) == {}
    assert streamed(primes)[0] == ""


def cut(text, indent):
    """The text before the first line, but its first, that has fewer spaces at its beginning."""
    at = 0
    while (at := text.find("\n", at) + 1):
        line = text[at:]
        spaces = len(line) - len(line.lstrip(" \t"))
        if line.lstrip(" \t") and spaces < indent: return text[: at + spaces]
    return text


def check_lines():
    """Ends of lines: a grammar makes texts of them."""
    grammar = 'root ::= "a" line line line line line\nline ::= "\\n" [ ]? [ ]? [ ]? "b"'
    cuts = 0
    for seed in range(8):
        body = {**GAP, "max_tokens": 60, "temperature": 1, "seed": seed, "grammar": grammar}
        whole = gets(INFILL, body)["content"]
        for indent in (1, 2, 3):
            answer = gets(INFILL, {**body, "n_indent": indent})
            assert answer["content"] == cut(whole, indent), (whole, answer)
            assert streamed({**body, "n_indent": indent})[0] == answer["content"]
            cuts += answer["content"] != whole
            assert answer["content"] == whole or answer["stop_type"] == "limit", answer
    assert cuts > 5, cuts
    endless = {**GAP, "max_tokens": 3000, "grammar": 'root ::= "a\\n" "b"*', "t_max_predict_ms": 200}
    answer = gets(INFILL, endless)
    assert answer["stop_type"] == "limit" and 5 < answer["tokens_predicted"] < 3000 and answer["content"].startswith("a\nb"), answer
    refused(TEXT, {"prompt": "a", "n_indent": 1, "logprobs": 1}, r"^logprobs: expected 0 together with n_indent$")


def check_mistakes():
    for more, pattern in (
        ({"input_prefix": None}, r"^input_prefix: expected a text$"),
        ({"input_suffix": 1}, r"^input_suffix: expected a text$"),
        ({"prompt": ["a"]}, r"^prompt: expected a text$"),
        ({"input_extra": {}}, r"^input_extra: expected a list of \{text, filename\}$"),
        ({"input_extra": [{"text": "a"}, {"filename": "b"}]}, r"^input_extra\[1\]: expected \{text, filename\}, both texts$"),
        ({"input_extra": [{"text": "a", "filename": 1}]}, r"^input_extra\[0\]: expected \{text, filename\}, both texts$"),
        ({"input_extra": ["a"]}, r"^input_extra\[0\]: expected \{text, filename\}, both texts$"),
        ({"input_extra": [{"text": "a", "frob": 1}]}, r"^input_extra\[0\]\.frob: unknown field$"),
        ({"frob": 1}, r"^frob: unknown field$"),
        ({"samplers": ["mirostat"]}, r"^samplers: expected top_k, top_p, min_p, temperature or infill$"),
        ({"samplers": "infill"}, r"^samplers: expected a list of names$"),
        ({"samplers": ["infill"], "top_k": 40}, r"^samplers: expected top_k, which the body sets$"),
        ({"response_fields": "content"}, r"^response_fields: expected a list of texts$"),
        ({"response_fields": [1]}, r"^response_fields: expected a list of texts$"),
        ({"response_fields": ["content"], "stream": True}, r"^response_fields: expected an empty list together with stream$"),
        ({"n_indent": 1e300}, r"^n_indent: expected an integer from 0$"),
        ({"n_indent": -1}, r"^n_indent: expected an integer from 0$"),
        ({"t_max_predict_ms": 0.5}, r"^t_max_predict_ms: expected an integer from -1$"),
        ({"temperature": "x"}, r"^temperature: expected a number$"),
        ({"echo": True}, r"^echo: only false is supported$"),
        ({"logprobs": 1}, r"^logprobs: only 0 is supported$"),
        ({"messages": []}, r"^messages: unknown field$"),
    ):
        refused(INFILL, {**GAP, **more}, pattern)
    refused(INFILL, {**GAP, "input_prefix": "a " * 5000}, r"^prompt: it has \d+ tokens and the context \d+", kind="exceed_context_size_error")
    for more, pattern in (
        ({"suffix": 1}, r"^suffix: expected a text$"),
        ({"prompt": [5, 6]}, r"^suffix: expected a prompt that is a text, not a list of ids$"),
        ({"prompt": [[5], "a"]}, r"^suffix: expected a prompt that is a text, not a list of ids$"),
        ({"echo": True}, r"^suffix: expected echo to be false$"),
    ):
        refused(TEXT, {"prompt": "a", "suffix": "b", **more}, pattern)
    refused(TEXT, b'{"prompt": 5, "suffix": "b"}', r"^prompt: expected a text")
    gets(TEXT, {"suffix": None, "prompt": [5, 6], "max_tokens": 2})


what = sys.argv[2]
if what == "none":
    refused(INFILL, GAP, "^/infill: " + NONE)
    refused(TEXT, {"prompt": BEFORE, "suffix": AFTER}, "^suffix: " + NONE)
    assert ask(TEXT, {"prompt": BEFORE, "suffix": "", "max_tokens": 2})[0] == 200
else:
    check_order()
    check_plugins()
    check_lines()
    check_mistakes()
if what == "code":
    body = {"input_prefix": "def add(a, b):\n    return ", "input_suffix": "\n\nprint(add(1, 2))\n", "max_tokens": 24}
    said = gets(INFILL, body)["content"]
    assert said.startswith("a + b"), said
    print("a gap in a function:", json.dumps(said))
