"""Make types/: blocks of random bytes for every type of weights with the numbers that the gguf package (0.19.0) decodes
them to; and numbers with the blocks to which it rounds them. Run it from anywhere, with gguf and numpy installed:

    python tests/golden/make_types.py

Each types/NAME.bin has blocks, then their numbers in f32 (little endian). Scales are finite: no block has a NaN.
Each types/rounded_NAME.bin has numbers in f32, then their blocks.
"""
import pathlib
import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T, quants

OUT = pathlib.Path(__file__).resolve().parent / "types"
# where a block has its f16 numbers
SCALES = {T.F16: [0], T.BF16: [], T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0], T.Q2_K: [80, 82],
          T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208], T.IQ4_NL: [0], T.IQ4_XS: [0], T.MXFP4: []}
NUMBERS = 2048


ROUNDED = [T.Q8_0, T.Q4_1]


def numbers_to_round(rng):
    """Numbers of many sizes; zeros, a constant, one sign only, ties between two codes, a single large one."""
    x = rng.standard_normal((NUMBERS // 32, 32)) * 10.0 ** rng.integers(-4, 4, (NUMBERS // 32, 1))
    x[0], x[1], x[2], x[3] = 0, 0.37, abs(x[2]), -abs(x[3])
    x[4] = np.arange(32) + 0.5
    x[4, 31] = 127
    x[5] = np.arange(32) % 16
    x[6] = np.arange(32) % 16 / 2
    x[6, 31] = 15
    x[7] /= 1e4
    x[7, 5] = 1
    return x.astype("<f4")


def main():
    OUT.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    for kind, scales in SCALES.items():
        numbers, size = GGML_QUANT_SIZES[kind]
        blocks = rng.integers(0, 256, (NUMBERS // numbers, size), dtype=np.uint8)
        for at in scales:
            blocks[:, at + 1] &= 0xBF  # clears the highest bit of the exponent: far from infinity
        if kind == T.BF16: blocks[:, 1] &= 0xBF
        values = np.ascontiguousarray(quants.dequantize(blocks, kind), "<f4").reshape(-1)
        assert values.size == NUMBERS and np.isfinite(values).all()
        (OUT / f"{kind.name}.bin").write_bytes(blocks.tobytes() + values.tobytes())
    x = numbers_to_round(rng)
    for kind in ROUNDED:
        (OUT / f"rounded_{kind.name}.bin").write_bytes(x.tobytes() + quants.quantize(x, kind).tobytes())


main()
