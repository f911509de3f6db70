"""The package openai, Responses API: see shared.py."""

import json
from typing import Literal

import openai
from abilities import CITIES, WEATHER, called, get_weather, row, shown, shows
from abilities import SCHEMA as ANY_CITY
from openai import OpenAI
from openai.types.responses import Response, ResponseStreamEvent, response_create_params
from pydantic import BaseModel
from shared import BASE, MESSAGES, N, QUESTION, chat, same
from strict import by_type, strict

from asking import exchange, gets

RESPONSES = "/v1/responses"
EVENTS = by_type(ResponseStreamEvent)
client = OpenAI(base_url=BASE, api_key="any", max_retries=0)
ASK = {"model": "any", "temperature": 0, "max_output_tokens": N}
SAYS = {"instructions": MESSAGES[0]["content"], "input": QUESTION}
CITY = {"type": "object", "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}}, "required": ["city"], "additionalProperties": False}
TOOL = {"type": "function", "name": "get_weather", "description": "The weather of a city.", "parameters": CITY, "strict": True}
expected = chat()


def events_of(body):
    """The events of a stream, each held against its type; and what their deltas add up to."""
    status, headers, answer = exchange("POST", RESPONSES, {**body, "stream": True})
    assert status == 200 and headers["Content-Type"] == "text/event-stream", answer
    events = []
    for block in answer.decode().strip().split("\n\n"):
        lines = [line for line in block.split("\n") if not line.startswith(":")]
        if not lines: continue
        name, data = lines
        value = json.loads(data.removeprefix("data: "))
        assert name == "event: " + value["type"], block
        events.append(strict(EVENTS[value["type"]], value))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    return events


def check_order(events):
    """Each item is added, has its part, grows and is done; the last event has all items."""
    assert [e.type for e in events[:2]] == ["response.created", "response.in_progress"]
    final = events[-1].response
    assert events[-1].type == f"response.{final.status}" and all(e.response.output == [] and e.response.id == final.id for e in events[:2])
    done, at = [], None
    for e in events[2:-1]:
        kind = e.type.removeprefix("response.")
        if kind == "output_item.added":
            assert at is None and e.output_index == len(done) and e.item.status == "in_progress"
            at = {"id": e.item.id, "kind": e.item.type, "text": "", "steps": [kind], "item": e.item}
            continue
        assert e.output_index == len(done) and getattr(e, "item_id", at["id"]) == at["id"]
        assert getattr(e, "content_index", 0) == 0
        if kind.endswith(".delta"):
            at["text"] += e.delta
            kind = "deltas"
        if at["steps"][-1] != kind: at["steps"].append(kind)
        if kind in ("output_text.done", "reasoning_text.done"): assert e.text == at["text"]
        if kind == "function_call_arguments.done": assert e.arguments == at["text"]
        if kind == "content_part.done": assert e.part.text == at["text"]
        if kind == "output_item.done":
            assert e.item.id == at["id"] and e.item == final.output[e.output_index]
            steps = [s for s in at["steps"] if s != "deltas"]
            inner = {"message": "output_text", "reasoning": "reasoning_text"}.get(at["kind"])
            want = ["output_item.added", "content_part.added", inner + ".done", "content_part.done", "output_item.done"] if inner else ["output_item.added", "function_call_arguments.done", "output_item.done"]
            assert steps == want, steps
            done.append(e.item)
            at = None
    assert at is None and done == final.output
    return final


# Texts: whole, as a stream, by the helper.
whole = client.responses.create(**SAYS, **ASK)
same(whole.output_text, expected, "text")
strict(Response, gets(RESPONSES, {**SAYS, **ASK}))
stream = client.responses.create(**SAYS, **ASK, stream=True)
same("".join(e.delta for e in stream if e.type == "response.output_text.delta"), expected, "stream")
with client.responses.stream(**SAYS, **ASK) as helper:
    same(helper.get_final_response().output_text, expected, "the helper of streams")
for body in ({**SAYS, **ASK}, {**SAYS, **ASK, "max_output_tokens": 3}, {**SAYS, **ASK, "temperature": 1, "seed": 3}):
    final, alone = check_order(events_of(body)), strict(Response, gets(RESPONSES, body))
    assert final.output_text == alone.output_text and final.status == alone.status and final.usage.output_tokens == alone.usage.output_tokens
    assert alone.incomplete_details == final.incomplete_details and (alone.status == "incomplete") == (alone.incomplete_details is not None)

counted = client.responses.input_tokens.count(model="any", **SAYS)
assert counted.object == "response.input_tokens" and counted.input_tokens == whole.usage.input_tokens, (counted, whole.usage)

# A conversation that goes on from the answer's items, and from messages.
turns = [{"role": "user", "content": QUESTION}, *whole.output, {"role": "user", "content": [{"type": "input_text", "text": "And three more?"}]}]
again = client.responses.create(instructions="Be brief.", input=turns, **ASK)
same(again.output_text, chat([*MESSAGES, {"role": "assistant", "content": expected}, {"role": "user", "content": "And three more?"}]), "a second turn")

# The rows of earlier turns are taken from the prefix cache: all of them but the last answer's last token.
items, before = [{"role": "user", "content": "Tell me about the history of colours in painting, and which of them were the most expensive."}], 0
for turn in range(4):
    told = client.responses.create(input=items, **ASK)
    assert told.usage.input_tokens_details.cached_tokens >= before - 1, (turn, before, told.usage)
    items, before = [*items, *told.output, {"role": "user", "content": f"Go on, and name {turn + 2} painters."}], told.usage.total_tokens


class Colour(BaseModel):
    colour: Literal["red", "green", "blue"]


parsed = client.responses.parse(input=QUESTION, text_format=Colour, model="any", temperature=0, max_output_tokens=200)
assert isinstance(parsed.output_parsed, Colour), parsed
strict(Response, gets(RESPONSES, {**SAYS, "text": {"format": {"type": "json_schema", "name": "colour", "schema": Colour.model_json_schema()}}, "max_output_tokens": 50}))

# Tools: required, chosen, automatic; and what a call gave.
tools = {**SAYS, **ASK, "tools": [TOOL], "max_output_tokens": 100}
for choice in ("required", {"type": "function", "name": "get_weather"}, {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "get_weather"}]}):
    body = {**tools, "tool_choice": choice, "parallel_tool_calls": False}
    final, alone = check_order(events_of(body)), strict(Response, gets(RESPONSES, body))
    calls = [item for item in alone.output if item.type == "function_call"]
    assert len(calls) == 1 and calls[0].name == "get_weather" and json.loads(calls[0].arguments)["city"] in ("Paris", "Rome"), alone
    assert [item.arguments for item in final.output if item.type == "function_call"] == [calls[0].arguments]
answer = client.responses.create(**{**tools, "tool_choice": "required", "parallel_tool_calls": False})
(call,) = answer.output
result = {"type": "function_call_output", "call_id": call.call_id, "output": "21 degrees"}
told = client.responses.create(**{**tools, "input": [{"role": "user", "content": QUESTION}, call, result]})
assert told.output_text and told.usage.input_tokens > answer.usage.input_tokens, (told.usage, answer.usage)
assert strict(Response, gets(RESPONSES, tools)).status in ("completed", "incomplete")

# All fields of the package are known; those that would change an answer are refused by name.
names = {name for base in (response_create_params.ResponseCreateParamsBase, response_create_params.ResponseCreateParamsStreaming) for name in base.__annotations__}
for name in sorted(names):
    status, _, answer = exchange("POST", RESPONSES, {"max_output_tokens": 1, "input": "a", name: {"frob": 1}})
    assert status == 200 or json.loads(answer)["error"]["message"] != f"{name}: unknown field", (name, answer)
for more in ({"previous_response_id": "resp_1"}, {"background": True}, {"conversation": "conv_1"}, {"prompt": {"id": "p"}}, {"truncation": "auto"}, {"tools": [{"type": "web_search"}]}):
    try:
        client.responses.create(**{**SAYS, **ASK, **more})
        raise SystemExit(f"{more}: taken")
    except openai.BadRequestError as e:
        assert next(iter(more)) in str(e) and e.type == "invalid_request_error", e
noted = client.responses.create(**SAYS, **ASK, store=True, metadata={"a": "b"}, user="u", service_tier="auto", safety_identifier="s", prompt_cache_key="k", reasoning={"effort": "low", "summary": "auto"},
                                include=["reasoning.encrypted_content"], text={"verbosity": "low"}, truncation="disabled", max_tool_calls=3)
same(noted.output_text, expected, "notes")
assert noted.metadata == {"a": "b"} and noted.user == "u"

# Calls of a local function, and their results.
shown("plain", "stream", "structured")
asked = [{"role": "user", "content": WEATHER}]
loose = {**ASK, "tools": [{**TOOL, "parameters": ANY_CITY}], "max_output_tokens": 300}
for more, ability in (({"parallel_tool_calls": False}, "tools"), ({}, "parallel")):
    with shows(ability):
        calls = client.responses.create(input=asked, **loose, tool_choice="required", **more).output
        results = [{"type": "function_call_output", "call_id": call.call_id, "output": get_weather(**json.loads(call.arguments))} for call in calls]
        assert client.responses.create(input=[*asked, *calls, *results], **{**loose, "tool_choice": "none"}).output_text
        with client.responses.stream(input=asked, **loose, tool_choice="required", **more) as helper:
            assert [item.arguments for item in helper.get_final_response().output] == [call.arguments for call in calls], calls
        assert len(called) == 1 if more else set(called) == CITIES, called
row("openai (Responses)", openai.__version__)
