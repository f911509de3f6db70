"""Requests as vLLM's benchmark and guidellm send them, with answers read as these do: shapes.py URL. Python's own modules only."""

import json
import sys
import urllib.request

URL = sys.argv[1]
TEXT, N = "It was a dark night, and", 24
STREAM = {"model": "any", "stream": True, "stream_options": {"include_usage": True}}
PARTS = [{"role": "user", "content": [{"type": "text", "text": TEXT}]}]
SHAPES = {  # vLLM's vllm bench serve: openai, openai-chat; guidellm's text_completions, chat_completions
    "vllm": ("/v1/completions", {**STREAM, "prompt": TEXT, "temperature": 0.0, "repetition_penalty": 1.0, "max_tokens": N, "logprobs": None, "ignore_eos": True}),
    "vllm chat": ("/v1/chat/completions", {**STREAM, "messages": PARTS, "temperature": 0.0, "max_completion_tokens": N, "ignore_eos": True}),
    "guidellm": ("/v1/completions", {**STREAM, "prompt": TEXT, "max_tokens": N, "max_completion_tokens": N, "stop": None, "ignore_eos": True,
                                     "stream_options": {"include_usage": True, "continuous_usage_stats": True}}),
    "guidellm chat": ("/v1/chat/completions", {**STREAM, "messages": PARTS, "max_tokens": N, "max_completion_tokens": N, "stop": None, "ignore_eos": True,
                                               "stream_options": {"include_usage": True, "continuous_usage_stats": True}}),
}
for name, (route, body) in SHAPES.items():
    request = urllib.request.Request(URL + route, json.dumps(body).encode(), {"Content-Type": "application/json", "Authorization": "Bearer none"})
    text, usage, last = "", None, ""
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200, name
        for line in answer:
            line = line.decode().strip()
            if not line.startswith("data: "):
                assert not line or line.startswith(":"), (name, line)  # vLLM skips empty lines and pings
                continue
            last = line.removeprefix("data: ")
            if last == "[DONE]":
                continue
            chunk = json.loads(last)
            usage = chunk.get("usage") or usage
            for choice in chunk["choices"]:
                text += choice.get("text") or choice.get("delta", {}).get("content") or ""
    assert last == "[DONE]" and text and usage["completion_tokens"] == N and usage["prompt_tokens"] > 0, (name, text, usage)
with urllib.request.urlopen(URL + "/v1/models", timeout=60) as answer:
    assert json.load(answer)["data"][0]["id"]
print(f"{len(SHAPES)} shapes answered")
