"""Every option of the Python module with every wrong value gives one line, which is not one of Lua's own. And the names of options in other programs."""
import json
import pathlib

import dtrun

PROMPT = "It was a dark night"


class Number:  # as other packages have them
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


def refused(function, *args, **options):
    try:
        function(*args, **options)
    except dtrun.Error as error:
        return str(error)
    return None


def deep(n):
    return [deep(n - 1)] if n else []


WRONG = [True, False, -1, 0, 1.5, 1e300, 2**63, 2**64, -(2**63), 2**200, float("nan"), float("-inf"), "", "x", "x\0y", "1",
         "\n\x1b[31m", "é" * 5000, "\ud800", b"x", [], [[]], [1, [2]], ["x\0y"], [None], [{}], {}, {"a": 1}, {"a": {"b": 1}},
         {"K": [1, [2]]}, {"K": {"a": 1}}, {"K": [[2]]}, {"K\0": 1}, {"K": "1\0"}, {"K": None}, {1: 2}, {"K": float("nan")},
         deep(150), deep(300), {1, 2}, object(), len]
RAW = ("bad argument", "attempt to", "traceback", "for iterator", ".lua:", "number has no", "Circular", "compliant")

with dtrun.load(threads=1) as pair:
    def check(name, function, *args, **options):
        said = refused(function, *args, **options)
        if said is not None:
            assert len(said) < 500 and said.isprintable() and not any(raw in said for raw in RAW), (name, options, said)
        return said

    OPTIONS = ("policy source preset params tokens stop ignore_eos seed temp top_k top_p min_p coupled policy_seconds trace window "
               "sinks brief template date messages repeat_penalty presence_penalty frequency_penalty logit_bias min_tokens think_tokens logprobs echo grammar json_schema "
               "regex").split()
    for value in WRONG:
        for name in OPTIONS:
            given = {"policy": "linear", "tokens": 1, **{name: value}}
            check(name, pair.generate, None if name == "messages" else PROMPT, **given)
            if name not in ("trace", "messages"):
                check(name, pair.generate_batch, [PROMPT], **given)
        for name in ("policy", "source", "preset", "params"):
            check(name, pair.policy, **{"policy": "linear", name: value})
        check("prompt", pair.generate, value, policy="ar", tokens=1)
        check("prompt", pair.generate_batch, [PROMPT, value], policy="ar", tokens=1)
        check("text", pair.encode, value)
        check("slots", pair.generate_batch, [PROMPT], policy="ar", tokens=1, slots=value)
        if isinstance(value, (list, dict, str, set)):
            check("prompts", pair.generate_batch, value, policy="ar", tokens=1)
            check("ids", pair.decode, value)
        for name in "target draft backend threads ctx weights draft_weights draft_vocab cache_dtype draft_window activations rope_scaling rope_scale yarn_orig_ctx".split():
            if value not in (True, "1", "", 0) or name not in ("threads", "draft_vocab", "draft"):
                check(name, dtrun.load, **{name: value})
    pathlib.Path("x").unlink(missing_ok=True)

    # values that were once read as something else
    params = {"policy": "linear", "tokens": 1}
    assert "params.K is a table, expected a value or a list of numbers" in refused(pair.generate, PROMPT, params={"K": [1, [2]]}, **params)
    assert "params.K is a table, expected a value" in refused(pair.generate, PROMPT, params={"K": {"a": 1}}, **params)
    assert refused(pair.generate, PROMPT, policy="linear\0x") == "generate: policy = 'linear?x' is not a policy's name or path"
    assert refused(pair.generate, 123) == "generate: prompt is a number, expected a text or a list of messages"
    assert refused(pair.generate_batch, PROMPT) == "generate_batch: prompts is a single prompt, expected a list"

    # texts with constraints
    held = {"policy": "linear", "tokens": 40, "temp": 1}
    schema = {"type": "object", "properties": {"é": {"enum": [1, 2]}}, "required": ["é"]}
    assert json.loads(pair.generate(PROMPT, json_schema=schema, **held)["text"])["é"] in (1, 2)
    assert json.loads(pair.generate(PROMPT, guided_json=json.dumps(schema), **held)["text"])["é"] in (1, 2)
    assert pair.generate(PROMPT, regex="a{3}", **held)["text"] == pair.generate(PROMPT, grammar='root ::= "aaa"', **held)["text"] == "aaa"
    assert [r["text"] for r in pair.generate_batch([PROMPT, PROMPT], guided_regex="b{2}", **held)] == ["bb", "bb"]
    assert refused(pair.generate, PROMPT, regex="a", grammar='root ::= "a"') == "generate: grammar, json_schema and regex: give only one of them"
    assert "regular expression, column 2: this parenthesis" in refused(pair.generate, PROMPT, regex="a(")
    assert "json_schema is not JSON" in refused(pair.generate, PROMPT, json_schema={"a": {1}})
    assert "json_schema=, grammar= (GBNF) or regex=" in refused(pair.generate, PROMPT, response_format={})

    # conversations
    talk = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who are you?"}]
    laid = {"policy": "linear", "tokens": 12, "template": "chatml"}
    said = pair.generate(talk, **laid)
    assert said["tokens"] == pair.generate(messages=talk, **laid)["tokens"] == pair.generate_batch([talk], **laid)[0]["tokens"]
    assert said["tokens"] == pair.generate(talk, policy="linear", max_tokens=12, chat_template="chatml")["tokens"]
    assert "Be brief." in pair.decode(said["prompt_ids"]) and "Who are you?" in pair.decode(said["prompt_ids"])
    assert "".join(pair.stream(talk, **laid)) == said["text"]
    assert "no chat template" in refused(pair.generate, talk)
    assert "messages[0].role: expected system, developer, user" in refused(pair.generate, [{"role": "judge", "content": ""}], **laid)
    assert refused(pair.generate) == "generate: prompt is missing"
    assert "give either prompt or messages" in refused(pair.generate, PROMPT, messages=talk)

    # seeds have 64 bits
    texts = set()
    for seed in (0, 2**63 - 1, 2**63, 2**64 - 1):
        result = pair.generate(PROMPT, policy="linear", tokens=20, temp=1, seed=seed)
        assert int(result["seed"]) == seed and result["tokens"] == pair.generate(
            PROMPT, policy="ar", tokens=20, temp=1, seed=seed)["tokens"]
        texts.add(result["text"])
    assert len(texts) == 4
    for seed in (2**64, -1, 1.5):
        assert "a whole number from 0 to 2^64 - 1" in refused(pair.generate, PROMPT, policy="ar", seed=seed), seed

    # names in other programs
    ours = pair.generate(PROMPT, policy="linear", tokens=9, temp=0.7, top_p=0.9, seed=3)
    for name in ("max_new_tokens", "max_tokens", "n_predict", "num_predict"):
        assert pair.generate(PROMPT, policy="linear", temperature=0.7, top_p=0.9, top_k=0, random_seed=Number(3),
                             **{name: Number(9)})["text"] == ours["text"]
    assert "".join(pair.stream(PROMPT, policy="linear", max_tokens=9, temperature=0.7, top_p=0.9, seed=3)) == ours["text"]
    assert "tokens is given twice, once as max_tokens" in refused(pair.generate, PROMPT, tokens=1, max_tokens=1)
    for name in ("bad_words", "num_beams", "do_sample", "streamer"):
        assert f"{name} is not an option: " in refused(pair.generate, PROMPT, **{name: 1}), name
    adjusted = pair.generate(PROMPT, policy="linear", tokens=9, repetition_penalty=1.5, logit_bias={" the": False, 300: 2}, logprobs=2)
    assert adjusted["adjustments"]["repeat_penalty"] == 1.5 and adjusted["adjustments"]["logit_bias"][1] == [300, 2], adjusted["adjustments"]
    assert len(adjusted["logprobs"]) == 9 and len(adjusted["logprobs"][0]["top"]) == 2
    told, pieces = [], []
    result = pair.generate(PROMPT, policy="linear", tokens=9, logprobs=2, on_logprobs=told.extend, on_text=pieces.append)
    def rounded(list): return [[t["id"], f'{t["logprob"]:.6g}', [[id, f"{p:.6g}"] for id, p in t["top"]]] for t in list]
    assert rounded(told) == rounded(result["logprobs"]) and len(told) == 9, (told, result["logprobs"])
    assert "".join(pieces) == result["text"] and len(pieces) > 1, pieces
    few = []
    stopped = pair.generate(PROMPT, policy="ar", tokens=9, logprobs=0, on_logprobs=few.extend, on_text=lambda _: len(few) < 3)
    assert len(few) == len(stopped["tokens"]) == 3, stopped
    assert len(pair.generate_batch([PROMPT], policy="ar", tokens=3, temp=1.0, answers=3)) == 3
    assert "unknown key 'colour'" in refused(pair.generate, PROMPT, colour=1)
    with dtrun.load(model=pathlib.Path(pair.target["path"]), n_ctx=64, n_threads=1) as other:
        assert other.threads == 1 and other.target == pair.target, (other.target, pair.target)
print("ok")
