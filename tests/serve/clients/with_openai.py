"""The package openai: see shared.py."""

import json
from typing import Literal

import openai
from abilities import CITIES, TOOL, WEATHER, called, get_weather, row, shows
from openai import OpenAI
from pydantic import BaseModel
from shared import BASE, MESSAGES, N, PROMPT, QUESTION, chat, completion, same

client = OpenAI(base_url=BASE, api_key="any", max_retries=0)
model = client.models.list().data[0].id
ASK = {"model": model, "temperature": 0, "max_completion_tokens": N}
expected = chat()
with shows("plain"):
    same(client.chat.completions.create(messages=MESSAGES, **ASK).choices[0].message.content, expected, "chat")
    same(client.completions.create(model=model, prompt=PROMPT, temperature=0, max_tokens=N).choices[0].text, completion(), "completion")

    # A conversation that goes on from the answer's message, with all the fields that the package gives it.
    first = client.chat.completions.create(messages=MESSAGES, **ASK).choices[0].message
    turns = [*MESSAGES, first.model_dump(), {"role": "user", "content": "And three more?"}]
    again = client.chat.completions.create(messages=turns, **ASK).choices[0].message.content
    same(again, chat([*MESSAGES, {"role": "assistant", "content": expected}, {"role": "user", "content": "And three more?"}]), "a second turn")

    # Notes of newer clients, and what they may not ask for.
    noted = client.chat.completions.create(
        messages=MESSAGES, prompt_cache_key="k", safety_identifier="s", metadata={"a": "b"}, store=False, verbosity="low", modalities=["text"],
        prediction={"type": "content", "content": expected}, reasoning_effort="low", service_tier="auto", user="u", seed=2**63 - 1, **ASK)
    same(noted.choices[0].message.content, expected, "notes")
    for more in ({"audio": {"voice": "alloy", "format": "wav"}}, {"web_search_options": {}}):
        try:
            client.chat.completions.create(messages=MESSAGES, **more, **ASK)
            raise SystemExit(f"{more}: taken")
        except openai.BadRequestError as e:
            assert next(iter(more)) in str(e), e
with shows("stream"):
    stream = client.chat.completions.create(messages=MESSAGES, stream=True, stream_options={"include_usage": True}, **ASK)
    same("".join(c.choices[0].delta.content or "" for c in stream if c.choices), expected, "stream")
    with client.chat.completions.stream(messages=MESSAGES, **ASK) as events:
        same(events.get_final_completion().choices[0].message.content, expected, "the helper of streams")


class Colour(BaseModel):
    colour: Literal["red", "green", "blue"]


with shows("structured"):
    held = client.chat.completions.parse(messages=[{"role": "user", "content": QUESTION}], response_format=Colour, model=model, temperature=0, max_tokens=200)
    assert isinstance(held.choices[0].message.parsed, Colour), held

# Tools: by name and required, whole and as a stream; and what they gave.
ASK |= {"tools": [TOOL], "max_completion_tokens": 300}
asked = [{"role": "user", "content": WEATHER}]


def answered(message):
    """The answer after the results of the calls."""
    results = [{"role": "tool", "tool_call_id": call.id, "content": get_weather(**json.loads(call.function.arguments))} for call in message.tool_calls]
    told = client.chat.completions.create(messages=[*asked, message, *results], **{**ASK, "max_completion_tokens": N}, tool_choice="none").choices[0]
    assert told.message.content and not told.message.tool_calls, told
    return called


with shows("tools"):
    for choice in ("required", {"type": "function", "function": {"name": "get_weather"}}):
        whole = client.chat.completions.create(messages=asked, **ASK, tool_choice=choice, parallel_tool_calls=False).choices[0]
        assert whole.finish_reason == "tool_calls" and len(whole.message.tool_calls) == 1, whole
        with client.chat.completions.stream(messages=asked, **ASK, tool_choice=choice, parallel_tool_calls=False) as events:
            final = events.get_final_completion().choices[0]
        assert final.message.tool_calls[0].function.arguments == whole.message.tool_calls[0].function.arguments, (final, whole)
        answered(whole.message)
    assert len(called) == 2
with shows("parallel"):
    assert set(answered(client.chat.completions.create(messages=asked, **ASK, tool_choice="required").choices[0].message)) == CITIES, called
    with client.chat.completions.stream(messages=asked, **ASK, tool_choice="required") as events:
        assert [json.loads(call.function.arguments)["city"] for call in events.get_final_completion().choices[0].message.tool_calls] == called
row("openai", openai.__version__)
