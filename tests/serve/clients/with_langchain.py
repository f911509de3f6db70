"""The package langchain-openai: see shared.py."""

import importlib.metadata
from typing import Literal

from abilities import CITIES, WEATHER, called, get_weather, row, shows
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAI
from pydantic import BaseModel
from shared import BASE, N, PROMPT, QUESTION, chat, completion, same

llm = ChatOpenAI(base_url=BASE, api_key="any", model="any", temperature=0, max_tokens=N)
asked = [SystemMessage("Be brief."), HumanMessage(QUESTION)]
expected = chat()
with shows("plain"):
    same(llm.invoke(asked).content, expected, "invoke")
    same([answer.content for answer in llm.batch([asked, asked])], [expected] * 2, "batch")
    parts = [SystemMessage("Be brief."), HumanMessage([{"type": "text", "text": QUESTION}])]
    same(llm.invoke(parts).content, expected, "parts")
    turns = [*asked, AIMessage(expected), HumanMessage("And three more?")]
    same(llm.invoke(turns).content,
         chat([{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}, {"role": "assistant", "content": expected},
               {"role": "user", "content": "And three more?"}]), "a second turn")
    told = llm.bind(logprobs=True, top_logprobs=2).invoke(asked).response_metadata["logprobs"]["content"]
    assert 0 < len(told) <= N and all(len(t["top_logprobs"]) == 2 for t in told)
    same(OpenAI(base_url=BASE, api_key="any", model="any", temperature=0, max_tokens=N).invoke(PROMPT), completion(), "completion")
with shows("stream"):
    same("".join(piece.content for piece in llm.stream(asked)), expected, "stream")


class Answer(BaseModel):
    colour: Literal["red", "green", "blue"]


# Both of OpenAI's interfaces.
weather = tool(get_weather)
for responses in (False, True):
    model = ChatOpenAI(base_url=BASE, api_key="any", model="any", temperature=0, max_tokens=300, use_responses_api=responses, max_retries=0)
    with shows("stream"):
        same("".join(piece.text for piece in model.stream(asked)), "".join(model.invoke(asked).text), "stream")
    with shows("structured"):
        for method in ("json_schema", "function_calling"):
            assert isinstance(model.with_structured_output(Answer, method=method).invoke(asked), Answer), method
    with shows("tools"):
        for choice in ("required", "get_weather"):
            calling = model.bind_tools([weather], tool_choice=choice, parallel_tool_calls=False)
            whole = calling.invoke(WEATHER)
            (call,) = whole.tool_calls
            pieces = list(calling.stream(WEATHER))
            total = pieces[0]
            for piece in pieces[1:]: total += piece
            assert total.tool_calls[0]["args"] == call["args"], (total, call)
            told = model.bind_tools([weather], tool_choice="none").invoke([HumanMessage(WEATHER), whole, weather.invoke(call)])
            assert told.text and not told.tool_calls, told
        assert len(called) == 2
    with shows("parallel"):
        for call in model.bind_tools([weather], tool_choice="required").invoke(WEATHER).tool_calls: weather.invoke(call)
        assert set(called) == CITIES, called
row("langchain-openai", importlib.metadata.version("langchain-openai"))
