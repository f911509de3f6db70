"""Compares dtrun run perplexity with llama.cpp's own numbers for the same file, text and windows (llama-perplexity's loop, over
llama-cpp-python), and --logprobs with Hugging Face transformers' for a model's folder. Run it from anywhere:

    python tests/golden/check_perplexity.py DTRUN TEXT MODEL.gguf [MODEL.gguf ..] [--folder FOLDER] [-c 512] [--stride 128]

FOLDER: a model as transformers reads it, such as tests/golden/widen_gguf.py makes of a GGUF file. Prints each difference; fails above
0.5 % of a perplexity, or 0.001 of a log-probability.
"""
import argparse, json, math, pathlib, re, subprocess, sys

import numpy as np


def by_llama_cpp(path, text, window, stride):
    import llama_cpp
    llm = llama_cpp.Llama(path, n_ctx=window, n_batch=window, n_ubatch=window, logits_all=True, verbose=False, n_threads=2, flash_attn=False)
    tokens = llm.tokenize(text, add_bos=True, special=True)
    begin = tokens[0] if llama_cpp.llama_vocab_get_add_bos(llama_cpp.llama_model_get_vocab(llm.model)) else None
    loss, count = 0.0, 0
    for i in range((len(tokens) - window + stride - 1) // stride if stride else len(tokens) // window):
        first = i * (stride or window)
        ids = tokens[first:first + window]
        if begin is not None and not stride: ids[0] = begin
        llm.reset()
        llm.eval(ids)
        logits = np.array(llm.scores[:window], dtype=np.float64)
        for j in range(window - stride - 1 if stride else window // 2, window - 1):
            row = logits[j] - logits[j].max()
            loss -= row[ids[j + 1]] - math.log(np.exp(row).sum())
            count += 1
    return math.exp(loss / count), count


def ours(dtrun, path, text_file, window, stride):
    more = ["--stride", str(stride)] if stride else []
    said = subprocess.run([dtrun, "run", "perplexity", text_file, "-m", path, "-c", str(window), *more], capture_output=True, text=True, check=True).stdout
    value, count = re.match(r"perplexity ([0-9.]+) \+/- [0-9.]+, of (\d+) tokens", said).groups()
    return float(value), int(count)


def check_logprobs(dtrun, folder, text):
    import torch, transformers
    prompt = text[:1500].decode(errors="ignore")
    said = subprocess.run([dtrun, "ar", "-m", folder, "-md", "none", "-p", prompt, "-n", "40", "--logprobs", "5", "--echo", "--json", "-", "-q"],
                          capture_output=True, text=True, check=True).stdout
    result = json.loads(said)
    ids = result["prompt_ids"] + result["tokens"]
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad(): logps = torch.log_softmax(model(torch.tensor([ids])).logits[0].double(), -1)
    worst, n = 0.0, 0
    for at, told in enumerate(result["prompt_logprobs"] + result["logprobs"]):
        if told is None: continue
        for id, logp in [[told["id"], told["logprob"]]] + told["top"]:
            worst, n = max(worst, abs(logp - float(logps[at - 1, id]))), n + 1
    print(f"{folder}: {n} log-probabilities of {len(ids)} tokens, the largest difference from transformers {worst:.2g}")
    return worst < 1e-3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dtrun"), parser.add_argument("text"), parser.add_argument("models", nargs="*")
    parser.add_argument("--folder"), parser.add_argument("-c", type=int, default=512), parser.add_argument("--stride", type=int, default=128)
    o = parser.parse_args()
    text, good = pathlib.Path(o.text).read_bytes(), True
    for path in o.models:
        for stride in (0, o.stride):
            mine, n = ours(o.dtrun, path, o.text, o.c, stride)
            theirs, m = by_llama_cpp(path, text, o.c + stride // 2, stride)
            off = mine / theirs - 1
            good &= abs(off) < 0.005 and n == m
            print(f"{pathlib.Path(path).name}, window {o.c}, stride {stride or 'none'}: {mine:.4f} of {n} tokens, llama.cpp {theirs:.4f} of {m}: {100 * off:+.2f} %")
    if o.folder: good &= check_logprobs(o.dtrun, o.folder, text)
    sys.exit(0 if good else 1)


if __name__ == "__main__": main()
