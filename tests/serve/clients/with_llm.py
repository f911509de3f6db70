"""The package llm: see shared.py."""

import importlib.metadata
import json
import os
import pathlib
import tempfile

from shared import BASE, MESSAGES, N, QUESTION, chat, same

folder = tempfile.TemporaryDirectory()
os.environ["LLM_USER_PATH"] = folder.name
pathlib.Path(folder.name, "extra-openai-models.yaml").write_text(f"- model_id: ours\n  model_name: any\n  api_base: {BASE}\n  supports_schema: true\n")

import llm  # noqa: E402

model = llm.get_model("ours")
expected = chat()
for stream in (False, True):
    same(model.prompt(QUESTION, system="Be brief.", stream=stream, temperature=0, max_tokens=N).text(), expected, f"stream {stream}")
talk = model.conversation()
same(talk.prompt(QUESTION, system="Be brief.", temperature=0, max_tokens=N).text(), expected, "a conversation")
second = talk.prompt("And three more?", temperature=0, max_tokens=N).text()
same(second, chat([*MESSAGES, {"role": "assistant", "content": expected}, {"role": "user", "content": "And three more?"}]), "its second turn")
held = model.prompt(QUESTION, schema={"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}}, "required": ["colour"], "additionalProperties": False}, temperature=0, max_tokens=60)
assert json.loads(held.text())["colour"] in ("red", "blue"), held.text()
print("llm", importlib.metadata.version("llm"))
