"""The package litellm: see shared.py."""

import importlib.metadata
import json
from typing import Literal

import litellm
from abilities import CITIES, TOOL, WEATHER, called, get_weather, row, shows
from pydantic import BaseModel
from shared import BASE, MESSAGES, N, PROMPT, chat, completion, same

litellm.telemetry = False
HOW = {"api_base": BASE, "api_key": "any", "temperature": 0, "max_tokens": N, "num_retries": 0}
expected = chat()
with shows("plain"):
    same(litellm.completion(model="openai/any", messages=MESSAGES, **HOW).choices[0].message.content, expected, "chat")
    cached = [{"role": "system", "content": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]}, MESSAGES[1]]
    same(litellm.completion(model="openai/any", messages=cached, **HOW).choices[0].message.content, expected, "cache_control")
    message = litellm.completion(model="openai/any", messages=MESSAGES, **HOW).choices[0].message
    turns = [*MESSAGES, message.model_dump(), {"role": "user", "content": "And three more?"}]
    same(litellm.completion(model="openai/any", messages=turns, **HOW).choices[0].message.content,
         chat([*MESSAGES, {"role": "assistant", "content": expected}, {"role": "user", "content": "And three more?"}]), "a second turn")
    same(litellm.text_completion(model="text-completion-openai/any", prompt=PROMPT, **HOW).choices[0].text, completion(), "completion")
    try:
        litellm.completion(model="openai/any", messages=MESSAGES, top_p=5, **HOW)
        raise SystemExit("top_p = 5 is taken")
    except litellm.BadRequestError as e:
        assert "top_p" in str(e), e
with shows("stream"):
    pieces = litellm.completion(model="openai/any", messages=MESSAGES, stream=True, stream_options={"include_usage": True}, **HOW)
    same("".join(p.choices[0].delta.content or "" for p in pieces if p.choices), expected, "stream")


class Colour(BaseModel):
    colour: Literal["red", "green", "blue"]


with shows("structured"):
    held = litellm.completion(model="openai/any", messages=MESSAGES, response_format=Colour, **{**HOW, "max_tokens": 100}).choices[0].message.content
    Colour.model_validate_json(held)
ASK = {**HOW, "model": "openai/any", "tools": [TOOL], "max_tokens": 300}
question = {"role": "user", "content": WEATHER}


def answered(message):
    """The answer after the results of the calls."""
    results = [{"role": "tool", "tool_call_id": call.id, "content": get_weather(**json.loads(call.function.arguments))} for call in message.tool_calls]
    told = litellm.completion(messages=[question, message.model_dump(), *results], tool_choice="none", **{**ASK, "max_tokens": N}).choices[0].message
    assert told.content and not told.tool_calls, told


with shows("tools"):
    for choice in ("required", {"type": "function", "function": {"name": "get_weather"}}):
        whole = litellm.completion(messages=[question], tool_choice=choice, parallel_tool_calls=False, **ASK).choices[0]
        pieces = list(litellm.completion(messages=[question], tool_choice=choice, parallel_tool_calls=False, stream=True, **ASK))
        assert litellm.stream_chunk_builder(pieces).choices[0].message.tool_calls[0].function.arguments == whole.message.tool_calls[0].function.arguments
        assert whole.finish_reason == "tool_calls", whole
        answered(whole.message)
    assert len(called) == 2, called
with shows("parallel"):
    answered(litellm.completion(messages=[question], tool_choice="required", **ASK).choices[0].message)
    assert set(called) == CITIES, called
row("litellm", importlib.metadata.version("litellm"))
