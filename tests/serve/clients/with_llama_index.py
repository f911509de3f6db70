"""The package llama-index-llms-openai-like: see shared.py."""

import importlib.metadata
from typing import Literal

from abilities import CITIES, WEATHER, called, get_weather, row, shows
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel
from shared import BASE, MESSAGES, N, PROMPT, chat, completion, same

HOW = {"model": "any", "api_base": BASE, "api_key": "any", "temperature": 0, "max_tokens": N, "max_retries": 0, "context_window": 2048}
asked = [ChatMessage(role=m["role"], content=m["content"]) for m in MESSAGES]
expected = chat()
llm = OpenAILike(is_chat_model=True, **HOW)
text = OpenAILike(is_chat_model=False, **HOW)
with shows("plain"):
    same(llm.chat(asked).message.content, expected, "chat")
    turns = [*asked, ChatMessage(role="assistant", content=expected), ChatMessage(role="user", content="And three more?")]
    same(llm.chat(turns).message.content, chat([*MESSAGES, {"role": "assistant", "content": expected}, {"role": "user", "content": "And three more?"}]), "a second turn")
    same(text.complete(PROMPT).text, completion(), "completion")
with shows("stream"):
    same("".join(piece.delta or "" for piece in llm.stream_chat(asked)), expected, "stream")
    same("".join(piece.delta or "" for piece in text.stream_complete(PROMPT)), completion(), "a stream of it")


class Colour(BaseModel):
    """A colour."""

    colour: Literal["red", "green", "blue"]


weather = FunctionTool.from_defaults(get_weather)
more = {**HOW, "is_chat_model": True, "is_function_calling_model": True, "max_tokens": 300}
caller = OpenAILike(**more)
with shows("structured"):
    for structured in (False, True):  # by a tool, by response_format
        held = OpenAILike(**more, should_use_structured_outputs=structured).as_structured_llm(Colour).chat(asked)
        assert isinstance(held.raw, Colour), held
with shows("tools"):
    said = caller.chat_with_tools([weather], user_msg=WEATHER, tool_required=True)
    (call,) = caller.get_tool_calls_from_response(said)
    *_, streamed = caller.stream_chat_with_tools([weather], user_msg=WEATHER, tool_required=True)
    assert caller.get_tool_calls_from_response(streamed)[0].tool_kwargs == call.tool_kwargs, (streamed, said)
    result = ChatMessage(role="tool", content=weather(**call.tool_kwargs).content, additional_kwargs={"tool_call_id": call.tool_id})
    assert called and caller.chat([ChatMessage(role="user", content=WEATHER), said.message, result]).message.content
    assert "sunny" in caller.predict_and_call([weather], user_msg=WEATHER, tool_required=True).response and len(called) == 2
with shows("parallel"):
    told = caller.predict_and_call([weather], user_msg=WEATHER, tool_required=True, allow_parallel_tool_calls=True)
    assert set(called) == CITIES, (told, called)
row("llama-index-llms-openai-like", importlib.metadata.version("llama-index-llms-openai-like"))
