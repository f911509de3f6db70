"""Compares dtrun's tokenizers with Hugging Face's `tokenizers` and llama.cpp's vectors, on real vocabularies. Run it by
hand:

    pip download --no-binary :all: --no-deps llama-cpp-python==0.3.36 && tar xzf llama_cpp_python-0.3.36.tar.gz
    pip install tokenizers==0.23.3 gguf
    python tests/golden/check_tokenizers.py [--every-character] build/tests/encode_texts \\
      llama_cpp_python-0.3.36/vendor/llama.cpp/models/ggml-vocab-*.gguf MODEL.gguf ...

For each GGUF file that dtrun reads, it compares dtrun's ids with FILE.inp and FILE.out, if these are in the same
folder. Then it makes a tokenizer.json from the file's tables, and compares dtrun's ids and texts, from the GGUF file
and from the tokenizer.json, with those of `tokenizers`; both must have the same fingerprint. With --every-character
the texts contain all of Unicode (minutes per file). Prints what differs, and counts. The exit status is 1 if
anything differs."""
import os
import random
import struct
import subprocess
import sys
import tempfile
import unicodedata

import gguf
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from tokenizer_kinds import LLAMA3, O200K, QWEN2, QWEN35, TEKKEN, begun_by, by_regex, merges_of
from tokenizer_texts import NFC, cases, kind_cases, words_of_prompts

NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4
GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
DIGITS = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), GPT2])
CODER = pre_tokenizers.Sequence([*(pre_tokenizers.Split(Regex(r), "isolated") for r in
                                   ("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+")),
                                 pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
# pre: the split, whether there is NFC, whether there is ignore_merges
KNOWN = {"gpt-2": (GPT2, False, False), "mpt": (GPT2, True, False), "olmo": (GPT2, True, False), "smollm": (DIGITS, False, False),
         "starcoder": (DIGITS, False, False), "refact": (DIGITS, False, False), "command-r": (DIGITS, True, False),
         "llama-bpe": (by_regex(LLAMA3), False, True), "qwen2": (by_regex(QWEN2), True, False), "tekken": (by_regex(TEKKEN), False, True),
         "qwen35": (by_regex(QWEN35), True, False), "smaug-bpe": (by_regex(LLAMA3), False, False), "dbrx": (by_regex(LLAMA3), False, False),
         "gpt-4o": (by_regex(O200K), False, False), "deepseek-coder": (CODER, False, False)}


def generated(n):
    """Random texts: characters of every assigned block, words and pieces of them, runs of spaces and digits."""
    draw = random.Random(11)
    assigned = [chr(c) for c in range(1, 0x32000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]
    words = words_of_prompts()
    pieces = [" ", "  ", "\n", "\r\n", "\t", "'s", "'LL", "1", "2024", ".", "...", "!?", "_", "://", "<|im_end|>", "<|endoftext|>", "<|user|>", "<|end|>", "</s>", "<s>",
              "\u00a0", "\u2581", "\U0001f600", "e\u0301", "\u0130", "\u017f", "\u200d", "\uac00", "\u1100\u1161"]
    for _ in range(n):
        parts = []
        for _ in range(draw.randint(1, 12)):
            kind = draw.random()
            parts.append(draw.choice(words) if kind < 0.4 else draw.choice(pieces) * draw.choice((1, 1, 1, 2, 5)) if kind < 0.75 else
                         "".join(draw.choices(assigned, k=draw.randint(1, 4))))
        yield draw.choice(("", " ")).join(parts)


def of_every_character():
    """Every code point next to letters, digits, spaces and symbols; a few in each text."""
    points = [chr(c) for c in range(1, 0x110000) if not 0xd800 <= c < 0xe000]
    for i in range(0, len(points), 16):
        yield "\n.a".join(f"x{c}y 1{c} {c}{c}'{c}. {c}1" for c in points[i:i + 16])


def texts():
    if "--every-character" in sys.argv:
        return [text for text in of_every_character() if NFC.normalize_str(text) == unicodedata.normalize("NFC", text)]
    seen = dict.fromkeys(["", *cases(words_of_prompts()), *kind_cases(words_of_prompts()), *generated(4000)])
    return [text for text in seen if NFC.normalize_str(text) == unicodedata.normalize("NFC", text)]


def ours(program, path, list_of_texts, begin=False):
    given = b"".join(struct.pack("<I", len(t.encode())) + t.encode() for t in list_of_texts)
    run = subprocess.run([program, path, "begin" if begin else "plain"], input=given, capture_output=True)
    if run.returncode:
        return run.stderr.decode().strip(), None
    head, *lines = run.stdout.decode().splitlines()
    rows = [line.split("\t") for line in lines]
    return head.split("\t"), [([int(i) for i in ids.split()], bytes.fromhex(text).decode(errors="replace")) for ids, text in rows]


def rebuilt(fields):
    """Makes a tokenizer.json from the tables of a GGUF file."""
    get = lambda key, default=None: fields["tokenizer.ggml." + key].contents() if "tokenizer.ggml." + key in fields else default
    tokens, types = get("tokens"), get("token_type")
    rows = [(i, t, kind) for i, (t, kind) in enumerate(zip(tokens, types)) if t != f"[PAD{i}]"]
    phi3 = get("model") == "llama" and fields["general.architecture"].contents() == "phi3"  # these take the white space after them
    added = [AddedToken(t, special=kind != USER_DEFINED, normalized=False, rstrip=phi3 and t not in ("<unk>", "<s>", "<|endoftext|>"))
             for _, t, kind in rows if kind in (UNKNOWN, CONTROL, USER_DEFINED)]
    vocab = {t: i for i, t, _ in rows}
    if get("model") == "gpt2":
        split, nfc, whole = KNOWN[get("pre")]
        t = Tokenizer(models.BPE(vocab, [tuple(m.split(" ", 1)) for m in get("merges")], ignore_merges=whole))
        if nfc:
            t.normalizer = normalizers.NFC()
        t.pre_tokenizer, t.decoder = split, decoders.ByteLevel()
    else:
        by_score = get("model") == "llama"
        merges = merges_of(dict(zip(tokens, enumerate(get("scores"))))) if by_score else [tuple(m.split(" ", 1)) for m in get("merges")]
        t = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
        marks, shown = [normalizers.Replace(" ", "\u2581")], [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
        if get("add_space_prefix", by_score):
            marks, shown = [normalizers.Prepend("\u2581"), *marks], [*shown, decoders.Strip(" ", 1, 0)]
        else:
            t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")  # as Gemma's has it
        t.normalizer, t.decoder = normalizers.Sequence(marks), decoders.Sequence(shown)
    t.add_tokens(added)
    if get("add_bos_token", get("model") in ("llama", "gemma4") or get("pre") in ("llama-bpe", "tekken")):
        t.post_processor = begun_by(t, tokens[get("bos_token_id")])
    return t


def compare(name, list_of_texts, expected, found):
    wrong = [(text, e, f) for text, e, f in zip(list_of_texts, expected, found) if e != f]
    print(f"  {name}: {len(list_of_texts) - len(wrong)} of {len(list_of_texts)}")
    for text, e, f in wrong[:5]:
        print(f"    {text[:60]!r}\n      expected {str(e)[:200]}\n      found    {str(f)[:200]}")
    return not wrong


def check(program, path):
    print(os.path.basename(path))
    head, _ = ours(program, path, [])
    if isinstance(head, str):
        print("  refused:", head.replace(path, "..."))
        return True
    good = True
    if os.path.exists(path + ".inp"):
        with open(path + ".inp", encoding="utf-8", newline="") as f:
            given = f.read().split("\n__ggml_vocab_test__\n")
        with open(path + ".out") as f:
            expected = [[int(i) for i in line.split()] for line in f.read().split("\n")][:len(given)]
        good &= compare("llama.cpp's vectors", given, expected, [ids for ids, _ in ours(program, path, given)[1]])
    t = rebuilt(gguf.GGUFReader(path).fields)
    ends = [t.id_to_token(int(i)) for i in head[1].split()]
    print(f"  {head[0]} ids, ends: {' '.join(ends)}")
    given = texts()
    encoded = [t.encode(text, add_special_tokens=False).ids for text in given]
    expected = [(ids, t.decode(ids, skip_special_tokens=False)) for ids in encoded]
    with tempfile.TemporaryDirectory() as folder:
        made = os.path.join(folder, "tokenizer.json")
        t.save(made)
        for kind, file in (("GGUF", path), ("tokenizer.json", made)):
            found_head, found = ours(program, file, given)
            good &= compare(f"ids, {kind}", given, [ids for ids, _ in expected], [ids for ids, _ in found])
            # a run of byte tokens that is not UTF-8 is decoded differently: as its valid characters, and U+FFFD for the
            # rest
            same = [i for i, (_, text) in enumerate(expected) if "\ufffd" not in text]
            good &= compare(f"texts, {kind}", [given[i] for i in same], [expected[i][1] for i in same], [found[i][1] for i in same])
            begun = [text for text in given if not text.startswith(("<s>", "<bos>", "<|begin_of_text|>"))]  # these do not get a second one
            good &= compare(f"with the ids that begin a text, {kind}", begun, [t.encode(text).ids for text in begun],
                            [ids for ids, _ in ours(program, file, begun, begin=True)[1]])
            if found_head[2] != head[2]:
                print("  the fingerprints differ")
                good = False
    return good


if __name__ == "__main__":
    program, *files = [argument for argument in sys.argv[1:] if argument != "--every-character"]
    sys.exit(0 if all([check(program, path) for path in files]) else 1)
