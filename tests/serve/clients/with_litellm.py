"""The package litellm: see shared.py."""

import importlib.metadata

import litellm
from shared import BASE, MESSAGES, N, PROMPT, chat, completion, same

litellm.telemetry = False
HOW = {"api_base": BASE, "api_key": "any", "temperature": 0, "max_tokens": N, "num_retries": 0}
expected = chat()
same(litellm.completion(model="openai/any", messages=MESSAGES, **HOW).choices[0].message.content, expected, "chat")
pieces = litellm.completion(model="openai/any", messages=MESSAGES, stream=True, stream_options={"include_usage": True}, **HOW)
same("".join(p.choices[0].delta.content or "" for p in pieces if p.choices), expected, "stream")
cached = [{"role": "system", "content": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]}, MESSAGES[1]]
same(litellm.completion(model="openai/any", messages=cached, **HOW).choices[0].message.content, expected, "cache_control")
message = litellm.completion(model="openai/any", messages=MESSAGES, **HOW).choices[0].message
turns = [*MESSAGES, message.model_dump(), {"role": "user", "content": "And three more?"}]
same(litellm.completion(model="openai/any", messages=turns, **HOW).choices[0].message.content,
     chat([*MESSAGES, {"role": "assistant", "content": expected}, {"role": "user", "content": "And three more?"}]), "a second turn")
same(litellm.text_completion(model="text-completion-openai/any", prompt=PROMPT, **HOW).choices[0].text, completion(), "completion")
try:
    litellm.completion(model="openai/any", messages=MESSAGES, top_p=5, **HOW)
    raise SystemExit("top_p = 5 is taken")
except litellm.BadRequestError as e:
    assert "top_p" in str(e), e
print("litellm", importlib.metadata.version("litellm"))
