"""Make adjustments.json: the logits after some text, as changed by other programs' penalties, biases and bans. Run it
from anywhere, with torch, transformers and llama-cpp-python installed:

    python tests/golden/make_adjustments.py

Each case has the ids of a prompt and of the tokens generated after it, a setting, the logits before, and the logits
after:
    transformers  its own processors in the order in which generate() uses them: sequence_bias, repetition_penalty,
                  min_new_tokens
    llama.cpp     its sampler of penalties over all generated tokens, which gives OpenAI's presence and frequency
                  penalties, and its sampler of biases
"""
import ctypes, json, pathlib, random
import llama_cpp
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
VOCAB, CASES = 40, 24


class Chosen(transformers.GenerationMixin):
    """What generate() would do with the logits, without a model."""
    config = transformers.PretrainedConfig()


def by_transformers(logits, prompt, generated, setting):
    config = transformers.GenerationConfig(repetition_penalty=setting.get("repeat"), eos_token_id=setting.get("ends"),
                                           min_new_tokens=setting.get("min_tokens"),
                                           sequence_bias=[[[i], b] for i, b in setting["bias"]] if "bias" in setting else None)
    config._eos_token_tensor = torch.tensor(setting["ends"]) if "ends" in setting else None
    process = Chosen()._get_logits_processor(generation_config=config, input_ids_seq_length=len(prompt), device="cpu")
    return process(torch.tensor([prompt + generated]), torch.tensor([logits]))[0].tolist()


def by_llama_cpp(logits, generated, setting):
    samplers = []
    if "bias" in setting:
        list_of = (llama_cpp.llama_logit_bias * len(setting["bias"]))(*[llama_cpp.llama_logit_bias(i, b) for i, b in setting["bias"]])
        samplers.append(llama_cpp.llama_sampler_init_logit_bias(VOCAB, len(list_of), list_of))
    samplers.append(llama_cpp.llama_sampler_init_penalties(VOCAB, max(1, len(generated)), 1.0, setting.get("frequency", 0.0), setting.get("presence", 0.0)))
    data = (llama_cpp.llama_token_data * VOCAB)(*[llama_cpp.llama_token_data(i, x, 0.0) for i, x in enumerate(logits)])
    array = llama_cpp.llama_token_data_array(data, VOCAB, -1, False)
    for sampler in samplers:
        for token in generated: llama_cpp.llama_sampler_accept(sampler, token)
        llama_cpp.llama_sampler_apply(sampler, ctypes.byref(array))
        llama_cpp.llama_sampler_free(sampler)
    after = [0.0] * VOCAB
    for i in range(array.size): after[array.data[i].id] = array.data[i].logit
    return after


def as_json(logits): return [None if x == float("-inf") else float(f"{x:.9g}") for x in logits]


def main():
    llama_cpp.llama_backend_init()
    rng = random.Random(37)
    cases = []
    for n in range(CASES):
        logits = torch.tensor([rng.choice([rng.gauss(0, 4), 0.0, rng.gauss(0, 0.1)]) for _ in range(VOCAB)]).tolist()
        prompt, generated = [[rng.randrange(VOCAB // 2) for _ in range(rng.randrange(1, 12))] for _ in range(2)]
        if n % 5 == 0: generated = []
        bias = [[i, rng.choice([rng.gauss(0, 5), float("-inf"), 2.0])] for i in rng.sample(range(VOCAB), rng.randrange(1, 5))]
        bias = [[i, float(torch.tensor(b))] for i, b in bias]
        setting = {"bias": bias} if n % 3 else {}
        if n % 2:
            setting["repeat"] = rng.choice([1.3, 0.7, 2.0, 1.05])
            if n % 4 == 3: setting |= {"ends": rng.sample(range(VOCAB), 2), "min_tokens": rng.randrange(1, 12)}
            after, name = by_transformers(logits, prompt, generated, setting), "transformers"
        else:
            setting |= {"presence": rng.choice([0.0, 0.6, -0.5, 2.0]), "frequency": rng.choice([0.0, 0.3, -0.2, 1.5])}
            after, name = by_llama_cpp(logits, generated, setting), "llama.cpp"
        if "bias" in setting: setting["bias"] = [[i, None if b == float("-inf") else b] for i, b in setting["bias"]]
        cases.append({"by": name, "prompt": prompt, "generated": generated, "setting": setting, "before": as_json(logits), "after": as_json(after)})
    golden = {"cases": cases, "made_with": {"transformers": transformers.__version__, "torch": torch.__version__, "llama-cpp-python": llama_cpp.__version__}}
    (ROOT / "tests/golden/adjustments.json").write_text(json.dumps(golden).replace('{"by"', '\n{"by"') + "\n")


if __name__ == "__main__": main()
