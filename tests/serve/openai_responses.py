"""OpenAI's Responses API: openai_responses.py URL. A random model calls tools only where a grammar makes it. Python's own modules only."""

import json

from asking import CHAT, USER, ask, exchange, gets, refused

ROUTE = "/v1/responses"
CITY = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["city", "days"], "additionalProperties": False}
WEATHER = {"type": "function", "name": "get_weather", "description": "The weather of a city.", "parameters": CITY, "strict": True}
NOTE = {"type": "function", "name": "note", "parameters": {"type": "object", "properties": {"text": {"enum": ["a \"b\" é", "c\n"]}}, "required": ["text"], "additionalProperties": False}}
ASKED = {"input": "The dog?", "max_output_tokens": 12}


def nested(tool):
    """A tool as chats have it."""
    return {"type": "function", "function": {k: v for k, v in tool.items() if k != "type"}}


def text_of(response):
    return "".join(part["text"] for item in response["output"] if item["type"] == "message" for part in item["content"])


def calls_of(response):
    return [(item["name"], item["arguments"]) for item in response["output"] if item["type"] == "function_call"]


def events(body):
    """The events of a stream, which are numbered."""
    status, headers, answer = exchange("POST", ROUTE, {**body, "stream": True})
    assert status == 200 and headers["Content-Type"] == "text/event-stream", (status, answer)
    values = []
    for block in answer.decode().strip().split("\n\n"):
        if block == ": ping": continue
        name, data = block.split("\n")
        values.append(json.loads(data.removeprefix("data: ")))
        assert name == "event: " + values[-1]["type"]
    assert [v["sequence_number"] for v in values] == list(range(len(values)))
    return values


def same_as_chat(body, chat):
    """The answer, whole and streamed, is the chat's."""
    told, response = gets(CHAT, chat), gets(ROUTE, body)
    message = told["choices"][0]["message"]
    assert text_of(response) == (message["content"] or ""), (response, told)
    assert calls_of(response) == [(c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls", [])], (response, told)
    usage = response["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == tuple(told["usage"][k] for k in ("prompt_tokens", "completion_tokens", "total_tokens"))
    complete = told["choices"][0]["finish_reason"] != "length"
    assert response["status"] == ("completed" if complete else "incomplete")
    assert response["incomplete_details"] == (None if complete else {"reason": "max_output_tokens"})
    last = events(body)[-1]
    assert last["type"] == "response." + response["status"]
    ids = ("id", "call_id")
    bare = [{k: v for k, v in item.items() if k not in ids} for item in last["response"]["output"]]
    assert bare == [{k: v for k, v in item.items() if k not in ids} for item in response["output"]]
    assert last["response"]["usage"]["output_tokens"] == usage["output_tokens"]
    return response


if __name__ == "__main__":
    # Conversations: each equals the chat's with the same messages, at T=0 and T=1.
    history = [{"role": "user", "content": "a"}, {"type": "message", "role": "assistant", "status": "completed", "id": "msg_1", "content": [{"type": "output_text", "text": "b", "annotations": [], "logprobs": []}]},
               {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "c"}, {"type": "input_text", "text": "d"}]}]
    for more in ({}, {"temperature": 1, "seed": 11}, {"temperature": 0.9, "top_p": 0.8, "seed": 12}):
        plain = {"max_tokens": 12, **more}
        body = {"max_output_tokens": 12, **more}
        same_as_chat({**body, "input": "The dog?"}, {**plain, "messages": USER})
        same_as_chat({**body, "input": "The dog?", "instructions": "Be \"brief\".\n"}, {**plain, "messages": [{"role": "system", "content": "Be \"brief\".\n"}, *USER]})
        same_as_chat({**body, "input": history}, {**plain, "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c\nd"}]})
        same_as_chat({**body, "input": [{"role": "developer", "content": "s"}, {"role": "user", "content": "a"}]}, {**plain, "messages": [{"role": "developer", "content": "s"}, {"role": "user", "content": "a"}]})

    # Tools: a call that is required, one of a name, one of those allowed; none.
    TOOLS = {**ASKED, "max_output_tokens": 200, "tools": [WEATHER, NOTE], "parallel_tool_calls": False}
    PLAIN = {"messages": USER, "max_tokens": 200, "tools": [nested(WEATHER), nested(NOTE)], "parallel_tool_calls": False}
    for more in ({}, {"temperature": 1, "seed": 4}):
        response = same_as_chat({**TOOLS, **more, "tool_choice": "required"}, {**PLAIN, **more, "tool_choice": "required"})
        assert len(calls_of(response)) == 1 and json.loads(calls_of(response)[0][1])
        for tool in (WEATHER, NOTE):
            choice = {"type": "function", "name": tool["name"]}
            for given, chosen in ((choice, {"type": "function", "function": {"name": tool["name"]}}),
                                  ({"type": "allowed_tools", "mode": "required", "tools": [choice]}, {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": tool["name"]}}]}})):
                response = same_as_chat({**TOOLS, **more, "tool_choice": given}, {**PLAIN, **more, "tool_choice": chosen})
                assert calls_of(response)[0][0] == tool["name"] and response["tool_choice"] == given
        for choice in ("auto", "none"):
            response = same_as_chat({**TOOLS, **more, "tool_choice": choice, "max_output_tokens": 12}, {**PLAIN, **more, "tool_choice": choice, "max_tokens": 12})
            assert not calls_of(response) and text_of(response)
    several = {"tool_choice": "required", "parallel_tool_calls": True, "temperature": 1, "seed": 3}
    many = gets(ROUTE, {**TOOLS, **several, "max_output_tokens": 400})
    done = [item for item in many["output"] if item["status"] == "completed"]
    assert len(done) > 1 and len({item["call_id"] for item in done}) == len({item["id"] for item in done}) == len(done)
    assert calls_of({"output": done}) == [(c["function"]["name"], c["function"]["arguments"]) for c in gets(CHAT, {**PLAIN, **several, "max_tokens": 400})["choices"][0]["message"]["tool_calls"]]

    # A call that is cut is an incomplete item.
    assert many["status"] == "incomplete" and many["output"][-1]["status"] == "incomplete" and many["output"][:-1] == done
    last = events({**TOOLS, **several, "max_output_tokens": 400})[-1]["response"]["output"]
    assert [(i["type"], i["status"], i.get("arguments")) for i in last] == [(i["type"], i["status"], i.get("arguments")) for i in many["output"]]
    cut = gets(ROUTE, {**TOOLS, "tool_choice": "required", "max_output_tokens": 12})
    assert cut["status"] == "incomplete" and all(item["status"] == "incomplete" for item in cut["output"][-1:]), cut
    assert events({**TOOLS, "tool_choice": "required", "max_output_tokens": 12})[-1]["type"] == "response.incomplete"

    # The result of a call.
    call = gets(ROUTE, {**TOOLS, "tool_choice": "required"})["output"][-1]
    assert call["type"] == "function_call" and call["call_id"] != call["id"]
    told = [{"role": "user", "content": "a"}, {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
            {"role": "assistant", "content": "I look."}, call, {"type": "function_call_output", "call_id": call["call_id"], "output": "21 degrees"}]
    plain = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "I look.", "reasoning_content": "hm", "tool_calls": [{"id": call["call_id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}]},
             {"role": "tool", "tool_call_id": call["call_id"], "content": "21 degrees"}]
    same_as_chat({**TOOLS, "max_output_tokens": 12, "input": told}, {**PLAIN, "max_tokens": 12, "messages": plain})
    told[-1]["output"] = [{"type": "input_text", "text": "21 degrees"}]
    same_as_chat({**TOOLS, "max_output_tokens": 12, "input": told}, {**PLAIN, "max_tokens": 12, "messages": plain})
    two = [told[0], call, {**call, "call_id": "call00002"}, {**told[-1]}, {**told[-1], "call_id": "call00002", "output": "22 degrees"}]
    both = [plain[0], {"role": "assistant", "content": None, "tool_calls": [{**plain[1]["tool_calls"][0], "id": i} for i in (call["call_id"], "call00002")]}, plain[2], {**plain[2], "tool_call_id": "call00002", "content": "22 degrees"}]
    same_as_chat({**TOOLS, "max_output_tokens": 12, "input": two}, {**PLAIN, "max_tokens": 12, "messages": both})

    # Schemas.
    held = {"type": "object", "properties": {"n": {"enum": [12345678901234567890123]}}, "required": ["n"], "additionalProperties": False}
    for schema in (held, {"enum": ["yes"]}):
        response = same_as_chat({**ASKED, "max_output_tokens": 60, "text": {"format": {"type": "json_schema", "name": "x", "schema": schema, "strict": True}}},
                                {"messages": USER, "max_tokens": 60, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}})
        assert json.loads(text_of(response)) == ({"n": 12345678901234567890123} if schema is held else "yes"), response
    same_as_chat({**ASKED, "text": {"format": {"type": "json_object"}}}, {"messages": USER, "max_tokens": 12, "response_format": {"type": "json_object"}})
    PLAIN_TEXT = text_of(same_as_chat({**ASKED, "text": {"format": {"type": "text"}, "verbosity": "low"}}, {"messages": USER, "max_tokens": 12}))

    # What the response says again, and what dtrun adds.
    response = gets(ROUTE, {**ASKED, "instructions": "i", "metadata": {"a": "b"}, "temperature": 0.7, "seed": 1, "user": "u", "tools": [NOTE], "reasoning": {"effort": "low"}, "model": "any", "dtrun": {"policy": "linear", "trace": True}})
    assert response["object"] == "response" and response["id"].startswith("resp_") and response["error"] is None
    assert (response["instructions"], response["metadata"], response["temperature"], response["user"], response["tools"], response["reasoning"], response["max_output_tokens"]) == ("i", {"a": "b"}, 0.7, "u", [NOTE], {"effort": "low"}, 12)
    assert response["dtrun"]["policy"] == "linear" and response["dtrun"]["trace"]
    assert any(event["type"] == "dtrun.trace" and event["trace"] for event in events({**ASKED, "dtrun": {"trace": True}}))
    assert gets(ROUTE, ASKED)["temperature"] == 0 and "dtrun" not in gets(ROUTE, ASKED)
    assert gets("/responses", ASKED)["output"]

    # A failure after the beginning of a stream is its last event.
    fails = {**ASKED, "grammar": 'root ::= "ab" "Q"', "logit_bias": [["Q", False]]}
    last = events(fails)[-1]
    assert last["type"] == "response.failed" and last["response"]["status"] == "failed" and last["response"]["error"]["message"].startswith("grammar: no token can follow"), last

    # Fields that do not change the text, and fields that would.
    for more in ({"store": True}, {"metadata": {"a": "b"}}, {"user": "u"}, {"service_tier": "flex"}, {"safety_identifier": "s"}, {"prompt_cache_key": "k"}, {"prompt_cache_options": {"mode": "implicit"}}, {"prompt_cache_retention": "24h"},
                 {"max_tool_calls": 2}, {"background": False}, {"truncation": "disabled"}, {"top_logprobs": 0}, {"include": ["reasoning.encrypted_content", "file_search_call.results"]}, {"reasoning": {"summary": "auto", "mode": "standard"}},
                 {"previous_response_id": None, "conversation": None, "instructions": None, "tools": None}, {"stream_options": {"include_obfuscation": False}}, {"tools": [], "tool_choice": "auto"}):
        assert text_of(gets(ROUTE, {**ASKED, **more})) == PLAIN_TEXT, more
    for more, message in (
        ({"previous_response_id": "resp_1"}, "previous_response_id: not supported"),
        ({"conversation": {"id": "c"}}, "conversation: not supported"),
        ({"background": True}, "background: only false is supported"),
        ({"prompt": {"id": "p"}}, "prompt: not supported"),
        ({"truncation": "auto"}, 'truncation: only "disabled" is supported'),
        ({"top_logprobs": 2}, "top_logprobs: only 0 is supported"),
        ({"moderation": {"model": "m"}}, "moderation: not supported"),
        ({"context_management": [{"type": "compaction"}]}, "context_management: not supported"),
        ({"include": ["message.output_text.logprobs"]}, "include[0]: message.output_text.logprobs is not supported"),
        ({"include": "x"}, "include: expected a list of texts"),
        ({"frob": 1}, "frob: unknown field"),
        ({"messages": USER}, "messages: unknown field"),
        ({"n": 2}, "n: unknown field"),
        ({"stream_options": {"include_usage": True}}, "stream_options.include_usage: unknown field"),
        ({"input": None}, "input: expected a value, but it is missing"),
        ({"input": []}, "input: expected a text, or a list of items"),
        ({"input": 3}, "input: expected a text, or a list of items"),
        ({"input": ["a"]}, "input[0]: expected an item, such as {role, content}"),
        ({"input": [{"role": "user", "content": "a"}, {"type": "item_reference", "id": "x"}]}, "input[1].type: expected message, function_call, function_call_output or reasoning, not item_reference"),
        ({"input": [{"role": "tool", "content": "a"}]}, "input[0].role: expected user, assistant, system or developer"),
        ({"input": [{"role": "user", "content": 3}]}, "input[0].content: expected a text, or a list of parts"),
        ({"input": [{"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "u"}]}]}, "input[0].content[1].type: expected input_text or output_text, not input_image"),
        ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "input[0].content[0].text: expected a text"),
        ({"input": [{"role": "user", "content": [{"type": "input_text", "text": "a", "frob": 1}]}]}, "input[0].content[0].frob: unknown field"),
        ({"input": [{"role": "user", "content": "a", "frob": 1}]}, "input[0].frob: unknown field"),
        ({"input": [{"type": "function_call", "name": "f", "call_id": "c"}]}, "input[0].arguments: expected a JSON object as a text"),
        ({"input": [{"type": "function_call", "arguments": "{}", "call_id": "c"}]}, "input[0].name: expected a text"),
        ({"input": [{"type": "function_call_output", "output": "x"}]}, "input[0].call_id: expected a text"),
        ({"input": [{"type": "function_call_output", "call_id": "c", "output": [{"type": "input_file"}]}]}, "input[0].output[0].type: expected input_text or output_text, not input_file"),
        ({"instructions": ["a"]}, "instructions: expected a text"),
        ({"max_output_tokens": 0}, "max_output_tokens: expected a whole number of at least 1"),
        ({"max_output_tokens": "x"}, "max_output_tokens: expected a whole number of at least 1"),
        ({"temperature": "x"}, "temperature: expected a number"),
        ({"tools": {}}, "tools: expected a list of functions"),
        ({"tools": [NOTE, {"type": "web_search"}]}, "tools[1].type: expected function, not web_search"),
        ({"tools": [nested(NOTE)]}, "tools[0].function: unknown field"),
        ({"tools": [{"type": "function"}]}, "tools[0].name: expected the function's name"),
        ({"tools": [NOTE], "tool_choice": {"type": "function", "name": "f"}}, "tool_choice: no tool is called 'f'"),
        ({"tools": [NOTE], "tool_choice": {"type": "web_search"}}, "tool_choice: expected none, auto, required, {type: function, name} or {type: allowed_tools, mode, tools: [{type: function, name}]}"),
        ({"tool_choice": "required"}, "tool_choice: there are no tools to call"),
        ({"text": {"format": {"type": "grammar"}}}, "text.format.type: expected text, json_object or json_schema"),
        ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema: expected a JSON schema"),
        ({"text": {"frob": 1}}, "text.frob: unknown field"),
        ({"reasoning": {"effort": 3}}, "reasoning.effort: expected a text"),
        ({"reasoning": {"mode": "pro"}}, 'reasoning.mode: only "standard" is supported'),
    ):
        status, answer = ask(ROUTE, {**ASKED, **more})
        assert status == 400 and answer == {"error": {"code": 400, "message": message, "type": "invalid_request_error"}}, (more, status, answer)
    refused(ROUTE, {**ASKED, "input": "a " * 9000}, r"^input: it has \d+ tokens and the context ", kind="exceed_context_size_error")
    refused(ROUTE, b'{"input":"a","input":"b"}', r"^input: it is given twice$")
    refused(ROUTE, b'{"input":"\\u0000"}', r"^input: a NUL character")
    print("all responses are as they should be")
