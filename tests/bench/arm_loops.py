#!/usr/bin/env python3
"""Estimates the speed of the ARM kernels' inner loops from their machine code, since it has not been measured on an ARM
machine:

    tests/bench/arm_loops.py [BUILD]      build/arm64; prints a table

A loop multiplies some rows by a block: 32 inputs of 16 outputs. Its instructions are counted by kind. The cycles are
those that llvm-mca (LLVM 19) computes with its tables of Neoverse N1 and V1. LLVM has no table of Apple's M1, so
there they are the largest of three bounds: SIMD instructions over 4 pipes, loads and stores over 3, all instructions
over 8 (dougallj.github.io/applecpu). Bytes per cycle: the weights that a single row reads.
"""
import re
import subprocess
import sys
from pathlib import Path

BLOCK = 32 * 16  # products of a row and a block
BYTES = {"q4_0": 288, "q4_k": 272 + 10, "q6_k": 416 + 4, "q8_0": 544}  # of a block: codes, scales, a part of the cell's
KERNELS = [("dotprod", "product_one", "1x1", 1), ("dotprod", "product_one", "4x1", 4), ("i8mm", "mmla_one", "4", 4),
           ("neon", "product_one", "1x1", 1), ("neon", "product_one", "4x1", 4)]
DOTS = {"dotprod": "sdot", "i8mm": "smmla", "neon": r"smull2?\s+\S+8h"}  # each instruction computes a product of four, or half of it


def function(build, variant, file, name):
    """The instructions of a function: [(address, text)]."""
    path = build / f"runtime/cpu/CMakeFiles/dtrun_cpu_{variant}.dir/{file}.c.o"
    text = subprocess.run(["aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", f"--disassemble={name}", path],
                          check=True, capture_output=True, text=True).stdout
    return [(int(m[1], 16), m[2].split("//")[0].strip()) for m in re.finditer(r"^ *([0-9a-f]+):\t(.*)$", text, re.M)]


def loop(code, dot):
    """The shortest loop that contains the dot products and no call: from the target of a branch back to the branch."""
    loops = []
    for i, (at, text) in enumerate(code):
        m = re.match(r"(?:b\.\w+|cbn?z \w+,|b)\s+([0-9a-f]+) <", text.replace("\t", " "))
        inside = [t for a, t in code[:i + 1] if m and a >= int(m[1], 16)]
        if m and int(m[1], 16) <= at and not any(re.match(r"bl\b", t) for t in inside):
            loops.append((sum(bool(re.match(dot, t)) for t in inside), inside))
    most = max(dots for dots, _ in loops)
    return min((inside for dots, inside in loops if dots > 0.8 * most), key=len)


def kind(text, dot):
    word = text.split()[0]
    if re.match(dot, text):
        return "dot"
    if re.match(r"ld|prfm", word):
        return "load"
    if word.startswith("st"):
        return "store"
    return "simd" if re.search(r"\b[vq]\d+\b|\b[vq]\d+\.|^(f|scvtf|movi)", text) else "other"


def estimated_by_mca(lines, cpu):
    """The cycles of one iteration, without branches."""
    plain = [re.sub(r"#(-?\d+)", r"#\1", t) for t in lines if not re.match(r"(b|b\.\w+|cbn?z|adrp|nop)\b", t)]
    run = subprocess.run(["llvm-mca-19", "-mtriple=aarch64", f"-mcpu={cpu}", "-mattr=+i8mm,+dotprod", "-iterations=100"],
                         input="\n".join(plain), capture_output=True, text=True)
    m = re.search(r"Total Cycles: +(\d+)", run.stdout)
    return int(m[1]) / 100 if m else sys.exit(f"llvm-mca: {run.stderr}")


def main():
    build = Path(sys.argv[1] if len(sys.argv) > 1 else "build/arm64")
    print("| loop | rows | dot | other SIMD | loads | stores | other | N1 | V1 | M1 | products a cycle: N1, V1, M1 | bytes a "
          "cycle: N1, V1, M1 |\n|---|---|---|---|---|---|---|---|---|---|---|---|")
    for variant, file, shape, rows in KERNELS:
        for name in BYTES:
            lines = loop(function(build, variant, file, f"{name}_{shape}"), DOTS[variant])
            n = {k: sum(kind(t, DOTS[variant]) == k for t in lines) for k in ("dot", "simd", "load", "store", "other")}
            n1 = estimated_by_mca(lines, "neoverse-n1") if variant != "i8mm" else None
            v1 = estimated_by_mca(lines, "neoverse-v1")
            m1 = max((n["dot"] + n["simd"]) / 4, (n["load"] + n["store"]) / 3, len(lines) / 8) if variant != "i8mm" else None
            cycles = [n1, v1, m1]

            def row(value, form):
                return ", ".join(form.format(value / c) if c else "-" for c in cycles)
            print(f"| {variant}, {name} | {rows} | {n['dot']} | {n['simd']} | {n['load']} | {n['store']} | {n['other']} | " +
                  " | ".join(f"{c:.0f}" if c else "-" for c in cycles) +
                  f" | {row(BLOCK * rows, '{:.0f}')} | {row(BYTES[name], '{:.1f}') if rows == 1 else ''} |")


main()
