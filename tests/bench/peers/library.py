"""llama.cpp as a library, in this process: plain decoding, with its own timings, without the choice of the token."""
import ctypes, os, pathlib, tempfile, time
import llama_cpp
import numpy as np
from . import fail
from .checkpoint import write_gguf


class Library:
    arms = [("llama.cpp library", None)]

    def __init__(self, options, context):
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
        params.n_ctx = context
        params.n_threads = params.n_threads_batch = options.threads
        params.no_perf = False
        self.context = llama_cpp.llama_init_from_model(self.model, params)
        if not self.context: fail("llama.cpp cannot load the GGUF file")
        self.vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        info = llama_cpp.llama_print_system_info().decode()
        self.flags = [f"llama.cpp library {llama_cpp.__version__}, built {'with' if 'AMX_INT8 = 1' in info else 'without'} AMX: {info}"]

    def decode(self, ids):
        array = (llama_cpp.llama_token * len(ids))(*ids)
        if llama_cpp.llama_decode(self.context, llama_cpp.llama_batch_get_one(array, len(ids))): fail("llama_decode failed")

    def decode_rows(self, ids, position):
        """Runs one pass with the logits of all rows. Their context continues from `position`."""
        batch = llama_cpp.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = token, position + i, 1, 0, True
        if llama_cpp.llama_decode(self.context, batch): fail("llama_decode failed")
        llama_cpp.llama_synchronize(self.context)
        llama_cpp.llama_batch_free(batch)

    def passes(self, ids, guesses, n):
        """Returns the mean milliseconds of n passes over the last token and guesses, none of which comes true. A
        recurrent state cannot be taken back by some rows; in that case the guesses stay in the text."""
        memory, last, ms = llama_cpp.llama_get_memory(self.context), ids[-1], 0
        llama_cpp.llama_memory_clear(memory, True)
        self.decode(ids[:-1])
        position = len(ids) - 1
        for _ in range(n):
            start = time.perf_counter()
            self.decode_rows([last, *guesses], position)
            ms += (time.perf_counter() - start) * 1e3
            last = int(np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(self.context, 0), shape=(self.vocab,)).argmax())
            position += 1 if llama_cpp.llama_memory_seq_rm(memory, 0, position + 1, -1) else 1 + len(guesses)
        return ms / n

    def run(self, arm, request):
        ids, n = request.ids, request.tokens
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), True)
        llama_cpp.llama_perf_context_reset(self.context)
        for i in range(0, len(ids) - 1, 2048): self.decode(ids[i : min(i + 2048, len(ids) - 1)])
        llama_cpp.llama_synchronize(self.context)
        tokens, last = [], ids[-1]
        for _ in range(n):
            self.decode([last])
            logits = llama_cpp.llama_get_logits_ith(self.context, -1)
            last = int(np.ctypeslib.as_array(logits, shape=(self.vocab,)).argmax())
            tokens.append(last)
        perf = llama_cpp.llama_perf_context(self.context)
        if (perf.n_p_eval, perf.n_eval) != (len(ids) - 1, n):
            fail(f"llama.cpp counted {perf.n_p_eval} + {perf.n_eval} tokens, not {len(ids) - 1} + {n}")
        prompt = perf.t_p_eval_ms / 1e3
        return {"tokens": tokens, "seconds": prompt + perf.t_eval_ms / 1e3, "prompt_seconds": prompt}

    def close(self): pass
