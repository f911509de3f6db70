"""Calls of tools: calls.py URL. A random model calls tools only where a grammar makes it. Python's own modules only."""

import json

from asking import CHAT, USER, ask, events, gets, refused

CITY = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["city", "days"], "additionalProperties": False}
WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "The weather of a city.", "parameters": CITY}}
NOTE = {"type": "function", "function": {"name": "note", "parameters": {"type": "object", "properties": {"text": {"enum": ["a \"b\" é", "c\n<|im_end|>"]}}, "required": ["text"], "additionalProperties": False}, "strict": True}}
BODY = {"messages": USER, "max_tokens": 200, "tools": [WEATHER, NOTE]}


def named(name):
    return {"type": "function", "function": {"name": name}}


def calls_of(answer, n=1):
    """The calls of an answer, which has nothing else."""
    choice = answer["choices"][0]
    calls = choice["message"]["tool_calls"]
    assert choice["finish_reason"] == "tool_calls" and choice["message"]["content"] is None, answer
    assert all(call["type"] == "function" and len(call["id"]) == 9 and call["id"].isalnum() for call in calls), calls
    assert len({call["id"] for call in calls}) == len(calls) >= n
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]


def check(name, arguments):
    """Arguments match the schema of their tool."""
    if name == "get_weather":
        assert set(arguments) == {"city", "days"} and arguments["city"] in ("Paris", "Rome") and 1 <= arguments["days"] <= 9, arguments
    else:
        assert name == "note" and arguments["text"] in ("a \"b\" é", "c\n<|im_end|>") and len(arguments) == 1, (name, arguments)


# A call that is required is one of the tools', under every policy and at every temperature.
for more in ({}, {"temperature": 1, "seed": 4}, {"temperature": 1.5, "seed": 5}):
    texts = set()
    for policy in ("ar", "linear", "dynatree", "rate"):
        answer = gets(CHAT, {**BODY, **more, "tool_choice": "required", "parallel_tool_calls": False, "dtrun": {"policy": policy}})
        (call,) = calls_of(answer)
        check(*call)
        texts.add(json.dumps(call))
    assert len(texts) == 1, texts

# A named tool, tools that are allowed, none.
for name in ("get_weather", "note"):
    ((called, arguments),) = calls_of(gets(CHAT, {**BODY, "tool_choice": named(name)}))  # a named tool is called once
    assert called == name
    check(called, arguments)
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named(name)]}}
    assert calls_of(gets(CHAT, {**BODY, "tool_choice": allowed, "parallel_tool_calls": False}))[0][0] == name
free = {**BODY, "max_tokens": 12}
for choice in ("none", "auto", {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [named("note")]}}):
    choice_of = gets(CHAT, {**free, "tool_choice": choice})["choices"][0]
    assert "tool_calls" not in choice_of["message"] and choice_of["finish_reason"] == "length" and choice_of["message"]["content"], choice_of
prompts = {name: gets("/apply-template", {"messages": USER, **more})["prompt"] for name, more in
           {"bare": {}, "none": {"tools": [WEATHER], "tool_choice": "none"}, "empty": {"tools": [], "tool_choice": "auto"}, "null": {"tools": None, "tool_choice": None}}.items()}
assert len(set(prompts.values())) == 1, prompts
assert gets(CHAT, {**free, "tools": []})["choices"] == gets(CHAT, {"messages": USER, "max_tokens": 12})["choices"]

# A stream has the same call: its id and name first, then its arguments in pieces.
for more in ({}, {"temperature": 1, "seed": 9}):
    body = {**BODY, **more, "tool_choice": "required", "parallel_tool_calls": False}
    whole, name, arguments, ids, finish = gets(CHAT, body), None, "", set(), None
    pieces = 0
    for event in events(body):
        if not event["choices"]: continue
        (choice,) = event["choices"]
        finish = choice["finish_reason"] or finish
        for call in choice["delta"].get("tool_calls", []):
            assert call["index"] == 0
            if "id" in call:
                assert name is None and call["type"] == "function" and call["function"]["arguments"] == ""
                ids.add(call["id"])
                name = call["function"]["name"]
            else:
                arguments += call["function"]["arguments"]
                pieces += 1
        assert not choice["delta"].get("content")
    expected = whole["choices"][0]["message"]["tool_calls"][0]["function"]
    assert (name, arguments, finish) == (expected["name"], expected["arguments"], "tool_calls") and len(ids) == 1 and pieces > 1

# Several calls, several answers, and an answer that is cut.
many = gets(CHAT, {**BODY, "tool_choice": "required", "temperature": 1, "seed": 3, "max_tokens": 400})
message = many["choices"][0]["message"]
if many["choices"][0]["finish_reason"] == "tool_calls":
    for call in calls_of(many): check(*call)
answers = gets(CHAT, {**BODY, "tool_choice": "required", "parallel_tool_calls": False, "temperature": 1, "n": 3})["choices"]
for choice in answers: check(*calls_of({"choices": [choice]})[0])
assert len({choice["message"]["tool_calls"][0]["id"] for choice in answers}) == 3
cut = gets(CHAT, {**BODY, "tool_choice": "required", "max_tokens": 3})["choices"][0]
assert cut["finish_reason"] == "length" and "tool_calls" not in cut["message"], cut

# What was called, and what it gave, goes into the next turn.
call = gets(CHAT, {**BODY, "tool_choice": "required", "parallel_tool_calls": False})["choices"][0]["message"]
turn = [*USER, call, {"role": "tool", "tool_call_id": call["tool_calls"][0]["id"], "content": "21 degrees"}]
assert gets(CHAT, {**free, "messages": turn})["choices"][0]["message"]["content"]
gets(CHAT, {**free, "messages": turn, "tools": None})

# Mistakes.
for more, pattern in (
    ({"tools": {}}, r"^tools: expected a list of functions"),
    ({"tools": ["x"]}, r"^tools\[0\]: expected \{type: function"),
    ({"tools": [WEATHER, {"type": "custom", "custom": {"name": "x"}}]}, r"^tools\[1\]: expected \{type: function"),
    ({"tools": [{"type": "function", "function": {}}]}, r"^tools\[0\]: expected"),
    ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, r"^tools\[0\]: the name a b must have"),
    ({"tools": [{"type": "function", "function": {"name": "f" * 129}}]}, r"^tools\[0\]: the name f+ must have at most 128"),
    ({"tools": [{**WEATHER, "frob": 1}]}, r"^tools\[0\].frob: unknown field"),
    ({"tools": [{"type": "function", "function": {"name": "f", "frob": 1}}]}, r"^tools\[0\].function.frob: unknown field"),
    ({"tool_choice": named("nothing")}, r"^tool_choice: no tool is called 'nothing'"),
    ({"tool_choice": "sometimes"}, r"^tool_choice: expected none, auto, required"),
    ({"tool_choice": {"type": "function"}}, r"^tool_choice: expected"),
    ({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}}, r"^tool_choice: expected"),
    ({"tool_choice": "required", "tools": []}, r"^tool_choice: there are no tools to call"),
    ({"tool_choice": "required", "grammar": 'root ::= "a"'}, r"^tool_choice: expected none or auto together with a grammar"),
    ({"parallel_tool_calls": 1}, r"^parallel_tool_calls: expected true or false"),
    ({"functions": [{"name": "f"}], "tools": None}, r"^functions: expected the newer field tools"),
    ({"tool_choice": "required", "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "frob"}}}}}]}, r"\bf\b"),
):
    refused(CHAT, {**BODY, **more}, pattern)
held = gets(CHAT, {**BODY, "response_format": {"type": "json_schema", "json_schema": {"schema": {"enum": ["yes"]}}}})["choices"][0]["message"]
assert held["content"] == '"yes"' and "tool_calls" not in held
once = {**BODY, "tool_choice": "required", "parallel_tool_calls": False}
called = calls_of(gets(CHAT, {**once, "response_format": {"type": "json_object"}}))  # it is for texts
assert called == calls_of(gets(CHAT, once)), called
assert ask(CHAT, {**BODY, "max_tokens": 4})[0] == 200
gets(CHAT, {**free, "tools": [{"type": "function", "function": {"name": "f" * 128}}]})
