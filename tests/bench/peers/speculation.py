"""Runs all arms on all prompts: their speed, and whether speculation changed a program's own text."""
import json, statistics
from . import Request
from .dtrun import Dtrun


def first_difference(a, b):
    """Returns where two lists begin to differ, or nothing if they are equal."""
    same = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return None if same == len(a) == len(b) else same


class Rounds:
    def __init__(self, engines, options):
        self.arms = [(label, engine, argument) for engine in engines for label, argument in engine.arms]
        self.own_plain = {label: engine.arms[0][0] for label, engine, _ in self.arms}
        self.dtrun = engines[0]
        self.options = options
        self.runs = {label: [] for label, _, _ in self.arms}  # in the order of prompts and repeats, which is the same for all

    def prompt(self, name, text, seed):
        """All arms run a prompt before the next one comes, in an order that rotates, so that a slow minute affects all
        of them."""
        o = self.options
        request = Request(text, o.tokens, temp=o.temp, seed=seed, until_end=o.chats is not None)
        warm = self.dtrun.run(self.dtrun.arms[0][1], request)
        request.ids = warm["ids"]
        plain = {}  # a program's own plain decoding, the first time
        for repeat in range(o.repeats):
            done = {}
            for j in range(len(self.arms)):
                label, engine, argument = self.arms[(seed + repeat + j) % len(self.arms)]
                if seed == 1 and repeat == 0: engine.run(argument, Request(**{**vars(request), "tokens": 16}))
                done[label] = engine.run(argument, request)
            plain = plain or {label: done[own]["tokens"] for label, own in self.own_plain.items()}
            for label, run in done.items():
                tokens = run.pop("tokens")
                run.pop("ids", None)
                run["decoded"] = len(tokens) - run.pop("first_from_prompt", 0)
                run |= {"prompt": name, "repeat": repeat + 1, "prompt_tokens": len(request.ids) - 1, "new_tokens": len(tokens),
                        "differs_at": first_difference(tokens, plain[label]), "differs_from_dtrun_at": first_difference(tokens, plain["dtrun ar"])}
                self.runs[label].append(run)
                self.keep(label, run)

    def keep(self, label, run):
        o = self.options
        if not o.out: return
        with o.out.open("a") as out:
            out.write(json.dumps({"arm": label, "target": o.target, "draft": o.draft, "threads": o.threads, "temp": o.temp, **run}) + "\n")

    def show(self):
        self.show_arms()
        self.show_ratios()

    def show_arms(self):
        print("\nSpeed: all tokens / all time, including the prompt pass. Of plain: the median speedup over the program's own plain decoding. Texts: how many\n"
              "differ from its own plain decoding's, and the first token that differs: the earliest, the median.")
        print(f"{'':28} {'tokens/s':>8} {'of plain':>8} {'ms/token':>8} {'prompt/s':>8}  texts that differ    as dtrun's plain")
        for label, runs in self.runs.items():
            speed = sum(run["new_tokens"] for run in runs) / sum(run["seconds"] for run in runs)
            per_token = statistics.median(1e3 * (run["seconds"] - run["prompt_seconds"]) / max(1, run["decoded"]) for run in runs)
            prompt = statistics.median(run["prompt_tokens"] / run["prompt_seconds"] for run in runs)
            places = sorted(run["differs_at"] for run in runs if run["differs_at"] is not None)
            parted = f"{len(places)} of {len(runs)}" + (f", at {places[0]}, {statistics.median_low(places)}" if places else "")
            alike = sum(run["differs_from_dtrun_at"] is None for run in runs)
            print(f"{label:28} {speed:8.1f} {self.ratio(label, self.own_plain[label]):7.2f}x {per_token:8.2f} {prompt:8.0f}  {parted:20} "
                  f"{alike} of {len(runs)}")

    def ratio(self, a, b):
        """Returns the median of the ratios of speeds, over adjacent runs."""
        def speed(run): return run["new_tokens"] / run["seconds"]
        return statistics.median(speed(x) / speed(y) for x, y in zip(self.runs[a], self.runs[b]))

    def show_ratios(self):
        ours = [label for label, engine, _ in self.arms if isinstance(engine, Dtrun)]
        theirs = [label for label, engine, _ in self.arms if not isinstance(engine, Dtrun)]
        if not theirs: return
        width = max(map(len, ours)) + 2
        print("\nSpeed of dtrun / speed of the others, medians over adjacent runs:")
        print(f"{'':28}" + "".join(f"{label:>{width}}" for label in ours))
        for label in theirs: print(f"{label:28}" + "".join(f"{self.ratio(mine, label):{width - 1}.2f}x" for mine in ours))
