"""The package dspy: see shared.py."""

import importlib.metadata
from typing import Literal

import dspy
from shared import BASE, MESSAGES, N, QUESTION, chat, same

lm = dspy.LM("openai/any", api_base=BASE, api_key="any", temperature=0, max_tokens=N, cache=False, num_retries=0)
first = lm(messages=MESSAGES)[0]
same(first["text"] if isinstance(first, dict) else first, chat(), "messages")
plain = lm(QUESTION)[0]
same(plain["text"] if isinstance(plain, dict) else plain, chat([{"role": "user", "content": QUESTION}]), "a prompt")


class Colour(dspy.Signature):
    """Answer with a colour."""

    question: str = dspy.InputField()
    colour: Literal["red", "green", "blue"] = dspy.OutputField()


with dspy.context(lm=dspy.LM("openai/any", api_base=BASE, api_key="any", temperature=0, max_tokens=200, cache=False, num_retries=0), adapter=dspy.JSONAdapter()):
    answer = dspy.Predict(Colour)(question="What colour is the sky?")
assert answer.colour in ("red", "green", "blue"), answer
print("dspy", importlib.metadata.version("dspy"))
