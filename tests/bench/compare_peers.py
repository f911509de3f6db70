"""What people would use instead: llama.cpp and transformers beside dtrun, on the same models, prompts, lengths and threads.

    python tests/bench/compare_peers.py [--target MODEL --draft MODEL] [--prompts 4] [--tokens 200] [--threads 2] [--repeats 3]
                                        [--backend cuda] [--peers llama_cpp]

needs torch, transformers, numpy, safetensors, gguf, and llama-cpp-python built from source, so that it uses all the machine has:

    CMAKE_ARGS=-DGGML_NATIVE=ON pip install --no-binary llama-cpp-python llama-cpp-python gguf

A peer that is not installed, or not named with --peers, is left out. Whether llama.cpp was built with AMX is said: where its AMX
path crashes (at ldtilecfg on some virtual machines), build it with CMAKE_ARGS="-DGGML_NATIVE=ON -DGGML_AMX_INT8=OFF -DGGML_AMX_TILE=OFF".
llama.cpp gets an F16 GGUF of the same checkpoint, or the GGUF file itself where
the target is one, and the same token ids, and its own timings are taken, without the choice of the token; transformers computes in
f32, plainly and with its assisted generation, and is timed from outside. With --backend cuda both are on the GPU, transformers in f16, and llama.cpp is left out. All arms run a
prompt before the next comes, in an order that rotates, so that a slow minute of the machine falls on all. The prompt pass is of
all tokens but the last, as in dtrun. Printed are medians over runs of tokens/s (prompt pass included), milliseconds per token
after the prompt and prompt tokens/s; how many tokens agree with dtrun's plain decoding, which need not be all (the peers round
otherwise) but few would mean a broken comparison; and the ratios.
"""
import argparse, ctypes, importlib.util, json, os, pathlib, statistics, subprocess, sys, tempfile, time

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Dtrun:
    """One process of dtrun with the pair loaded; an arm is (label, options of pair:generate)."""

    def __init__(self, options):
        command = [str(options.dtrun), "run", str(ROOT / "tests/bench/serve.lua"), "-m", options.target, "-md", options.draft,
                   "-t", str(options.threads), "--backend", options.backend]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.arms = [("dtrun ar", {"policy": "ar"})]
        for policy in options.policy or ["linear:K=5", "dynatree"]:
            name, _, values = policy.partition(":")
            params = dict(pair.split("=") for pair in values.split(",")) if values else {}
            self.arms.append((f"dtrun {policy}", {"policy": name, "params": {k: json.loads(v) for k, v in params.items()}}))

    def run(self, arm, text, ids, n):
        self.process.stdin.write(json.dumps({**arm, "prompt": text, "tokens": n, "ignore_eos": True}) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        result = json.loads(answer) if answer else {"error": "dtrun ended"}
        if "error" in result:
            raise SystemExit(f"compare_peers: {result['error']}")
        stats = result["stats"]
        decode = stats["time_ms"]
        seconds = n / stats["tokens_per_second"]
        prompt = decode["prompt"] / 1e3
        return {"tokens": result["tokens"], "ids": result["prompt_ids"], "seconds": seconds, "prompt_seconds": prompt}


def write_keys(writer, config, neox):
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(hidden)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    if neox:
        writer.add_rope_dimension_count(int(config["rotary_pct"] * (hidden // heads)))
        writer.add_parallel_residual(config["use_parallel_residual"])
        writer.add_layer_norm_eps(config["layer_norm_eps"])
    else:
        writer.add_head_count_kv(config.get("num_key_value_heads", heads))
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
        writer.add_rope_freq_base(config.get("rope_theta", 10000.0))
        if config.get("head_dim"):
            writer.add_key_length(config["head_dim"])
            writer.add_value_length(config["head_dim"])


def rearranged(config, name, x):
    """Rows as llama.cpp wants them: of GPT-NeoX all q, all k, all v; of Llama's q and k the halves of a head in turn."""
    heads = config["num_attention_heads"]
    if "query_key_value" in name: return x.reshape(heads, 3, x.shape[0] // heads // 3, *x.shape[1:]).swapaxes(0, 1).reshape(x.shape)
    if config["model_type"] not in ("llama", "mistral") or not ("q_proj" in name or "k_proj" in name): return x
    if "k_proj" in name: heads = config.get("num_key_value_heads", heads)
    return x.reshape(heads, 2, x.shape[0] // heads // 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def write_gguf(folder, path):
    """A checkpoint of Llama, Mistral, Qwen2, Qwen3 or GPT-NeoX, without stretched rotation, in F16 and without a tokenizer: only ids
    go in and out."""
    import gguf, numpy as np
    from safetensors import safe_open

    config = json.loads((folder / "config.json").read_text())
    arch = {"gpt_neox": "gptneox", "mistral": "llama"}.get(config["model_type"], config["model_type"])
    if config.get("rope_scaling"): raise SystemExit("compare_peers: a checkpoint with rope_scaling: give its GGUF file as --target")
    writer = gguf.GGUFWriter(path, arch)
    write_keys(writer, config, arch == "gptneox")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_tokenizer_model("no_vocab")
    writer.add_vocab_size(config["vocab_size"])
    names = gguf.get_tensor_name_map(next(a for a, n in gguf.MODEL_ARCH_NAMES.items() if n == arch), config["num_hidden_layers"])
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, "np") as tensors:
            for name in tensors.keys():
                where = names.get_name(name, try_suffixes=(".weight", ".bias"))
                if where:  # else a mask or the like
                    x = rearranged(config, name, tensors.get_tensor(name))
                    writer.add_tensor(where, np.ascontiguousarray(x, np.float16 if x.ndim == 2 else np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class LlamaCpp:
    arms = [("llama.cpp", None)]

    def __init__(self, options):
        import llama_cpp

        self.api = llama_cpp
        self.folder = tempfile.TemporaryDirectory()
        path = options.target
        if os.path.isdir(path):
            path = os.path.join(self.folder.name, "target.gguf")
            write_gguf(pathlib.Path(options.target), path)
        self.quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(self.quiet, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        self.model = llama_cpp.llama_model_load_from_file(path.encode(), llama_cpp.llama_model_default_params())
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = 2048
        params.n_threads = params.n_threads_batch = options.threads
        params.no_perf = False
        self.context = llama_cpp.llama_init_from_model(self.model, params)
        if not self.context:
            raise SystemExit("compare_peers: llama.cpp did not load the GGUF")
        self.vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        info = llama_cpp.llama_print_system_info().decode()
        print(f"llama.cpp, built {'with' if 'AMX_INT8 = 1' in info else 'without'} AMX: {info}")

    def decode(self, ids):
        array = (self.api.llama_token * len(ids))(*ids)
        if self.api.llama_decode(self.context, self.api.llama_batch_get_one(array, len(ids))):
            raise SystemExit("compare_peers: llama_decode failed")

    def run(self, arm, text, ids, n):
        import numpy as np

        api = self.api
        api.llama_memory_clear(api.llama_get_memory(self.context), True)
        api.llama_perf_context_reset(self.context)
        self.decode(ids[:-1])
        api.llama_synchronize(self.context)
        tokens, last = [], ids[-1]
        for _ in range(n):
            self.decode([last])
            logits = api.llama_get_logits_ith(self.context, -1)
            last = int(np.ctypeslib.as_array(logits, shape=(self.vocab,)).argmax())
            tokens.append(last)
        perf = api.llama_perf_context(self.context)
        if perf.n_eval != n or perf.n_p_eval != len(ids) - 1:
            raise SystemExit(f"compare_peers: llama.cpp counted {perf.n_p_eval} + {perf.n_eval} tokens, not {len(ids) - 1} + {n}")
        prompt = perf.t_p_eval_ms / 1e3
        return {"tokens": tokens, "seconds": prompt + perf.t_eval_ms / 1e3, "prompt_seconds": prompt}


class Transformers:
    arms = [("transformers", False), ("transformers assisted", True)]

    def __init__(self, options):
        import torch, transformers

        self.torch = torch
        torch.set_num_threads(options.threads)
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        self.device, dtype = ("cuda", torch.float16) if options.backend == "cuda" else ("cpu", torch.float32)
        sys.path.insert(0, str(ROOT / "tests/golden"))
        from widen_gguf import widened

        from_folder = lambda folder: transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
        load = lambda path: (from_folder(path) if os.path.isdir(path) else widened(path).to(dtype)).to(self.device).eval()
        self.target, self.draft = load(options.target), load(options.draft)
        for model in (self.target, self.draft):  # end-of-text does not stop
            model.generation_config.eos_token_id = None
        print(f"transformers {transformers.__version__}, torch {torch.__version__}, {torch.get_num_threads()} threads")

    def run(self, assisted, text, ids, n):
        with self.torch.inference_mode():
            start = time.perf_counter()
            self.target(self.torch.tensor([ids[:-1]], device=self.device), logits_to_keep=1, use_cache=True).logits.cpu()  # waits
            prompt = time.perf_counter() - start
            start = time.perf_counter()
            extra = {"assistant_model": self.draft} if assisted else {}
            x = self.torch.tensor([ids], device=self.device)
            out = self.target.generate(x, attention_mask=self.torch.ones_like(x), max_new_tokens=n, do_sample=False, pad_token_id=0, **extra)
            tokens = out[0, len(ids):].tolist()  # waits
            seconds = time.perf_counter() - start
        return {"tokens": tokens, "seconds": seconds, "prompt_seconds": prompt}


def agreeing(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def main():
    parser = argparse.ArgumentParser(description="llama.cpp and transformers beside dtrun, alternating")
    parser.add_argument("--target", default=str(ROOT / "models/mini-target"))
    parser.add_argument("--draft", default=str(ROOT / "models/mini-draft"))
    parser.add_argument("--policy", action="append", help="NAME or NAME:PARAM=VALUE,...; repeatable (linear:K=5 and dynatree)")
    parser.add_argument("--prompts", type=int, default=4, help="taken in turn from both folders")
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--backend", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--peers", nargs="*", default=["llama_cpp", "transformers"], help="of these (both)")
    parser.add_argument("--dtrun", type=pathlib.Path, default=ROOT / "build/dtrun")
    parser.add_argument("--out", type=pathlib.Path, help="a file to append a line of JSON per run to")
    options = parser.parse_args()

    arms = []  # (label, engine, argument)
    for engine, module in ((Dtrun, None), (LlamaCpp, "llama_cpp"), (Transformers, "transformers")):
        if module and module not in options.peers or module == "llama_cpp" and options.backend == "cuda":
            continue
        if module and not importlib.util.find_spec(module):
            print(f"not installed, left out: {module}")
            continue
        made = engine(options)
        arms += [(label, made, argument) for label, argument in made.arms]
    synthetic = (pathlib.Path(options.target) / "synthetic.json").exists()
    print(f"{'SYNTHETIC ' if synthetic else ''}{options.target}, {options.draft}: {options.prompts} prompts, {options.tokens} tokens, "
          f"{options.threads} threads, {options.repeats} repeats")

    runs = {label: [] for label, _, _ in arms}
    for i in range(options.prompts):
        name = f"{('wikitext2', 'novels')[i % 2]}/{i // 2 + 1:02d}"
        text = (ROOT / f"scripts/prompts/{name}.txt").read_text()
        _, dtrun, plain = arms[0]
        reference = dtrun.run(plain, text, None, options.tokens)  # a warm-up, the prompt's ids and the tokens to compare with
        for repeat in range(options.repeats):
            for j in range(len(arms)):
                label, engine, argument = arms[(i + repeat + j) % len(arms)]
                if repeat == 0 and i == 0:
                    engine.run(argument, text, reference["ids"], 16)
                run = engine.run(argument, text, reference["ids"], options.tokens)
                run["agreeing"] = agreeing(run.pop("tokens"), reference["tokens"])
                run["prompt_tokens"] = len(reference["ids"]) - 1
                run.pop("ids", None)
                runs[label].append(run)
                if options.out:
                    with options.out.open("a") as out:
                        out.write(json.dumps({"arm": label, "prompt": name, "repeat": repeat + 1, "synthetic": synthetic, "target": options.target,
                                              "draft": options.draft, "threads": options.threads, "new_tokens": options.tokens, **run}) + "\n")

    def median(label, f):
        return statistics.median(f(run) for run in runs[label])

    whole = lambda run: options.tokens / run["seconds"]
    per_token = lambda run: 1e3 * (run["seconds"] - run["prompt_seconds"]) / options.tokens
    prompt = lambda run: run["prompt_tokens"] / run["prompt_seconds"]
    print(f"{'':32} tokens/s  ms/token  prompt tokens/s  tokens that agree")
    for label, _, _ in arms:
        print(f"{label:32} {median(label, whole):8.1f} {median(label, per_token):9.3f} {median(label, prompt):16.1f} "
              f"{median(label, lambda run: run['agreeing']):10.0f} of {options.tokens}")

    def ratio(ours, theirs, f, invert=False):  # run by run, which stood side by side
        pairs = zip(runs[ours], runs[theirs])
        return statistics.median(f(b) / f(a) if invert else f(a) / f(b) for a, b in pairs)

    for label, engine, _ in arms:
        if isinstance(engine, Dtrun):
            continue
        for ours in [label for label, engine, _ in arms if isinstance(engine, Dtrun)]:
            print(f"{ours} / {label}: tokens/s {ratio(ours, label, whole):.2f}x, after the prompt {ratio(ours, label, per_token, True):.2f}x, "
                  f"prompt pass {ratio(ours, label, prompt):.2f}x")


if __name__ == "__main__":
    main()
