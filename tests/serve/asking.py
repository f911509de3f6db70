"""Requests to a server, for the tests in this folder; Python's own modules only. A body is a value, or bytes that are sent as they are."""

import http.client
import json
import re
import sys
import urllib.parse

URL = urllib.parse.urlparse(sys.argv[1])
TEXT, CHAT = "/v1/completions", "/v1/chat/completions"
USER = [{"role": "user", "content": "The dog?"}]


def exchange(method, route, body=None, headers=None):
    """Status, headers and bytes of the answer."""
    c = http.client.HTTPConnection(URL.hostname, URL.port, timeout=120)
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
    c.request(method, route, body, headers or {})
    answer = c.getresponse()
    got = answer.status, answer.headers, answer.read()
    c.close()
    return got


def ask(route, body):
    """Status and value of the answer."""
    status, _, answer = exchange("POST", route, body)
    return status, json.loads(answer)


def gets(route, body):
    """The answer to a request that must be accepted."""
    status, answer = ask(route, body)
    assert status == 200, (status, answer, shown(body))
    return answer


def text_of(answer):
    choice = answer["choices"][0]
    return choice["text"] if "text" in choice else choice["message"]["content"]


def events(body, route=CHAT):
    """The values of a stream's events, which end with [DONE]."""
    status, headers, answer = exchange("POST", route, {**body, "stream": True})
    assert status == 200 and headers["Content-Type"] == "text/event-stream", (status, answer)
    lines = [line[6:] for line in answer.decode().split("\n") if line.startswith("data: ")]
    assert lines[-1] == "[DONE]", lines[-1]
    return [json.loads(line) for line in lines[:-1]]


def streamed(body, route=CHAT):
    """The text of a stream's first choice."""
    choices = [event["choices"][0] for event in events(body, route) if event["choices"]]
    return "".join(c["text"] if "text" in c else c["delta"].get("content") or "" for c in choices)


def refused(route, body, pattern, status=400, kind="invalid_request_error"):
    """The error of a request that must be refused with one line that matches."""
    got, answer = ask(route, body)
    error = answer.get("error", {})
    fine = got == status and error.get("type") == kind and re.search(pattern, error["message"]) and "\n" not in error["message"]
    assert fine, (shown(body), got, answer, "expected", status, pattern)
    return error


def shown(body):
    text = body.decode(errors="replace") if isinstance(body, bytes) else json.dumps(body)
    return text if len(text) < 300 else text[:300] + "..."
