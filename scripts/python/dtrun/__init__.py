"""dtrun from Python: speculative decoding under policies in Lua, exact to the bit.

    import dtrun
    pair = dtrun.load()                               # the bundled pair
    result = pair.generate("The ship", policy="linear", params={"K": 4}, tokens=40)
    for piece in pair.stream("The ship", tokens=40):
        print(piece, end="")

What can be said and what is given is what drivers have (README.md, "Drivers"): results are the result JSON as dicts.
Needs no package beside libdtrun.so, which is looked for in $DTRUN_LIBRARY, beside this file (a wheel), in the build
folder of the source tree around it, and where the system's loader finds it.
"""
import ctypes
import json
import os
import queue
import threading
from pathlib import Path

__all__ = ["Error", "Pair", "load", "version"]


class Error(Exception):
    """What failed: kind ("policy", "input", "context", "device"), message, file, line, partial (a result so far)."""

    def __init__(self, failure):
        super().__init__(failure.get("message", "failed"))
        self.kind = failure.get("kind")
        self.message = failure.get("message")
        self.file = failure.get("file")
        self.line = failure.get("line")
        self.partial = failure.get("partial")


_Listener = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t)


def _open_library():
    here = Path(__file__).resolve().parent
    for needed in sorted(here.glob("needed/*")):  # a wheel brings what libdtrun.so needs
        ctypes.CDLL(str(needed), mode=ctypes.RTLD_GLOBAL)
    places = [os.environ.get("DTRUN_LIBRARY"), here / "libdtrun.so", here.parents[2] / "build" / "libdtrun.so"]
    found = next((str(place) for place in places if place and Path(place).exists()), "libdtrun.so.0")
    library = ctypes.CDLL(found)
    library.dtl_bridge_open.restype = ctypes.c_void_p
    library.dtl_bridge_close.argtypes = [ctypes.c_void_p]
    library.dtl_bridge_call.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, _Listener, ctypes.c_void_p]
    library.dtl_bridge_call.restype = ctypes.c_void_p  # freed by dtl_bridge_free
    library.dtl_bridge_free.argtypes = [ctypes.c_void_p]
    return library


class _Bridge:
    """One state of the library: its calls take turns."""

    def __init__(self):
        self.library = _open_library()
        self.handle = self.library.dtl_bridge_open()
        self.lock = threading.Lock()
        if not self.handle:
            raise MemoryError("dtrun")

    def call(self, function, options, tell=None):
        """The value of a function; tell(bytes) gives False for enough. What it raises is raised here."""
        raised = []

        def listen(_, text, size):
            try:
                return tell is None or tell(ctypes.string_at(text, size)) is not False
            except BaseException as error:  # KeyboardInterrupt too: it must not be lost in C
                raised.append(error)
                return False

        text = json.dumps({name: value for name, value in options.items() if value is not None})
        with self.lock:
            answer = self.library.dtl_bridge_call(self.handle, function.encode(), text.encode(), _Listener(listen), None)
        if not answer:
            raise MemoryError("dtrun")
        try:
            said = json.loads(ctypes.string_at(answer))
        finally:
            self.library.dtl_bridge_free(answer)
        if raised:
            raise raised[0]
        if "value" not in said:
            raise Error(said["error"])
        return said["value"]


_bridge = None


def _the_bridge():
    global _bridge
    if _bridge is None:
        _bridge = _Bridge()
    return _bridge


def version():
    return _the_bridge().call("version", {})


def load(target=None, draft=None, **options):
    """A Pair. Without a target the bundled pair; with only a target the draft that is found to belong to it, if there is
    one (models/README.md); draft=False: none.
    options: backend, threads, ctx, weights, draft_weights, draft_vocab, cache_dtype."""
    return Pair(_the_bridge().call("load", dict(options, target=target, draft=draft)))


class Pair:
    """A loaded target with its draft model: target, draft, backend, threads, ... as they were loaded."""

    def __init__(self, about):
        self._id = about.pop("pair")
        self.draft = None
        self.__dict__.update(about)

    def _call(self, function, options, tell=None):
        return _the_bridge().call(function, dict(options, pair=self._id), tell)

    def close(self):
        """Frees the models; nothing can be asked of the pair then."""
        self._call("close", {})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def generate(self, prompt, policy=None, on_text=None, **options):
        """The result of one prompt, a dict. policy: a name or a path; source: its text instead. on_text is called
        with each piece; where it gives False the text ends. options: params, preset, tokens, stop, ignore_eos, seed,
        temp, top_k, top_p, min_p, coupled, policy_seconds, trace."""
        tell = on_text and (lambda text: on_text(text.decode(errors="replace")))
        return self._call("generate", dict(options, prompt=prompt, policy=policy), tell)

    def stream(self, prompt, **options):
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
        """The results of several prompts, `places` (8) at a time, in their order; an Error stands where one failed."""
        results = [None] * len(prompts)

        def tell(text):
            ended = json.loads(text)
            error = ended.get("error")
            results[ended["prompt"] - 1] = Error(error) if error else ended["value"]

        self._call("generate_batch", dict(options, prompts=list(prompts), policy=policy), tell)
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
