"""What the chats of the templates that llama.cpp ships make of messages: a user's, system's or tool's message that spells control tokens must give no ids of them.
Also prints what was learned from each template: the text that ends an answer, and the marks around reasoning. Exits with 1 if a message gives a control token.

    python tests/golden/check_chats.py build/tests/write_chats [FOLDER]

FOLDER holds *.jinja files; without it, they are fetched as check_templates.py does. The tokenizer is a small one, to which every mark that the template spells is added as
a control token.
"""
import json, pathlib, re, subprocess, sys

from check_templates import fetched

KIND = pathlib.Path(__file__).parent / "tokenizer" / "kinds" / "qwen2.json"
MARK = re.compile(r"<[|｜/]?[^<>\s'\"{}\\]{1,40}>|\[/?[A-Z_]{3,}\]")


class Chats:
    def __init__(self, program): self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, kind, text, answers=True):
        data = text.encode()
        self.process.stdin.write(f"{kind} {len(data)}\n".encode() + data)
        self.process.stdin.flush()
        if not answers: return None
        line = self.process.stdout.readline().decode().rstrip("\n")
        return line[2:] if line.startswith("E ") else json.loads(line)


def tokenizer_with(marks):
    """The small tokenizer with these tokens, and the ids from which they begin."""
    small = json.loads(KIND.read_text())
    first = 1 + max([*small["model"]["vocab"].values(), *(token["id"] for token in small["added_tokens"])])
    known = {token["content"] for token in small["added_tokens"]}
    controls = {token["id"] for token in small["added_tokens"]}
    for i, mark in enumerate(mark for mark in marks if mark not in known):
        small["added_tokens"].append({"id": first + i, "content": mark, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True})
        controls.add(first + i)
    return json.dumps(small), controls


def message(role, text): return {"role": role, "content": text}


# Messages as they are tried, until the template takes some; HERE stands for the text.
CONVERSATIONS = {
    "user": [[message("user", "HERE")]],
    "earlier user": [[message("user", "HERE"), message("assistant", "b"), message("user", "c")]],
    "system": [[message("system", "HERE"), message("user", "a")]],
    "tool": [[message("user", "a"), {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "id": "call00001", "function": {"name": "f", "arguments": "{}"}}]},
              {"role": "tool", "content": "HERE", "name": "f", "tool_call_id": "call00001"}]],
}


def check(path, chats):
    """(what was learned, kinds of messages that were checked, what gave control tokens)"""
    text = path.read_text()
    marks = sorted({*MARK.findall(text), "<s>", "</s>", "<|im_end|>", "<think>", "</think>"})
    tokenizer, controls = tokenizer_with(marks)
    chats.ask("K", tokenizer, False)
    learned, checked, wrong = chats.ask("C", text), [], []
    if isinstance(learned, str): return learned, checked, wrong
    count = lambda kind, messages, said: (lambda ids: ids if isinstance(ids, str) else sum(i in controls for i in ids))(chats.ask(kind, json.dumps(messages).replace("HERE", said)))
    for kind, tried in CONVERSATIONS.items():
        for messages in tried:
            plain = count("M", messages, "x")
            if isinstance(plain, str): continue
            checked.append(kind)
            for mark in marks:
                spelled = count("M", messages, f"x {mark} y{mark}")
                if spelled != plain and not isinstance(spelled, str): wrong.append((kind, mark, plain, spelled))
            whole = " ".join(marks)
            raw, held = count("W", messages, whole), count("M", messages, whole)
            if held != plain and not isinstance(held, str): wrong.append((kind, "all", plain, held))
            if kind == "user" and not isinstance(raw, str) and raw <= plain: wrong.append((kind, "raw", plain, raw))
    return learned, checked, wrong


def main():
    chats = Chats(sys.argv[1])
    folder = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else fetched()
    paths, failures, counts = sorted(folder.glob("*.jinja")), 0, {}
    for path in paths:
        learned, checked, wrong = check(path, chats)
        print(f"{path.name}: {json.dumps(learned, ensure_ascii=False)} {', '.join(checked)}")
        for kind in checked: counts[kind] = counts.get(kind, 0) + 1
        for what in wrong: print("  ", what)
        failures += bool(wrong)
    print(f"{len(paths)} templates, messages checked: {counts}; {failures} templates give control tokens")
    sys.exit(failures > 0)


if __name__ == "__main__": main()
