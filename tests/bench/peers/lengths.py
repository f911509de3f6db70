"""Plain decoding after prompts of given lengths, reading those prompts, and loading until the first token."""
import json, statistics
from . import Request, prompts


class Lengths:
    def __init__(self, engines, options):
        self.arms = [(engine.arms[0][0], engine) for engine in engines]
        self.dtrun, self.options = engines[0], options
        self.found = {label: {} for label, _ in self.arms}  # label -> what -> values, one per repeat

    def add(self, label, what, value):
        self.found[label].setdefault(what, []).append(value)
        if self.options.out:
            with self.options.out.open("a") as out:
                out.write(json.dumps({"arm": label, "what": what, "value": value, "target": self.options.target,
                                      "threads": self.options.threads}) + "\n")

    def measure(self):
        text = prompts.long_text(self.options.root)
        short = self.request("The old man", 1)
        for label, engine in self.arms: engine.run(engine.arms[0][1], short)
        for length in self.options.contexts:
            request = self.request(self.dtrun.cut(text, length), self.options.tokens)
            for label, engine in self.in_turn(): self.read_and_decode(label, engine, request, length)
        loading = [(label, engine) for label, engine in self.arms if hasattr(engine, "first_token")]
        for repeat in range(self.options.repeats + 1):  # the first run only warms the page cache
            for label, engine in loading:
                seconds = engine.first_token(short)
                if repeat: self.add(label, "loading", seconds)

    def request(self, text, tokens):
        ids = self.dtrun.run(self.dtrun.arms[0][1], Request(text, 1))["ids"]
        return Request(text, tokens, ids=ids)

    def in_turn(self):
        for repeat in range(self.options.repeats):
            for j in range(len(self.arms)): yield self.arms[(repeat + j) % len(self.arms)]

    def read_and_decode(self, label, engine, request, length):
        run = engine.run(engine.arms[0][1], request)
        # A server's first token comes from the prompt pass, which reads all tokens; dtrun's and the library's read all
        # but the last.
        decoded = len(run["tokens"]) - run.get("first_from_prompt", 0)
        read = len(request.ids) - 1 + run.get("first_from_prompt", 0)
        self.add(label, f"prompt of {length}", read / run["prompt_seconds"])
        self.add(label, f"after {length}", decoded / (run["seconds"] - run["prompt_seconds"]))

    def show(self):
        mine = self.found["dtrun ar"]
        print(f"\nTokens/s, and seconds of loading, medians of {self.options.repeats}. After each, how many times as fast dtrun is")
        print(f"{'':24}" + "".join(f"{what:>22}" for what in mine))
        for label, values in self.found.items():
            print(f"{label:24}" + "".join(self.cell(mine[what], values.get(what), what) for what in mine))

    @staticmethod
    def cell(mine, theirs, what):
        if not theirs: return f"{'':>22}"
        ours, x = statistics.median(mine), statistics.median(theirs)
        return f"{x:13.2f} {x / ours if what == 'loading' else ours / x:7.2f}x"
