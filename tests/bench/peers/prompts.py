"""The texts that all programs continue: (name, text)."""
import json

CHAT = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
OTHERS = ("alpaca", "gsm8k", "mt_bench", "qa", "sum")


def texts(root, n):
    """Takes texts from both folders alternately."""
    for i in range(n):
        name = f"{('wikitext2', 'novels')[i % 2]}/{i // 2 + 1:02d}"
        yield name, (root / f"scripts/prompts/{name}.txt").read_text()


def chats(root, code, others):
    """Questions in ChatML, as chats.lua asks them: `code` questions of humaneval, and `others` of each other task."""
    for task, n in [("humaneval", code), *((task, others) for task in OTHERS)]:
        lines = (root / f"scripts/prompts/tasks/{task}.jsonl").read_text().splitlines()[:n]
        for i, line in enumerate(lines): yield f"{task}/{i + 1}", CHAT.format(json.loads(line)["prompt"])


def long_text(root): return "\n".join(path.read_text() for path in sorted((root / "scripts/prompts/novels").glob("*.txt")))
