"""The package openai-agents: see shared.py. The server's template writes calls of tools (tools.jinja)."""

import asyncio
import sys
import time
from typing import Literal

import abilities
from abilities import WEATHER, row, shows
from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from agents.version import __version__
from openai import AsyncOpenAI
from pydantic import BaseModel
from shared import BASE, N, QUESTION, chat, same

set_tracing_disabled(True)
CITIES = "Paris Rome Berlin Madrid Vienna Oslo Prague Athens Lisbon Dublin".split()
called = []


@function_tool
def get_weather(city: str) -> str:
    """The weather of a city.

    Args:
        city: The name of the city.
    """
    called.append(city)
    return f"It is sunny in {city}."


@function_tool
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    called.append((a, b))
    return str(a + b)


async def run(agent, items, stream):
    """One turn of the conversation: a call, whose result the package sends back, and a text."""
    if not stream: return await Runner.run(agent, items, max_turns=6)
    told = Runner.run_streamed(agent, items, max_turns=6)
    async for _ in told.stream_events():
        pass
    return told


async def turns(stream):
    """Ten turns of a conversation that grows. Each request takes the rows of the earlier ones from the prefix cache."""
    model = OpenAIResponsesModel(model="any", openai_client=AsyncOpenAI(base_url=BASE, api_key="any", max_retries=0))
    settings = ModelSettings(temperature=0, max_tokens=300, tool_choice="required", parallel_tool_calls=False)
    agent = Agent(name="helper", instructions="You are a helpful assistant.", tools=[get_weather, add], model=model, model_settings=settings)
    items, told_before, asked_before, whole = [], 0, 0, 0
    for i, city in enumerate(CITIES[:: -1 if stream else 1]):
        items = [*items, {"role": "user", "content": f"What is the weather in {city}, and what is {i} + {i + 1}?"}]
        begun, n_called = time.time(), len(called)
        told = await run(agent, items, stream)
        seconds = time.time() - begun
        uses = [response.usage for response in told.raw_responses]
        assert len(uses) == 2 and len(called) == n_called + 1 and told.final_output, (told.raw_responses, called)
        for use in uses:
            cached = use.input_tokens_details.cached_tokens
            # All but the last token that was generated. A small model may write a call in other tokens than those of its text, which are computed again.
            whole += cached >= told_before - 1
            assert cached >= asked_before - 1, (use, told_before, asked_before)
            told_before, asked_before = use.total_tokens, use.input_tokens
        print(f"turn {i + 1}: input {'+'.join(str(u.input_tokens) for u in uses)}, cached {'+'.join(str(u.input_tokens_details.cached_tokens) for u in uses)}, output {'+'.join(str(u.output_tokens) for u in uses)}, {seconds:.2f} s", file=sys.stderr)
        items = told.to_input_list()
    assert whole >= (18 if "SmolLM2" in abilities.MODEL else 10), whole  # Qwen2.5-Coder spells the mark of a call in several tokens
    return whole




class Colour(BaseModel):
    colour: Literal["red", "green", "blue"]


def runs(kind, stream, asked, **how):
    """What an agent answers."""

    async def answer():
        async with AsyncOpenAI(base_url=BASE, api_key="any", max_retries=0) as client:
            return await run(Agent(name="helper", model=kind(model="any", openai_client=client), **how), asked, stream)

    return asyncio.run(answer()).final_output


with shows("tools", "stream"):
    whole = [asyncio.run(turns(stream)) for stream in (False, True)]
    print(*whole, "of 20 requests take all rows of the earlier ones", file=sys.stderr)
for kind in (OpenAIResponsesModel, OpenAIChatCompletionsModel):
    short, long = ModelSettings(temperature=0, max_tokens=N), ModelSettings(temperature=0, max_tokens=300, tool_choice="required")
    for stream, ability in ((False, "plain"), (True, "stream")):
        with shows(ability):
            same(runs(kind, stream, QUESTION, instructions="Be brief.", model_settings=short), chat(), ability)
        with shows("structured"):
            held = runs(kind, stream, QUESTION, output_type=Colour, model_settings=ModelSettings(temperature=0, max_tokens=200))
            assert isinstance(held, Colour), held
        with shows("tools", "parallel"):
            told = runs(kind, stream, WEATHER, tools=[function_tool(abilities.get_weather)], model_settings=long)
            assert set(abilities.called) == abilities.CITIES and told, (abilities.called, told)
row("openai-agents", __version__)
