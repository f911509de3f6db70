"""Reasoning in OpenAI's Responses API and Anthropic's Messages API: reasoned.py URL begins|variable, of a server whose template begins the reasoning, or has the variable enable_thinking. Python's own modules only."""

import sys

import anthropic_messages as anthropic
import openai_responses as responses

from asking import CHAT, USER, gets

LIMIT = 6
for more in ({}, {"temperature": 1, "seed": 5}, {"temperature": 1, "seed": 6}) if sys.argv[2] == "begins" else ():
    plain = {"messages": USER, "max_tokens": 30, "think_tokens": LIMIT, **more}
    told = gets(CHAT, plain)["choices"][0]["message"]
    assert told["reasoning_content"] and told["content"], told

    # Responses: an item of its own, before the message; its tokens are counted.
    body = {"input": "The dog?", "max_output_tokens": 30, "think_tokens": LIMIT, **more}
    response = responses.same_as_chat(body, plain)
    assert [item["type"] for item in response["output"]] == ["reasoning", "message"]
    thought, message = response["output"]
    assert thought["content"] == [{"type": "reasoning_text", "text": told["reasoning_content"]}] and thought["summary"] == []
    assert LIMIT <= response["usage"]["output_tokens_details"]["reasoning_tokens"] < response["usage"]["output_tokens"]
    events = responses.events(body)
    kinds = list(dict.fromkeys(event["type"].removeprefix("response.") for event in events))
    assert kinds == ["created", "in_progress", "output_item.added", "content_part.added", "reasoning_text.delta", "reasoning_text.done", "content_part.done", "output_item.done",
                     "output_text.delta", "output_text.done", "incomplete" if response["status"] == "incomplete" else "completed"], kinds
    for name, text in (("reasoning_text", told["reasoning_content"]), ("output_text", told["content"])):
        assert "".join(e["delta"] for e in events if e["type"] == f"response.{name}.delta") == text
        assert [e["text"] for e in events if e["type"] == f"response.{name}.done"] == [text]

    # Its items begin the next turn as the chat's message does.
    turns = [*USER, {"role": "assistant", "content": told["content"], "reasoning_content": told["reasoning_content"]}, {"role": "user", "content": "b"}]
    responses.same_as_chat({**body, "input": [*USER, *response["output"], {"role": "user", "content": "b"}]}, {**plain, "messages": turns})

    # Anthropic: a block of its own, with its own limit.
    asked = {"model": "any", "messages": USER, "max_tokens": 30, "thinking": {"type": "enabled", "budget_tokens": LIMIT}, **more}
    answer = anthropic.same_as_chat(asked, plain)
    assert [block["type"] for block in answer["content"]] == ["thinking", "text"] and answer["content"][0]["signature"] == ""
    assert answer["usage"]["output_tokens_details"]["thinking_tokens"] == response["usage"]["output_tokens_details"]["reasoning_tokens"]
    anthropic.same_as_chat({**asked, "messages": [*USER, {"role": "assistant", "content": answer["content"]}, {"role": "user", "content": "b"}]}, {**plain, "messages": turns})
    only = gets(anthropic.ROUTE, {**asked, "max_tokens": 3})
    assert [block["type"] for block in only["content"]] == ["thinking"] and only["usage"]["output_tokens_details"]["thinking_tokens"] == 3

# Reasoning is turned on or off where the template can.
for thinking, kwargs in (({"type": "disabled"}, {"enable_thinking": False}), ({"type": "enabled", "budget_tokens": LIMIT}, {"enable_thinking": True})):
    for own in ({}, {"x": 1}):
        plain = {"messages": USER, "max_tokens": 20, "chat_template_kwargs": {**kwargs, **own}, **({"think_tokens": LIMIT} if "budget_tokens" in thinking else {})}
        body = {"model": "any", "messages": USER, "max_tokens": 20, "thinking": thinking, **({"chat_template_kwargs": own} if own else {})}
        anthropic.same_as_chat(body, plain)
if sys.argv[2] == "variable":
    texts = {kind: gets(anthropic.COUNT, {"messages": USER, "thinking": {"type": kind, "budget_tokens": 5}})["input_tokens"] for kind in ("enabled", "disabled")}
    assert texts["enabled"] != texts["disabled"], texts
responses.same_as_chat({"input": "The dog?", "max_output_tokens": 12, "reasoning": {"effort": "none"}}, {"messages": USER, "max_tokens": 12, "reasoning_effort": "none"})
print("all reasoning is as it should be")
