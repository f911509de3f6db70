"""Answers the commands S and A of accepts.c with another engine, for check_suites.py: rivals_accept.py llguidance|xgrammar|llama.cpp

llama.cpp means the grammars of llama-cpp-python, and its converter of schemas, or llama.cpp's own if LLAMA_GBNF names the library that
llama_gbnf.cpp describes. The grammars need the vocabulary of a model: RIVALS_MODEL, or SmolLM2. They accept a text if they allow each of its tokens in turn, and then
the end of the text.

A schema that takes longer than LIMIT seconds ends the program."""
import ctypes, json, os, pathlib, signal, sys, time

LIMIT = 20
MODEL = pathlib.Path(os.environ.get("RIVALS_MODEL", pathlib.Path(__file__).parents[2] / "models/SmolLM2-135M-Instruct.Q4_1.gguf"))


class Llguidance:
    def __init__(self):
        import llguidance
        self.matcher, self.tokenizer = llguidance.LLMatcher, llguidance.LLTokenizer("byte")

    def compile(self, schema):
        self.grammar = self.matcher.grammar_from_json_schema(schema)
        self.found = self.matcher(self.tokenizer, self.grammar, log_level=0)
        if self.found.is_error(): raise ValueError(self.found.get_error())

    def accepts(self, text):
        found = self.found.deep_copy()
        n = found.try_consume_tokens(list(text))
        if found.is_error(): raise ValueError(found.get_error())
        return n == len(text) and found.is_accepting() or n


class Xgrammar:
    def __init__(self):
        import xgrammar
        self.xgrammar, end = xgrammar, 256
        vocabulary = [bytes([byte]) for byte in range(256)] + ["</s>"]
        kind = xgrammar.TokenizerInfo(vocabulary, vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[end])
        self.compiler, self.end = xgrammar.GrammarCompiler(kind, max_threads=1, cache_enabled=False), end

    def compile(self, schema): self.grammar = self.compiler.compile_json_schema(schema, strict_mode=False)

    def accepts(self, text):
        found = self.xgrammar.GrammarMatcher(self.grammar)
        return found.accept_string(text) and found.accept_token(self.end)


class LlamaCpp:
    def __init__(self):
        import llama_cpp
        from llama_cpp.llama_grammar import json_schema_to_gbnf
        self.llama, self.grammar = llama_cpp, None
        self.library = ctypes.CDLL(os.environ["LLAMA_GBNF"]) if "LLAMA_GBNF" in os.environ else None
        if self.library: self.library.llama_gbnf.restype = ctypes.c_char_p  # not freed
        self.to_gbnf = self.own_gbnf if self.library else lambda schema: json_schema_to_gbnf(schema).encode()
        self.silent = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(self.silent, None)
        options = llama_cpp.llama_model_default_params()
        options.vocab_only = True
        self.model = llama_cpp.llama_model_load_from_file(str(MODEL).encode(), options)
        self.vocabulary = llama_cpp.llama_model_get_vocab(self.model)
        self.end = llama_cpp.llama_vocab_eos(self.vocabulary)

    def own_gbnf(self, schema):
        converted = ctypes.c_bool()
        text = self.library.llama_gbnf(schema.encode(), ctypes.byref(converted))
        if not converted.value: raise ValueError(text.decode())
        return text

    def compile(self, schema):
        if self.grammar: self.llama.llama_sampler_free(self.grammar)
        self.grammar = None
        self.grammar = self.llama.llama_sampler_init_grammar(self.vocabulary, self.to_gbnf(schema), b"root")
        if not self.grammar: raise ValueError("JSON schema: its grammar is refused")

    def tokens(self, text):
        ids = (self.llama.llama_token * (len(text) + 1))()
        return ids[:self.llama.llama_tokenize(self.vocabulary, text, len(text), ids, len(ids), False, False)]

    def allows(self, grammar, token):
        candidates = (self.llama.llama_token_data * 1)(self.llama.llama_token_data(token, 0.0, 0.0))
        self.llama.llama_sampler_apply(grammar, ctypes.byref(self.llama.llama_token_data_array(candidates, 1, -1, False)))
        return candidates[0].logit == 0

    def accepts(self, text):
        if not self.grammar: raise ValueError("there is no grammar")
        found = self.llama.llama_sampler_clone(self.grammar)
        try:
            for token in self.tokens(text):
                if not self.allows(found, token): return False
                self.llama.llama_sampler_accept(found, token)
            return self.allows(found, self.end)
        finally:
            self.llama.llama_sampler_free(found)


def main():
    engine = {"llguidance": Llguidance, "xgrammar": Xgrammar, "llama.cpp": LlamaCpp}[sys.argv[1]]()
    answers, sys.stdout = sys.stdout, sys.stderr
    while line := sys.stdin.buffer.readline():
        kind, length = line.split()
        data = sys.stdin.buffer.read(int(length))
        signal.setitimer(signal.ITIMER_REAL, LIMIT)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        try:
            if kind == b"S":
                start = time.process_time()
                engine.compile(data.decode())
                answer = json.dumps(1e3 * (time.process_time() - start))
            else:
                answer = json.dumps(engine.accepts(data))
        except Exception as error:
            answer = "E " + (" ".join(str(error).split()) or type(error).__name__)
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(answer, file=answers, flush=True)


if __name__ == "__main__": main()
