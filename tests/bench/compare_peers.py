"""Compares dtrun with what people would use instead: llama.cpp, ik_llama.cpp and transformers, on the same models,
token ids, lengths and numbers of threads.

    python tests/bench/compare_peers.py [--target MODEL --draft MODEL|none]
        [--policy NAME[:PRESET|:PARAM=VALUE,...]]... [--llama-cpp PROGRAM] [--ik-llama PROGRAM]
        [--peers transformers llama_cpp]
        [--chats CODE OTHERS | --prompts 4 | --contexts 512 3500 | --rows 1 2 4 8 16] [--tokens 200] [--temp 0.8]
        [--threads 2] [--repeats 3] [--arms draft n-grams] [--backend cuda] [--dtrun-options '...'] [--out FILE]

PROGRAM is a llama-server, or one with flags of its own in quotes. Each of its arms is a separate process on the
loopback interface, with the flags of peers/server.py: plain decoding, its speculation with the draft model, and with
n-grams. --peers are Python modules: transformers (in f32, or f16 on a GPU; plain, assisted generation, prompt
lookup), and llama_cpp, which is llama.cpp as a library without the choice of the token; it also reads checkpoints,
as F16. A module that is not installed is left out. They need torch, transformers, numpy, safetensors and gguf; and
llama-cpp-python built from source, so that it uses all instructions of the machine:

    CMAKE_ARGS=-DGGML_NATIVE=ON pip install --no-binary llama-cpp-python llama-cpp-python

If its AMX code crashes (at ldtilecfg on some virtual machines), add -mno-amx-int8 -mno-amx-tile -mno-amx-bf16 to
CFLAGS and CXXFLAGS; -DGGML_AMX_INT8=OFF alone does not leave it out.

With --chats (questions in ChatML, answers as long as the model makes them) and --prompts (texts to continue, always
by --tokens tokens), all arms run a prompt before the next one comes, in an order that rotates. Prints tokens/s end
to end, an arm's speedup over the program's own plain decoding, how many of its texts differ from those of that plain
decoding, and the ratios of dtrun's speed to the others'. With --temp all arms sample from the 40 likeliest tokens,
with the same seed for the same prompt.

With --contexts only plain decoding is measured: tokens/s of reading prompts of those lengths and of decoding after
them, and the seconds from the start of a process to its first token, with the files in the page cache.

With --rows only the target's passes over this many rows are measured, which are those that verify guesses, and
compared with the library's: see peers/rows.py. The library may be the one that build.sh builds:
PYTHONPATH=FOLDER/llama_cpp_python-0.3.36 LLAMA_CPP_LIB_PATH=FOLDER/llama.cpp/bin.

Every program reports its own time, from the start of the prompt pass to the last token. The machine and all flags
are printed.

ik_llama.cpp of ik-llama-cpp-python 0.1.5 reads prompts of Q4_1 incorrectly, if 32 tokens or more are read at a time.
Use "PROGRAM -ub 31" for such files.
"""
import argparse, importlib.util, pathlib, shlex, shutil, sys
from peers import fail, prompts
from peers.dtrun import Dtrun
from peers.lengths import Lengths
from peers.rows import Passes
from peers.server import ARMS, Servers
from peers.speculation import Rounds

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALL_ARMS = sorted({arm for arms in ARMS.values() for arm in arms} - {"plain"})


def parse():
    parser = argparse.ArgumentParser(description="Compares llama.cpp, ik_llama.cpp and transformers with dtrun, in alternating runs.")
    parser.add_argument("--target", default=str(ROOT / "models/mini-target"))
    parser.add_argument("--draft", default=str(ROOT / "models/mini-draft"), help="draft model; none: no draft model")
    parser.add_argument("--policy", action="append", help="a policy of dtrun; may be repeated (default: rate, dynatree and linear:K=4; none with --contexts)")
    parser.add_argument("--llama-cpp", metavar="PROGRAM", help="a llama-server of llama.cpp, possibly with flags")
    parser.add_argument("--ik-llama", metavar="PROGRAM", help="a llama-server of ik_llama.cpp, possibly with flags")
    parser.add_argument("--arms", nargs="*", choices=ALL_ARMS, default=ALL_ARMS, help="the servers' kinds of speculation to run (default: all)")
    parser.add_argument("--peers", nargs="*", default=["llama_cpp", "transformers"], help="Python modules to compare with (default: both)")
    parser.add_argument("--prompts", type=int, default=4, help="number of texts, taken from both folders alternately (default: 4)")
    parser.add_argument("--chats", type=int, nargs=2, metavar=("CODE", "OTHERS"), help="use chats instead: this many of humaneval, and of each of five other sets")
    parser.add_argument("--contexts", type=int, nargs="+", metavar="N", help="measure plain decoding after this many tokens instead")
    parser.add_argument("--rows", type=int, nargs="+", metavar="N", help="measure passes over this many rows instead")
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--temp", type=float, default=0.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--backend", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--dtrun", type=pathlib.Path, default=ROOT / "build/dtrun")
    parser.add_argument("--dtrun-options", default="", help="more options for dtrun, such as --cache-dtype f16")
    parser.add_argument("--out", type=pathlib.Path, help="a file to which a line of JSON is appended for each run")
    options = parser.parse_args()
    options.root = ROOT
    options.context = 128  # for passes by rows
    if options.contexts or options.rows: options.arms = []
    options.policy = [] if options.contexts or options.rows else options.policy or ["rate", "dynatree", "linear:K=4"]
    return options


def machine():
    lines = dict(line.split(":", 1) for line in pathlib.Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines() if ":" in line)
    facts = {key.strip(): value.strip() for key, value in lines.items()}
    amx = "AMX" if "amx_int8" in facts.get("flags", "") else "no AMX"
    return f"{facts.get('model name', '?')}, family {facts.get('cpu family')} model {facts.get('model')}, {amx}"


def installed(name, options):
    if name not in options.peers: return False
    if importlib.util.find_spec(name): return True
    print(f"{name} is not installed and is left out")
    return False


def engines(options, context):
    yield Dtrun(options, context)
    if options.llama_cpp: yield Servers("llama.cpp", options.llama_cpp, options, context)
    if options.ik_llama: yield Servers("ik_llama", options.ik_llama, options, context)
    if options.backend == "cpu" and not options.temp and not options.chats and installed("llama_cpp", options):
        from peers.library import Library

        yield Library(options, context)
    if not options.rows and installed("transformers", options):
        from peers.huggingface import HuggingFace

        yield HuggingFace(options, context)


def speculation(made, options):
    rounds = Rounds(made, options)
    asked = list(prompts.chats(ROOT, *options.chats) if options.chats else prompts.texts(ROOT, options.prompts))
    for i, (name, text) in enumerate(asked):
        print(f"{i + 1} of {len(asked)}: {name}", file=sys.stderr)
        rounds.prompt(name, text, i + 1)
    return rounds


def measured(made, options):
    found = (Passes if options.rows else Lengths)(made, options)
    found.measure()
    return found


def main():
    options = parse()
    for program in filter(None, (options.llama_cpp, options.ik_llama)):
        if not shutil.which(shlex.split(program)[0]): fail(f"cannot find {shlex.split(program)[0]}; give the path of a llama-server")
    made = []
    try:
        for engine in engines(options, max(options.contexts) + options.tokens if options.contexts else 2048): made.append(engine)
        print(f"{machine()}; {options.threads} threads")
        print(*(line for engine in made for line in engine.flags), sep="\n")
        synthetic = (pathlib.Path(options.target) / "synthetic.json").exists()
        print(f"{'SYNTHETIC ' if synthetic else ''}{options.target}, {options.draft}: {options.tokens} tokens, temperature {options.temp:g}, "
              f"{options.repeats} repeats")
        (measured if options.contexts or options.rows else speculation)(made, options).show()
    finally:
        for engine in made: engine.close()


if __name__ == "__main__":
    main()
