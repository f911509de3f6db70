"""Shared by the scripts in this folder: each is PACKAGE.py URL, and asks a server with SmolLM2 through a package by other authors, without tools."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parent.parent))

from asking import CHAT, TEXT, gets, text_of  # noqa: E402

URL = sys.argv[1]
BASE = URL + "/v1"
QUESTION, N = "Name three colours.", 24
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
PROMPT = "The three primary colours are"


def chat(messages=MESSAGES, **more):
    """What the server answers to plain HTTP."""
    return text_of(gets(CHAT, {"messages": messages, "temperature": 0, "max_tokens": N, **more}))


def completion(**more):
    return text_of(gets(TEXT, {"prompt": PROMPT, "temperature": 0, "max_tokens": N, **more}))


def same(got, expected, what):
    assert got == expected and expected, (what, got, expected)
