"""llama.cpp and ik_llama.cpp as people run them: their llama-server, one process for each arm, on the loopback
interface only."""
import contextlib, http.client, json, os, pathlib, shlex, socket, subprocess, tempfile, time
from . import END, fail

# The flags that both are started with: no cache of prompts, since every run must read its prompt; one text at a time.
COMMON = "--host 127.0.0.1 --cache-ram 0 -np 1"
# Arms that need the draft model contain {draft}. Each program has its defaults, and settings that suit a small draft on
# two cores, or short copies, better.
ARMS = {
    "llama.cpp": {
        "plain": "",
        "draft": "-md {draft} --spec-type draft-simple",
        "draft up to 8": "-md {draft} --spec-type draft-simple --spec-draft-n-max 8 --spec-draft-p-min 0.75",
        "n-grams": "--spec-type ngram-simple",
        "n-grams 3 to 8": "--spec-type ngram-simple --spec-ngram-simple-size-n 3 --spec-ngram-simple-size-m 8",
        "lookup": "--spec-type ngram-cache --spec-draft-n-max 8",
    },
    "ik_llama": {
        "plain": "-rtr",
        "draft": "-rtr -md {draft} --spec-type draft",
        "draft tuned": "-rtr -md {draft} --spec-type draft --spec-autotune",
        "n-grams": "-rtr --spec-type ngram-simple",
        "n-grams 3 to 8": "-rtr --spec-type ngram-simple:ngram_size_n=3,ngram_size_m=8",
        "lookup": "-rtr --spec-type ngram-cache:n_max=8",
    },
}


def free_port():
    with contextlib.closing(socket.socket()) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A server process. It is ready when it answers /health."""

    def __init__(self, command):
        self.port, self.said = free_port(), tempfile.TemporaryFile()
        self.process = subprocess.Popen([*command, "--port", str(self.port)], stdout=self.said, stderr=subprocess.STDOUT)
        while self.ask("GET", "/health") is None:
            if self.process.poll() is not None:
                self.said.seek(0)
                fail(f"{shlex.join(command)} ended: {self.said.read()[-2000:].decode(errors='replace')}")
            time.sleep(0.005)

    def ask(self, method, path, question=None):
        """Returns the answer, or nothing if the server is not ready yet."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        try:
            connection.request(method, path, question and json.dumps(question), {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = json.loads(response.read())
        except (ConnectionError, http.client.HTTPException):
            return None
        finally:
            connection.close()
        if response.status == 503: return None
        if response.status != 200: fail(f"llama-server: {answer}")
        return answer

    def close(self):
        self.process.kill()  # SIGTERM would let it finish its text first
        self.process.wait()
        self.said.close()


def check_memory(commands):
    """Every process holds its weights rearranged, so nothing is shared. On a machine without enough memory the system
    would kill a process."""
    needed = sum(os.path.getsize(word) for command in commands for word in command if word.endswith(".gguf")) + len(commands) * 200 * 2**20
    facts = dict(line.split(":") for line in pathlib.Path("/proc/meminfo").read_text().splitlines())
    free = int(facts["MemAvailable"].split()[0]) * 1024
    if needed > 0.8 * free:
        fail(f"{len(commands)} servers need about {needed / 2**30:.1f} GB, but only {free / 2**30:.1f} GB are free; choose fewer with --arms, or stop other programs")


class Servers:
    """Starts plain decoding and the requested arms of one of the two programs."""

    def __init__(self, name, program, options, context):
        arms = {label: flags for label, flags in ARMS[name].items() if label in ("plain", *options.arms)}
        if options.draft == "none": arms = {label: flags for label, flags in arms.items() if "{draft}" not in flags}
        program = shlex.split(program)
        base = [*program, "-m", options.target, "-t", str(options.threads), "-c", str(context), *shlex.split(COMMON)]
        self.commands = {label: base + shlex.split(flags.format(draft=options.draft)) for label, flags in arms.items()}
        version = subprocess.run([program[0], "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
        self.flags = [" ".join(version.split()), *map(shlex.join, self.commands.values())]
        check_memory(self.commands.values())
        self.arms = [(f"{name} {label}", Server(command)) for label, command in self.commands.items()]

    def run(self, server, request):
        asked = {"prompt": request.ids, "n_predict": request.tokens, "cache_prompt": False, "return_tokens": True, "seed": request.seed,
                 "temperature": request.temp, "top_k": request.top_k, "samplers": ["top_k", "temperature"], "repeat_penalty": 1.0,
                 "ignore_eos": not request.until_end}
        answer = server.ask("POST", "/completion", asked)
        if answer is None: fail("llama-server ended unexpectedly")
        timings = answer["timings"]
        if timings["prompt_n"] != len(request.ids): fail(f"llama-server read {timings['prompt_n']} of {len(request.ids)} tokens")
        return {"tokens": self.tokens(server, answer), "first_from_prompt": 1, "prompt_seconds": timings["prompt_ms"] / 1e3,
                "seconds": (timings["prompt_ms"] + timings["predicted_ms"]) / 1e3, "counted": timings["predicted_n"],
                "drafted": timings.get("draft_n", 0), "accepted": timings.get("draft_n_accepted", 0)}

    @staticmethod
    def tokens(server, answer):
        if "tokens" in answer:  # llama.cpp includes the last one
            return answer["tokens"][:-1] + [END] if answer["stop_type"] == "eos" else answer["tokens"]
        return server.ask("POST", "/tokenize", {"content": answer["content"]})["tokens"] + [END] * answer["stopped_eos"]

    def first_token(self, request):
        start = time.perf_counter()
        server = Server([*self.commands["plain"], "--no-warmup"])
        self.run(server, request)
        seconds = time.perf_counter() - start
        server.close()
        return seconds

    def close(self):
        for _, server in self.arms: server.close()
