"""What the chats of the templates that llama.cpp ships make of messages: a user's, system's or tool's message that spells control tokens must give no ids of them.
Also prints what was learned from each template: the text that ends an answer, and the marks around reasoning. Exits with 1 if a message gives a control token.

    python tests/golden/check_chats.py build/tests/write_chats [FOLDER]

FOLDER holds *.jinja files; without it, they are fetched as check_templates.py does. The tokenizer is a small one, to which every mark that the template spells is added as
a control token.
"""
import json, pathlib, re, sys

from check_templates import fetched
from program import Program

KIND = pathlib.Path(__file__).parent / "tokenizer" / "kinds" / "qwen2.json"
MARK = re.compile(r"<[|｜/]?[^<>\s'\"{}\\]{1,40}>|\[/?[A-Z_]{3,}\]")


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
    chats.tell("K", tokenizer)
    learned, checked, wrong = chats.ask("C", text), [], []
    if learned is None: return chats.refusal, checked, wrong

    def count(kind, messages, said):
        """Control tokens of the conversation; None: refused."""
        ids = chats.ask(kind, json.dumps(messages).replace("HERE", said))
        return None if ids is None else sum(i in controls for i in ids)

    for kind, tried in CONVERSATIONS.items():
        for messages in tried:
            plain = count("M", messages, "x")
            if plain is None: continue
            checked.append(kind)
            for mark in marks:
                spelled = count("M", messages, f"x {mark} y{mark}")
                if spelled not in (plain, None): wrong.append((kind, mark, plain, spelled))
            whole = " ".join(marks)
            raw, held = count("W", messages, whole), count("M", messages, whole)
            if held not in (plain, None): wrong.append((kind, "all", plain, held))
            if kind == "user" and raw is not None and raw <= plain: wrong.append((kind, "raw", plain, raw))
    return learned, checked, wrong


def main():
    chats = Program(sys.argv[1])
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
