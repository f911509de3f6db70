"""Writes tests/golden/tokenizer/golden.json: texts and the ids Hugging Face's `tokenizers` gives them, for both tokenizers.

    python tests/golden/make_tokenizer_vectors.py        (made with tokenizers 0.23.3, Python 3.11: Unicode 14)

A case is [text, GPT-NeoX ids, bundled pair's ids] and, where NFC changes the text, a fourth entry: the changed text. NFC is
that of `tokenizers`. Its tables are older than Unicode 14: it does not know the combining class of 98 marks that came with
Unicode 10 to 14 (U+07FD, U+0898..089F, U+1DF6, ...), so the characters used here are those on whose NFC it and Python
agree. Unassigned characters are left out too. A text with a NUL is not written here: a C string cannot hold it."""
import json
import os
import random
import unicodedata

import tokenizers

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NFC = tokenizers.normalizers.NFC()
random.seed(20)


def file_text(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def words_of_prompts():
    text = "".join(file_text(f"tests/data/prompts/{kind}/{i:02d}.txt") for kind in ("novels", "wikitext2") for i in range(1, 9))
    return text.split(" ")


def cases(words):
    # one character per general category and block of 256, alone and with letters, digits and spaces around it
    seen = set()
    for c in range(1, 0x110000):
        category = unicodedata.category(chr(c))
        if category in ("Cn", "Cs") or (category, c >> (4 if c < 0x400 else 9)) in seen:
            continue
        seen.add((category, c >> (4 if c < 0x400 else 9)))
        yield chr(c)
        yield f"a{chr(c)}{chr(c)}b 1{chr(c)} e{chr(c)}"

    # every White_Space character, and those that only look like one
    for c in [9, 10, 11, 12, 13, 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000,
              0x1C, 0x1D, 0x1E, 0x1F, 0x180E, 0x200B, 0x200D, 0x2060, 0xFEFF]:
        for text in ("%s", "%s%s", "a%sb", "a%s%sb", " %sa", "%s a", "a %s", "1%s2%s%s", ".%s."):
            yield text.replace("%s", chr(c))

    # runs of spaces (added tokens of GPT-NeoX), tabs and line ends
    for n in range(1, 61):
        yield " " * n
        yield "a" + " " * n + "b"
        yield "\n" + " " * n
        yield "\t" * n + "x"
        yield "x" + "\r\n" * n
        yield "\n" * n + " y"

    for suffix in ("s", "t", "re", "ve", "m", "ll", "d", "x", ""):
        for case in (str.lower, str.upper, str.capitalize):
            for text in ("it'%s", "it'%s so", "IT'%s", " '%s", "'%s", "''%s", "it\u2019%s", "1'%s", "it '%s9"):
                yield text.replace("%s", case(suffix))

    # added tokens in the text, whole and in part, and text that NFC would change across them
    for text in ("<|endoftext|>", "a<|endoftext|>b", " <|endoftext|> ", "<|endoftext|><|padding|>", "<|endoftext|", "<|padding|>\n",
                 "<|<|endoftext|>|>", "<|ENDOFTEXT|>", "<|endof  text|>", "x  <|endoftext|>  y", "e<|endoftext|>\u0301",
                 "<|endoftext|>\u0338", "\u0338<|padding|>\u0301  \u0301"):
        yield text

    # texts that NFC changes: marks in and out of order, Hangul, singletons, exclusions
    marks = ["\u0301", "\u0316", "\u0345", "\u0327", "\u0308", "\u0323", "\u0338", "\u0344", "\u302a", "\u3099"]
    for base in ["e", "A", "o", "=", "\u1fbf", "\u03b1", "\u304b", "1", " ", "\u0928"]:
        for _ in range(12):
            yield base + "".join(random.choices(marks, k=random.randint(1, 5))) + random.choice(["", "x", " ", base])
    for text in ["\u212b", "\u2126", "\u212a", "\u0958", "\u2adc", "\ufb1d", "\U0001d15e", "\u0f73", "\u0344", "\u1e9b\u0323",
                 "\u1100\u1161", "\u1100\u1161\u11a8", "\uac00\u11a8", "\uac00\u11a7", "\u1100\u1161\u11a7\u11a8", "\uac01\u11a8",
                 "\u1161\u11a8", "\u0bc6\u0bbe", "\u0dd9\u0dcf\u0dca", "\u1025\u102e", "\U000110a5\U000110ba", "\ufa10 \uf900"]:
        yield text
        yield "x" + text + text + " y"
    yield "e" + "\u0316\u0301" * 200

    for text in ["\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\u2764\ufe0f", "\U0001f44d\U0001f3fd ok"]:
        yield text
        yield " " + text * 3
    for n in range(1, 21):
        yield "1234567890" * n
        yield "".join(random.choice("0123456789.,") for _ in range(n))
    for n in (10, 100, 1000, 4000):
        yield "a" * n
        yield "ab" * n
        yield "=" * n
    yield "".join(random.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(4000))
    yield "".join(random.choice("\u4e2d\u6587\u5b57\u3042\u304b\u30ab\ud55c\uad6d") for _ in range(500))

    for _ in range(300):  # prose
        at = random.randrange(len(words) - 40)
        yield " ".join(words[at:at + random.randint(1, 40)])
    pieces = ["a", "Z", "'s", "'S", " ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2028", "\x85", "\x1c", "1", "23", "\u00bd", "\u2167",
              "\u0663", ".", ",", "!!", "\u2014", "<|endoftext|>", "<|padding|>", "<|", "|>", *marks, "\u00e9", "\u1100", "\u1161",
              "\u11a8", "\uac00", "\u4e2d", "\u0e17\u0e22", "\U0001f600", "\u200d", "_", "=", "i\u0307", *random.sample(words, 20)]
    for _ in range(500):  # mixtures
        yield "".join(random.choices(pieces, k=random.randint(2, 24)))


def main():
    neox = tokenizers.Tokenizer.from_file(os.path.join(ROOT, "tests/data/gpt-neox/tokenizer.json"))
    mini = tokenizers.Tokenizer.from_file(os.path.join(ROOT, "models/mini-target/tokenizer.json"))
    lines, seen = [], set()
    for text in ["", *cases(words_of_prompts())]:
        if text in seen or "\0" in text or NFC.normalize_str(text) != unicodedata.normalize("NFC", text):
            continue
        seen.add(text)
        case = [text, neox.encode(text, add_special_tokens=False).ids, mini.encode(text, add_special_tokens=False).ids]
        changed = NFC.normalize_str(text)
        # across an added token nothing composes, so there the texts would have to be changed piece by piece
        if changed != text and "<|" not in text:
            case.append(changed)
        lines.append(json.dumps(case, ensure_ascii=True, separators=(",", ":")))
    with open(os.path.join(ROOT, "tests/golden/tokenizer/golden.json"), "w", encoding="ascii") as f:
        f.write('{"made_with":"tokenizers %s","cases":[\n%s\n]}\n' % (tokenizers.__version__, ",\n".join(lines)))
    print(len(lines), "cases")


main()
