"""The programs that compare_peers.py measures, and what it measures of them.

An engine has `arms`, a list of (label, argument), plain decoding first; `flags`, how each of its programs was started; and
`run(argument, request)`, which answers {"tokens": ids, "seconds": from the start of the prompt pass to the last token,
"prompt_seconds": until the prompt was read}, and "first_from_prompt": 1 where that pass read the prompt's last token, too, and so gave
the first new one. An engine that is a program of its own has `first_token(request)`, too: seconds from the start of
a new process, which it ends again, to the request's answer of one token.
"""
import dataclasses

END = -1  # in a run's tokens: the one that ended the text, whose id not every program tells


@dataclasses.dataclass
class Request:
    text: str
    tokens: int
    ids: list = None  # of the text, as dtrun reads it
    temp: float = 0.0
    top_k: int = 40  # sampling takes the likeliest 40, as most people's does; at temperature 0 it says nothing
    seed: int = 0
    until_end: bool = False  # the text may end where the model ends it; else end-of-text does not stop


def fail(message): raise SystemExit(f"compare_peers: {message}")
