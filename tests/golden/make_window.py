"""Make window.json: what Hugging Face transformers (f32, CPU, eager attention) generates greedily from the bundled
models if a token sees only the first `sinks` tokens and the last `window` tokens, including itself, all of them at
their own positions. It uses a mask and no cache, so each step is computed again. Run it from anywhere, with torch,
transformers and tokenizers installed:

    python tests/golden/make_window.py

For each case it stores the tokens and the margin between the two best at each step, up to the first margin below
TIE.
"""
import json, pathlib
import torch
import transformers
from tokenizers import Tokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOKENS, TIE = 32, 0.004
CASES = [("mini-target", "novels/02", 20, 4), ("mini-target", "wikitext2/09", 64, 1), ("mini-target", "novels/13", 7, 0),
         ("mini-target", "wikitext2/01", 33, 16), ("mini-draft", "novels/20", 20, 4), ("mini-target", "novels/02", 4000, 4)]


def mask(n, window, sinks):
    q, k = torch.arange(n)[:, None], torch.arange(n)[None, :]
    seen = (k <= q) & ((k > q - window) | (k < sinks))
    return torch.zeros(n, n).masked_fill(~seen, torch.finfo(torch.float32).min)[None, None]


@torch.no_grad()
def greedy(model, ids, window, sinks):
    tokens, margins = [], []
    while len(tokens) < TOKENS:
        logits = model(input_ids=torch.tensor([ids + tokens]), attention_mask=mask(len(ids) + len(tokens), window, sinks),
                       use_cache=False).logits[0, -1]
        best = torch.topk(logits, 2)
        if float(best.values[0] - best.values[1]) < TIE: break
        tokens.append(int(best.indices[0]))
        margins.append(round(float(best.values[0] - best.values[1]), 6))
    return tokens, margins


def main():
    torch.set_num_threads(1)
    listed = []
    for name, prompt, window, sinks in CASES:
        folder = ROOT / "models" / name
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
        ids = Tokenizer.from_file(str(folder / "tokenizer.json")).encode((ROOT / f"scripts/prompts/{prompt}.txt").read_bytes().decode()).ids
        tokens, margins = greedy(model, ids, window, sinks)
        print(f"{name} {prompt} {window}+{sinks}: prompt {len(ids)}, tokens {len(tokens)}, smallest margin {min(margins)}")
        listed.append({"model": name, "prompt": prompt, "window": window, "sinks": sinks, "tokens": tokens, "margins": margins})
    golden = {"cases": listed, "made_with": {"transformers": transformers.__version__, "torch": torch.__version__}}
    (ROOT / "tests/golden/window.json").write_text(json.dumps(golden).replace('{"model"', '\n{"model"') + "\n")


if __name__ == "__main__": main()
