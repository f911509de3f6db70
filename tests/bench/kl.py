"""How far are the results of quantized weights in dtrun and in llama.cpp from those of the same weights in f32?

    python tests/bench/kl.py MODEL.gguf [--texts 20] [--tokens 96] [--weights q8] [--logits build/tests/bench_logits]

Needs torch, transformers, gguf, numpy and llama-cpp-python. The oracle is transformers with the file's blocks,
widened to f32. After each token of the texts (novels, articles and tasks of scripts/prompts alternately), the
distribution over tokens is compared with the oracle's: dtrun's, with weights as they are stored or rounded
(--weights), for several types of activations and caches; and llama.cpp's on the same file, with caches in f16.
Prints the mean divergence KL(oracle || it) in nats; the largest change of a logit's distance from the oracle's best
logit; how many of the likeliest tokens differ; and the oracle's largest margin where one differs. The exit status is
1 if a mean of dtrun's is above llama.cpp's, or if a token differs although the margin is larger than the changes of
logits.
"""
import argparse, ctypes, json, pathlib, subprocess, sys
import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/golden"))
from widen_gguf import widened

ARMS = [("8", "f16"), ("8", "f32"), ("8", "q8"), ("16", "f32")]  # bits of activations, type of caches; the first is the default


def texts(n):
    prompts = ROOT / "scripts/prompts"
    tasks = [json.loads(line)["prompt"] for path in sorted((prompts / "tasks").glob("*.jsonl")) for line in path.read_text().splitlines()[:2]]
    for i in range(n):
        kind = i % 3
        yield tasks[i // 3 % len(tasks)] if kind == 2 else (prompts / ("novels", "wikitext2")[kind] / f"{i // 3 + 1:02d}.txt").read_text()


class LlamaCpp:
    def __init__(self, path):
        import llama_cpp

        self.quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(self.quiet, ctypes.c_void_p(0))
        self.model = llama_cpp.Llama(path, n_ctx=1024, n_threads=2, n_threads_batch=2, logits_all=True, verbose=False)
        print("llama.cpp:", llama_cpp.llama_print_system_info().decode())

    def ids(self, text, n):
        return self.model.tokenize(text.encode(), add_bos=False)[:n]

    def logits(self, ids):
        self.model.reset()
        self.model.eval(ids)
        return torch.from_numpy(np.array(self.model.scores[: len(ids)]))


class Dtrun:
    def __init__(self, options, vocab, activations, cache):
        self.vocab = vocab
        command = [options.logits, options.model, options.weights or "-", "cpu", activations, cache]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def logits(self, ids):
        self.process.stdin.write((" ".join(map(str, ids)) + "\n").encode())
        self.process.stdin.flush()
        size = len(ids) * self.vocab * 4
        found = self.process.stdout.read(size)
        if len(found) < size: raise SystemExit("kl: bench_logits failed")
        return torch.from_numpy(np.frombuffer(found, np.float32).reshape(len(ids), self.vocab).copy())


class Account:
    """Compares one engine with the oracle, over all positions."""

    def __init__(self):
        self.kl, self.moved, self.differ, self.margin = [], 0.0, 0, 0.0

    def add(self, oracle, found):
        p, q = oracle.log_softmax(-1).double(), found.log_softmax(-1).double()
        self.kl += (p.exp() * (p - q)).sum(-1).tolist()
        best, rows = oracle.argmax(-1), torch.arange(len(oracle))
        top = oracle.topk(32).indices  # those that could take the best one's place
        off = (found - oracle).gather(1, top) - (found - oracle)[rows, best][:, None]
        self.moved = max(self.moved, float(off.max()))
        other = found.argmax(-1)
        wrong = other != best
        self.differ += int(wrong.sum())
        margins = oracle[rows, best] - oracle[rows, other]
        if wrong.any(): self.margin = max(self.margin, float(margins[wrong].max()))

    def show(self, name):
        print(f"{name:13} mean KL {np.mean(self.kl):.3e}, median {np.median(self.kl):.3e}, largest {np.max(self.kl):.3e}; a logit moved by up to "
              f"{self.moved:.3f}; {self.differ} of {len(self.kl)} likeliest tokens differ, at margins up to {self.margin:.4f}")
        return np.mean(self.kl)


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description="Measures the KL divergence of dtrun and of llama.cpp from f32.")
    parser.add_argument("model")
    parser.add_argument("--texts", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--weights", help="as for dtrun --weights (default: unchanged)")
    parser.add_argument("--logits", default=str(ROOT / "build/tests/bench_logits"))
    options = parser.parse_args()
    torch.set_num_threads(2)
    peer, oracle = LlamaCpp(options.model), widened(options.model).eval()
    engines = {arm: Dtrun(options, oracle.config.vocab_size, *arm) for arm in ARMS}
    ours, theirs = {arm: Account() for arm in ARMS}, Account()
    for text in texts(options.texts):
        ids = peer.ids(text, options.tokens)
        expected = oracle(input_ids=torch.tensor([ids]), use_cache=False).logits[0].float()
        for arm, engine in engines.items():
            ours[arm].add(expected, engine.logits(ids))
        theirs.add(expected, peer.logits(ids)[:, : expected.shape[1]])
    print(f"{options.model}, weights {options.weights or 'as they are'}: {options.texts} texts, {len(theirs.kl)} tokens")
    other = theirs.show("llama.cpp")
    means = {arm: account.show("dtrun, " + " ".join(arm)) for arm, account in ours.items()}
    for arm, mean in means.items():
        print(f"dtrun with activations of {arm[0]} bits and caches in {arm[1]} / llama.cpp: {mean / other:.3f}")
    sys.exit(any(mean > other or ours[arm].margin > ours[arm].moved for arm, mean in means.items()))


main()
