"""Make logits/mini-target/sampling.json: the exact probabilities with which Hugging Face transformers (f32, CPU, eager
attention) would sample the next two tokens after a few texts. It uses transformers' own processors in their own
order, and OpenAI's formula of presence and frequency penalties, which transformers lacks. Run it from anywhere:

    python tests/golden/make_sampling.py

A case has the input ids and, for each setting, `after`: the distribution of the next token after the ids, and after
the ids and each of the two likeliest next tokens. A distribution has the likeliest ids (at most 64), their
probabilities, and the other ids that may occur (absent: all may). Rounding decides whether an id at the very edge is
allowed. If many ids are allowed, such ids are listed with the others; if few are, a text of another length is used.
"""
import json, pathlib
import torch
import transformers
from tokenizers import Tokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = "models/mini-target"
LISTED = 64
CASES = [("wikitext2/01", 31), ("novels/02", 60)]  # the text, and its minimum length
EDGE = 1e-3  # for a logit
SETTINGS = [
    {"temp": 0.5}, {"temp": 1.0}, {"temp": 1.5},
    {"temp": 0.5, "top_p": 0.9}, {"temp": 1.0, "top_p": 0.9}, {"temp": 1.5, "top_p": 0.9},
    {"temp": 1.5, "top_k": 40}, {"temp": 1.0, "min_p": 0.05}, {"temp": 1.5, "top_k": 100, "top_p": 0.8, "min_p": 0.04},
    {"temp": 1.0, "repeat": 1.5}, {"temp": 0.8, "repeat": 1.2, "bias": [[264, 2.0], [260, None], [13, -1.5]]},
    {"temp": 1.0, "presence": -1.5, "frequency": -2.5}, {"temp": 1.2, "repeat": 1.1, "presence": -4.0, "frequency": 0.5, "top_p": 0.9},
]


class Counted:
    """OpenAI's penalties: a token that was generated c > 0 times, after n tokens of prompt, loses presence + frequency
    * c."""

    def __init__(self, setting, n): self.presence, self.frequency, self.n = setting.get("presence", 0), setting.get("frequency", 0), n

    def __call__(self, ids, scores):
        counts = torch.bincount(ids[0, self.n:], minlength=scores.shape[1])[None]
        return scores - self.presence * (counts > 0) - self.frequency * counts


def processors(model, setting, n):
    config = transformers.GenerationConfig(do_sample=True, temperature=setting["temp"], top_k=setting.get("top_k", 0),
                                           top_p=setting.get("top_p", 1.0), min_p=setting.get("min_p"), repetition_penalty=setting.get("repeat"),
                                           sequence_bias=[[[i], float("-inf") if b is None else b] for i, b in setting["bias"]] if "bias" in setting else None)
    listed = model._get_logits_processor(generation_config=config, input_ids_seq_length=1, device="cpu")
    if "presence" in setting:  # before the temperature, which is left out if it is 1
        filters = (transformers.TemperatureLogitsWarper, transformers.TopPLogitsWarper)
        at = next((i for i, p in enumerate(listed) if isinstance(p, filters)), len(listed))
        listed.insert(at, Counted(setting, n))
    return listed


def law(logits, ids, process):
    """Returns the distribution of the token after these, in double precision; None if rounding might decide which ids
    are listed."""
    def processed(scale):
        return process(torch.tensor([ids]), scale * logits.double()[None])[0]

    p = torch.softmax(processed(1), 0)
    likeliest = torch.argsort(p, descending=True)[:min(LISTED, int((p > 0).sum()))]
    may_come = {scale: ~torch.isinf(processed(scale)) for scale in (1 - EDGE, 1, 1 + EDGE)}
    if len(likeliest) < LISTED and any(not torch.equal(x, may_come[1]) for x in may_come.values()): return None
    found = {"ids": likeliest.tolist(), "p": [float(f"{x:.9g}") for x in p[likeliest]]}
    others = torch.stack(list(may_come.values())).any(0)
    others[likeliest] = False
    if len(likeliest) + int(others.sum()) < len(p): found["others"] = torch.nonzero(others)[:, 0].tolist()
    return found


def laws(model, ids):
    """Returns the distributions of all settings; None if one has none."""
    after = [[]] + [[t] for t in torch.topk(model(torch.tensor([ids])).logits[0, -1], 2).indices.tolist()]
    logits = [model(torch.tensor([ids + tokens])).logits[0, -1] for tokens in after]
    settings = []
    for setting in SETTINGS:
        process = processors(model, setting, len(ids))
        found = [law(x, ids + tokens, process) for x, tokens in zip(logits, after)]
        if None in found: return None
        settings.append({**setting, "after": [{"tokens": t, **f} for t, f in zip(after, found)]})
    return settings


@torch.no_grad()
def main():
    model = transformers.AutoModelForCausalLM.from_pretrained(ROOT / MODEL, dtype=torch.float32, attn_implementation="eager").eval()
    tokenizer = Tokenizer.from_file(str(ROOT / MODEL / "tokenizer.json"))
    cases = []
    for name, n in CASES:
        ids = tokenizer.encode((ROOT / f"scripts/prompts/{name}.txt").read_text()).ids
        while not (settings := laws(model, ids[:n])): n += 1
        cases.append({"name": name, "ids": ids[:n], "settings": settings})
        for s in settings:
            print(name, n, {k: x for k, x in s.items() if k != "after"},
                  [f"{len(a['ids'] + a.get('others', []))} ids, p {a['p'][0]:.3f}" for a in s["after"]])
    golden = {"model": MODEL, "cases": cases, "made_with": {"transformers": transformers.__version__, "torch": torch.__version__}}
    text = json.dumps(golden).replace('{"temp"', '\n{"temp"').replace('{"tokens"', '\n {"tokens"')
    (ROOT / "tests/golden/logits/mini-target/sampling.json").write_text(text + "\n")


main()
