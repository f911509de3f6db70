"""dtrun from Python: speculative decoding under policies in Lua, exact to the bit.

    import dtrun
    pair = dtrun.load()                               # the bundled pair
    result = pair.generate("The ship", policy="linear", params={"K": 4}, tokens=40)
    for piece in pair.stream("The ship", tokens=40):
        print(piece, end="")

What can be said and what is given is what drivers have (lua/README.md): results are the result JSON as dicts.
Needs no package beside libdtrun.so, which is looked for in $DTRUN_LIBRARY, beside this file (a wheel), in the build
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
    """A Pair. A target is a folder, a file, or a name, as pull("smollm2") brings it. Without a target the bundled pair; with only a target the draft that is found to belong to it, if there is
    one (models/README.md); draft=False: none.
    options: draft2 (a second draft), backend, threads, ctx, weights, draft_weights, draft_vocab, cache_dtype, activations,
    needs_logits, costs ("learn", the default, or "table": measured; what policies count with)."""
    bridge = the_bridge()
    options = _names.ours("load", dict(target=target, draft=draft, **options), _names.LOAD)
    return Pair(bridge, bridge.call("load", options))


def look(path):
    """What a model's files say of it, without loading it: family, norm, tokenizer, bytes. norm names it in heads."""
    return the_bridge().call("look", {"path": str(path)})


class Pair:
    """A loaded target with its drafts: target, draft, draft2, backend, threads, ... as they were loaded."""

    def __init__(self, bridge, about):
        self._bridge = bridge
        self._id = about.pop("pair")
        self.draft = self.draft2 = None
        self.__dict__.update(about)

    def _call(self, function, options, tell=None):
        return self._bridge.call(function, dict(_names.ours(function, options, _names.GENERATE), pair=self._id), tell)

    def close(self):
        """Frees the models; nothing can be asked of the pair then."""
        self._call("close", {})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def generate(self, prompt=None, policy=None, on_text=None, on_logprobs=None, **options):
        """The result of one prompt, a dict. prompt: a text, or a list of messages [{"role": "user", "content": ".."}].
        policy: a name or a path; source: its text instead. on_text is called with each piece; where it gives False the
        text ends; it cannot ask the pair. on_logprobs is called with the "logprobs" of each iteration's tokens, before
        on_text gets their text. options: params, preset, tokens, stop, ignore_eos, seed, temp, top_k, top_p,
        min_p, repeat_penalty, presence_penalty, frequency_penalty, logit_bias ({id or text: bias, or False to ban}),
        min_tokens, grammar, json_schema (a text or a dict), regex, logprobs, echo, coupled, policy_seconds, trace,
        template; temperature, max_new_tokens and such are taken too."""
        tell = on_text and (lambda text: on_text(text.decode(errors="replace")))
        if on_logprobs:
            options["on_logprobs"] = True

            def tell(told):
                told = json.loads(told.decode(errors="replace"))
                if "logprobs" in told:
                    return on_logprobs(told["logprobs"])
                return on_text and on_text(told["text"])
        return self._call("generate", dict(options, prompt=prompt, policy=policy), tell)

    def stream(self, prompt=None, **options):
        """The text piece by piece, as it is generated; leaving the loop ends it. Options as of generate."""
        pieces, left = queue.Queue(), threading.Event()

        def on_text(text):
            pieces.put(text)
            return not left.is_set()

        def run():
            try:
                self.generate(prompt, on_text=on_text, **options)
                pieces.put(None)
            except BaseException as error:  # raised where the pieces are read
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
        """The results of several prompts, `slots` (8) at a time, in their order; an Error stands where one failed. answers:
        how many of each prompt, one behind the other."""
        if isinstance(prompts, (str, dict)):
            raise wrong("generate_batch: prompts is one prompt: expected a list of them")
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
        """What a policy is: name, doc, params, presets. options: source, preset, params."""
        return self._call("policy", dict(options, policy=policy))

    def encode(self, text):
        """The token ids of a text."""
        return self._call("encode", {"text": text})

    def decode(self, ids):
        """The text of token ids."""
        return self._call("decode", {"ids": list(ids)})
