"""The package dspy: see shared.py and abilities.py."""

import asyncio
import importlib.metadata
import json
from typing import Literal

import dspy
from abilities import CITIES, WEATHER, called, get_weather, row, shows
from shared import BASE, MESSAGES, N, QUESTION, chat, same

HOW = {"api_base": BASE, "api_key": "any", "temperature": 0, "cache": False, "num_retries": 0}
lm = dspy.LM("openai/any", max_tokens=N, **HOW)
with shows("plain"):
    first = lm(messages=MESSAGES)[0]
    same(first["text"] if isinstance(first, dict) else first, chat(), "messages")
    plain = lm(QUESTION)[0]
    same(plain["text"] if isinstance(plain, dict) else plain, chat([{"role": "user", "content": QUESTION}]), "a prompt")


class Colour(dspy.Signature):
    """Answer with a colour."""

    question: str = dspy.InputField()
    colour: Literal["red", "green", "blue"] = dspy.OutputField()


class Said(dspy.Signature):
    """Answer briefly."""

    question: str = dspy.InputField()
    answer: str = dspy.OutputField()


class Calls(dspy.Signature):
    """Call the tools."""

    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    outputs: dspy.ToolCalls = dspy.OutputField()


class Caller(dspy.LM):
    """The package cannot know what the server's model can."""

    supports_function_calling = supports_response_schema = True
    supported_params = {"temperature", "max_tokens", "stream", "response_format", "tools", "tool_choice", "parallel_tool_calls"}


async def streamed():
    """The JSON of a field, from its pieces as they come, and the whole prediction."""
    listeners = [dspy.streaming.StreamListener(signature_field_name="answer")]
    pieces, whole = [], None
    async for piece in dspy.streamify(dspy.Predict(Said), stream_listeners=listeners, is_async_program=False)(question=QUESTION):
        if isinstance(piece, dspy.Prediction): whole = piece
        else: pieces.append(piece.chunk)
    return "".join(pieces), whole


long = Caller("openai/any", max_tokens=300, **HOW)
with shows("structured"), dspy.context(lm=long, adapter=dspy.JSONAdapter()):
    answer = dspy.Predict(Colour)(question="What colour is the sky?")
    assert answer.colour in ("red", "green", "blue"), answer
with shows("stream"), dspy.context(lm=long, adapter=dspy.JSONAdapter()):
    pieces, whole = asyncio.run(streamed())
    assert json.loads(pieces) == whole.answer, (pieces, whole)
with shows("tools", "parallel"), dspy.context(lm=long, adapter=dspy.ChatAdapter(use_native_function_calling=True)):
    told = dspy.Predict(Calls)(question=WEATHER, tools=[dspy.Tool(get_weather)], config={"tool_choice": "required"})
    results = [call.execute([dspy.Tool(get_weather)]) for call in told.outputs.tool_calls]
    assert CITIES <= set(called) and "sunny" in results[0], (told, called)
row("dspy", importlib.metadata.version("dspy"))
