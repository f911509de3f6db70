#!/usr/bin/env python3
"""Time from starting dtrun to its end after one token, with packed weights kept by an earlier start and without, in turns.

    tests/bench/start.py build/dtrun MODEL [--runs 9] [--threads 2]

Prints medians and their ratio. Kept weights are in a folder of their own, which is removed at the end."""
import argparse, os, pathlib, statistics, subprocess, tempfile, time

p = argparse.ArgumentParser()
p.add_argument("dtrun")
p.add_argument("model")
p.add_argument("--runs", type=int, default=9)
p.add_argument("--threads", type=int, default=2)
args = p.parse_args()


def start(*more):
    begin = time.monotonic()
    subprocess.run([args.dtrun, "ar", "-m", args.model, "-p", "The", "-n", "1", "--backend", "cpu", "-t", str(args.threads), "-q", *more],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - begin


with tempfile.TemporaryDirectory() as cache:
    os.environ["XDG_CACHE_HOME"] = cache
    packed = pathlib.Path(cache, "dtrun/packed")
    first = start()
    while not packed.exists() or any(file.suffix for file in packed.iterdir()) or not any(packed.iterdir()): start()
    times = {"packed again": [], "kept": []}
    for _ in range(args.runs):
        times["packed again"].append(start("--no-packed-cache"))
        times["kept"].append(start())
    again, kept = (statistics.median(t) for t in times.values())
    print(f"{pathlib.Path(args.model).name}: first start, which keeps the weights: {first:.3f} s; medians of {args.runs}:")
    print(f"packed again {again:.3f} s, kept {kept:.3f} s, ratio {again / kept:.2f}; kept: {sum(f.stat().st_size for f in packed.iterdir()) / 1e6:.0f} MB")
