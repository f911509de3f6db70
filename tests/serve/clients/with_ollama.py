"""The package ollama: see shared.py and abilities.py. It cannot demand a call, so the server's template is brackets.jinja."""

import importlib.metadata
import json
from typing import Literal

import ollama
import ollama._types as types
from abilities import CITIES, WEATHER, called, earlier, get_weather, row, shown, shows
from ollama import Client
from pydantic import BaseModel
from shared import MESSAGES, N, PROMPT, QUESTION, URL, chat, completion, same
from asking import ask  # shared finds it

client = Client(host=URL)
GREEDY = {"temperature": 0, "num_predict": N}
(model,) = client.list().models
name = model.model
assert name.endswith(":latest") and model.size > 90e6 and model.details.family in ("llama", "qwen2"), model
about = client.show(name)
assert about.modelinfo[f"{model.details.family}.context_length"] >= 4096 and set(about.capabilities) >= {"completion", "tools"} and "<|im_start|>" in about.template, about
(running,) = client.ps().models
assert running.name == name and running.context_length == 4096 and running.size == model.size, running

# Chats and texts, whole and in pieces.
expected = chat()
answer = client.chat(model=name, messages=MESSAGES, options=GREEDY)
same(answer.message.content, expected, "chat")
assert answer.done and answer.done_reason == "stop" and 1 < answer.eval_count <= N and answer.prompt_eval_count > 10 and answer.total_duration >= answer.eval_duration > 0, answer
pieces = list(client.chat(model=name, messages=MESSAGES, options=GREEDY, stream=True))
same("".join(p.message.content for p in pieces), expected, "stream")
assert len(pieces) > 3 and pieces[-1].done and pieces[-1].eval_count == answer.eval_count
same(client.generate(model=name, prompt=QUESTION, system="Be brief.", options=GREEDY).response, expected, "generate")
same("".join(p.response for p in client.generate(model=name, prompt=QUESTION, system="Be brief.", options=GREEDY, stream=True)), expected, "generate, streamed")
same(client.generate(model=name, prompt=PROMPT, raw=True, options=GREEDY).response, completion(), "a raw prompt")
again = client.chat(model=name, messages=[*MESSAGES, answer.message, {"role": "user", "content": "And three more?"}], options=GREEDY, think=False, keep_alive="5m")
same(again.message.content, chat([*MESSAGES, {"role": "assistant", "content": expected}, {"role": "user", "content": "And three more?"}]), "a second turn")
assert client.chat(model=name).done_reason == client.generate(model=name).done_reason == "load"


# A schema, and JSON of any form.
class Colour(BaseModel):
    colour: Literal["red", "green", "blue"]
    number: int


held = client.chat(model=name, messages=[{"role": "user", "content": QUESTION}], format=Colour.model_json_schema(), options={"temperature": 0})
Colour.model_validate_json(held.message.content)
assert client.generate(model=name, prompt="Write JSON.", format="json", options=GREEDY).response.startswith("{")

# Tools, after turns that show how.
shown("plain", "stream", "structured")
turns = []
for m in [*earlier(), {"role": "user", "content": WEATHER}]:
    if "tool_calls" in m: m["tool_calls"] = [{"function": {**c["function"], "arguments": json.loads(c["function"]["arguments"])}} for c in m["tool_calls"]]
    turns.append({"role": "tool", "tool_name": "get_weather", "content": m["content"]} if m["role"] == "tool" else m)
with shows("tools", "parallel"):
    HOW = {"model": name, "tools": [get_weather], "options": {"temperature": 0, "num_predict": 200}}
    whole = client.chat(messages=turns, **HOW).message
    pieces = list(client.chat(messages=turns, **HOW, stream=True))
    streamed = [c for p in pieces for c in p.message.tool_calls or []]
    assert [c.function for c in streamed] == [c.function for c in whole.tool_calls], (streamed, whole)
    results = [{"role": "tool", "tool_name": c.function.name, "content": get_weather(**c.function.arguments)} for c in whole.tool_calls]
    assert set(called) == CITIES and len(called) == 2, called
    assert client.chat(messages=[*turns, whole, *results], **{**HOW, "options": GREEDY}).message.content

# Every field of the package is known: taken, ignored, or refused by a reason of its own.
for route, asked, fields in (("/api/chat", {"messages": MESSAGES}, types.ChatRequest), ("/api/generate", {"prompt": "a"}, types.GenerateRequest)):
    bodies = [(field, {**asked, field: 1}) for field in fields.model_fields]
    bodies += [(f"options.{field}", {**asked, "options": {"num_predict": 1, field: 1}}) for field in types.Options.model_fields]
    for field, body in bodies:
        status, answer = ask(route, {"options": {"num_predict": 1}, **body, **({"stream": False} if field != "stream" else {})})
        assert status == 200 or (status == 400 and answer["error"].startswith(field) and "unknown" not in answer["error"]), (field, status, answer)

# What is refused, with ollama's kind of error.
for what, refused in {
    "think": lambda: client.chat(model=name, messages=MESSAGES, think=True),
    "images": lambda: client.chat(model=name, messages=[{"role": "user", "content": "a", "images": [b"x"]}]),
    "context": lambda: client.generate(model=name, prompt="a", context=[1]),
    "options.num_ctx": lambda: client.chat(model=name, messages=MESSAGES, options={"num_ctx": 10**6}),
    **({} if model.details.family == "qwen2" else {"suffix": lambda: client.generate(model=name, prompt="a", suffix="b")}),
    "one model": lambda: client.pull(name),
    "embedding model": lambda: client.embed(model=name, input="a"),
    "logprobs": lambda: list(client.chat(model=name, messages=MESSAGES, logprobs=True, stream=True)),
}.items():
    try:
        refused()
        raise SystemExit(f"{what}: taken")
    except ollama.ResponseError as e:
        assert e.status_code == 400 and what in e.error, (what, e)
row("ollama", importlib.metadata.version("ollama"))
