"""Calls of tools with the package openai, by other authors: openai_tools.py URL KEY. The server's template has no reasoning, in which a random model would stay."""

import json
import sys

import pydantic
from openai import OpenAI, pydantic_function_tool

url, key = sys.argv[1:]
client = OpenAI(base_url=url + "/v1", api_key=key, max_retries=0)
HELLO = [{"role": "user", "content": "The weather?"}]
CITY = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"], "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "strict": True, "parameters": CITY}}]
ASKED = {"model": "any", "messages": HELLO, "tools": TOOLS, "max_tokens": 200}

# A whole call, and the answer to its result.
whole = client.chat.completions.create(**ASKED, tool_choice="required", parallel_tool_calls=False).choices[0]
(call,) = whole.message.tool_calls
assert whole.finish_reason == "tool_calls" and call.function.name == "get_weather" and json.loads(call.function.arguments)["city"] in ("Paris", "Rome")
turns = [*HELLO, whole.message, {"role": "tool", "tool_call_id": call.id, "content": "21 degrees"}]
assert client.chat.completions.create(**{**ASKED, "messages": turns, "max_tokens": 8}).choices[0].message.content

# The same call as a stream, by a named tool.
named = {"type": "function", "function": {"name": "get_weather"}}
chunks = [c.choices[0] for c in client.chat.completions.create(**ASKED, tool_choice=named, stream=True) if c.choices]
parts = [part for c in chunks for part in c.delta.tool_calls or []]
assert parts[0].id and parts[0].function.name == "get_weather" and not any(part.id for part in parts[1:])
assert "".join(part.function.arguments for part in parts) == call.function.arguments and chunks[-1].finish_reason == "tool_calls"


class Weather(pydantic.BaseModel):
    """The weather of a city."""

    hot: bool


# The helper that collects a stream and reads its arguments as the class.
with client.chat.completions.stream(**{**ASKED, "tools": [pydantic_function_tool(Weather)]}, tool_choice="required", parallel_tool_calls=False) as stream:
    final = stream.get_final_completion().choices[0]
(call,) = final.message.tool_calls
assert final.finish_reason == "tool_calls" and isinstance(call.function.parsed_arguments, Weather), call
print("tools")
