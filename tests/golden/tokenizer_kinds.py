"""Small tokenizers of the kinds that people's models have, trained on the bundled prompts. Each is the JSON of a
tokenizer.json.

make() returns {name: json object}. Byte-level ones: llama3, qwen2, smollm, tekken. Ones of characters, as
SentencePiece makes them: llama2 (puts a space before every section), metaspace_first, _always, _never and _cut
(other ways to do so), unknown (some bytes are missing), spm (merges by score), phi3, gemma. joined: pieces end with
their separators."""
import copy
import json
import random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
          r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
UPPER, LOWER, ENDING = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = (rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{ENDING}|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{ENDING}"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN35 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
# Text that the prompts lack, so that merges contain characters of more than one byte.
MORE = ["\u00e9t\u00e9 na\u00efve caf\u00e9 \u00fcber " * 8, "\u4f60\u597d\u4e16\u754c " * 8, "\u043f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440 " * 8,
        "\U0001f600\U0001f680 " * 8, "don't I'll we've it's 1234 5678 2024 " * 8, "int main() {\n    return 0;\n}\n" * 8,
        "a\r\nb\r\n\r\nc\t\td  e    f\n\n\n" * 8]


def special(content, **flags):
    return AddedToken(content, special=True, normalized=False, **flags)


def byte_level(texts, split, normalizer=None, size=700):
    t = Tokenizer(models.BPE())
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = split
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                                     show_progress=False))
    return t


def by_regex(regex):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(regex), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def begun_by(t, token):
    return processors.TemplateProcessing(single=f"{token}:0 $A:0", pair=f"{token}:0 $A:0 {token}:1 $B:1",
                                         special_tokens=[(token, t.token_to_id(token))])


def plain(t):
    return json.loads(t.to_str())


def llama3(texts):
    """With ignore_merges, and 40 tokens that no merge makes any more: they are still found as whole words."""
    t = byte_level(texts, by_regex(LLAMA3))
    t.add_special_tokens([special("<|begin_of_text|>"), special("<|end_of_text|>"), special("<|eot_id|>")])
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), begun_by(t, "<|begin_of_text|>")])
    made = plain(t)
    made["model"]["ignore_merges"] = True
    merges = made["model"]["merges"]
    used = {half for merge in merges for half in merge}
    last = [i for i, merge in enumerate(merges) if "".join(merge) not in used]
    for i in sorted(random.Random(1).sample(last, 40), reverse=True):
        del merges[i]
    return made


def qwen2(texts):
    """With merges written as "a b", as in older files."""
    t = byte_level(texts, by_regex(QWEN2), normalizers.NFC())
    t.add_special_tokens([special("<|endoftext|>"), special("<|im_start|>"), special("<|im_end|>")])
    t.add_tokens([AddedToken("<think>", normalized=False, special=False), AddedToken("e\u0301\u4f60", normalized=True, special=False)])
    made = plain(t)
    made["model"]["merges"] = [" ".join(merge) for merge in made["model"]["merges"]]
    return made


def smollm(texts):
    t = byte_level(texts, pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                   pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]))
    t.add_special_tokens([special("<|endoftext|>"), special("<|im_start|>"), special("<|im_end|>")])
    return plain(t)


def tekken(texts):
    t = byte_level(texts, by_regex(TEKKEN))
    t.add_special_tokens([special("<unk>"), special("<s>"), special("</s>")])
    t.post_processor = begun_by(t, "<s>")
    return plain(t)


def o200k(texts):
    t = byte_level(texts, by_regex(O200K))
    t.add_special_tokens([special("<|endoftext|>"), special("<|return|>"), special("<|end|>"), special("<|call|>"), special("<|user|>")])
    return plain(t)


def cl100k(texts):
    """With a split that removes what its pattern does not match, which is nothing."""
    t = byte_level(texts, pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "removed", invert=True),
                                                   pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]))
    t.add_special_tokens([special("<|endoftext|>"), special("<|im_start|>"), special("<|im_sep|>"), special("<|im_end|>")])
    return plain(t)


def joined(texts):
    """With strings as patterns, one of which has another meaning as a regular expression."""
    t = byte_level(texts, pre_tokenizers.Sequence([pre_tokenizers.Split(" ", "merged_with_previous"), pre_tokenizers.Split("...", "isolated"),
                                                   pre_tokenizers.Split(Regex("[.!\n]"), "merged_with_previous"),
                                                   pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]))
    return plain(t)


def characters(texts, specials):
    """Tokens of characters. The first are the special tokens and one for each byte. The later a token, the lower its
    score."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never", split=True)
    specials = specials + [f"<0x{b:02X}>" for b in range(256)]
    t.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=900, limit_alphabet=100, special_tokens=specials, show_progress=False))
    made = plain(t)
    made["added_tokens"] = []
    made["model"]["merges"] = merges_of({token: (i, -i) for token, i in made["model"]["vocab"].items()})
    return Tokenizer.from_str(json.dumps(made))


def phi3(texts):
    """Llama 2's, with tokens that take the white space after them."""
    plain_ones, others = ["<unk>", "<s>", "<|endoftext|>"], ["<|assistant|>", "<|system|>", "<|end|>", "<|user|>"]
    t = characters(texts, [*plain_ones, "</s>", *others])
    t.pre_tokenizer = None
    t.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.add_special_tokens([*map(special, plain_ones), *(special(token, rstrip=True) for token in others)])
    t.add_tokens([AddedToken("</s>", rstrip=True, normalized=False, special=False)])
    return plain(t)


def gemma(texts):
    """No space is put before a text. Runs of white space are tokens, the longest first."""
    controls = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>", "<|turn>", "<turn|>"]
    runs = [blank * n for blank in "\n\u2581\t" for n in (7, 6, 5, 4, 3, 2)]
    t = characters(texts, [*controls, *runs])
    t.normalizer = normalizers.Replace(" ", "\u2581")
    t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    t.add_special_tokens([special(token) for token in controls])
    t.add_tokens([AddedToken(run, normalized=False, special=False) for run in runs])
    t.post_processor = begun_by(t, "<bos>")
    return plain(t)


def llama2(texts):
    """Characters and 256 byte tokens, with an unusual one of every kind of added token."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    specials = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256))]
    t.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=1000, limit_alphabet=100, special_tokens=specials, show_progress=False))
    made = plain(t)
    made["added_tokens"] = []
    t = Tokenizer.from_str(json.dumps(made))
    t.pre_tokenizer = None
    t.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.add_special_tokens([special("<unk>"), special("<s>"), special("</s>"), special("<mask>", lstrip=True), special("<end>", rstrip=True),
                          special("<both>", lstrip=True, rstrip=True), AddedToken("<old>", special=True, normalized=True)])
    t.add_tokens([AddedToken("[tool call]", normalized=True, special=False), AddedToken("alone", single_word=True, normalized=False, special=False),
                  AddedToken("<s><s>", normalized=False, special=False)])
    t.post_processor = begun_by(t, "<s>")
    return plain(t)


def merges_of(scores):
    """As transformers makes them from a SentencePiece model: {token: (id, score)}."""
    merges = []
    for whole, (_, score) in scores.items():
        halves = [(whole[:i], whole[i:]) for i in range(1, len(whole)) if whole[:i] in scores and whole[i:] in scores]
        merges += [(left, right, score) for left, right in sorted(halves, key=lambda h: (scores[h[0]][0], scores[h[1]][0]))]
    merges.sort(key=lambda m: (m[2], len(m[0]), len(m[1])), reverse=True)
    return [(left, right) for left, right, _ in merges]


def spm(base):
    """What a GGUF file can represent: merges by score (the later the token, the lower), three special tokens."""
    made = copy.deepcopy(base)
    made["added_tokens"] = [token for token in made["added_tokens"] if token["content"] in ("<unk>", "<s>", "</s>")]
    made["model"]["merges"] = merges_of({token: (i, -i) for token, i in made["model"]["vocab"].items()})
    return made


def metaspace(base, scheme, cut=False):
    made = copy.deepcopy(base)
    made["normalizer"] = None
    step = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": cut}
    made["pre_tokenizer"] = step
    if cut:
        made["decoder"] = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, step]}
    return made


def unknown(base):
    """Two byte tokens are missing. Each character that needs them is unknown."""
    made = copy.deepcopy(base)
    for b in (0xE4, 0xBD):
        made["model"]["vocab"][f"<gone {b}>"] = made["model"]["vocab"].pop(f"<0x{b:02X}>")
    made["model"]["fuse_unk"] = False
    return made


def make(texts):
    texts = texts + MORE
    base = llama2(texts)
    return {"llama3": llama3(texts), "qwen2": qwen2(texts), "smollm": smollm(texts), "tekken": tekken(texts), "llama2": base,
            "metaspace_first": metaspace(base, "first"), "metaspace_always": metaspace(base, "always"),
            "metaspace_never": metaspace(base, "never"), "metaspace_cut": metaspace(base, "first", cut=True), "unknown": unknown(base),
            "spm": spm(base), "o200k": o200k(texts), "cl100k": cl100k(texts), "joined": joined(texts), "phi3": phi3(texts), "gemma": gemma(texts)}
