"""The package langchain-openai: see shared.py."""

import importlib.metadata
from typing import Literal

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI, OpenAI
from pydantic import BaseModel
from shared import BASE, N, PROMPT, QUESTION, chat, completion, same

llm = ChatOpenAI(base_url=BASE, api_key="any", model="any", temperature=0, max_tokens=N)
asked = [SystemMessage("Be brief."), HumanMessage(QUESTION)]
expected = chat()
same(llm.invoke(asked).content, expected, "invoke")
same("".join(piece.content for piece in llm.stream(asked)), expected, "stream")
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


class Answer(BaseModel):
    colour: Literal["red", "green", "blue"]


answer = ChatOpenAI(base_url=BASE, api_key="any", model="any", temperature=0, max_tokens=100).with_structured_output(Answer, method="json_schema").invoke(asked)
assert isinstance(answer, Answer), answer
print("langchain-openai", importlib.metadata.version("langchain-openai"))
