"""dtrun: one process with the pair loaded."""
import json, shlex, subprocess, time
from . import END, fail


class Dtrun:
    def __init__(self, options, context):
        root = options.root
        self.command = [str(options.dtrun), "run", str(root / "tests/bench/serve.lua"), "-m", options.target, "-md", options.draft, "-t",
                        str(options.threads), "--backend", options.backend, "-c", str(context), *shlex.split(options.dtrun_options)]
        self.arms = [("dtrun ar", {"policy": "ar"})] + [(f"dtrun {policy}", self.arm(policy)) for policy in options.policy]
        self.process = self.start()
        self.flags = [f"dtrun, commit {self.ask(self.process, {'identity': True})['commit']}: {shlex.join(self.command)}"]

    @staticmethod
    def arm(policy):
        name, _, values = policy.partition(":")
        if values and "=" not in values: return {"policy": name, "preset": values}
        return {"policy": name, "params": {k: json.loads(v) for k, v in (pair.split("=") for pair in values.split(",") if pair)}}

    def start(self): return subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    @staticmethod
    def ask(process, question):
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        result = json.loads(answer) if answer else {"error": "dtrun ended unexpectedly"}
        if "error" in result: fail(result["error"])
        return result

    def cut(self, text, n): return self.ask(self.process, {"cut": text, "to": n})["text"]

    def run(self, arm, request, process=None):
        sampling = {"temp": request.temp, "top_k": request.top_k, "seed": request.seed} if request.temp else {}
        asked = {**arm, "prompt": request.text, "tokens": request.tokens, "ignore_eos": not request.until_end, **sampling}
        result = self.ask(process or self.process, asked)
        if result["finish_reason"] == "eos": result["tokens"][-1] = END
        return {"tokens": result["tokens"], "ids": result["prompt_ids"], "prompt_seconds": result["stats"]["time_ms"]["prompt"] / 1e3,
                "seconds": len(result["tokens"]) / result["stats"]["tokens_per_second"]}

    def first_token(self, request):
        start = time.perf_counter()
        with self.start() as process:
            self.run(self.arms[0][1], request, process)
            seconds = time.perf_counter() - start
            process.stdin.close()
        return seconds

    def close(self): self.process.stdin.close()
