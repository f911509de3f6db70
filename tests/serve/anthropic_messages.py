"""Anthropic's Messages API: anthropic_messages.py URL. A random model calls tools only where a grammar makes it. Python's own modules only."""

import json

from asking import CHAT, USER, ask, exchange, gets

ROUTE, COUNT = "/v1/messages", "/v1/messages/count_tokens"
CITY = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["city", "days"], "additionalProperties": False}
WEATHER = {"name": "get_weather", "description": "The weather of a city.", "input_schema": CITY}
NOTE = {"name": "note", "type": "custom", "input_schema": {"type": "object", "properties": {"text": {"enum": ["a \"b\" é", "c\n"]}}, "required": ["text"], "additionalProperties": False}}
ASKED = {"model": "any", "messages": USER, "max_tokens": 12}


def function(tool):
    """A tool as chats have it."""
    return {"type": "function", "function": {"name": tool["name"], **({"description": tool["description"]} if "description" in tool else {}), "parameters": tool["input_schema"]}}


def text_of(message):
    return "".join(block["text"] for block in message["content"] if block["type"] == "text")


def calls_of(message):
    return [(block["name"], block["input"]) for block in message["content"] if block["type"] == "tool_use"]


def streamed(body):
    """The message that the events of a stream add up to."""
    status, headers, answer = exchange("POST", ROUTE, {**body, "stream": True})
    assert status == 200 and headers["Content-Type"] == "text/event-stream", (status, answer)
    message, types = None, []
    for part in answer.decode().strip().split("\n\n"):
        name, data = part.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == "event: " + event["type"]
        if event["type"] == "ping": continue
        types.append(event["type"])
        if event["type"] == "message_start":
            message = event["message"]
            assert message["content"] == [] and message["stop_reason"] is None
        elif event["type"] == "content_block_start":
            assert event["index"] == len(message["content"])
            message["content"].append(event["content_block"])
            grown = ""
        elif event["type"] == "content_block_delta":
            assert event["index"] == len(message["content"]) - 1
            grown += next(v for k, v in event["delta"].items() if k != "type")
            if event["delta"]["type"] != "input_json_delta": message["content"][-1][event["delta"]["type"].removesuffix("_delta")] = grown
        elif event["type"] == "content_block_stop":
            if message["content"][-1]["type"] == "tool_use": message["content"][-1]["input"] = json.loads(grown)
        elif event["type"] == "message_delta":
            message = {**message, **event["delta"], "usage": event["usage"]}
    assert types[0] == "message_start" and types[-2:] == ["message_delta", "message_stop"]
    return message


def same_as_chat(body, chat, **more):
    """The answer, whole and streamed, is the chat's."""
    told, whole = gets(CHAT, {**chat, **more}), gets(ROUTE, {**body, **more})
    message = told["choices"][0]["message"]
    assert text_of(whole) == (message["content"] or ""), (whole, told)
    assert calls_of(whole) == [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in message.get("tool_calls", [])], (whole, told)
    assert "".join(b["thinking"] for b in whole["content"] if b["type"] == "thinking") == message.get("reasoning_content", "")
    usage = whole["usage"]
    assert (usage["input_tokens"] + usage["cache_read_input_tokens"], usage["output_tokens"]) == tuple(told["usage"][k] for k in ("prompt_tokens", "completion_tokens"))
    assert whole["stop_reason"] == {"length": "max_tokens", "tool_calls": "tool_use"}.get(told["choices"][0]["finish_reason"], whole["stop_reason"])
    stream = streamed({**body, **more})
    for one in (whole, stream):
        for block in one["content"]: block.pop("id", None)
    assert all(stream[k] == whole[k] for k in ("content", "stop_reason", "stop_sequence", "role", "model")), (stream, whole)
    assert stream["usage"]["output_tokens"] == usage["output_tokens"]
    assert gets(COUNT, {k: v for k, v in body.items() if k != "max_tokens"})["input_tokens"] == told["usage"]["prompt_tokens"]
    return whole


if __name__ == "__main__":
    # Conversations: each equals the chat's with the same messages, at T=0 and T=1.
    blocks = [{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]},
              {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": ""}, {"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "b", "citations": None}]},
              {"role": "user", "content": [{"type": "text", "text": "c"}, {"type": "text", "text": "d"}]}]
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "reasoning_content": "hm"}, {"role": "user", "content": "c\nd"}]
    for more in ({}, {"temperature": 1, "seed": 11}, {"temperature": 0.9, "top_p": 0.8, "top_k": 20, "seed": 12}):
        same_as_chat(ASKED, {"messages": USER, "max_tokens": 12}, **more)
        for system in ("Be \"brief\".\n", [{"type": "text", "text": "Be \"brief\".\n"}]):
            same_as_chat({**ASKED, "system": system}, {"messages": [{"role": "system", "content": "Be \"brief\".\n"}, *USER], "max_tokens": 12}, **more)
        same_as_chat({**ASKED, "messages": blocks}, {"messages": turns, "max_tokens": 12}, **more)
        same_as_chat({**ASKED, "messages": [*USER, {"role": "assistant", "content": "It"}]}, {"messages": [*USER, {"role": "assistant", "content": "It"}], "max_tokens": 12}, **more)
    PLAIN_TEXT = text_of(gets(ROUTE, ASKED))

    # Stop sequences.
    stop = PLAIN_TEXT[6:9]
    stopped = same_as_chat({**ASKED, "stop_sequences": ["never", stop]}, {"messages": USER, "max_tokens": 12, "stop": ["never", stop]})
    assert (stopped["stop_reason"], stopped["stop_sequence"]) == ("stop_sequence", stop) and text_of(stopped) == PLAIN_TEXT[:PLAIN_TEXT.index(stop)]
    cut = gets(ROUTE, ASKED)
    assert (cut["stop_reason"], cut["stop_sequence"]) == ("max_tokens", None)

    # Tools: a call that is required, one of a name; none.
    TOOLS = {**ASKED, "max_tokens": 200, "tools": [WEATHER, NOTE]}
    PLAIN = {"messages": USER, "max_tokens": 200, "tools": [function(WEATHER), function(NOTE)]}
    for more in ({}, {"temperature": 1, "seed": 4}):
        called = same_as_chat({**TOOLS, "tool_choice": {"type": "any", "disable_parallel_tool_use": True}}, {**PLAIN, "tool_choice": "required", "parallel_tool_calls": False}, **more)
        assert len(calls_of(called)) == 1 and called["stop_reason"] == "tool_use"
        for tool in (WEATHER, NOTE):
            called = same_as_chat({**TOOLS, "tool_choice": {"type": "tool", "name": tool["name"]}}, {**PLAIN, "tool_choice": {"type": "function", "function": {"name": tool["name"]}}}, **more)
            assert calls_of(called)[0][0] == tool["name"]
        for choice in ("auto", "none"):
            free = same_as_chat({**TOOLS, "tool_choice": {"type": choice}, "max_tokens": 12}, {**PLAIN, "tool_choice": choice, "max_tokens": 12}, **more)
            assert not calls_of(free) and text_of(free)
    many = gets(ROUTE, {**TOOLS, "tool_choice": {"type": "any"}, "temperature": 1, "seed": 3, "max_tokens": 400})
    ids = [block["id"] for block in many["content"] if block["type"] == "tool_use"]
    assert len(ids) == len(set(ids)) > 1
    cut = gets(ROUTE, {**TOOLS, "tool_choice": {"type": "any"}, "max_tokens": 12})
    assert cut["stop_reason"] == "max_tokens" and not calls_of(cut) and text_of(cut), cut  # what is not a call is text, as in a chat

    # The results of calls.
    use = {"type": "tool_use", "id": "call00001", "name": "note", "input": {"text": "c\n", "n": 1234567890123456789}}
    result = {"type": "tool_result", "tool_use_id": "call00001", "content": "21 degrees", "is_error": False}
    call = {"id": "call00001", "type": "function", "function": {"name": "note", "arguments": '{"text": "c\\n", "n": 1234567890123456789}'}}
    said = [USER[0], {"role": "assistant", "content": [{"type": "text", "text": "I look."}, use]}, {"role": "user", "content": [result, {"type": "text", "text": "So?"}]}]
    plain = [USER[0], {"role": "assistant", "content": "I look.", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "call00001", "content": "21 degrees"}, {"role": "user", "content": "So?"}]
    same_as_chat({**TOOLS, "max_tokens": 12, "messages": said}, {**PLAIN, "max_tokens": 12, "messages": plain})
    said[2]["content"] = [{**result, "content": [{"type": "text", "text": "21 degrees"}]}]
    same_as_chat({**TOOLS, "max_tokens": 12, "messages": said}, {**PLAIN, "max_tokens": 12, "messages": plain[:3]})
    said[1:] = [{"role": "assistant", "content": [use, {**use, "id": "call00002"}]}, {"role": "user", "content": [result, {"type": "tool_result", "tool_use_id": "call00002"}]}]
    both = [USER[0], {"role": "assistant", "content": None, "tool_calls": [call, {**call, "id": "call00002"}]}, plain[2], {"role": "tool", "tool_call_id": "call00002", "content": ""}]
    same_as_chat({**TOOLS, "max_tokens": 12, "messages": said}, {**PLAIN, "max_tokens": 12, "messages": both})

    # Schemas.
    schema = {"type": "object", "properties": {"n": {"enum": [12345678901234567890123]}}, "required": ["n"], "additionalProperties": False}
    for more in ({"output_config": {"format": {"type": "json_schema", "schema": schema}}}, {"output_format": {"type": "json_schema", "schema": schema}}):
        held = same_as_chat({**ASKED, "max_tokens": 60, **more}, {"messages": USER, "max_tokens": 60, "json_schema": schema})
        assert json.loads(text_of(held)) == {"n": 12345678901234567890123} and held["stop_reason"] == "end_turn"

    # What dtrun adds; fields that do not change the text; fields that would.
    assert gets(ROUTE, {**ASKED, "dtrun": {"policy": "linear", "trace": True}})["dtrun"]["trace"] and "dtrun" not in gets(ROUTE, ASKED)
    for more in ({"metadata": {"user_id": "u"}}, {"service_tier": "auto"}, {"cache_control": {"type": "ephemeral"}}, {"speed": "fast"}, {"inference_geo": "eu"}, {"diagnostics": {"previous_message_id": None}}, {"mcp_servers": []}, {"context_management": {"edits": []}}, {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}},
                 {"thinking": {"type": "disabled"}}, {"thinking": {"type": "adaptive", "display": "summarized"}}, {"thinking": {"type": "enabled", "budget_tokens": 1024}}, {"tools": []}, {"stop_sequences": []}, {"system": None}):
        assert text_of(gets(ROUTE, {**ASKED, **more})) == PLAIN_TEXT, more
    for more, message in (
        ({"max_tokens": None}, "max_tokens: expected a whole number, but it is missing"),
        ({"max_tokens": 0}, "max_tokens: expected a whole number of at least 1"),
        ({"max_tokens": "x"}, "max_tokens: expected a whole number of at least 1"),
        ({"messages": None}, "messages: expected a value, but it is missing"),
        ({"messages": []}, "messages: expected a list of {role, content}"),
        ({"messages": [{"role": "tool", "content": "a"}]}, "messages[0].role: expected user, assistant or system"),
        ({"messages": ["a"]}, "messages[0]: expected an object"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content: expected a text, or a list of parts"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image", "source": {}}]}]}, "messages[0].content[1].type: expected text or tool_result, not image"),
        ({"messages": [{"role": "user", "content": [{"type": "document", "source": {}}]}]}, "messages[0].content[0].type: expected text or tool_result, not document"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text: expected a text"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}, "messages[0].content[0].tool_use_id: expected a text"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": [{"type": "image"}]}]}]}, "messages[0].content[0].content[0].type: expected text, not image"),
        ({"messages": [*USER, {"role": "assistant", "content": [{"type": "server_tool_use", "id": "x"}]}]}, "messages[1].content[0].type: expected text, thinking or tool_use, not server_tool_use"),
        ({"messages": [*USER, {"role": "assistant", "content": [{"type": "tool_use", "id": "x", "name": "f", "input": "{}"}]}]}, "messages[1].content[0].input: expected an object"),
        ({"messages": [*USER, {"role": "assistant", "content": [{"type": "thinking"}]}]}, "messages[1].content[0].thinking: expected a text"),
        ({"messages": [{"role": "user", "content": "a", "frob": 1}]}, "messages[0].frob: unknown field"),
        ({"system": 3}, "system: expected a text, or a list of parts"),
        ({"frob": 1}, "frob: unknown field"),
        ({"n": 2}, "n: unknown field"),
        ({"container": "c"}, "container: not supported"),
        ({"mcp_servers": [{"url": "u"}]}, "mcp_servers: only [] is supported"),
        ({"compaction": {}}, "compaction: not supported"),
        ({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}, 'context_management: only {"edits":[]} or {"edits":[{"type":"clear_thinking_20251015","keep":"all"}]} is supported'),
        ({"stop_sequences": "a"}, "stop_sequences: expected a list of texts"),
        ({"stop_sequences": [3]}, "stop_sequences[0]: expected a text"),
        ({"temperature": "x"}, "temperature: expected a number"),
        ({"tools": {}}, "tools: expected a list of tools"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0].type: expected custom, not web_search_20250305"),
        ({"tools": [{"name": "f"}]}, "tools[0].input_schema: expected a JSON schema"),
        ({"tools": [{"input_schema": {}}]}, "tools[0].name: expected the tool's name"),
        ({"tools": [{**NOTE, "defer_loading": True}]}, "tools[0].defer_loading: only false is supported"),
        ({"tools": [NOTE], "tool_choice": {"type": "tool", "name": "f"}}, "tool_choice: no tool is called 'f'"),
        ({"tools": [NOTE], "tool_choice": {"type": "tool"}}, "tool_choice.name: expected the tool's name"),
        ({"tools": [NOTE], "tool_choice": "any"}, "tool_choice: expected an object"),
        ({"tools": [NOTE], "tool_choice": {"type": "some"}}, "tool_choice.type: expected auto, any, tool or none"),
        ({"tool_choice": {"type": "any"}}, "tool_choice: there are no tools to call"),
        ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens: expected a whole number, but it is missing"),
        ({"thinking": {"type": "enabled", "budget_tokens": "x"}}, "thinking.budget_tokens: expected a whole number"),
        ({"thinking": {"type": "between_tools"}}, "thinking.type: expected enabled, disabled or adaptive"),
        ({"output_config": {"effort": 3}}, "output_config.effort: expected a text"),
        ({"output_config": {"format": {"type": "text"}}}, "output_config.format.type: expected json_schema"),
        ({"output_config": {"frob": 3}}, "output_config.frob: unknown field"),
    ):
        status, answer = ask(ROUTE, {**ASKED, **more})
        assert status == 400 and answer == {"type": "error", "error": {"type": "invalid_request_error", "message": message}}, (more, status, answer)
        if "max_tokens" not in more or more["max_tokens"] is not None: assert ask(COUNT, {**ASKED, **more}) == (status, answer)
    status, answer = ask(ROUTE, {**ASKED, "thread": {"type": "create"}})  # clients look for this code, and go on without
    assert status == 400 and answer["error"]["details"] == {"error_code": "thread_unsupported_request"}, answer
    status, answer = ask(ROUTE, b'{"max_tokens":1,"max_tokens":2}')
    assert status == 400 and answer["error"]["message"] == "max_tokens: it is given twice", answer

    # A failure after the beginning of a stream is its last event.
    status, _, answer = exchange("POST", ROUTE, {**ASKED, "stream": True, "grammar": 'root ::= "ab" "Q"', "logit_bias": [["Q", False]]})
    name, data = answer.decode().strip().split("\n\n")[-1].split("\n")
    error = json.loads(data.removeprefix("data: "))
    assert status == 200 and name == "event: error" and error["type"] == "error" and error["error"]["message"].startswith("grammar: no token can follow"), answer

    # A prompt that is too long is counted, but not answered.
    long = {**ASKED, "messages": [{"role": "user", "content": "a " * 9000}]}
    status, answer = ask(ROUTE, long)
    assert status == 400 and answer["error"]["type"] == "invalid_request_error" and "tokens and the context" in answer["error"]["message"], answer
    assert gets(COUNT, long)["input_tokens"] > 9000
    print("all messages are as they should be")
