"""The training data of a head: answers that the target itself generated with dtrun, and the target's features along them.

A folder has files NNNN.jsonl, dtrun's results on EACH prompts, and NNNN.safetensors made from them, with the conversations end to end:
    ids       every token that the target was fed
    features  what entered the tapped layers there, side by side
    last      what came out of the final norm: times the output matrix, the target's logits for the token after it
    choice    the likeliest of them, from the answer's first token on; -1 before
    starts    where each conversation starts, and the end of the last; `answers`: where each one's answer does
Files get their names when they are complete, so that an interrupted run continues where it was.
"""
import json, os, pathlib, subprocess, sys, time
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

EACH = 64  # prompts a file
AT_ONCE = 2048  # tokens in one pass of the target: their streams stay in the cache


def open_target(path, work):
    """The target in bf16, and its tokenizer. A GGUF file is widened once, into the working folder."""
    if path.endswith(".gguf"):
        folder = work + "/target"
        if not os.path.exists(folder):
            sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests/golden"))
            from widen_gguf import widened
            widened(path).to(torch.bfloat16).save_pretrained(folder + ".part")
            AutoTokenizer.from_pretrained(os.path.dirname(path) or ".", gguf_file=os.path.basename(path)).save_pretrained(folder + ".part")
            os.rename(folder + ".part", folder)
        path = folder
    return AutoModelForCausalLM.from_pretrained(path, dtype=torch.bfloat16).eval().requires_grad_(False), AutoTokenizer.from_pretrained(path)


def write_answers(dtrun, target, prompts, folder, minutes, tokens, warm, context, threads, chat):
    """Answers to EACH prompts a file until the prompts or the minutes end; every `warm`-th file's are sampled at temperature 0.8. A model
    without a chat template goes on with a prompt as it stands."""
    os.makedirs(folder, exist_ok=True)
    lines, start = open(prompts, encoding="utf-8").read().splitlines(True), time.time()
    for i in range(0, len(lines), EACH):
        path = f"{folder}/{i // EACH:04}.jsonl"
        if os.path.exists(path): continue
        if time.time() - start > 60 * minutes: break
        with open(path + ".prompts", "w", encoding="utf-8") as f: f.writelines(lines[i:i + EACH])
        how = ["--temp", "0.8", "--seed", str(i)] if warm and i // EACH % warm == warm - 1 else []
        if chat: how.append("--chat")
        subprocess.run([dtrun, "ar", "-m", target, "--prompts", path + ".prompts", "-n", str(tokens), "-np", "32", "-c", str(context),
                        "-t", str(threads), "--json", path + ".part", "-q"] + how, check=True, stdout=subprocess.DEVNULL)
        os.remove(path + ".prompts"), os.rename(path + ".part", path)
        print(f"{path}: {(time.time() - start) / 60:.1f} minutes", flush=True)


def final_norm(model):
    """Families have it under different names."""
    base = model.base_model
    return base.final_layer_norm if hasattr(base, "final_layer_norm") else base.norm


def streams(model, ids):
    """The inputs of all layers and the output of the last one; and that output after the final norm."""
    seen = []
    hook = final_norm(model).register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    out = model.base_model(ids, output_hidden_states=True, use_cache=False)
    hook.remove()
    return out.hidden_states[:-1] + (seen[0],), out.last_hidden_state


def name_of_norm(weight):
    """By which a head's files name its target: FNV-1a 64 of the final norm in bfloat16, which quantizing leaves alone (dtrun.h)."""
    h = 0xcbf29ce484222325
    for byte in weight.detach().cpu().bfloat16().view(torch.uint8).tolist(): h = (h ^ byte) * 0x100000001b3 % 2**64
    return f"{h:016x}"


@torch.inference_mode()
def write_features(model, layers, folder):
    """For every file of answers that has none yet."""
    for source in sorted(pathlib.Path(folder).glob("[0-9]*.jsonl")):
        path, start = source.with_suffix(".safetensors"), time.time()
        if path.exists(): continue
        texts = [json.loads(line) for line in open(source)]
        texts = sorted((r for r in texts if len(r["tokens"]) > 8), key=lambda r: len(r["prompt_ids"]) + len(r["tokens"]))
        rows, prompts = [torch.tensor(r["prompt_ids"] + r["tokens"]) for r in texts], [len(r["prompt_ids"]) for r in texts]
        features, last, choice, at = [], [], [], 0
        while at < len(rows):
            n = 1
            while at + n < len(rows) and (n + 1) * len(rows[at + n]) <= AT_ONCE: n += 1
            ids = torch.nn.utils.rnn.pad_sequence(rows[at:at + n], batch_first=True)[:, :-1]
            entered, left = streams(model, ids)  # nobody sees what is to the right
            tapped = torch.cat([entered[i] for i in layers], -1)
            for f, h, r, given in zip(tapped, left, rows[at:at + n], prompts[at:at + n]):
                features.append(f[:len(r) - 1]), last.append(h[:len(r) - 1])
                choice += [torch.full((given - 1,), -1), model.get_output_embeddings()(last[-1][given - 1:]).argmax(-1)]
            at += n
        starts = torch.tensor([0] + [len(r) - 1 for r in rows]).cumsum(0)
        save_file({"ids": torch.cat([r[:-1] for r in rows]).int(), "choice": torch.cat(choice).int(),
                   "features": torch.cat(features), "last": torch.cat(last), "starts": starts,
                   "answers": starts[:-1] + torch.tensor(prompts)}, str(path) + ".part")
        os.rename(str(path) + ".part", path)
        n, own = int(starts[-1]), sum(len(r["tokens"]) for r in texts)
        print(f"{path}: {n} tokens, {own} of them answers, {n / (time.time() - start):.0f} a second", flush=True)


def shards(folder):
    return sorted(str(p) for p in pathlib.Path(folder).glob("[0-9]*.safetensors"))


def conversations(paths):
    """Every conversation's ids, features, last and choice, mapped from the files, not read; `answer` is the index of its first token."""
    for path in paths:
        shard = load_file(path)
        starts = shard["starts"].tolist()
        for a, b, answer in zip(starts, starts[1:], shard["answers"].tolist()):
            yield {**{n: shard[n][a:b] for n in ("ids", "features", "last", "choice")}, "answer": answer - a}
