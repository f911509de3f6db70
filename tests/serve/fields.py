"""Every field of the published schemas: fields.py URL FIELDS SOURCE [openai], on a server with the layout chatml. Python's own modules only, except for the package
openai, whose schemas "openai" holds the list against.

FIELDS is fields.txt: each of its fields is sent with a value; what is taken or ignored is answered, what is ignored changes no text, and what is refused is refused by
name. The list has the fields of the tables in lua/serve, and the guide lists those that are ignored.
"""

import collections
import json
import pathlib
import re
import sys

from asking import CHAT, TEXT, USER, gets, refused, text_of

ROUTES = {"text": TEXT, "chat": CHAT}
PLAIN = {"text": {"prompt": "It was a dark night, and", "max_tokens": 4}, "chat": {"messages": USER, "max_tokens": 4}}
PLACES = {"IN_TEXT": ["text"], "IN_CHAT": ["chat"], "IN_BODY": ["text", "chat"]}
Field = collections.namedtuple("Field", "name route schemas does value harmless")

lines = [line for line in pathlib.Path(sys.argv[2]).read_text().splitlines() if not line.startswith("#")]
fields = [Field(*line.split("\t")) for line in lines]
source = pathlib.Path(sys.argv[3])
plain = {route: text_of(gets(ROUTES[route], body)) for route, body in PLAIN.items()}


def body_with(f, *values):
    """A request with a field, whose value is in JSON; it may come twice."""
    rest = {k: v for k, v in PLAIN[f.route].items() if k != f.name and not (k == "max_tokens" and f.name in ("max_completion_tokens", "n_predict"))}
    more = ", ".join(f"{json.dumps(f.name)}: {value}" for value in values)
    return f"{json.dumps(rest)[:-1]}{', ' if rest else ''}{more}}}".encode()


def table(path, pattern):
    """Names and routes of a table in C."""
    found = re.findall(pattern, (source / "lua/serve" / path).read_text(), re.S)
    return {(name, route): what for name, where, what in found for place in re.split(r"\s*\|\s*", where) for route in PLACES.get(place, [])}


# Members that the server reads itself, and fields of the table of all requests: their names in bodies are in the fourth column.
taken = table("ask.c", r'\{"([^"]+)",\s*(IN_[A-Z_| ]+),\s*(0|offsetof)')
rows = re.findall(r'\{"[a-z0-9_]+",\s*(?:"[^"]*"|NULL),\s*(?:"[^"]*"|NULL),\s*"([^"]+)",', (source / "lua/request/fields.c").read_text())
taken |= {(name, route): "row" for names in rows for name in names.split() for route in ROUTES if (name, route) != ("top_logprobs", "text")}
others = table("others.c", r'\{"([^"]+)",\s*(IN_[A-Z_| ]+),\s*(NULL|"(?:[^"\\]|\\.)*")\}')
listed = {(f.name, f.route): f.does for f in fields}
expected = {**{key: "taken" for key in taken}, **{key: "ignored" if only == "NULL" else "refused" for key, only in others.items()}}
assert len(listed) == len(fields) > 250 and not set(taken) & set(others)
assert listed == expected, {key: (listed.get(key), expected.get(key)) for key in set(listed) ^ set(expected) or [k for k in listed if listed[k] != expected[k]]}

for f in fields:
    route = ROUTES[f.route]
    if f.does == "refused":
        error = refused(route, body_with(f, f.value), rf"^{re.escape(f.name)}: (not|only .* is) supported$")
        assert f.harmless == "-" or text_of(gets(route, body_with(f, f.harmless))) == plain[f.route], f
    else:
        text = text_of(gets(route, body_with(f, f.value)))
        assert f.does == "taken" or text == plain[f.route], f
    if f.name not in ("prompt", "messages"):
        assert text_of(gets(route, body_with(f, "null"))) is not None, f  # absent, as clients write that
    refused(route, body_with(f, f.value, f.value), rf"^{re.escape(f.name)}: it is given twice$")
for route in ROUTES:
    refused(ROUTES[route], {**PLAIN[route], "frobnicate": 1}, r"^frobnicate: unknown field$")
    gets(ROUTES[route], {**PLAIN[route], "frobnicate": None})

guide = (source / "lua/cli/SERVE.md").read_text()
section = guide.split("## Fields that are ignored", 1)[1].split("\n## ", 1)[0]
shown = set(re.findall(r"`([a-z_.]+)`", section.split("\n\n")[1]))
ignored = {f.name for f in fields if f.does == "ignored"}
assert shown == ignored, ("only in the guide", shown - ignored, "not in the guide", ignored - shown)

# The guide names the fields of the other APIs that are ignored or refused.
for place, title in (("IN_RESPONSE", "## The Responses API"), ("IN_ANTHROPIC", "## The Messages API")):
    rows = re.findall(r'\{"([^"]+)",\s*(IN_[A-Z_| ]+),', (source / "lua/serve/others.c").read_text())
    names = {name for name, where in rows if place in re.split(r"\s*\|\s*", where)}
    shown = set(re.findall(r"`([a-z_.]+)`", guide.split(title, 1)[1].split("\n## ", 1)[0]))
    assert len(names) > 10 and names <= shown, (title, names - shown)

if "openai" in sys.argv[4:]:
    from openai.types import completion_create_params as text_params
    from openai.types.chat import completion_create_params as chat_params

    for route, params in (("text", text_params), ("chat", chat_params)):
        names = {name for base in (params.CompletionCreateParamsBase, params.CompletionCreateParamsStreaming) for name in base.__annotations__}
        listed = {f.name for f in fields if f.route == route and "openai" in f.schemas}
        assert names == listed, (route, names ^ listed)
count = collections.Counter(f.does for f in fields)
print(f"{len(fields)} fields: {count['taken']} taken, {count['ignored']} ignored, {count['refused']} refused")
