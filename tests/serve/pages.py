"""Pages of other sites: pages.py URL ORIGIN|*|none. What --cors allows, and nothing else; Python's own modules only."""

import json
import sys

from asking import CHAT, TEXT, USER, exchange

allowed = sys.argv[2]
OURS, THEIRS = "https://app.example:3000", "https://evil.example"
BODY = {"prompt": "a", "max_tokens": 1}
STREAM = {"messages": USER, "max_tokens": 2, "stream": True}


def check(origin, welcome):
    shown = {"Origin": origin}
    expected = None if not welcome else "*" if allowed == "*" else origin

    def answers(method, route, body, status, **headers):
        got, said, text = exchange(method, route, body, {**shown, **headers})
        assert got == (status if welcome else 403), (method, route, got, text)
        assert said["Access-Control-Allow-Origin"] == expected, (method, route, dict(said))
        return said, text

    said, text = answers("OPTIONS", TEXT, None, 204, **{"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type,x-stainless-os"})
    if welcome:
        assert text == b"" and "POST" in said["Access-Control-Allow-Methods"] and "x-stainless-os" in said["Access-Control-Allow-Headers"], dict(said)
        assert "Origin" in said["Vary"] and int(said["Access-Control-Max-Age"]) > 0
    answers("OPTIONS", "/nowhere", None, 204)
    answers("POST", TEXT, BODY, 200)
    answers("POST", TEXT, {"prompt": ""}, 400)
    answers("POST", "/nowhere", {}, 404)
    answers("GET", "/health", None, 200)
    answers("GET", "/v1/models", None, 200)
    said, text = answers("POST", CHAT, STREAM, 200)
    if welcome:
        assert said["Content-Type"] == "text/event-stream" and text.endswith(b"data: [DONE]\n\n"), text


for origin in (OURS, OURS.upper(), THEIRS, "http://app.example:3000", OURS + "0", "null"):
    check(origin, allowed == "*" or (allowed != "none" and origin.lower() == allowed))
port = exchange.__globals__["URL"].port
for own in (f"http://localhost:{port}", f"http://127.0.0.1:{port}"):  # the server's own page needs no permission
    status, said, _ = exchange("POST", TEXT, BODY, {"Origin": own})
    assert status == 200, own
status, said, _ = exchange("POST", TEXT, BODY, {"Host": "evil.example", "Origin": OURS})
assert status == 403  # a name that was made to point to this machine
status, said, text = exchange("OPTIONS", TEXT)
assert status == 204 and text == b"" and "POST" in said["Allow"] and said["Access-Control-Allow-Origin"] is None

for route, status in (("/health", 200), ("/v1/models", 200), ("/metrics", 200), ("/props", 200), ("/", 200), ("/nowhere", 404), (TEXT, 405)):
    got, said, text = exchange("HEAD", route)
    assert got == status and text == b"" and int(said["Content-Length"]) > 0, (route, got, text)
assert json.loads(exchange("GET", "/health")[2]) == {"status": "ok"}
print("pages get what --cors allows")
