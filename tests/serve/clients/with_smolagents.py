"""The package smolagents: see shared.py and abilities.py."""

import importlib.metadata
import json

from abilities import CITIES, WEATHER, called, get_weather, row, shows
from shared import BASE, MESSAGES, N, QUESTION, chat, same
from smolagents import CodeAgent, OpenAIServerModel, ToolCallingAgent, tool
from smolagents.models import ChatMessage

model = OpenAIServerModel("any", api_base=BASE, api_key="any", temperature=0, max_tokens=N)
asked = [ChatMessage.from_dict({"role": m["role"], "content": [{"type": "text", "text": m["content"]}]}) for m in MESSAGES]
expected = chat()
with shows("plain"):
    same(model.generate(asked).content, expected, "generate")
    word = expected.split()[1]
    same(model.generate(asked, stop_sequences=[word]).content, chat(stop=[word]), "stop")
    # An agent without tools: its prompts, its stop sequences, and the messages of its memory. The text is not checked, since the model is too small.
    agent = CodeAgent(tools=[], model=OpenAIServerModel("any", api_base=BASE, api_key="any", temperature=0, max_tokens=40), max_steps=2, verbosity_level=0)
    agent.run(QUESTION)
    steps = [step for step in agent.memory.steps if getattr(step, "model_output_message", None)]
    assert steps and all(step.model_output_message.content for step in steps), agent.memory.steps
    assert not any("Error in generating model output" in str(getattr(step, "error", "")) for step in agent.memory.steps), [str(step.error) for step in steps]
with shows("stream"):
    same("".join(d.content or "" for d in model.generate_stream(asked)), expected, "stream")

HOW = {"api_base": BASE, "api_key": "any", "temperature": 0, "max_tokens": 300}
with shows("structured"):
    schema = {"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}}, "required": ["colour"], "additionalProperties": False}
    held = OpenAIServerModel("any", **HOW).generate(asked, response_format={"type": "json_schema", "json_schema": {"name": "colour", "schema": schema, "strict": True}}).content
    assert json.loads(held)["colour"] in ("red", "blue"), held
weather = tool(get_weather)
with shows("tools"):  # an agent, which must call this tool in each step and may not end its run
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "get_weather"}}]}}
    for stream in (False, True):
        called.clear()
        agent = ToolCallingAgent(tools=[weather], model=OpenAIServerModel("any", **HOW, tool_choice=choice), max_steps=2, verbosity_level=0, stream_outputs=stream)
        agent.run(WEATHER)
        steps = [step for step in agent.memory.steps if getattr(step, "tool_calls", None)]
        assert len(steps) == 2 and len(called) >= 2 and all("sunny" in step.observations for step in steps), (called, steps)
with shows("parallel"):
    message = OpenAIServerModel("any", **HOW).generate([ChatMessage.from_dict({"role": "user", "content": WEATHER})], tools_to_call_from=[weather])
    for call in message.tool_calls: weather(**json.loads(call.function.arguments))
    assert set(called) == CITIES, called
row("smolagents", importlib.metadata.version("smolagents"))
