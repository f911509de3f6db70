"""Prompts for a head whose target goes on with a text, as the bundled pair's does: passages of the novels that it was trained on.

    python make_text_prompts.py NOVELS OUT.jsonl [--prompts 3000] [--others PROMPTS.jsonl]

NOVELS is a git directory of computationalstylistics/100_english_novels. Those that prepare_corpus.py holds out are left out here too.
Every fourth prompt is from `--others` (for example from make_head_prompts.py). All are shuffled.
"""
import argparse, json, random, re, subprocess
from prepare_corpus import HELD_OUT, clean

SHORTEST, LONGEST = 40, 1100  # characters


def shown(novels, *what): return subprocess.run(["git", "-C", novels, *what], check=True, capture_output=True).stdout.decode(errors="replace")


def novels_of(folder):
    for path in shown(folder, "ls-tree", "-r", "--name-only", "HEAD", "corpus").splitlines():
        found = re.search(r"([^/]*_(\d{4}))\.txt", path)
        if found and found[1] not in HELD_OUT and int(found[2]) < 1929: yield clean(shown(folder, "show", "HEAD:" + path))


def passages(text, n, rng):
    """Some begin where a sentence does, all end where it happens."""
    for _ in range(n):
        start = rng.randrange(len(text) - 2 * LONGEST)
        start = text.find(". ", start, start + LONGEST) + 2
        if start > 1: yield text[start:start + rng.randrange(SHORTEST, LONGEST)].rstrip()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("novels"), ap.add_argument("out"), ap.add_argument("--prompts", type=int, default=3000), ap.add_argument("--others")
    o = ap.parse_args()
    rng = random.Random(1)
    others = open(o.others, encoding="utf-8").read().splitlines() if o.others else []
    all = [json.loads(line)["prompt"] for line in rng.sample(others, min(len(others), o.prompts // 4))]
    texts = list(novels_of(o.novels))
    each = -(-(o.prompts - len(all)) // len(texts))
    all += [p for text in texts for p in passages(text, each, rng)]
    rng.shuffle(all)
    with open(o.out, "w", encoding="utf-8") as f:
        for p in all: f.write(json.dumps({"prompt": p}, ensure_ascii=False) + "\n")
    print(len(all), "prompts,", len(texts), "novels")


if __name__ == "__main__": main()
