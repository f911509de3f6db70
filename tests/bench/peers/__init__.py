"""The programs that compare_peers.py measures, and what it measures.

An engine has `arms`, a list of (label, argument), plain decoding first; `flags`, how each of its programs was
started; and `run(argument, request)`. This returns {"tokens": ids, "seconds": from the start of the prompt pass to
the last token, "prompt_seconds": until the prompt was read}, and "first_from_prompt": 1 if that pass read the
prompt's last token as well, and therefore gave the first new token. An engine that is a program of its own also has
`first_token(request)`: the seconds from the start of a new process, which is ended again, to the request's answer of
one token.
"""
import dataclasses

END = -1  # in a run's tokens: the one that ended the text, whose id not every program tells


@dataclasses.dataclass
class Request:
    text: str
    tokens: int
    ids: list = None  # the text's ids, as dtrun encodes it
    temp: float = 0.0
    top_k: int = 40  # sampling takes the likeliest 40, as most people's does; at temperature 0 it says nothing
    seed: int = 0
    until_end: bool = False  # the text ends where the model ends it; otherwise the end-of-text token does not stop it


def fail(message): raise SystemExit(f"compare_peers: {message}")
