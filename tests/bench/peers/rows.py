"""Measures passes over a given number of rows, like those that verify guesses: the root and a chain of guesses, with
the same ids for each program. With experts, the time of a pass depends on which ones its rows select. Guesses are
therefore either alike (one token repeated) or unlike, and their distinct experts are counted."""
import json, statistics
from . import Request, prompts

PASSES = 8  # passes of a size in a turn
FIRST, STEP = 1000, 37  # guesses: ids that every vocabulary has, and with which no text continues
SOURCE = """
local policy = require "dt.policy"
local Rows = policy.define { name = "rows", uses = { draft = false }, params = { { "rows", 1, min = 1, max = 64 }, { "apart", 0 } } }
function Rows:draft(tree)
  local u = tree.root
  if tree:depth_room() < self.rows - 1 then return end -- the text ends
  for i = 2, self.rows do u = tree:add(u, %d + (i - 2) * self.apart) end
end
function Rows:observe(tree, out)
  if out.drafted < self.rows - 1 then return end
  tree.seq:log("ms", out.verify_ms)
  tree.seq:log("experts", out.experts_read)
end
return Rows
""" % FIRST


class Passes:
    def __init__(self, engines, options):
        self.dtrun, self.library, self.options = engines[0], next((e for e in engines[1:] if hasattr(e, "passes")), None), options
        self.found = {}  # (rows, kind) -> lists of ms, and the distinct experts that dtrun counted

    def measure(self):
        text = self.dtrun.cut(prompts.long_text(self.options.root), self.options.context)
        ids = self.dtrun.run(self.dtrun.arms[0][1], Request(text, 1))["ids"]
        sizes = [(n, kind) for n in self.options.rows for kind in ("alike", "unlike") if n > 1 or kind == "unlike"]
        for repeat in range(self.options.repeats + 1):  # the first run warms up
            for size in sizes:
                for label in ("dtrun", "llama.cpp") if repeat % 2 else ("llama.cpp", "dtrun"):
                    if label == "dtrun": ms, experts = self.ours(text, *size)
                    elif self.library: ms, experts = self.library.passes(ids, self.guesses(*size), PASSES), None
                    else: continue
                    if repeat: self.add(size, label, ms, experts)

    @staticmethod
    def guesses(rows, kind): return [FIRST + i * (STEP if kind == "unlike" else 0) for i in range(rows - 1)]

    def ours(self, text, rows, kind):
        arm = {"policy": "rows.lua", "source": SOURCE, "params": {"rows": rows, "apart": STEP if kind == "unlike" else 0}}
        asked = {**arm, "prompt": text, "tokens": PASSES + rows - 1, "ignore_eos": True}
        log = self.dtrun.ask(self.dtrun.process, asked)["stats"]["log"]
        return log["ms"]["mean"], log["experts"]["mean"]

    def add(self, size, label, ms, experts):
        found = self.found.setdefault(size, {"dtrun": [], "llama.cpp": []})
        found[label].append(ms)
        if experts: found["experts"] = experts
        if self.options.out:
            with self.options.out.open("a") as out:
                out.write(json.dumps({"rows": size[0], "guesses": size[1], "arm": label, "ms": ms, "experts": experts,
                                      "target": self.options.target, "threads": self.options.threads}) + "\n")

    def show(self):
        print(f"\nMilliseconds of a pass after {self.options.context} tokens, medians of {self.options.repeats} means of {PASSES} passes; "
              "after llama.cpp's, how many times as fast dtrun is")
        print(f"{'rows':>6}{'guesses':>10}{'experts':>10}{'dtrun':>10}{'of one row':>12}{'llama.cpp':>12}")
        one = statistics.median(self.found[min(self.found, key=lambda size: size[0])]["dtrun"])
        for (rows, kind), found in self.found.items():
            ours = statistics.median(found["dtrun"])
            line = f"{rows:6}{kind if rows > 1 else '':>10}{found.get('experts', 0):10.0f}{ours:10.2f}{ours / one:11.2f}x"
            if found["llama.cpp"]: line += f"{statistics.median(found['llama.cpp']):12.2f}{statistics.median(found['llama.cpp']) / ours:7.2f}x"
            print(line)
