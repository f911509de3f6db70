#!/usr/bin/env python3
"""Time from starting dtrun to its end after one token, with packed weights kept by an earlier start and without, in turns.

    tests/bench/start.py build/dtrun MODEL [--runs 9] [--threads 2] [--llama-cpp LLAMA_SERVER [--busy N]]

Prints medians and their ratio. Kept weights are in a folder of their own, which is removed at the end. With --llama-cpp,
both programs are started as servers, and asked for one token as soon as they answer: medians of the seconds until that
token has come, and of the memory that the process shares with no other (weights that dtrun reads instead of mapping them
are in it). --busy: while N other processes compute all the time."""
import argparse, os, pathlib, shlex, statistics, subprocess, sys, tempfile, time
from peers.server import Server

p = argparse.ArgumentParser()
p.add_argument("dtrun")
p.add_argument("model")
p.add_argument("--runs", type=int, default=9)
p.add_argument("--threads", type=int, default=2)
p.add_argument("--llama-cpp", metavar="PROGRAM", help="a llama-server, possibly with flags")
p.add_argument("--busy", type=int, default=0)
args = p.parse_args()


def start(*more):
    begin = time.monotonic()
    subprocess.run([args.dtrun, "ar", "-m", args.model, "-p", "The", "-n", "1", "--backend", "cpu", "-t", str(args.threads), "-q", *more],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - begin


def private(pid):
    """The process's own memory in MB."""
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


def first_token(command):
    """Seconds until a server that is started now has sent one token, and its memory then."""
    begin = time.monotonic()
    server = Server(command)
    try:
        while not server.ask("POST", "/v1/completions", {"prompt": "The", "max_tokens": 1, "temperature": 0}): time.sleep(0.005)
        return time.monotonic() - begin, private(server.process.pid)
    finally:
        server.close()


def compare_with_llama_cpp():
    threads = ["-t", str(args.threads)]
    commands = {"dtrun": [args.dtrun, "serve", "-m", args.model, "-md", "none", "--backend", "cpu", "-c", "4096", *threads],
                "llama.cpp": [*shlex.split(args.llama_cpp), "-m", args.model, "-c", "4096", "-np", "1", *threads]}
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(args.busy)]
    try:
        found = {name: [] for name in commands}
        for _ in range(args.runs):
            for name, command in commands.items(): found[name].append(first_token(command))
    finally:
        for loop in loops: loop.kill()
    seconds, memory = ({name: statistics.median(run[i] for run in runs) for name, runs in found.items()} for i in range(2))
    print(f"{pathlib.Path(args.model).name}, {args.busy} busy processes, medians of {args.runs}: first token after "
          f"{seconds['dtrun']:.3f} s, llama.cpp {seconds['llama.cpp']:.3f} s, ratio {seconds['llama.cpp'] / seconds['dtrun']:.2f}; "
          f"private memory {memory['dtrun']:.0f} MB, llama.cpp {memory['llama.cpp']:.0f} MB")


with tempfile.TemporaryDirectory() as cache:
    os.environ["XDG_CACHE_HOME"] = cache
    packed = pathlib.Path(cache, "dtrun/packed")
    first = start()
    while not packed.exists() or any(file.suffix for file in packed.iterdir()) or not any(packed.iterdir()): start()
    if args.llama_cpp:
        compare_with_llama_cpp()
        sys.exit()
    times = {"packed again": [], "kept": []}
    for _ in range(args.runs):
        times["packed again"].append(start("--no-packed-cache"))
        times["kept"].append(start())
    again, kept = (statistics.median(t) for t in times.values())
    print(f"{pathlib.Path(args.model).name}: first start, which keeps the weights: {first:.3f} s; medians of {args.runs}:")
    print(f"packed again {again:.3f} s, kept {kept:.3f} s, ratio {again / kept:.2f}; kept: {sum(f.stat().st_size for f in packed.iterdir()) / 1e6:.0f} MB")
