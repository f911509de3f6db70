"""The cost of masks in llguidance, xgrammar and llama.cpp, along texts with their schemas, next to dtrun's:

    pip install llguidance==1.9.1 xgrammar==0.2.8 llama-cpp-python==0.3.36
    build/dtrun run tests/bench/schema_texts.lua --schemas FOLDER --texts FILE -m smollm2
    python tests/bench/masks_beside.py FILE [--tokens 300] [--runs 3] [--engines llguidance,xgrammar,llama.cpp] [--bench-masks PROGRAM]

Each text is cut into tokens of a vocabulary (RIVALS_MODEL, a GGUF file; SmolLM2's), at most --tokens of them. For each token an engine computes the mask and takes the
token. The smallest processor time of several runs counts, each with a grammar compiled again. A text ends where an engine does not allow its
next token. Prints the microseconds of compiling, of first masks and of all masks, and how many schemas and texts an engine refuses; then the
same over the texts that all engines allow. What Python adds to a call is included, about a microsecond.

llama.cpp has no masks: it applies its grammar to an array of candidates, here the whole vocabulary. LLAMA_GBNF names its own converter of
schemas, as for rivals_accept.py. --bench-masks names build/tests/bench_masks, which does the same for dtrun."""
import argparse, ctypes, json, pathlib, subprocess, sys, tempfile, time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/golden"))
from rivals_accept import MODEL, LlamaCpp


def now(): return time.clock_gettime_ns(time.CLOCK_PROCESS_CPUTIME_ID) / 1e3


class Llguidance:
    def __init__(self, llama):
        import llguidance, llguidance.llamacpp, llguidance.numpy
        self.matcher, self.tokenizer = llguidance.LLMatcher, llguidance.llamacpp.lltokenizer_from_vocab(llama.vocabulary)
        self.mask = llguidance.numpy.allocate_token_bitmask(1, self.tokenizer.vocab_size)
        self.room = self.mask.ctypes.data, self.mask.size * self.mask.itemsize

    def compile(self, schema):
        self.found = self.matcher(self.tokenizer, self.matcher.grammar_from_json_schema(schema), log_level=0)
        if self.found.is_error(): raise ValueError(self.found.get_error())

    def prepare(self): pass
    def compute(self): self.found.unsafe_compute_mask_ptr(*self.room)
    def allowed(self, token): return self.mask[0, token // 32] >> token % 32 & 1
    def take(self, token): self.found.consume_token(token)


class Xgrammar:
    def __init__(self, llama):
        import numpy, xgrammar
        self.xgrammar, texts = xgrammar, pieces(llama)
        kind = xgrammar.TokenizerInfo(texts, vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[llama.end])
        self.compiler = xgrammar.GrammarCompiler(kind, max_threads=1, cache_enabled=False)
        self.mask = numpy.zeros((1, (len(texts) + 31) // 32), numpy.int32)

    def compile(self, schema): self.found = self.xgrammar.GrammarMatcher(self.compiler.compile_json_schema(schema, strict_mode=False))
    def prepare(self): self.mask.fill(-1)
    def compute(self): self.found.fill_next_token_bitmask(self.mask)
    def allowed(self, token): return self.mask[0, token // 32] >> token % 32 & 1
    def take(self, token): self.found.accept_token(token)


class Llama:
    def __init__(self, llama):
        self.llama, self.engine, n = llama.llama, llama, llama.llama.llama_vocab_n_tokens(llama.vocabulary)
        self.all = (self.llama.llama_token_data * n)(*((token, 0.0, 0.0) for token in range(n)))
        self.now = (self.llama.llama_token_data * n)()
        self.candidates = self.llama.llama_token_data_array(self.now, n, -1, False)

    def compile(self, schema): self.engine.compile(schema)
    def prepare(self): ctypes.memmove(self.now, self.all, ctypes.sizeof(self.all))
    def compute(self): self.llama.llama_sampler_apply(self.engine.grammar, ctypes.byref(self.candidates))
    def allowed(self, token): return self.now[token].logit == 0
    def take(self, token): self.llama.llama_sampler_accept(self.engine.grammar, token)


ENGINES = {"llguidance": Llguidance, "xgrammar": Xgrammar, "llama.cpp": Llama}


def pieces(llama):
    texts, room = [], ctypes.create_string_buffer(1000)
    for token in range(llama.llama.llama_vocab_n_tokens(llama.vocabulary)):
        n = llama.llama.llama_token_to_piece(llama.vocabulary, token, room, len(room), 0, True)
        texts.append(room.raw[:n])
    return texts


def along(engine, schema, tokens):
    """The time of compiling, and those of the tokens up to the first that is not allowed."""
    start, took = now(), []
    engine.compile(schema)
    compiling = now() - start
    for token in tokens:
        engine.prepare()
        start = now()
        engine.compute()
        middle = now()
        if not engine.allowed(token): break
        again = now()
        engine.take(token)
        took.append(middle - start + now() - again)
    return compiling, took


def measure(engine, schema, tokens, runs):
    """The smallest times of several runs, or None if the schema is refused."""
    try:
        made = [along(engine, schema, tokens) for _ in range(runs)]
    except (ValueError, RuntimeError):
        return None
    return min(compiling for compiling, _ in made), [min(times) for times in zip(*(took for _, took in made))]


def spread(times):
    times = sorted(times)
    return f"{sum(times) / len(times):.1f},{times[len(times) * 99 // 100]:.1f},{times[-1]:.1f}" if times else "-,-,-"


def report(name, found):
    found = [each for each in found if each and each[1]]
    for what, times in (("compiling", [each[0] for each in found]), ("first masks", [each[1][0] for each in found]),
                        ("all masks", [time for each in found for time in each[1]])):
        print(f"{name},{what},{len(times)},{spread(times)}")


def dtruns(program, lines, runs, most):
    """The lines that bench_masks prints for the texts."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(lines)
        file.flush()
        out = subprocess.run([program, str(MODEL), str(runs), file.name, str(most)], check=True, capture_output=True, text=True).stdout
    for line in out.splitlines()[1:]: print(f"dtrun,{line}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("texts", type=pathlib.Path)
    p.add_argument("--tokens", type=int, default=300)
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--engines", default=",".join(ENGINES))
    p.add_argument("--bench-masks")
    args = p.parse_args()
    lines = args.texts.open(encoding="utf-8").readlines()
    llama = LlamaCpp()
    schemas = [line[line.index('", "schema": ') + 13:line.rindex("}")] for line in lines]
    texts = [llama.tokens(json.loads(line)["text"].encode())[:args.tokens] for line in lines]
    found = {}
    print("engine,what,number,mean_us,p99_us,most_us")
    for name in args.engines.split(","):
        engine = ENGINES[name](llama)
        found[name] = [measure(engine, *each, args.runs) for each in zip(schemas, texts)]
        report(name, found[name])
        refused = sum(each is None for each in found[name])
        left = sum(each is not None and len(each[1]) < len(tokens) for each, tokens in zip(found[name], texts))
        print(f"{name}: {refused} schemas refused, {left} texts refused at a token", flush=True)
    if args.bench_masks: dtruns(args.bench_masks, lines, args.runs, args.tokens)
    whole = [i for i, tokens in enumerate(texts) if all(each[i] and len(each[i][1]) == len(tokens) for each in found.values())]
    print(f"\nthe {len(whole)} texts that all of them allow")
    for name in found: report(name, [found[name][i] for i in whole])
    if args.bench_masks and whole: dtruns(args.bench_masks, [lines[i] for i in whole], args.runs, args.tokens)


main()
