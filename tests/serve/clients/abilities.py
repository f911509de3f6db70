"""What a client package can do with the server: a row of the table in README.md. Shared by the scripts in this folder; the model may be any."""

import contextlib
import json
import traceback

import shared  # noqa: F401 (finds the next)

from asking import exchange

ABILITIES = "plain stream tools parallel structured".split()
WEATHER, CITIES = "What is the weather in Paris and in Rome?", {"Paris", "Rome"}
MODEL = json.loads(exchange("GET", "/v1/models")[2])["data"][0]["id"]
marks = {}
called = []  # the cities that get_weather was called with


def get_weather(city: str) -> str:
    """The weather of a city.

    Args:
        city: The name of the city.
    """
    called.append(city)
    return f"It is sunny in {city}."


SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "description": "The name of the city."}}, "required": ["city"], "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "The weather of a city.", "parameters": SCHEMA}}


def earlier(name="get_weather"):
    """Messages of turns in which the model called the tool twice, for packages that cannot demand a call: a small model does the same again."""
    turns = []
    for pair in (("Oslo", "Lima"), ("Cairo", "Bonn"), ("Bern", "Kyiv")):
        calls = [{"id": f"call_{city}", "type": "function", "function": {"name": name, "arguments": json.dumps({"city": city})}} for city in pair]
        turns += [{"role": "user", "content": f"What is the weather in {pair[0]} and in {pair[1]}?"}, {"role": "assistant", "content": "", "tool_calls": calls}]
        turns += [{"role": "tool", "tool_call_id": f"call_{city}", "content": f"It is sunny in {city}."} for city in pair]
        turns.append({"role": "assistant", "content": f"It is sunny in {pair[0]} and in {pair[1]}."})
    return turns


@contextlib.contextmanager
def shows(*names):
    """The code in the block shows these abilities, unless it raises an error."""
    try:
        called.clear()
        yield
    except Exception as e:  # noqa: BLE001 (clients have errors of all kinds)
        traceback.print_exc()
        marks.update(dict.fromkeys(names, f"FAILED {type(e).__name__}: {str(e).splitlines()[0][:100] if str(e) else ''}"))
    else:
        for name in names:
            marks.setdefault(name, "yes")


def shown(*names):
    """The checks before have shown these abilities; they would have ended the script otherwise."""
    with shows(*names):
        pass


def row(package, version):
    """Prints the row; an ability that no block shows is one that the package does not have."""
    print("|", " | ".join([package, version, MODEL, *(marks.get(name, "-") for name in ABILITIES)]), "|")
    if any(mark.startswith("FAILED") for mark in marks.values()): raise SystemExit(1)
