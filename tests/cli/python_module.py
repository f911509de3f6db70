"""Compares results of the Python module with those of the program: python_module.py RESULT.json, of a run of linear."""
import json
import sys
import threading

import dtrun

with open(sys.argv[1], encoding="utf-8") as file:
    expected = json.load(file)
prompt = "It was a dark night"
options = {"policy": "linear", "tokens": 30, "seed": 7, "temp": 0.8}


def fails(kind, pattern, function, *args, **named):
    try:
        function(*args, **named)
    except dtrun.Error as error:
        assert error.kind == kind and pattern in str(error), (error.kind, str(error))
        return error
    raise AssertionError("expected an Error with " + pattern)


with dtrun.load() as pair:
    result = pair.generate(prompt, **options)
    for name in ("tokens", "text", "prompt_ids", "finish_reason", "params", "target", "draft"):
        assert result[name] == expected[name], name
    assert result["stats"]["output_hash"] == expected["stats"]["output_hash"]
    assert dtrun.version() == expected["version"] and pair.backend == expected["backend"]

    # streaming: the pieces make up the text; leaving early ends the run; the pair can be used again
    assert "".join(pair.stream(prompt, **options)) == expected["text"]
    stream = pair.stream(prompt, policy="ar", tokens=-1, ignore_eos=True)
    assert next(stream) and next(stream)
    stream.close()
    assert threading.active_count() == 1
    pieces = []
    cut = pair.generate(prompt, policy="ar", tokens=50, on_text=lambda text: pieces.append(text) or len(pieces) < 3)
    assert cut["finish_reason"] == "interrupted" and len(pieces) == 3

    # exceptions of a listener are passed on, Ctrl-C too
    for kind in (ValueError, KeyboardInterrupt):

        def listener(_, kind=kind):
            raise kind("mine")

        try:
            pair.generate(prompt, policy="ar", tokens=50, on_text=listener)
            raise AssertionError("nothing was raised")
        except kind as error:
            assert str(error) == "mine"

    # calls of tools, whose arguments follow the order of the schema
    properties = {"b": {"enum": ["x", "y"]}, "a": {"type": "integer", "minimum": 1, "maximum": 9}}
    schema = {"type": "object", "properties": properties, "required": ["b", "a"], "additionalProperties": False}
    tools = [{"type": "function", "function": {"name": "pick", "parameters": schema}}]
    chat = {"template": "llama3", "tools": tools, "tokens": 60, "policy": "rate"}
    messages = [{"role": "user", "content": "Pick one."}]
    message = pair.generate(messages, tool_choice={"type": "function", "function": {"name": "pick"}}, **chat)["message"]
    (call,) = message["tool_calls"]
    arguments = json.loads(call["function"]["arguments"])
    assert list(arguments) == ["b", "a"] and arguments["b"] in "xy" and 1 <= arguments["a"] <= 9, call
    messages += [message, {"role": "tool", "tool_call_id": call["id"], "content": "done"}]
    assert "message" not in pair.generate(messages, tool_choice="none", **chat)
    fails("input", "tool_choice: no tool is called 'other'", pair.generate, messages, tool_choice={"type": "function", "function": {"name": "other"}}, **chat)
    fails("input", "tools is not JSON", pair.generate, messages, **{**chat, "tools": [object()]})

    # a policy as text, and its errors
    source = """local P = require "dt.policy".define { name = "mine", params = { { "b", 2, min = 1, max = 4 } } }
function P:draft(tree) tree:draft_step(0) tree:branch(0, self.b) end
return P"""
    mine = pair.generate(prompt, source=source, params={"b": 3}, tokens=30, seed=7, temp=0.8)
    assert mine["tokens"] == expected["tokens"] and mine["policy"] == "mine" and mine["params"] == {"b": 3}
    assert pair.policy(source=source)["params"][0]["range"] == "1..4"
    error = fails("policy", "oops", pair.generate, prompt, source=source.replace("tree:draft_step(0)", "error 'oops'"))
    assert error.line == 2 and error.partial["tokens"] == []

    # several at once: in their order, with one failure
    long = "word " * 4000
    results = pair.generate_batch([prompt, long, "The ship"], policy="linear", tokens=5)
    assert results[0]["text"] == pair.generate(prompt, policy="ar", tokens=5)["text"]
    assert isinstance(results[1], dtrun.Error) and results[1].kind == "context" and len(results[2]["tokens"]) == 5

    assert pair.decode(pair.encode("naïve “quotes”")) == "naïve “quotes”"
    assert pair.generate("café", policy="ar", tokens=2)["prompt_ids"] == pair.encode("café")

    fails("input", "no policy 'nosuch'", pair.generate, prompt, policy="nosuch")
    fails("input", "temp: -1 is out of range", pair.generate, prompt, policy="ar", temp=-1)
    fails("input", "unknown key", pair.generate, prompt, policy="ar", colour=1)

fails("input", "the pair is closed", pair.generate, prompt)
fails("input", "nowhere", dtrun.load, target="/nowhere")
with dtrun.load(draft=False, threads=1) as plain:  # without a draft model the default policy is ar
    assert plain.draft is None and plain.threads == 1 and plain.generate(prompt, tokens=3)["policy"] == "ar"
print("ok")
