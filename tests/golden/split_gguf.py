"""Splits a GGUF file into parts as llama.cpp's gguf-split does: split_gguf.py FILE PARTS STEM [empty]. Uses Python's
own modules only.

Writes STEM-00001-of-0000N.gguf ..: the first part has all keys, each part has split.no, split.count and
split.tensors.count. Tensors keep their order, with about the same number of bytes in each part. empty: the first
part has no tensors (gguf-split --no-tensor-first-split).
"""

import struct
import sys

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
U16, I32, STRING, ARRAY = 2, 5, 8, 9
data = open(sys.argv[1], "rb").read()
parts, stem, empty = int(sys.argv[2]), sys.argv[3], "empty" in sys.argv[4:]


def number(form, at):
    return struct.unpack_from("<" + form, data, at)[0]


def after_string(at):
    return at + 8 + number("Q", at)


def after_value(kind, at):
    if kind == STRING:
        return after_string(at)
    if kind != ARRAY:
        return at + SIZES[kind]
    kind, n, at = number("I", at), number("Q", at + 4), at + 12
    if kind != STRING:
        return at + n * SIZES[kind]
    for _ in range(n):
        at = after_string(at)
    return at


def key(name, kind, value):
    return struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I", kind) + value


def aligned(n):
    return -(-n // alignment) * alignment


assert data[:4] == b"GGUF" and number("I", 4) == 3
n_tensors, n_keys, at, alignment = number("Q", 8), number("Q", 16), 24, 32
first_key = at
for _ in range(n_keys):
    name_end = after_string(at)
    name, kind = data[at + 8 : name_end], number("I", name_end)
    if name == b"general.alignment":
        alignment = number("I", name_end + 4)
    at = after_value(kind, name_end + 4)
keys = data[first_key:at]
tensors = []
for _ in range(n_tensors):
    begin, at = at, after_string(at)
    at += 4 + 8 * number("I", at) + 4
    tensors.append((data[begin:at], number("Q", at)))
    at += 8
base = aligned(at)
ends = [offset for _, offset in tensors[1:]] + [len(data) - base]
bodies = [data[base + offset : base + end] for (_, offset), end in zip(tensors, ends)]

shares, filled = [[] for _ in range(parts)], 0
into = shares[1:] if empty else shares
for i, body in enumerate(bodies):
    left = len(bodies) - i
    share = max(min(filled * len(into) // (len(data) - base), len(into) - 1), len(into) - left)  # no part is left without a tensor
    into[share].append(i)
    filled += len(body)
for part, share in enumerate(shares):
    own = [key("split.no", U16, struct.pack("<H", part)), key("split.count", U16, struct.pack("<H", parts)), key("split.tensors.count", I32, struct.pack("<i", n_tensors))]
    head = (keys if part == 0 else b"") + b"".join(own)
    infos, place = b"", 0
    for i in share:
        infos += tensors[i][0] + struct.pack("<Q", place)
        place += aligned(len(bodies[i]))
    text = b"GGUF" + struct.pack("<IQQ", 3, len(share), (n_keys if part == 0 else 0) + 3) + head + infos
    text += bytes(aligned(len(text)) - len(text))
    for i in share:
        text += bodies[i] + bytes(aligned(len(bodies[i])) - len(bodies[i]))
    with open(f"{stem}-{part + 1:05d}-of-{parts:05d}.gguf", "wb") as out:
        out.write(text)
