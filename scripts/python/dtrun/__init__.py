"""dtrun from Python: speculative decoding under policies in Lua, exact to the bit.

    import dtrun
    pair = dtrun.load()                               # the bundled pair
    result = pair.generate("The ship", policy="linear", params={"K": 4}, tokens=40)
    for piece in pair.stream("The ship", tokens=40):
        print(piece, end="")

Options and results are those of drivers (lua/README.md): a result is the result JSON as a dict.
The module needs only libdtrun.so, which it searches for in $DTRUN_LIBRARY, next to this file (in a wheel), in the build
folder of the source tree around it, and where the system's loader finds it.
"""
import json
import queue
import threading

from . import _names
from ._bridge import Error, the_bridge, wrong
from ._pull import pull

__all__ = ["Error", "Pair", "load", "look", "pull", "version"]


def version():
    return the_bridge().call("version", {})


def load(target=None, draft=None, **options):
    """Load a Pair. target: a folder, a file, or a name that pull() has downloaded, such as "smollm2". Without a target it is the
    bundled pair; with only a target, the draft is the one that belongs to it, if there is one (models/README.md); draft=False: no draft.
    options: backend, gpu_layers, gpus, cpu_experts, threads, numa, ctx, weights, draft_weights, draft_vocab, draft_output, draft_window,
    cache_dtype, activations, rope_scaling ("yarn"), rope_scale, yarn_orig_ctx, no_packed_cache (keep no packed weights for the next
    start), costs (the costs of passes for policies: "learn", the default, or "table", measured)."""
    bridge = the_bridge()
    options = _names.ours("load", dict(target=target, draft=draft, **options), _names.LOAD)
    return Pair(bridge, bridge.call("load", options))


def look(path):
    """Facts from a model's files, without loading it: family, norm, tokenizer, bytes. Draft heads name their target by norm."""
    return the_bridge().call("look", {"path": str(path)})


class Pair:
    """A loaded target with its draft. Attributes describe what was loaded: target, draft, backend, threads, ..."""

    def __init__(self, bridge, about):
        self._bridge = bridge
        self._id = about.pop("pair")
        self.draft = None
        self.__dict__.update(about)

    def _call(self, function, options, tell=None):
        return self._bridge.call(function, dict(_names.ours(function, options, _names.GENERATE), pair=self._id), tell)

    def close(self):
        """Free the models. The pair cannot be used afterwards."""
        self._call("close", {})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def generate(self, prompt=None, policy=None, on_text=None, on_logprobs=None, **options):
        """Generate from one prompt and return the result, a dict. prompt: a text, or a list of messages [{"role": "user",
        "content": ".."}]. policy: a name or a path; source: the policy's text instead. on_text is called with each piece of text
        and ends the text by returning False; it must not use the pair. on_logprobs is called with the "logprobs" of each
        iteration's tokens, before on_text gets their text. options: params, preset, tokens, stop, ignore_eos, seed, temp, top_k, top_p,
        min_p, repeat_penalty, presence_penalty, frequency_penalty, logit_bias ({id or text: bias, or False to ban}),
        min_tokens, think_tokens, grammar, json_schema (a text or a dict), regex, logprobs, echo, coupled, policy_seconds,
        trace, template, template_set, think ("on" or "off"), template_raw, tools, tool_choice and parallel_tool_calls (as in OpenAI's
        interface; the result's "message" then has the calls, and can be appended to the messages). Names of other packages, such as temperature and max_new_tokens, are accepted, too."""
        tell = on_text and (lambda text: on_text(text.decode(errors="replace")))
        if on_logprobs:
            options["on_logprobs"] = True

            def tell(message):
                message = json.loads(message.decode(errors="replace"))
                if "logprobs" in message:
                    return on_logprobs(message["logprobs"])
                return on_text and on_text(message["text"])
        return self._call("generate", dict(options, prompt=prompt, policy=policy), tell)

    def stream(self, prompt=None, **options):
        """Yield the text piece by piece, as it is generated; leaving the loop ends it. Options: see generate."""
        pieces, left = queue.Queue(), threading.Event()

        def on_text(text):
            pieces.put(text)
            return not left.is_set()

        def run():
            try:
                self.generate(prompt, on_text=on_text, **options)
                pieces.put(None)
            except BaseException as error:  # raised later, where the pieces are read
                pieces.put(error)

        worker = threading.Thread(target=run, daemon=True)
        worker.start()
        try:
            while (piece := pieces.get()) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
        finally:
            left.set()
            worker.join()

    def generate_batch(self, prompts, policy=None, **options):
        """Generate from several prompts, `slots` (8) at a time, and return a list of the results in their order, with an Error
        for each prompt that failed. answers: number of answers to each prompt, one after another in the list."""
        if isinstance(prompts, (str, dict)):
            raise wrong("generate_batch: prompts is a single prompt, expected a list")
        prompts = list(prompts)
        answers = options.get("answers", 1)
        results = [None] * (len(prompts) * (answers if isinstance(answers, int) and answers > 0 else 1))

        def tell(text):
            ended = json.loads(text)
            error = ended.get("error")
            results[ended["prompt"] - 1] = Error(error) if error else ended["value"]

        self._call("generate_batch", dict(options, prompts=prompts, policy=policy), tell)
        return results

    def policy(self, policy=None, **options):
        """Describe a policy: name, doc, params, presets. options: source, preset, params."""
        return self._call("policy", dict(options, policy=policy))

    def encode(self, text):
        """The token ids of a text."""
        return self._call("encode", {"text": text})

    def decode(self, ids):
        """The text of token ids."""
        return self._call("decode", {"ids": list(ids)})
