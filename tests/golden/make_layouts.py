"""Make chat/layouts.json: conversations, and what Jinja2, set up as Hugging Face transformers does, writes for them with each of
the built-in chat templates, runtime/chat/layouts/*.jinja; or the message of the exception that the template raises. The
interpreter's own texts are compared in tests/unit/test_chat_layouts.c. Run it from anywhere, with jinja2 3.1.6:

    python tests/golden/make_layouts.py
"""
import json, pathlib
import jinja2
from template_cases import compile_like_transformers


def user(text): return {"role": "user", "content": text}
def assistant(text, **more): return {"role": "assistant", "content": text, **more}
def system(text): return {"role": "system", "content": text}
def conversation(*messages, answer=True, **more): return {"messages": list(messages), "add_generation_prompt": answer, **more}


HI, ANSWER, MORE = user("Hello!"), assistant("Hi. What can I do?"), user("More.")
TAGS, CHANNELS = "<think>\nhm </think> no\n</think>\n\nSo it is.", "\n\n<|channel>thought\nhm <channel|> Yes.<|channel>more\n<channel|>\nNo <|channel>."
HARMONY = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Yes."
CONVERSATIONS = [
    conversation(HI),
    conversation(system("Be brief."), HI),
    conversation(HI, ANSWER, user("Who wrote Faust?"), assistant("Goethe did."), user("Thanks.")),
    conversation(system("  You are terse.\n"), user("  two  words \n"), assistant(" an answer \u00a0"), user("\u3000más\n\nlines\t"), assistant(""), user("ok")),
    conversation(system(""), *(m for i in range(3) for m in (user(f"Question {i}?"), assistant(f"Answer {i}."))), user("")),
    conversation(HI, assistant(TAGS), MORE, assistant(CHANNELS), MORE, assistant(HARMONY), MORE, assistant(HARMONY[:30]), MORE),
    conversation(system("Be brief. /no_think "), HI, assistant("\n\nHi."), MORE),
    conversation(system("/system_override Talk like a pirate. /think \n"), HI, enable_thinking=False),
    conversation(HI, ANSWER, MORE, assistant(" It is an \n"), answer=False),
    conversation(system("Be brief."), HI, assistant("Hi.", reasoning_content="They greet me."), MORE, assistant("\n\nThen", reasoning_content="\nmore \n"), answer=False),
    conversation(HI, assistant("Hi.", reasoning_content="They greet me."), MORE, date_string="05 Aug 2025"),
    conversation(HI, assistant(TAGS), answer=False, enable_thinking=True),
    conversation(system("Be brief."), HI, ANSWER, user("/nothink"), enable_thinking=False, reasoning_effort="low"),
    conversation(system(" Be brief. "), HI, enable_thinking=True, reasoning_effort="high"),
    conversation(HI, enable_thinking=True),
    conversation(HI, MORE),
    conversation(HI, ANSWER, system("  Be brief. "), MORE),
]


def written(template, variables):
    try:
        return {"text": template.render(**variables)}
    except jinja2.exceptions.TemplateError as failure:
        assert type(failure) is jinja2.exceptions.TemplateError, failure  # raise_exception's
        return {"error": str(failure)}


def main():
    here = pathlib.Path(__file__).parent
    layouts = {}
    for path in sorted((here.parent.parent / "runtime/chat/layouts").glob("*.jinja"), key=lambda path: path.stem):
        template = compile_like_transformers(path.read_text())
        layouts[path.stem] = [written(template, variables) for variables in CONVERSATIONS]
    golden = {"conversations": CONVERSATIONS, "layouts": layouts}
    (here / "chat" / "layouts.json").write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n")
    print(len(layouts), "layouts,", len(CONVERSATIONS), "conversations,", sum("error" in case for cases in layouts.values() for case in cases), "errors")


if __name__ == "__main__": main()
