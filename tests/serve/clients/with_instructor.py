"""The package instructor: see shared.py and abilities.py. It cannot demand several calls, so the server's template is brackets.jinja."""

import importlib.metadata
from typing import Iterable, Literal

import instructor
from abilities import CITIES, WEATHER, earlier, get_weather, row, shows
from openai import OpenAI
from pydantic import BaseModel
from shared import BASE, MESSAGES, N, QUESTION, chat, same


class Colour(BaseModel):
    """A colour."""

    colour: Literal["red", "green", "blue"]
    bright: bool


class GetWeather(BaseModel):
    """The weather of a city."""

    city: str


def client(mode):
    return instructor.from_openai(OpenAI(base_url=BASE, api_key="any", max_retries=0), mode=mode)


ASK = {"model": "any", "temperature": 0, "max_tokens": 200, "max_retries": 0}
asked = [{"role": "user", "content": QUESTION}]
with shows("plain"):
    same(client(instructor.Mode.TOOLS).create(response_model=None, messages=MESSAGES, **{**ASK, "max_tokens": N}).choices[0].message.content, chat(), "text")
with shows("stream"):
    for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA):
        pieces = list(client(mode).create_partial(response_model=Colour, messages=asked, **ASK))
        assert len(pieces) > 1 and pieces[-1].model_dump() == client(mode).create(response_model=Colour, messages=asked, **ASK).model_dump(), pieces
with shows("tools"):
    call = client(instructor.Mode.TOOLS).create(response_model=GetWeather, messages=[{"role": "user", "content": WEATHER}], **ASK)
    assert get_weather(call.city) and call.city in CITIES, call
with shows("parallel"):
    turns = [*earlier("GetWeather"), {"role": "user", "content": WEATHER}]
    calls = list(client(instructor.Mode.PARALLEL_TOOLS).create(response_model=Iterable[GetWeather], messages=turns, **ASK))
    assert {call.city for call in calls} == CITIES, calls
with shows("structured"):
    for mode in (instructor.Mode.TOOLS, instructor.Mode.TOOLS_STRICT, instructor.Mode.JSON_SCHEMA, instructor.Mode.RESPONSES_TOOLS):
        held = client(mode).create(response_model=Colour, messages=asked, **({k: v for k, v in ASK.items() if k != "max_tokens"} if mode == instructor.Mode.RESPONSES_TOOLS else ASK))
        assert isinstance(held, Colour), (mode, held)
row("instructor", importlib.metadata.version("instructor"))
