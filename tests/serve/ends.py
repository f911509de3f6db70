"""Where an answer ends: ends.py URL token|text. The model's layout ends an answer with </s>, for which its tokenizer has a token (1), or has none."""

import sys

from asking import CHAT, USER, gets, streamed, text_of

has_token = sys.argv[2] == "token"
CHATS = {"messages": USER, "max_tokens": 60}
HELD = {  # texts under a grammar or a schema that spell the mark, which is no end there
    "use </s> here": {"grammar": 'root ::= "use </s> here"'},
    '"use </s> here"': {"json_schema": {"const": "use </s> here"}},
    '"<p>a</p></s>"': {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"const": "<p>a</p></s>"}}}},
    "</s></s>": {"grammar": 'root ::= "</s></s>"'},
}
for policy in ("ar", "linear", "rate", "suffix", "dynatree"):
    for text, held in HELD.items():
        body = {**CHATS, **held, "dtrun": {"policy": policy}}
        answer = gets(CHAT, body)
        assert text_of(answer) == text and answer["choices"][0]["finish_reason"] == "stop", (policy, text, answer)
        assert streamed(body) == text, (policy, text)
    # The likeliest tokens are < / s > in turn. They are an end if there is no token for it.
    spells = {"logit_bias": [["<", 1000], ["/", 960], ["s", 920], [">", 880]], "presence_penalty": 100, "frequency_penalty": 100}
    body = {**CHATS, **spells, "max_tokens": 7, "dtrun": {"policy": policy}}
    assert text_of(gets(CHAT, body)) == ("</s></s" if has_token else ""), policy
    assert streamed(body) == ("</s></s" if has_token else ""), policy
    if has_token:
        answer = gets(CHAT, {**CHATS, "logit_bias": {"1": 1000}, "dtrun": {"policy": policy}})
        assert (text_of(answer), answer["choices"][0]["finish_reason"], answer["usage"]["completion_tokens"]) == ("", "stop", 1), answer
        answer = gets(CHAT, {**CHATS, "logit_bias": {"1": 1000}, "min_tokens": 3, "dtrun": {"policy": policy}})
        assert answer["usage"]["completion_tokens"] == 4, answer
        answer = gets(CHAT, {**CHATS, "logit_bias": {"1": 1000}, "ignore_eos": True, "max_tokens": 5, "dtrun": {"policy": policy}})
        assert answer["usage"]["completion_tokens"] == 5, answer
    # A stop string of the request is searched for everywhere.
    answer = gets(CHAT, {**CHATS, "grammar": 'root ::= "use </s> here"', "stop": "</s>", "dtrun": {"policy": policy}})
    assert text_of(answer) == "use ", answer
print("all answers end where they should")
