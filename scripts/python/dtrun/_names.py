"""Option names of other packages (transformers, vLLM, llama-cpp-python, ollama); those with the same meaning are accepted."""
import json

from ._bridge import wrong

LOAD = {"model": "target", "model_path": "target", "pretrained_model_name_or_path": "target", "draft_model": "draft",
        "assistant_model": "draft", "n_ctx": "ctx", "num_ctx": "ctx", "max_model_len": "ctx", "n_threads": "threads",
        "num_thread": "threads", "num_threads": "threads", "device": "backend"}

GENERATE = {"temperature": "temp", "max_new_tokens": "tokens", "max_tokens": "tokens", "n_predict": "tokens",
            "num_predict": "tokens", "stop_strings": "stop", "random_seed": "seed", "chat_template": "template", "chat_template_kwargs": "template_set",
            "repetition_penalty": "repeat_penalty", "min_new_tokens": "min_tokens", "top_logprobs": "logprobs",
            "thinking_token_budget": "think_tokens",
            "guided_json": "json_schema", "guided_regex": "regex"}

# Names without an option of the same meaning, and what to use instead.
_ANSWERS = [
    ("do_sample", "temp=0 takes the likeliest token, temp above 0 samples"),
    ("num_beams best_of", "dtrun has no beam search: the text is that of plain decoding"),
    ("n num_return_sequences", "generate_batch([PROMPT], answers=N) returns N answers, each with a seed of its own"),
    ("stream", "for piece in pair.stream(PROMPT) yields the text as it is generated"),
    ("streamer", "on_text=FUNCTION is called with each piece of the text"),
    ("max_length", "tokens= is the number of new tokens only"),
    ("return_full_text", "the text never includes the prompt"),
    ("eos_token_id stop_token_ids", "the model's own end-of-text token ends the text; stop= adds stop texts, ignore_eos=True continues"),
    ("bad_words bad_words_ids suppress_tokens", "logit_bias={ID: False} bans a token"),
    ("response_format guided_grammar guided_choice", "use json_schema=, grammar= (GBNF) or regex= instead"),
    ("num_assistant_tokens num_speculative_tokens draft_max draft_min",
     "the policy decides how many tokens to draft: policy='linear', params={'K': 4}"),
    ("torch_dtype dtype quantization", "weights='q8' or 'q4' quantizes the target on a CPU, draft_weights the draft"),
    ("device_map n_gpu_layers num_gpu", "gpu_layers='auto' or N splits the model between a GPU and the CPU; backend='cpu' uses no GPU"),
    ("n_cpu_moe cpu_moe", "cpu_experts=N has the CPU compute the experts of the first N layers"),
    ("gpu_memory_utilization", "ctx=N determines the size of the caches, in tokens"),
]
_ANSWER = {name: answer for names, answer in _ANSWERS for name in names.split()}


def ours(function, options, same):
    """The options under dtrun's names."""
    named = {}
    for name, value in options.items():
        if value is None:
            continue
        if name in _ANSWER:
            raise wrong(f"{function}: {name} is not an option: {_ANSWER[name]}")
        own = same.get(name, name)
        if own in named:
            raise wrong(f"{function}: {own} is given twice, once as {name}")
        named[own] = value
    bias = named.get("logit_bias")
    if isinstance(bias, dict):
        named["logit_bias"] = [[token, False if value == float("-inf") else value] for token, value in bias.items()]
    for name, kinds in (("json_schema", (dict, bool)), ("tools", (list, tuple)), ("tool_choice", dict)):
        if isinstance(named.get(name), kinds):  # as JSON, which keeps the order of properties
            try:
                named[name] = json.dumps(named[name], ensure_ascii=False)
            except (TypeError, ValueError, RecursionError):
                raise wrong(f"{function}: {name} is not JSON") from None
    if named.get("top_k") in (0, -1):  # in other packages: all tokens
        del named["top_k"]
    return named
