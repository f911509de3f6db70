"""Writes the texts and ids of tests/golden/tokenizer/, which come from Hugging Face's `tokenizers`.

    python tests/golden/make_tokenizer_vectors.py        (made with tokenizers 0.23.3, Python 3.11: Unicode 14)

golden.json is for the real tokenizers of this repository. A case is [text, GPT-NeoX ids, bundled pair's ids] and, if
NFC changes the text, a fourth entry: the changed text. NFC is that of `tokenizers`. Its tables are older than
Unicode 14: it does not know the combining class of 98 marks that came with Unicode 10 to 14 (U+07FD, U+0898..089F,
U+1DF6, ...). Only characters are used here for which it and Python agree on NFC. Unassigned characters are left out,
too. There is no text with a NUL, because a C string cannot contain it.

kinds/NAME.json are small tokenizers of other kinds (tokenizer_kinds.py). kinds.json is {"kinds": [{"name", "begin":
ids before every text}], "cases": [[text, ids of the first kind, ids of the second, ...]], "decoded": [[kind, ids,
text]]}. If ids do not decode to their text again, they are {"ids": [...], "text": "..."}; without "text", the
decoded text is not compared."""
import json
import os
import random
import unicodedata

import tokenizers

import tokenizer_kinds
from tokenizer_texts import NFC, ROOT, cases, file_text, kind_cases, words_of_prompts

FOLDER = os.path.join(ROOT, "tests/golden/tokenizer")


def compact(value):
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def write(name, text):
    with open(os.path.join(FOLDER, name), "w", encoding="ascii") as f:
        f.write(text)


def ids_of(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).ids


def usable(texts):
    seen = set()
    for text in ["", *texts]:
        if text in seen or "\0" in text or NFC.normalize_str(text) != unicodedata.normalize("NFC", text):
            continue
        seen.add(text)
        yield text


def write_golden():
    neox = tokenizers.Tokenizer.from_file(os.path.join(ROOT, "tests/data/gpt-neox/tokenizer.json"))
    mini = tokenizers.Tokenizer.from_file(os.path.join(ROOT, "models/mini-target/tokenizer.json"))
    lines = []
    for text in usable(cases(words_of_prompts())):
        case = [text, ids_of(neox, text), ids_of(mini, text)]
        changed = NFC.normalize_str(text)
        # nothing composes across an added token, so these texts would have to be changed piece by piece
        if changed != text and "<|" not in text:
            case.append(changed)
        lines.append(compact(case))
    write("golden.json", '{"made_with":"tokenizers %s","cases":[\n%s\n]}\n' % (tokenizers.__version__, ",\n".join(lines)))
    print(len(lines), "cases")


def shown_otherwise(tokenizer):
    """Returns the added tokens that `tokenizers` since 0.23 decodes to their normalized string. Like older versions,
    dtrun decodes them to their own."""
    return {i for i, token in tokenizer.get_added_tokens_decoder().items()
            if token.normalized and tokenizer.normalizer and tokenizer.normalizer.normalize_str(token.content) != token.content}


def kind_case(tokenizer, text):
    ids = ids_of(tokenizer, text)
    if shown_otherwise(tokenizer).intersection(ids):
        return {"ids": ids}
    decoded = tokenizer.decode(ids, skip_special_tokens=False)
    return ids if decoded == text else {"ids": ids, "text": decoded}


def random_ids(kinds):
    """Ids in any order; every run of byte tokens is UTF-8."""
    draw = random.Random(3)
    for name, tokenizer in kinds.items():
        for _ in range(40):
            ids = [draw.randrange(tokenizer.get_vocab_size()) for _ in range(draw.randint(1, 6))]
            if draw.random() < 0.3:
                ids[draw.randrange(len(ids)):] = ids_of(tokenizer, draw.choice([" ", "\u2581\u2581", "\U0001f600", "a\u0301"]))
            text = tokenizer.decode(ids, skip_special_tokens=False)
            if shown_otherwise(tokenizer).intersection(ids):
                continue
            if "\ufffd" not in text and "\0" not in text:
                yield [name, ids, text]


def write_kinds():
    prompts = [file_text(f"scripts/prompts/{kind}/{i:02d}.txt") for kind in ("novels", "wikitext2") for i in range(1, 9)]
    kinds = {}
    for name, made in tokenizer_kinds.make(prompts).items():
        write(f"kinds/{name}.json", compact(made) + "\n")
        kinds[name] = tokenizers.Tokenizer.from_str(json.dumps(made))
    heads = [{"name": name, "begin": t.encode("", add_special_tokens=True).ids} for name, t in kinds.items()]
    lines = [compact([text, *(kind_case(t, text) for t in kinds.values())]) for text in usable(kind_cases(words_of_prompts()))]
    decoded = [compact(entry) for entry in random_ids(kinds)]
    write("kinds.json", '{"made_with":"tokenizers %s","kinds":%s,"cases":[\n%s\n],"decoded":[\n%s\n]}\n' %
          (tokenizers.__version__, compact(heads), ",\n".join(lines), ",\n".join(decoded)))
    print(len(lines), "cases of", len(kinds), "kinds,", len(decoded), "decoded")


if __name__ == "__main__":
    os.makedirs(os.path.join(FOLDER, "kinds"), exist_ok=True)
    write_golden()
    write_kinds()
