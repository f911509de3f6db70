"""The package pydantic-ai: see shared.py and abilities.py. An agent decides itself whether it calls a tool, so the server's template is brackets.jinja."""

import asyncio
import importlib.metadata
import json
from typing import Literal

from abilities import CITIES, WEATHER, called, earlier, get_weather, row, shows
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, ToolOutput
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from shared import BASE, N, QUESTION, chat, same


class Colour(BaseModel):
    """A colour."""

    colour: Literal["red", "green", "blue"]


provider = OpenAIProvider(base_url=BASE, api_key="any")
models = [OpenAIChatModel("any", provider=provider), OpenAIResponsesModel("any", provider=provider)]
SHORT, LONG = {"temperature": 0, "max_tokens": N}, {"temperature": 0, "max_tokens": 300}
history = []
for m in earlier():
    if m["role"] == "user": history.append(ModelRequest([UserPromptPart(m["content"])]))
    elif m["role"] == "tool":
        if not isinstance(history[-1], ModelRequest): history.append(ModelRequest([]))
        history[-1].parts.append(ToolReturnPart("get_weather", m["content"], m["tool_call_id"]))
    elif m["content"]: history.append(ModelResponse([TextPart(m["content"])]))
    else: history.append(ModelResponse([ToolCallPart(c["function"]["name"], json.loads(c["function"]["arguments"]), c["id"]) for c in m["tool_calls"]]))


async def streamed(agent, asked):
    async with agent.run_stream(asked, model_settings=SHORT) as told:
        return "".join([piece async for piece in told.stream_text(delta=True, debounce_by=None)])


for model in models:
    talk = Agent(model, instructions="Be brief.")
    with shows("plain"):
        told = talk.run_sync(QUESTION, model_settings=SHORT)
        same(told.output, chat(), "text")
        assert talk.run_sync("And three more?", message_history=told.all_messages(), model_settings=SHORT).output
    with shows("stream"):
        same(asyncio.run(streamed(talk, QUESTION)), chat(), "stream")
    with shows("structured"):
        for how in (Colour, NativeOutput(Colour)):
            held = Agent(model, output_type=how, retries=0).run_sync(QUESTION, model_settings=LONG)
            assert isinstance(held.output, Colour), held
    with shows("tools", "parallel"):
        told = Agent(model, tools=[get_weather], retries=0).run_sync(WEATHER, message_history=history, model_settings=LONG)
        assert set(called) == CITIES and len(called) == 2 and told.output, (called, told)
    with shows("tools"):  # a call that is demanded, whose result is the answer
        told = Agent(model, output_type=ToolOutput(get_weather), retries=0).run_sync(WEATHER, model_settings=LONG)
        assert len(called) == 1 and "sunny" in told.output, (called, told)
row("pydantic-ai", importlib.metadata.version("pydantic-ai-slim"))
