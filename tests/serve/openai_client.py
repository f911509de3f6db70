"""The package openai, by other authors, with a server: openai_client.py URL KEY. Each assertion is a promise of lua/cli/SERVE.md."""

import sys

import openai
from openai import OpenAI

url, key = sys.argv[1:]
client = OpenAI(base_url=url + "/v1", api_key=key, max_retries=0)
MODEL = client.models.list().data[0].id
assert client.models.retrieve(MODEL).id == MODEL
DARK = "It was a dark night, and"
HELLO = [{"role": "user", "content": "Where is the dog?"}]


def refused(kind, part, **fields):
    try:
        client.completions.create(**{"model": MODEL, "prompt": DARK, **fields})
    except kind as e:
        assert part in str(e), e
        return
    sys.exit(f"{fields}: taken")


# Completions, whole and as a stream.
whole = client.completions.create(model=MODEL, prompt=DARK, max_tokens=20, temperature=0)
assert whole.choices[0].finish_reason == "length" and whole.usage.completion_tokens == 20
pieces = list(client.completions.create(model=MODEL, prompt=DARK, max_tokens=20, temperature=0, stream=True))
assert "".join(p.choices[0].text for p in pieces) == whole.choices[0].text
assert len({p.id for p in pieces}) == 1 and pieces[-1].choices[0].finish_reason == "length"

# Chats.
chat = client.chat.completions.create(model=MODEL, messages=HELLO, max_completion_tokens=15)
assert chat.choices[0].message.role == "assistant"
stream = client.chat.completions.create(
    model=MODEL, messages=HELLO, max_completion_tokens=15, stream=True, stream_options={"include_usage": True}
)
chunks = list(stream)
assert chunks[0].choices[0].delta.role == "assistant" and chunks[0].choices[0].delta.content is None
text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
assert text == chat.choices[0].message.content
assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == chat.usage.completion_tokens
assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == chat.choices[0].finish_reason

# Several answers, seeds, stop strings, biases.
several = client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=8, n=3, temperature=1, seed=5)
again = client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=8, n=3, temperature=1, seed=5)
texts = [c.message.content for c in several.choices]
assert texts == [c.message.content for c in again.choices] and len(set(texts)) > 1
stop = client.completions.create(model=MODEL, prompt=DARK, max_tokens=40, temperature=0, stop=[" little"])
assert stop.choices[0].finish_reason == "stop" and whole.choices[0].text.startswith(stop.choices[0].text + " little")
first = client.completions.create(model=MODEL, prompt=DARK, max_tokens=1, temperature=0, logprobs=3)
token = first.choices[0].logprobs.tokens[0]
assert token == first.choices[0].text and len(first.choices[0].logprobs.top_logprobs[0]) == 3

# Log-probabilities of a chat.
told = client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=3, logprobs=True, top_logprobs=2)
content = told.choices[0].logprobs.content
assert len(content) == 3 and all(len(t.top_logprobs) == 2 and t.logprob <= 0 for t in content)
assert all(bytes(t.bytes).decode(errors="replace") == t.token for t in content)

# A schema.
schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "additionalProperties": False}
held = client.chat.completions.create(
    model=MODEL,
    messages=HELLO,
    max_tokens=60,
    response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}},
)
assert held.choices[0].message.content.lstrip().startswith("{"), held

# Errors of each kind.
refused(openai.BadRequestError, "temperature", temperature=1000)
refused(openai.BadRequestError, "unknown field", extra_body={"frobnicate": 1})
refused(openai.BadRequestError, "no policy", extra_body={"dtrun": {"policy": "nonsense"}})
try:
    OpenAI(base_url=url + "/v1", api_key="wrong", max_retries=0).completions.create(model=MODEL, prompt=DARK)
    sys.exit("a wrong key is taken")
except openai.AuthenticationError:
    pass

# A stream whose client leaves, and the next request.
left = client.completions.create(model=MODEL, prompt=DARK, max_tokens=2000, stream=True, extra_body={"ignore_eos": True})
next(iter(left))
left.close()
assert client.completions.create(model=MODEL, prompt=DARK, max_tokens=20, temperature=0).choices[0].text == whole.choices[0].text

# A policy for a request.
mine = client.completions.create(model=MODEL, prompt=DARK, max_tokens=20, extra_body={"dtrun": {"policy": "linear"}})
assert mine.choices[0].text == whole.choices[0].text and mine.choices[0].dtrun["policy"] == "linear"
print("all of it holds")
