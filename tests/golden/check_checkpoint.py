"""Does dtrun compute what Hugging Face transformers computes for a checkpoint on this machine?

    python tests/golden/check_checkpoint.py MODEL [-n TOKENS] [--tolerance T] [--dtrun PATH] [--backend NAME]
        [--prompt FILE ...]

MODEL is a folder with config.json, tokenizer.json and safetensors weights (a downloaded Pythia, for instance), or a
GGUF file, whose blocks the gguf package widens. Needs torch, transformers, tokenizers and gguf, and memory for the
model in f32 (4 bytes per parameter).

For every prompt dtrun generates greedily, and transformers (f32, CPU) reads prompt and tokens in one pass. A token
is right if it is the oracle's best one, or if its logit is within T of the best one (--tolerance; rounding decides
near a tie, and a backend with 16-bit activations rounds more). Prompt ids are compared with the `tokenizers` package
(for GGUF files, check_tokenizers.py does that), and the prompts' logits with transformers' by
build/tests/test_golden_logits. Prints what differs, and then one verdict line. The exit status is 0 if everything is
the same, otherwise 1.
"""
import argparse, json, pathlib, subprocess, sys, tempfile
import torch
import transformers
from tokenizers import Tokenizer

import make_logits
from widen_gguf import widened

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROMPTS = [
    "The history of the lighthouse begins with",
    "It was a bright cold day in April, and the clocks were striking thirteen. \"Who's there?\" she'd asked;\r\nnobody answered.\n\n",
    "def fib(n):\n    if n < 2:\n\treturn n\n    return fib(n - 1) +   fib(n - 2)\n\n\nprint(fib(10))  # ",
    "Na\u00efve cafe\u0301 \u212bngstr\u00f6m \ufb01sh\u00a0and\u3000\u65e5\u672c\u8a9e \u0440\u0443\u0441\u0441\u043a\u0438\u0439 \u1780\u17d2\u1793\u17bb\u1784 \U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 1234567890 \u2460\u00bd",
    "First text.<|endoftext|>Second text<|padding|>                          with 26 spaces before, and  two.",
]


def generate(args, text):
    """Returns dtrun's result for one prompt."""
    command = [args.dtrun, "ar", "-m", args.folder, "-p", text, "-n", str(args.tokens), "--json", "-", "--ignore-eos", "-q"]
    if args.backend: command += ["--backend", args.backend]
    done = subprocess.run(command, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(f"dtrun ended with status {done.returncode}: {done.stderr.decode(errors='replace').strip()}")
    return json.loads(done.stdout)


def first_difference(ids, expected):
    at = next((i for i, (a, b) in enumerate(zip(ids, expected)) if a != b), min(len(ids), len(expected)))
    return f"{len(ids)} prompt ids, expected {len(expected)}; from index {at} on {ids[at:at + 5]}, expected {expected[at:at + 5]}"


@torch.no_grad()
def judge(model, prompt_ids, tokens, tolerance):
    """Returns the number of near ties among the tokens, and a description of the first wrong token or None."""
    ids = torch.tensor([prompt_ids + tokens])
    logits = model(input_ids=ids, use_cache=False).logits[0, len(prompt_ids) - 1 : -1].float()
    best = logits.max(dim=-1)
    lost = best.values - logits[torch.arange(len(tokens)), torch.tensor(tokens)]
    for j in range(len(tokens)):
        if not lost[j] <= tolerance:
            return 0, f"token {j} is {tokens[j]}, expected {int(best.indices[j])} ({float(lost[j]):.4f} better)"
    return int((lost > 0).sum()), None


def judge_logits(model, path, prompts, dtrun):
    """Whether the prompts' logits are within the tolerance of the unit tests."""
    make_logits.OUT = pathlib.Path(tempfile.mkdtemp())
    make_logits.make("real", model, [(f"prompt {i}", ids) for i, ids in enumerate(prompts)], 4, model=str(path.resolve()))
    done = subprocess.run([pathlib.Path(dtrun).parent / "tests/test_golden_logits", make_logits.OUT / "real"], capture_output=True, text=True)
    print(next((line for line in done.stdout.splitlines() if "largest difference" in line), done.stderr.strip()))
    return done.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], epilog=__doc__.split("\n\n", 2)[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="model")
    parser.add_argument("-n", "--tokens", type=int, default=64)
    parser.add_argument("--tolerance", type=float, default=0.01)
    parser.add_argument("--dtrun", default=str(ROOT / "build/dtrun"))
    parser.add_argument("--backend")
    parser.add_argument("--prompt", action="append", help="a text file instead of the built-in prompts; may be repeated")
    args = parser.parse_args()
    if args.prompt: texts = [pathlib.Path(p).read_bytes().decode("utf-8", errors="replace") for p in args.prompt]
    else: texts = PROMPTS

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    try:
        results = [generate(args, text) for text in texts]
    except (RuntimeError, OSError, ValueError) as error:
        print(f"failed: {error}")
        return 1
    path = pathlib.Path(args.folder)
    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json")) if path.is_dir() else None
    model = make_logits.load(path) if path.is_dir() else widened(path)
    total, ties, wrong_ids, wrong_tokens = 0, 0, 0, 0
    for text, result in zip(texts, results):
        label = json.dumps(text[:40])
        expected = tokenizer.encode(text).ids if tokenizer else result["prompt_ids"]
        if result["prompt_ids"] != expected:
            wrong_ids += 1
            print(f"{label}: {first_difference(result['prompt_ids'], expected)}")
        near, wrong = judge(model, result["prompt_ids"], result["tokens"], args.tolerance)
        if not wrong and len(result["tokens"]) != args.tokens and result["finish_reason"] != "context":
            wrong = f"{len(result['tokens'])} tokens, expected {args.tokens}"
        if wrong:
            wrong_tokens += 1
            print(f"{label}: {wrong}")
        total += len(result["tokens"])
        ties += near
    near_logits = judge_logits(model, path, [r["prompt_ids"] for r in results], args.dtrun)
    print(f"{'different' if wrong_ids or wrong_tokens or not near_logits else 'same'}: {args.folder}: {len(texts)} prompts, {total} greedy tokens, "
          f"{ties} of them near-ties within {args.tolerance:g}; wrong: {wrong_ids} prompts' ids, {wrong_tokens} prompts' tokens")
    return 1 if wrong_ids or wrong_tokens or not near_logits else 0


if __name__ == "__main__":
    sys.exit(main())
