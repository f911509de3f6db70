"""The package llm: see shared.py and abilities.py. It cannot demand a call, so the server's template is brackets.jinja."""

import importlib.metadata
import json
import os
import pathlib
import tempfile

from abilities import CITIES, WEATHER, called, earlier, get_weather, row, shows
from shared import BASE, MESSAGES, N, QUESTION, chat, same

folder = tempfile.TemporaryDirectory()
os.environ["LLM_USER_PATH"] = folder.name
pathlib.Path(folder.name, "extra-openai-models.yaml").write_text(f"- model_id: ours\n  model_name: any\n  api_base: {BASE}\n  supports_schema: true\n  supports_tools: true\n")

import llm  # noqa: E402
from llm.parts import Message, TextPart, ToolCallPart, ToolResultPart  # noqa: E402

model = llm.get_model("ours")
expected = chat()
with shows("plain"):
    same(model.prompt(QUESTION, system="Be brief.", stream=False, temperature=0, max_tokens=N).text(), expected, "text")
    talk = model.conversation()
    same(talk.prompt(QUESTION, system="Be brief.", temperature=0, max_tokens=N).text(), expected, "a conversation")
    second = talk.prompt("And three more?", temperature=0, max_tokens=N).text()
    same(second, chat([*MESSAGES, {"role": "assistant", "content": expected}, {"role": "user", "content": "And three more?"}]), "its second turn")
with shows("stream"):
    pieces = list(model.prompt(QUESTION, system="Be brief.", temperature=0, max_tokens=N))
    same("".join(pieces), expected, "stream")
    assert len(pieces) > 3, pieces
with shows("structured"):
    held = model.prompt(QUESTION, schema={"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}}, "required": ["colour"], "additionalProperties": False}, temperature=0, max_tokens=60)
    assert json.loads(held.text())["colour"] in ("red", "blue"), held.text()


def in_parts(m):
    """A message of a conversation in the package's form."""
    if m["role"] == "tool": return [ToolResultPart(name="get_weather", output=m["content"], tool_call_id=m["tool_call_id"])]
    calls = [ToolCallPart(name=c["function"]["name"], arguments=json.loads(c["function"]["arguments"]), tool_call_id=c["id"]) for c in m.get("tool_calls", [])]
    return calls or [TextPart(text=m["content"])]


history = [Message(role=m["role"], parts=in_parts(m)) for m in [*earlier(), {"role": "user", "content": WEATHER}]]
with shows("tools", "parallel"):
    for stream in (False, True):
        called.clear()
        told = model.chain(messages=history, tools=[get_weather], stream=stream, options={"temperature": 0, "max_tokens": 200}).text()
        assert set(called) == CITIES and len(called) == 2 and told, (stream, called, told)
row("llm", importlib.metadata.version("llm"))
