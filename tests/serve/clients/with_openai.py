"""The package openai: see shared.py."""

from typing import Literal

import openai
from openai import OpenAI
from pydantic import BaseModel
from shared import BASE, MESSAGES, N, PROMPT, QUESTION, chat, completion, same

client = OpenAI(base_url=BASE, api_key="any", max_retries=0)
model = client.models.list().data[0].id
ASK = {"model": model, "temperature": 0, "max_completion_tokens": N}
expected = chat()
same(client.chat.completions.create(messages=MESSAGES, **ASK).choices[0].message.content, expected, "chat")
stream = client.chat.completions.create(messages=MESSAGES, stream=True, stream_options={"include_usage": True}, **ASK)
same("".join(c.choices[0].delta.content or "" for c in stream if c.choices), expected, "stream")
with client.chat.completions.stream(messages=MESSAGES, **ASK) as events:
    same(events.get_final_completion().choices[0].message.content, expected, "the helper of streams")
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


class Colour(BaseModel):
    colour: Literal["red", "green", "blue"]


held = client.chat.completions.parse(messages=[{"role": "user", "content": QUESTION}], response_format=Colour, model=model, temperature=0, max_tokens=200)
assert isinstance(held.choices[0].message.parsed, Colour), held
print("openai", openai.__version__)
