"""A model's names for clients: names.py URL NAME.. Any other name means the first one. Python's own modules only."""

import json
import sys

from asking import CHAT, TEXT, USER, events, exchange, gets, refused

names = sys.argv[2:]


def got(route):
    status, _, text = exchange("GET", route)
    assert status == 200, (route, status, text)
    return json.loads(text)


assert [m["id"] for m in got("/v1/models")["data"]] == names
assert got("/props")["model_alias"] == names[0]
for asked, expected in [(name, name) for name in names] + [("gpt-5", names[0]), ("", names[0])]:
    assert gets(TEXT, {"model": asked, "prompt": "a", "max_tokens": 1})["model"] == expected
    assert gets(CHAT, {"model": asked, "messages": USER, "max_tokens": 1})["model"] == expected
    assert {e["model"] for e in events({"model": asked, "messages": USER, "max_tokens": 1})} == {expected}
    if asked:
        assert got(f"/v1/models/{asked}")["id"] == expected
assert gets(TEXT, {"model": None, "prompt": "a", "max_tokens": 1})["model"] == names[0]
refused(TEXT, {"model": 5, "prompt": "a"}, r"^model: expected a text")
print("the model goes by its names")
