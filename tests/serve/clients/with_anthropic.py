"""The package anthropic: see shared.py."""

import json
from typing import Literal

import anthropic
from abilities import CITIES, WEATHER, get_weather, row, shown, shows
from abilities import called as reached
from anthropic import Anthropic, beta_tool
from anthropic.types import Message, MessageTokensCount, RawMessageStreamEvent, message_count_tokens_params, message_create_params
from anthropic.types.shared import ErrorResponse
from pydantic import BaseModel
from shared import MESSAGES, N, QUESTION, URL, chat, same
from strict import by_type, strict

from asking import exchange, gets

ROUTE, COUNT = "/v1/messages", "/v1/messages/count_tokens"
EVENTS = by_type(RawMessageStreamEvent)
client = Anthropic(base_url=URL, api_key="any", max_retries=0)
ASK = {"model": "any", "max_tokens": N, "extra_body": {"temperature": 0}}
SAYS = {"system": MESSAGES[0]["content"], "messages": [{"role": "user", "content": QUESTION}]}
BODY = {**SAYS, "model": "any", "max_tokens": N, "temperature": 0}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}}, "required": ["city"], "additionalProperties": False}
TOOL = {"name": "get_weather", "description": "The weather of a city.", "input_schema": SCHEMA}
expected = chat()


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


def streamed(body):
    """The message that a stream's events add up to; each is held against its type."""
    status, headers, answer = exchange("POST", ROUTE, {**body, "stream": True})
    assert status == 200 and headers["Content-Type"] == "text/event-stream", answer
    events = []
    for block in answer.decode().strip().split("\n\n"):
        name, data = block.split("\n")
        value = json.loads(data.removeprefix("data: "))
        assert name == "event: " + value["type"], block
        if value["type"] != "ping": events.append(strict(EVENTS[value["type"]], value))
    assert [events[0].type, *(e.type for e in events[-2:])] == ["message_start", "message_delta", "message_stop"]
    blocks, open_at = [], None
    for e in events[1:-2]:
        if e.type == "content_block_start":
            assert open_at is None and e.index == len(blocks)
            open_at, parts = e.index, []
            blocks.append(e.content_block)
        elif e.type == "content_block_delta":
            assert e.index == open_at
            parts.append(next(getattr(e.delta, name) for name in ("text", "thinking", "partial_json") if hasattr(e.delta, name)))
        else:
            assert e.type == "content_block_stop" and e.index == open_at
            block, grown = blocks[-1], "".join(parts)
            if block.type == "tool_use": block.input = json.loads(grown)
            else: setattr(block, block.type, grown)
            open_at = None
    assert open_at is None
    start, delta = events[0].message, events[-2]
    assert start.usage.input_tokens == delta.usage.input_tokens + delta.usage.cache_read_input_tokens
    return blocks, delta


def check(body):
    """The answer, whole and streamed, is the same."""
    whole, (blocks, delta) = strict(Message, gets(ROUTE, body)), streamed(body)
    for block in [*whole.content, *blocks]:
        if block.type == "tool_use": block.id = ""
    assert blocks == whole.content, (blocks, whole.content)
    assert (delta.delta.stop_reason, delta.delta.stop_sequence, delta.usage.output_tokens) == (whole.stop_reason, whole.stop_sequence, whole.usage.output_tokens)
    return whole


# Texts: whole, as a stream, by the helper.
whole = client.messages.create(**SAYS, **ASK)
same(text_of(whole), expected, "text")
assert whole.stop_reason in ("end_turn", "max_tokens") and whole.role == "assistant"
stream = client.messages.create(**SAYS, **ASK, stream=True)
same("".join(e.delta.text for e in stream if e.type == "content_block_delta"), expected, "stream")
with client.messages.stream(**SAYS, **ASK) as helper:
    same("".join(helper.text_stream), expected, "the helper of streams")
    final = helper.get_final_message()
    assert text_of(final) == expected and final.usage.input_tokens + final.usage.cache_read_input_tokens == whole.usage.input_tokens + whole.usage.cache_read_input_tokens
for more in ({}, {"max_tokens": 3}, {"temperature": 1, "seed": 3}, {"stop_sequences": [expected[8:14]]}):
    answer = check({**BODY, **more})
    if "stop_sequences" in more: assert answer.stop_reason == "stop_sequence" and answer.stop_sequence == expected[8:14] and text_of(answer) == expected[:8]
    if "max_tokens" in more: assert answer.stop_reason == "max_tokens" and answer.usage.output_tokens == 3

# Counts.
strict(MessageTokensCount, gets(COUNT, SAYS))
counted = client.messages.count_tokens(model="any", **SAYS).input_tokens
assert counted == whole.usage.input_tokens + whole.usage.cache_read_input_tokens

# A conversation that goes on from the answer; its rows are taken from the prefix cache, all but the last token's.
turns, before = [{"role": "user", "content": "Tell me about the history of colours in painting, and which of them were the most expensive."}], 0
for turn in range(4):
    told = client.messages.create(messages=turns, **ASK)
    assert told.usage.cache_read_input_tokens >= before - 1, (turn, before, told.usage)
    turns = [*turns, {"role": "assistant", "content": told.content}, {"role": "user", "content": [{"type": "text", "text": f"Go on, and name {turn + 2} painters.", "cache_control": {"type": "ephemeral"}}]}]
    before = told.usage.input_tokens + told.usage.cache_read_input_tokens + told.usage.output_tokens
again = client.messages.create(**{**SAYS, "messages": [*SAYS["messages"], {"role": "assistant", "content": whole.content}, {"role": "user", "content": "And three more?"}]}, **ASK)
same(text_of(again), chat([*MESSAGES, {"role": "assistant", "content": expected}, {"role": "user", "content": "And three more?"}]), "a second turn")
prefilled = client.messages.create(**{**SAYS, "messages": [*SAYS["messages"], {"role": "assistant", "content": "Red,"}]}, **ASK)
same(text_of(prefilled), chat([*MESSAGES, {"role": "assistant", "content": "Red,"}]), "an answer that is begun")


class Colour(BaseModel):
    colour: Literal["red", "green", "blue"]


parsed = client.messages.parse(**SAYS, output_format=Colour, model="any", max_tokens=200)
assert isinstance(parsed.parsed_output, Colour), parsed
held = check({**BODY, "max_tokens": 60, "output_config": {"format": {"type": "json_schema", "schema": Colour.model_json_schema()}}})
Colour.model_validate_json(text_of(held))

# Tools: required, chosen, automatic; and what a call gave.
tools = {**BODY, "max_tokens": 100, "tools": [TOOL]}
for choice in ({"type": "any", "disable_parallel_tool_use": True}, {"type": "tool", "name": "get_weather"}):
    called = check({**tools, "tool_choice": choice})
    (use,) = [block for block in called.content if block.type == "tool_use"]
    assert called.stop_reason == "tool_use" and use.name == "get_weather" and use.input["city"] in ("Paris", "Rome"), called
assert check({**tools, "max_tokens": 12}).stop_reason in ("end_turn", "max_tokens", "tool_use")
assert check({**tools, "tool_choice": {"type": "none"}}).stop_reason != "tool_use"
asked = {"model": "any", "max_tokens": 100, "tools": [TOOL]}
answer = client.messages.create(**SAYS, **asked, tool_choice={"type": "any", "disable_parallel_tool_use": True})
use = answer.content[-1]
result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": [{"type": "text", "text": "21 degrees"}]}, {"type": "text", "text": "So?"}]}
told = client.messages.create(**{**SAYS, "messages": [*SAYS["messages"], {"role": "assistant", "content": answer.content}, result]}, **asked)
assert text_of(told)
with client.messages.stream(**SAYS, **asked, tool_choice={"type": "tool", "name": "get_weather"}) as helper:
    final = helper.get_final_message()
assert final.stop_reason == "tool_use" and final.content[-1].input == use.input, (final, use)

# All fields of the package are known; errors have its form.
params = (message_create_params.MessageCreateParamsBase, message_create_params.MessageCreateParamsStreaming, message_count_tokens_params.MessageCountTokensParams)
for name in sorted({name for base in params for name in base.__annotations__} | {"temperature", "top_p", "top_k"}):
    status, _, answer = exchange("POST", ROUTE, {**BODY, "max_tokens": 1, name: {"frob": 1}})
    assert status == 200 or strict(ErrorResponse, json.loads(answer)).error.message != f"{name}: unknown field", (name, answer)
for more in ({"container": "c"}, {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "u"}}]}]}):
    try:
        client.messages.create(**{**SAYS, **ASK, **more})
        raise SystemExit(f"{more}: taken")
    except anthropic.BadRequestError as e:
        assert next(iter(more)) in str(e) and e.body["error"]["type"] == "invalid_request_error", e
noted = client.messages.create(**SAYS, **ASK, metadata={"user_id": "u"}, service_tier="auto", cache_control={"type": "ephemeral"}, output_config={"effort": "low"}, thinking={"type": "disabled"})
same(text_of(noted), expected, "notes")

# The client of new features.
beta = client.beta.messages.create(**SAYS, **ASK, betas=["context-management-2025-06-27"], context_management={"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]})
same("".join(block.text for block in beta.content), expected, "beta")

# The package's loop over calls of local functions.
shown("plain", "stream", "structured")
HOW = {"model": "any", "max_tokens": 300, "messages": [{"role": "user", "content": WEATHER}], "tools": [beta_tool(get_weather)], "max_iterations": 2, "extra_body": {"temperature": 0}}
for stream in (False, True):
    with shows("tools"):
        client.beta.messages.tool_runner(**HOW, stream=stream, tool_choice={"type": "tool", "name": "get_weather"}).until_done()
        assert len(reached) >= 2, reached
    with shows("parallel"):
        client.beta.messages.tool_runner(**{**HOW, "max_iterations": 2}, stream=stream, tool_choice={"type": "any"}).until_done()
        assert set(reached) >= CITIES, reached
row("anthropic", anthropic.__version__)
