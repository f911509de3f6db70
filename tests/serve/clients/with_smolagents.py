"""The package smolagents: see shared.py."""

import importlib.metadata

from shared import BASE, MESSAGES, N, QUESTION, chat, same
from smolagents import CodeAgent, OpenAIServerModel
from smolagents.models import ChatMessage

model = OpenAIServerModel("any", api_base=BASE, api_key="any", temperature=0, max_tokens=N)
asked = [ChatMessage.from_dict({"role": m["role"], "content": [{"type": "text", "text": m["content"]}]}) for m in MESSAGES]
expected = chat()
same(model.generate(asked).content, expected, "generate")
same("".join(d.content or "" for d in model.generate_stream(asked)), expected, "stream")
word = expected.split()[1]
same(model.generate(asked, stop_sequences=[word]).content, chat(stop=[word]), "stop")
# An agent without tools: its prompts, its stop sequences, and the messages of its memory. The text is not checked, since the model is too small.
agent = CodeAgent(tools=[], model=OpenAIServerModel("any", api_base=BASE, api_key="any", temperature=0, max_tokens=40), max_steps=2, verbosity_level=0)
agent.run(QUESTION)
steps = [step for step in agent.memory.steps if getattr(step, "model_output_message", None)]
assert steps and all(step.model_output_message.content for step in steps), agent.memory.steps
assert not any("Error in generating model output" in str(getattr(step, "error", "")) for step in agent.memory.steps), [str(step.error) for step in steps]
print("smolagents", importlib.metadata.version("smolagents"))
