"""ollama's API: ollama.py URL talkative, on a server with the template talkative.jinja, in whose format the small model calls tools by itself; "ollama.py URL
reasoning" with reasoning.jinja; "ollama.py URL base" without a template. Python's own modules only."""

import json
import re
import sys

from asking import CHAT, TEXT, exchange, gets, text_of

API_CHAT, GENERATE = "/api/chat", "/api/generate"
ASKED = [{"role": "user", "content": "The dog?"}]
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "The weather.", "parameters": {
    "type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}, "at": {"type": "integer"}}, "required": ["city", "at"], "additionalProperties": False}}}
SAMPLED = ({}, {"temperature": 1, "seed": 7}, {"temperature": 1.2, "seed": 2**60 + 1, "top_p": 0.9, "top_k": 40, "min_p": 0.01, "repeat_penalty": 1.1,
                                              "presence_penalty": 0.2, "frequency_penalty": 0.3, "stop": ["dog", "zzz"]})


def post(route, body, method="POST"):
    status, headers, answer = exchange(method, route, body)
    return status, headers, answer.decode()


def whole(route, body):
    status, headers, answer = post(route, {"model": "any", "stream": False, **body})
    assert status == 200 and headers["Content-Type"] == "application/json", (status, answer, body)
    return json.loads(answer)


def stream(route, body):
    """The lines of a stream, of which only the last is the end."""
    status, headers, answer = post(route, {"model": "any", **body})
    assert status == 200 and headers["Content-Type"] == "application/x-ndjson" and answer.endswith("\n"), (status, headers, answer)
    lines = [json.loads(line) for line in answer.rstrip("\n").split("\n")]
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True], answer
    return lines


def joined(lines):
    """One message of a stream's lines."""
    said = [line.get("message", line) for line in lines]
    return {"content": "".join(m.get("content", m.get("response")) for m in said), "thinking": "".join(m.get("thinking", "") for m in said),
            "calls": [call for m in said for call in m.get("tool_calls", [])]}


def check_end(end, expected):
    """The end of an answer, compared with one of OpenAI's."""
    usage, finish = expected["usage"], expected["choices"][0]["finish_reason"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", end["created_at"]), end
    assert end["done"] is True and end["done_reason"] == ("length" if finish == "length" else "stop"), (end, finish)
    assert (end["prompt_eval_count"], end["eval_count"]) == (usage["prompt_tokens"], usage["completion_tokens"]), (end, usage)
    times = [end[name] for name in ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")]
    assert all(isinstance(t, int) and t >= 0 for t in times) and times[0] >= times[2] + times[3] - 1000 and times[0] > 1000, times
    assert end["model"] == expected["model"]


def as_openai(options, n=12):
    return {"max_tokens": n, **options}


def refused(route, body, message, status=400, method="POST"):
    got, _, answer = post(route, body, method)
    assert got == status and json.loads(answer) == {"error": message}, (got, answer, message)


def check_chats():
    conversations = (ASKED, [{"role": "system", "content": "Be brief."}, *ASKED, {"role": "assistant", "content": "It ran."}, {"role": "user", "content": "And é?"}],
                     [*ASKED, {"role": "assistant", "content": "The dog was"}])
    for messages in conversations:
        for options in SAMPLED:
            expected = gets(CHAT, {"messages": messages, **as_openai(options)})
            body = {"messages": messages, "options": {"num_predict": 12, **options}}
            answer, lines = whole(API_CHAT, body), stream(API_CHAT, body)
            assert answer["message"] == {"role": "assistant", "content": text_of(expected)}, (answer, expected)
            assert joined(lines)["content"] == text_of(expected) and len(lines) > 2, (lines, expected)
            check_end(answer, expected)
            check_end(lines[-1], expected)
    assert whole(API_CHAT, {"messages": ASKED, "options": {"num_predict": -2, "stop": "man"}})["done_reason"] == "stop"


def check_generate():
    for more, messages in (({}, ASKED), ({"system": "Be brief."}, [{"role": "system", "content": "Be brief."}, *ASKED]), ({"system": "", "suffix": None}, ASKED)):
        for options in SAMPLED:
            expected = gets(CHAT, {"messages": messages, **as_openai(options)})
            body = {"prompt": "The dog?", "options": {"num_predict": 12, **options}, **more}
            answer, lines = whole(GENERATE, body), stream(GENERATE, body)
            assert answer["response"] == joined(lines)["content"] == text_of(expected), (answer, lines, expected)
            assert "message" not in answer
            check_end(answer, expected)
            check_end(lines[-1], expected)
    expected = gets(TEXT, {"prompt": "It was a dark night, and", "max_tokens": 12})
    answer = whole(GENERATE, {"prompt": "It was a dark night, and", "raw": True, "options": {"num_predict": 12}})
    assert answer["response"] == text_of(expected)
    check_end(answer, expected)


def check_calls():
    for n in (40, 80):
        expected = gets(CHAT, {"messages": ASKED, "tools": [TOOL], "max_tokens": n})
        message = expected["choices"][0]["message"]
        body = {"messages": ASKED, "tools": [TOOL], "options": {"num_predict": n}}
        answer, lines = whole(API_CHAT, body), stream(API_CHAT, body)
        called = [{"name": c["function"]["name"], "arguments": json.loads(c["function"]["arguments"])} for c in message.get("tool_calls", [])]
        for got in (joined([answer]), joined(lines)):
            assert [{"name": c["function"]["name"], "arguments": c["function"]["arguments"]} for c in got["calls"]] == called and got["content"] == (message["content"] or "")
            assert [c["function"]["index"] for c in got["calls"]] == list(range(len(called))) and len({c["id"] for c in got["calls"]}) == len(called)
        check_end(answer, expected)
    assert called and called[0]["name"] == "get_weather" and called[0]["arguments"]["city"] in ("Paris", "Rome") and message["content"], expected  # a whole call, then one that is cut

    # What calls gave, with and without ids; numbers keep their digits.
    arguments = '{"city": "Paris", "at": 1234567890123456789}'
    said = f'{{"role": "assistant", "content": "", "tool_calls": [{{"function": {{"name": "get_weather", "arguments": {arguments}}}}}, {{"id": "own", "function": {{"name": "get_weather", "arguments": {{}}}}}}]}}'
    turns = f'[{json.dumps(ASKED[0])}, {said}, {{"role": "tool", "tool_name": "get_weather", "content": "21"}}, {{"role": "tool", "tool_call_id": "own", "content": "22"}}]'
    calls = f'[{{"id": "call00000", "type": "function", "function": {{"name": "get_weather", "arguments": {json.dumps(arguments)}}}}}, {{"id": "own", "type": "function", "function": {{"name": "get_weather", "arguments": "{{}}"}}}}]'
    theirs = f'[{json.dumps(ASKED[0])}, {{"role": "assistant", "content": "", "tool_calls": {calls}}}, {{"role": "tool", "name": "get_weather", "tool_call_id": "call00000", "content": "21"}}, {{"role": "tool", "tool_call_id": "own", "content": "22"}}]'
    expected = gets(CHAT, f'{{"messages": {theirs}, "max_tokens": 12}}'.encode())
    status, _, answer = post(API_CHAT, f'{{"messages": {turns}, "stream": false, "options": {{"num_predict": 12}}}}'.encode())
    assert status == 200 and json.loads(answer)["message"]["content"] == text_of(expected), (answer, expected)
    check_end(json.loads(answer), expected)


def check_formats():
    schema = {"type": "object", "properties": {"n": {"enum": [1, 12345678901234567]}, "s": {"const": "é"}}, "required": ["n", "s"], "additionalProperties": False}
    for route, asked in ((API_CHAT, {"messages": ASKED}), (GENERATE, {"prompt": "The dog?"}), (GENERATE, {"prompt": "The dog?", "raw": True})):
        for options in ({}, {"temperature": 1, "seed": 3}):
            body = {**asked, "options": {"num_predict": 60, **options}, "format": schema}
            for got in (joined([whole(route, body)])["content"], joined(stream(route, body))["content"]):
                assert json.loads(got) in ({"n": 1, "s": "é"}, {"n": 12345678901234567, "s": "é"}), got
        got = joined([whole(route, {**asked, "format": "json", "options": {"num_predict": 40}})])["content"]
        assert got.lstrip().startswith("{"), got
        assert joined([whole(route, {**asked, "format": "", "options": {"num_predict": 5}})])["content"]


def check_model():
    _, _, models = exchange("GET", "/v1/models")
    name = json.loads(models)["data"][0]["id"]
    version = json.loads(exchange("GET", "/api/version")[2])["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    (one,) = json.loads(exchange("GET", "/api/tags")[2])["models"]
    assert one["name"] == one["model"] == name + ":latest" and one["size"] > 0 and re.fullmatch(r"[0-9a-f]{32}", one["digest"]), one
    assert one["details"]["format"] == "safetensors" and one["details"]["family"] == "gpt_neox" and one["details"]["quantization_level"] == "F16", one
    (running,) = json.loads(exchange("GET", "/api/ps")[2])["models"]
    assert running["name"] == one["name"] and running["context_length"] == 2048 and running["expires_at"] > "2100" and running["size_vram"] == 0, running
    status, _, answer = post("/api/show", {"model": one["name"], "verbose": True})
    about = json.loads(answer)
    assert status == 200 and about["model_info"]["general.architecture"] == "gpt_neox" and about["model_info"]["gpt_neox.context_length"] == 2048, about
    assert "completion" in about["capabilities"] and "insert" not in about["capabilities"], about
    for asked in (name, name + ":latest", "unknown:7b"):
        assert whole(API_CHAT if about["template"] else GENERATE, {"model": asked, "messages" if about["template"] else "prompt": ASKED if about["template"] else "It", "options": {"num_predict": 2}})["model"] == name
    for route, more in ((API_CHAT, {}), (API_CHAT, {"messages": []}), (GENERATE, {}), (GENERATE, {"prompt": "", "keep_alive": 0})):
        loaded = whole(route, more)
        assert loaded["done"] is True and loaded["done_reason"] == "load" and loaded["model"] == name, loaded
        assert joined([loaded])["content"] == ""
    refused(API_CHAT, {"frob": 1}, "frob: unknown field")
    return about


def check_mistakes():
    chat, text = {"model": "x", "messages": ASKED}, {"model": "x", "prompt": "a"}
    for more, message in (
        ({"messages": 1}, "messages: expected a list of {role, content}"),
        ({"messages": ["a"]}, "messages[0]: expected {role, content}"),
        ({"messages": [{"content": "a"}]}, "messages[0].role: expected a text"),
        ({"messages": [{"role": "user", "content": 1}]}, "messages[0].content: expected a text, or a list of parts of type text"),
        ({"messages": [{"role": "user", "content": "a", "images": ["aGk="]}]}, "messages[0].images: only [] is supported"),
        ({"messages": [{"role": "user", "content": "a", "frob": 1}]}, "messages[0].frob: unknown field"),
        ({"messages": [{"role": "assistant", "tool_calls": {}}]}, "messages[0].tool_calls: expected a list of {function: {name, arguments}}"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"function": {"arguments": {}}}]}]}, "messages[0].tool_calls[0].function.name: expected a text"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}]}, "messages[0].tool_calls[0].function.arguments: expected an object"),
        ({"tools": [{"type": "function"}]}, "tools[0]: expected {type: function, function: {name, ...}}"),
        ({"stream": 1}, "stream: expected true or false"),
        ({"format": "yaml"}, "format: expected json or a JSON schema"),
        ({"format": {"type": "frob"}}, "JSON schema: type: frob is not supported; string, integer, number, boolean, array, object and null are supported"),
        ({"options": []}, "options: expected an object"),
        ({"options": {"frob": 1}}, "options.frob: unknown field"),
        ({"options": {"temperature": "x"}}, "options.temperature: expected a number"),
        ({"options": {"temperature": -1}}, None),
        ({"options": {"num_predict": 1.5}}, None),
        ({"options": {"seed": "x"}}, "options.seed: expected a whole number of 64 bits"),
        ({"options": {"stop": [1]}}, "options.stop[0]: expected a text"),
        ({"options": {"num_ctx": 2049}}, "options.num_ctx: at most 2048 is supported, the context with which the server runs"),
        ({"options": {"num_ctx": "x"}}, "options.num_ctx: expected a whole number from 1"),
        ({"options": {"mirostat": 1}}, "options.mirostat: only 0 is supported"),
        ({"options": {"repeat_last_n": 64}}, "options.repeat_last_n: only -1 is supported"),
        ({"options": {"tfs_z": 0.5}}, "options.tfs_z: only 1 is supported"),
        ({"options": {"typical_p": 0.5}}, "options.typical_p: only 1 is supported"),
        ({"think": True}, None),
        ({"think": 1}, "think: expected true, false, or an effort such as low, medium or high"),
        ({"logprobs": True}, "logprobs: only false is supported"),
        ({"n": 2}, "n: unknown field"),
    ):
        status, _, answer = post(API_CHAT, {**chat, **more})
        error = json.loads(answer)["error"]
        assert status == 400 and "\n" not in error and error == (message or error), (more, status, answer)
        name = next(iter(more))
        assert message or error.startswith(name + "." + next(iter(more[name])) + ": " if name == "options" else name), (more, error)
    for more, message in (
        ({"prompt": 1}, "prompt: expected a text"),
        ({"suffix": 1}, "suffix: expected a text"),
        ({"raw": 1}, "raw: expected true or false"),
        ({"context": [1, 2]}, "context: only [] is supported"),
        ({"template": "{{ .Prompt }}"}, 'template: only "" is supported'),
        ({"images": ["aGk="]}, "images: only [] is supported"),
        ({"width": 512}, "width: only 0 is supported"),
        ({"raw": True, "system": "x"}, "system: not supported together with raw"),
        ({"raw": True, "think": True}, "think: not supported together with raw"),
        ({"suffix": "b", "system": "x"}, "system: not supported together with suffix"),
        ({"suffix": "b"}, "suffix: the vocabulary of mini-target has no tokens for fill-in-the-middle, such as <|fim_prefix|>"),
        ({"messages": ASKED}, "messages: unknown field"),
    ):
        refused(GENERATE, {**text, **more}, message)
    long = json.loads(post(API_CHAT, {"messages": [{"role": "user", "content": "a " * 5000}]})[2])["error"]
    assert re.match(r"messages: it has \d+ tokens and the context 2048", long), long
    long = json.loads(post(GENERATE, {"prompt": "a " * 5000})[2])["error"]
    assert re.match(r"prompt: it has \d+ tokens and the context 2048", long), long
    status, _, answer = post(API_CHAT, b"[]")
    assert status == 400 and list(json.loads(answer)) == ["error"]
    same = whole(API_CHAT, {**chat, "options": {"num_predict": 4}})["message"]
    harmless = {"keep_alive": "5m", "truncate": True, "shift": True, "logprobs": False, "top_logprobs": 0, "think": False, "images": [],
                "options": {"num_predict": 4, "num_ctx": 2048, "num_gpu": 1, "num_thread": 2, "num_batch": 8, "num_keep": 5, "numa": True, "main_gpu": 0, "use_mmap": False,
                            "mirostat": 0, "mirostat_tau": 5, "mirostat_eta": 0.1, "tfs_z": 1, "typical_p": 1.0, "repeat_last_n": -1, "penalize_newline": True, "top_k": None}}
    assert whole(API_CHAT, {**chat, **harmless})["message"] == same


def check_others():
    for method, route in (("POST", "/api/pull"), ("POST", "/api/push"), ("POST", "/api/create"), ("POST", "/api/copy"), ("DELETE", "/api/delete"), ("POST", "/api/blobs/sha256:00")):
        refused(route, {"model": "x"}, f"{route}: this server has one model, which it was started with; dtrun pull downloads others", method=method)
    line = "embeddings are not supported; a server with an embedding model has them, such as llama-server --embeddings"
    for route in ("/api/embed", "/api/embeddings"):
        refused(route, {"model": "x", "input": "a"}, f"{route}: {line}")
    status, _, answer = post("/v1/embeddings", {"model": "x", "input": "a"})
    assert status == 400 and json.loads(answer)["error"]["message"] == f"/v1/embeddings: {line}", answer


what = sys.argv[2]
about = check_model()
if what == "talkative":
    assert about["capabilities"] == ["completion", "tools"] and "She said:" in about["template"]
    check_chats()
    check_generate()
    check_calls()
    check_formats()
    check_mistakes()
    check_others()
elif what == "reasoning":
    assert about["capabilities"] == ["completion", "tools", "thinking"], about
    for think, more in ((True, {"chat_template_kwargs": {"enable_thinking": True}}), (False, {"chat_template_kwargs": {"enable_thinking": False}}), (None, {}),
                        ("high", {"reasoning_effort": "high"})):
        expected = gets(CHAT, {"messages": ASKED, "max_tokens": 12, **more})
        message = expected["choices"][0]["message"]
        for route, asked in ((API_CHAT, {"messages": ASKED}), (GENERATE, {"prompt": "The dog?"})):
            body = {**asked, "think": think, "options": {"num_predict": 12}}
            for got in ([whole(route, body)], stream(route, body)):
                check_end(got[-1], expected)
                assert (joined(got)["content"], joined(got)["thinking"]) == (message["content"], message.get("reasoning_content", "")), (think, got, expected)
        assert bool(message.get("reasoning_content")) == (think is True), (think, message)
    turns = [*ASKED, {"role": "assistant", "content": "It ran.", "thinking": "Hm."}, *ASKED]
    theirs = [*ASKED, {"role": "assistant", "content": "It ran.", "reasoning_content": "Hm."}, *ASKED]
    assert whole(API_CHAT, {"messages": turns, "options": {"num_predict": 12}})["message"]["content"] == text_of(gets(CHAT, {"messages": theirs, "max_tokens": 12}))
else:
    assert about["capabilities"] == ["completion"] and about["template"] == "", about
    expected = gets(TEXT, {"prompt": "It was a dark night, and", "max_tokens": 12})
    assert whole(GENERATE, {"prompt": "It was a dark night, and", "options": {"num_predict": 12}})["response"] == text_of(expected)
    refused(GENERATE, {"prompt": "a", "think": True}, "think: not supported together with a model without a chat template")
    for route, body in ((API_CHAT, {"messages": ASKED}), (GENERATE, {"prompt": "a", "system": "b"})):
        status, _, answer = post(route, body)
        assert status == 400 and "mini-target has no chat template" in json.loads(answer)["error"], answer
