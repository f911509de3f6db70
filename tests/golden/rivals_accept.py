"""Answers the commands S and A of accepts.c with another engine, for check_suites.py: rivals_accept.py llguidance|xgrammar

A schema that takes longer than LIMIT seconds ends the program."""
import json, signal, sys, time

LIMIT = 20


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


def main():
    engine = {"llguidance": Llguidance, "xgrammar": Xgrammar}[sys.argv[1]]()
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


main()
