"""Compare templates that our interpreter runs with Jinja2, set up as Hugging Face transformers does: all templates of a folder,
20 conversations each. Then a conversation whose messages spell control tokens: what comes from the request must be marked, the
assistant's words and the template's must not. Says how many differ, and exits with 1 if any do.

    python tests/golden/check_templates.py build/tests/render_templates [FOLDER] [--time] [--errors]

FOLDER holds *.jinja files; without it, those that llama.cpp ships are fetched from PyPI, in the source package llama-cpp-python
0.3.36. --time: the time of a rendering of 10 turns; --errors: shows what both refuse. Needs jinja2 3.1.6.
"""
import copy, io, json, pathlib, re, subprocess, sys, tarfile, tempfile, urllib.request
import jinja2
from template_cases import compile_like_transformers

CALL = {"type": "function", "id": "call00001", "function": {"name": "get_weather", "arguments": {"city": "Zürich", "days": 3, "hourly": False, "at": 1.5}}}
SECOND = {"type": "function", "id": "call00002", "function": {"name": "add", "arguments": {"numbers": [1, 2.0, -3e-7], "note": None, "nested": {"a": "<b> & 'c'"}}}}
TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "The weather of a city.\nBy day.", "parameters": {
        "type": "object", "properties": {"city": {"type": "string", "description": "Name, as \"Zürich\""}, "days": {"type": "integer", "minimum": 1, "maximum": 14, "default": 1},
                                         "hourly": {"type": "boolean"}, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}}, "required": ["city"]}}},
    {"type": "function", "function": {"name": "add", "description": "Adds numbers <fast> & 'well'", "parameters": {
        "type": "object", "properties": {"numbers": {"type": "array", "items": {"type": "number"}}, "note": {"type": ["string", "null"]},
                                         "nested": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}}, "required": ["numbers"]},
        "return": {"type": "number", "description": "The sum"}}},
]


def user(text): return {"role": "user", "content": text}
def assistant(text, **more): return {"role": "assistant", "content": text, **more}
def system(text): return {"role": "system", "content": text}


def result(text, call=CALL): return {"role": "tool", "content": text, "name": call["function"]["name"], "tool_call_id": call["id"]}


def as_text(call):
    call = copy.deepcopy(call)
    call["function"]["arguments"] = json.dumps(call["function"]["arguments"], ensure_ascii=False)
    return call


HI, ANSWER = user("Hello!"), assistant("Hi. What can I do?")
CALLED = [user("How is the weather?"), assistant("", tool_calls=[CALL]), result('{"temperature": 21.5}'), assistant("21.5 degrees.")]
CONVERSATIONS = [
    ([HI], {}),
    ([system("Be brief."), HI], {}),
    ([HI, ANSWER, user("Who wrote Faust?")], {}),
    ([system("  You are terse.\n"), user("  two  words \n"), assistant(" an answer \u00a0"), user("\u3000más\n\nlines\t"), assistant(""), user("ok")], {}),
    ([system("")] + [m for i in range(3) for m in (user(f"Question {i}?"), assistant(f"Answer {i}."))] + [user("")], {}),
    ([user(f"Question {i // 2}? {{{{ x }}}} {{% if %}}") if i % 2 == 0 else assistant(f"Answer <|{i}|>") for i in range(13)], {}),
    ([HI], {"tools": TOOLS}),
    ([system("Use tools."), *CALLED, user("And tomorrow?")], {"tools": TOOLS}),
    ([*CALLED[:3]], {"tools": TOOLS}),
    ([user("Both, please"), assistant("I ask.", tool_calls=[CALL, SECOND]), result("sunny"), result("0", SECOND), assistant("Done."), user("Thanks")], {"tools": TOOLS}),
    ([user("Both"), assistant(None, tool_calls=[as_text(CALL), as_text(SECOND)]), result("sunny"), result("[0]", SECOND)], {"tools": TOOLS}),
    ([user("Think!"), assistant("So it is.", reasoning_content="hm\nyes", thinking="hm\nyes"), user("More.")], {}),
    ([user("Think!"), assistant("<think>\nhm </think> no\n</think>\n\nSo it is."), user("More."), assistant("<think>\n\n</think>\n\nNo.")], {"add_generation_prompt": False}),
    ([user("Look"), assistant("", reasoning_content="I need it", tool_calls=[CALL]), result("wet"), assistant("Rain.", reasoning_content="it rains")] + [user("Sure?")], {"tools": TOOLS}),
    ([HI], {"enable_thinking": False, "thinking": False, "reasoning_effort": "low", "thinking_budget": 0, "keep_past_thinking": True}),
    ([HI, ANSWER, user("Again")], {"enable_thinking": True, "thinking": True, "reasoning_effort": "high", "thinking_budget": 512, "tools": []}),
    ([system("Be brief. /no_think"), user("日本語 🦜 ＡＢＣ ß ǆ"), assistant("Ünïcödé — “quotes” …"), user("e\u0301 \u200b\U0001f468\u200d\U0001f469")], {"documents": [{"title": "Tïtle", "text": "Some text\nin lines"}]}),
    ([{"role": "developer", "content": "Dev text."}, HI, ANSWER, system("In the middle."), user("Go on")], {}),
    ([user([{"type": "text", "text": "part one "}, {"type": "text", "text": "part two"}]), ANSWER, user("plain")], {}),
    ([HI, assistant("The beginning of an")], {"add_generation_prompt": False, "continue_final_message": True}),
]
OWN = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>", "date_string": "05 Aug 2025", "add_generation_prompt": True, "documents": None, "tools": None}


# What some templates need that transformers does not give: a conversation that Jinja2 refuses is tried with it, too.
NEEDED = {"tools": [], "documents": [], "functions": "[]", "datetime": "05 Aug 2025", "image_prompts": None, "custom_tools": []}


def context_of(messages, more): return {**OWN, "messages": messages, **more}
def with_needed(context): return {**NEEDED, **{name: value for name, value in context.items() if value is not None}}


def by_jinja(template, context):
    try:
        return ("O", template.render(**copy.deepcopy(context)).encode())
    except jinja2.exceptions.TemplateError as failure:
        return ("raised" if type(failure) is jinja2.exceptions.TemplateError else "E", str(failure).encode())
    except Exception as failure:
        return ("E", str(failure).encode())


class Ours:
    def __init__(self, program): self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def send(self, head, data=b""): self.process.stdin.write(head.encode() + b"\n" + data)

    def answer(self):
        self.process.stdin.flush()
        line = self.process.stdout.readline().rstrip(b"\n")
        if line.startswith(b"E"): return ("E", line[2:])
        n, self.microseconds = line[2:].split()
        text = self.process.stdout.read(int(n))
        numbers = [int(number) for number in self.process.stdout.readline().split()]
        self.marked = list(zip(numbers[::2], numbers[1::2]))
        return ("O", text)

    def compile(self, text):
        self.send(f"T {len(text.encode())}", text.encode())
        return self.answer()

    def render(self, context, times=1):
        for name, value in context.items():
            data = json.dumps(value, ensure_ascii=False).encode()
            self.send(f"V {name} {len(data)}", data)
        self.send(f"R {times}")
        return self.answer()


def agree(expected, found):
    """Both wrote the same text, or raised the same exception, or failed."""
    if expected[0] == "E": return found[0] == "E"
    return (expected[0] == "O") == (found[0] == "O") and expected[1] == found[1]


def compare(path, ours):
    """How many conversations are equal, refused by both, and differ."""
    text, counts = path.read_text(), {"equal": 0, "both refuse": 0, "differ": 0}
    template, compiled = compile_like_transformers(text), ours.compile(text)
    contexts = [context_of(messages, more) for messages, more in CONVERSATIONS]
    for i, context in enumerate(contexts):
        expected, found = by_jinja(template, context), ours.render(context) if compiled[0] == "O" else compiled
        kind = "differ" if not agree(expected, found) else "equal" if found[0] == "O" else "both refuse"
        counts[kind] += 1
        if kind == "both refuse" and i < len(CONVERSATIONS): contexts.append(with_needed(context))
        if kind == "differ" or ("--errors" in sys.argv and kind == "both refuse"):
            print(f"{path.name}, conversation {i}:\n  Jinja2 {expected}\n  dtrun  {found}")
    return counts


SPELLED = [system("sys<|im_end|>tem"), user("us<|end|>er"), assistant("as<|eot_id|>sistant"), user("ag</s>ain")]
MARKED, UNMARKED = [b"sys<|im_end|>tem", b"us<|end|>er", b"ag</s>ain"], [b"as<|eot_id|>sistant"]


def wrong_marks(path, ours):
    """What is marked and should not be, or the other way round, in a template that writes these messages."""
    ours.compile(path.read_text())
    for messages in (SPELLED, SPELLED[1:]):
        kind, text = ours.render(with_needed(context_of(messages, {})))
        if kind == "O": break
    else:
        return []
    inside = [text[begin:end] for begin, end in ours.marked]
    outside = b"|".join(text[begin:end] for begin, end in zip([0, *(end for _, end in ours.marked)], [*(begin for begin, _ in ours.marked), len(text)]))
    return [part for part in MARKED if text.count(part) != sum(piece.count(part) for piece in inside)] + [part for part in UNMARKED if text.count(part) != outside.count(part)]


def fetched():
    """The templates of the source package, in a folder of their own."""
    page = urllib.request.urlopen("https://pypi.org/simple/llama-cpp-python/").read().decode()
    package = urllib.request.urlopen(re.search(r'https://[^"#]*llama_cpp_python-0\.3\.36\.tar\.gz', page)[0]).read()
    folder = pathlib.Path(tempfile.mkdtemp())
    with tarfile.open(fileobj=io.BytesIO(package)) as tar:
        for member in tar:
            if re.search(r"/models/templates/[^/]*\.jinja$", member.name): (folder / pathlib.Path(member.name).name).write_bytes(tar.extractfile(member).read())
    return folder


def main():
    ours, total = Ours(sys.argv[1]), {}
    folder = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 and not sys.argv[2].startswith("-") else fetched()
    paths = sorted(folder.glob("*.jinja"))
    for path in paths:
        for kind, n in compare(path, ours).items(): total[kind] = total.get(kind, 0) + n
    wrong = {path.name: parts for path in paths if (parts := wrong_marks(path, ours))}
    for name, parts in wrong.items(): print(f"{name}: marks of {parts}")
    print(f"{len(paths)} templates:", ", ".join(f"{n} {kind}" for kind, n in total.items()), f"; {len(wrong)} with wrong marks")
    if "--time" in sys.argv:
        turns = [user("How is the weather in Zürich today, and what about tomorrow? " * 4) if i % 2 == 0 else assistant("It is sunny and warm. " * 20) for i in range(19)]
        for path in sorted(paths, key=lambda path: -path.stat().st_size)[:5]:
            ours.compile(path.read_text())
            found = ours.render(context_of(turns, {"tools": TOOLS}), 1000)
            print(f"{path.name}: 10 turns in {ours.microseconds.decode()} us" if found[0] == "O" else found)
    sys.exit(total["differ"] > 0 or bool(wrong))


if __name__ == "__main__": main()
