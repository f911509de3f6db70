"""Compares dtrun run perplexity with llama.cpp's llama-perplexity on the same file, text, windows and strides; and
--logprobs with Hugging Face transformers on the file's blocks, widened to f32 (widen_gguf.py). Needs torch,
transformers, gguf and llama.cpp's program:

    python tests/golden/check_perplexity.py DTRUN LLAMA_PERPLEXITY TEXT MODEL.gguf .. [-c 448] [--stride 128]

llama.cpp rounds a window up to a multiple of 256, so c + stride / 2 should be such a multiple. Prints each
difference. Fails if a perplexity differs by more than 0.5 %, or a log-probability by more than 0.001 with weights
and caches in f32.
"""
import argparse, json, pathlib, re, subprocess, sys

from widen_gguf import widened


def printed(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, errors="replace")
    if done.returncode: raise SystemExit(f"{command[0]}: {done.stderr}")
    return done.stdout + done.stderr


def by_llama_cpp(program, path, text, window, stride):
    """Returns its result after the last window, and for how many tokens."""
    more = ["--ppl-stride", stride] if stride else []
    said = printed(program, "-m", path, "-f", text, "-c", window, "-t", 2, "-b", window + stride // 2, *more)
    at, value = re.findall(r"\[(\d+)\]([0-9.]+)", said)[-1]
    return float(value), int(at) * (stride or window // 2 - 1)


def by_dtrun(program, path, text, window, stride):
    more = ["--stride", stride] if stride else []
    said = printed(program, "run", "perplexity", text, "-m", path, "-c", window, *more)
    value, count = re.search(r"perplexity ([0-9.]+) \+/- [0-9.]+, of (\d+) tokens", said).groups()
    return float(value), int(count)


def check_perplexity(o, path):
    good = True
    for window, stride in ((512, 0), (o.c, o.stride)):
        mine, n = by_dtrun(o.dtrun, path, o.text, window, stride)
        theirs, m = by_llama_cpp(o.llama_perplexity, path, o.text, window, stride)
        off = mine / theirs - 1
        good &= abs(off) < 0.005 and n == m
        print(f"{path.name}, window {window}, stride {stride or 'none'}: {mine:.4f} of {n} tokens, llama.cpp {theirs:.4f} of {m}: {100 * off:+.2f} %", flush=True)
    return good


# Types of weights and caches, and bits of activations: the exact ones, and other settings to see how far they are off.
SETTINGS = [("f32", "f32", 8), ("f32", "f16", 8), ("f32", "q8", 8), (None, "f32", 16), (None, "f32", 8), (None, "f16", 8)]


def check_logprobs(o, path):
    import torch
    model, good = widened(path), True
    prompt = pathlib.Path(o.text).read_text()[:1500]
    for weights, cache, digits in SETTINGS:
        asked = ["--logprobs", 5, "--echo", "--cache-dtype", cache, "--activations", digits, *(["--weights", weights] if weights else [])]
        result = json.loads(printed(o.dtrun, "ar", "-m", path, "-md", "none", "-p", prompt, "-n", 40, *asked, "--json", "-", "-q"))
        ids = result["prompt_ids"] + result["tokens"]
        with torch.no_grad(): logps = torch.log_softmax(model(torch.tensor([ids])).logits[0].double(), -1)
        off = [abs(logp - float(logps[at - 1, id])) for at, told in enumerate(result["prompt_logprobs"] + result["logprobs"]) if told
               for id, logp in [[told["id"], told["logprob"]]] + told["top"]]
        how = f"weights f32, cache {cache}" if weights else f"activations of {digits} bits, cache {cache}"
        print(f"{path.name}, {how}: {len(off)} log-probabilities of {len(ids)} tokens, from transformers' at most {max(off):.2g}, "
              f"in the mean {sum(off) / len(off):.2g}", flush=True)
        if (weights, cache) == ("f32", "f32"): good = max(off) < 1e-3
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dtrun"), parser.add_argument("llama_perplexity"), parser.add_argument("text")
    parser.add_argument("models", nargs="+", type=pathlib.Path), parser.add_argument("-c", type=int, default=448)
    parser.add_argument("--stride", type=int, default=128)
    o = parser.parse_args()
    good = [check(o, path) for path in o.models for check in (check_perplexity, check_logprobs)]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__": main()
