"""The package llama-index-llms-openai-like: see shared.py."""

import importlib.metadata

from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike
from shared import BASE, MESSAGES, N, PROMPT, chat, completion, same

HOW = {"model": "any", "api_base": BASE, "api_key": "any", "temperature": 0, "max_tokens": N, "max_retries": 0, "context_window": 2048}
asked = [ChatMessage(role=m["role"], content=m["content"]) for m in MESSAGES]
expected = chat()
llm = OpenAILike(is_chat_model=True, **HOW)
same(llm.chat(asked).message.content, expected, "chat")
same("".join(piece.delta or "" for piece in llm.stream_chat(asked)), expected, "stream")
turns = [*asked, ChatMessage(role="assistant", content=expected), ChatMessage(role="user", content="And three more?")]
same(llm.chat(turns).message.content, chat([*MESSAGES, {"role": "assistant", "content": expected}, {"role": "user", "content": "And three more?"}]), "a second turn")
text = OpenAILike(is_chat_model=False, **HOW)
same(text.complete(PROMPT).text, completion(), "completion")
same("".join(piece.delta or "" for piece in text.stream_complete(PROMPT)), completion(), "a stream of it")
print("llama-index-llms-openai-like", importlib.metadata.version("llama-index-llms-openai-like"))
