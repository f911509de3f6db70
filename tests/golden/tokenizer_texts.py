"""Texts that are difficult for tokenizers, for make_tokenizer_vectors.py and check_tokenizers.py. They are seeded, so
always the same."""
import os
import random
import unicodedata

import tokenizers

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NFC = tokenizers.normalizers.NFC()


def file_text(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def words_of_prompts():
    text = "".join(file_text(f"scripts/prompts/{kind}/{i:02d}.txt") for kind in ("novels", "wikitext2") for i in range(1, 9))
    return text.split(" ")


def cases(words):
    random.seed(20)
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

    # added tokens in the text, whole and partial, and text that NFC would change across them
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


def kind_cases(words):
    """A few hundred texts for the kinds of tokenizer_kinds.py: some of the above, and difficult cases for these kinds."""
    draw = random.Random(7)
    every = [text for text in cases(words) if len(text) <= 120]
    yield from draw.sample(every, 130)
    for text in ["it'\u017f so", "'\u017fx", "IT'S I'LL we'RE", "'s'S'\u212a", "1234567 12\u00bd \u0661\u0662\u0663\u0664", "12 345\u2167 6", "a1b22c333d4444",
                 " x", "  x", "\u2581x", " \u2581 x", "x ", "x  ", "\u2581", " ", "  ", "\u2581\u2581 \u2581", "a\u2581b c\u2581",
                 "<s>", "<s>hi", "<s> hi", "a<s>b </s> c", "<s><s>", "<s><s><s> x", "</s>\n<s>", "x<unk>y",
                 "hi <mask> there", "hi  <mask>  there", "<mask>", " <mask><mask> ", "a <end>  \n b", "<end> <end>", " a <both> <mask> b",
                 "a \u3000<both>\u00a0b", "<end>  <both>", "<old>", " <old>", "x <old> y<old>", "call [tool call] now", "[tool call]", " [tool call]",
                 "alone", "alone.", "xalone", "alonex", " alone ", "alone alone", "_alone", "alone\u0301", "\u24b6alone", "-alone-", "\u200dalone",
                 "<|begin_of_text|>hi", "hi<|eot_id|>\n\n<|end_of_text|>", "<|im_start|>user\nHi<|im_end|>\n", "<think>\nso</think>",
                 "e\u0301\u4f60", "\u00e9\u4f60!", "xe\u0301\u4f60 \u00e9\u4f60", "cafe\u0301 na\u0131\u0308ve", "\u4f60\u597d\u4f60\u4f60\u597d", "\u4f60 \u4f60\U0001f600\u4f60",
                 "<0x41>", "<0x0A>\n", "\x01\x02", "a\tb\r\nc", "\r\n\r\n", "\n\n\nx", "  \n  x", "x\n  ", "\U0001f468\u200d\U0001f469", "\U0001f1e9\U0001f1ea \u2764\ufe0f",
                 "\u00a0\u00a0x\u00a0", "\u3000\u3000", "\u180e\x1c \x85", "1\U00011f50\U00011f51 \U0001e4f0x \U0001d2c0", "snake_case camelCase HTTPServer \u01c5x \u02b0a", "a/b//c\n/", "(\n)\n\n",
                 "<bos>hi", "<start_of_turn>user\nHi <end_of_turn>\n<start_of_turn>model\n", "<|turn>user\n\n\n a<turn|> \n", "x     y  \u2581 z\u2581\u2581\u2581  w",
                 "<|user|>\n Hi  <|end|> \n\n<|assistant|>\nSo</s> \n.<|endoftext|> x<unk> y", "<|im_start|>user<|im_sep|> \nHi<|im_end|>", "wait... so. it ends!  .  ..",
                 "it'S DON'T we'Ll O'Reilly's O'\u017f", "aBcDe ABC'd FOOBar \u01c5a\u0300B", "a/b//\n/ c\r\n/", "1 22 333 4444 55555", "\t\t\tx\t \t", "\n" * 9 + "x" + "\n" * 3,
                 "int main() {\n    return 0;\n}\n", "\ud55c\uad6d\uc5b4 \u0e17\u0e22 \u0939\u093f\u0928\u094d\u0926\u0940 \u0627\u0644\u0639\u0631\u0628\u064a\u0629"]:
        yield text
    for n in (1, 2, 3, 7, 16, 40):
        yield from (" " * n + "x", "x" + " " * n, "\n" * n, "1" * n, "\t" * n + "y", "\u2581" * n, "=" * n, "\U0001f600" * n)
    pieces = ["<s>", "</s>", "<mask>", "<end>", "<both>", "<old>", "alone", "[tool call]", "<|eot_id|>", "<|im_end|>", " ", "  ", "\n", "x", "a1", "\u4f60",
              "\u00e9", "e\u0301", "'s", "\u2581", "\U0001f600", "don't", "12", ".", "\u3000", "\r\n"]
    for _ in range(56):
        yield "".join(draw.choices(pieces, k=draw.randint(2, 9)))
