"""Whether calls of tools are read back from the texts of the templates that llama.cpp ships. For each template: the format
that was learned, in one line, and calls that it writes but that are not read back with the same names and arguments. Exits
with 1 if there are any.

    python tests/golden/check_calls.py build/tests/learn_calls [FOLDER] [--guide lua/cli/CALLS.md [--write]] [--refused]

FOLDER holds *.jinja files; without it, they are fetched as check_templates.py does. --guide compares the table in a guide
with what was learned, and --write replaces it. --refused shows calls of templates that the grammar does not allow.
"""
import collections, json, pathlib, re, sys

from check_templates import fetched
from program import Program


MORE = {"array": {"items": {"type": "integer", "description": "d"}}, "object": {"additionalProperties": {"type": "array", "items": {"type": "string"}, "description": "d"}}}


def tool(name, **types):
    properties = {key: {"type": type, "description": "d", **MORE.get(type, {})} for key, type in types.items()}
    return {"type": "function", "function": {"name": name, "description": "d", "parameters": {"type": "object", "description": "d", "properties": properties, "required": list(types)}}}


TOOLS = [tool("first_tool", key="string"), tool("second", flag="boolean", list="array", n="integer"), tool("third", deep="object", digits="string", text="string")]
QUESTION, ANSWER = "Why qZw1?", "I look aZw2."
CALLS = [("first_tool", {"key": "value"}), ("second", {"flag": True, "list": [1], "n": 1}), ("third", {"deep": {"a": ["b", "d"], "c": ["e"]}, "digits": "12", "text": "a <b> \"c\"\n\\d 'e'"})]


def message(calls, text):
    return [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": text, "tool_calls": [
        {"type": "function", "id": f"call0000{i}", "function": {"name": name, "arguments": arguments}} for i, (name, arguments) in enumerate(calls)]}]


CASES = [(text, calls) for text in ("", ANSWER) for calls in (CALLS[:1], CALLS[1:2], CALLS[:2], CALLS[2:])]


def pattern(text): return re.sub(r"\\\{\w+\\\}", r"\\w+", re.escape(text.strip()))


def calls_of(answer, learned):
    """The text of the calls, without what precedes and follows them, of which there may be two."""
    texts = [re.search(pattern(learned["first"]) + middle + pattern(learned["last"]), answer, re.S) for middle in (".*", ".*?")]
    return [text[0] for text in texts if text]


def check(path, program):
    """(the learned format, how many answers with calls the template writes, those that are read otherwise, those that the grammar refuses)"""
    learned, written, wrong, refused = program.ask("C", path.read_text()), 0, [], []
    program.ask("G", "several")
    prompt = (program.ask("P", json.dumps(message([], "")[:1])) or "").rpartition(QUESTION)[2] if learned else ""
    for text, calls in CASES if learned else []:
        whole = program.ask("M", json.dumps(message(calls, text)))
        answer = (whole or "").rpartition(QUESTION)[2].removeprefix(prompt)
        if not all(f"{name}" in answer for name, _ in calls): continue
        written += 1
        said = program.ask("R", answer)
        found = [(call["name"], json.loads(call["arguments"])) for call in said["calls"]]
        if found != calls or (text in answer and text not in said["content"]): wrong.append((answer, said))
        if "last" in learned and not any(program.ask("A", text) for text in calls_of(answer, learned)): refused.append(answer)
    return learned, written, wrong, refused


def shown(learned):
    """A call with the argument key = value, in one line of a table."""
    quote = learned.get("quote", "")
    if learned["shape"] == "tags":
        text = learned["first"] + "NAME" + learned["middle"] + learned.get("before", "") + "key" + learned.get("key_end", "") + quote + "value" + quote + learned.get("value_end", "")
    else:
        text = learned["first"] + "NAME" + learned["middle"] + '{"key"' + learned.get("colon", ": ") + '"value"}'
    text = (text + learned.get("last", "")).replace("\n", "⏎").replace("|", "\\|")
    fence = "````" if "`" in text else "`"
    return f"{fence}{text}{fence}"


def table(rows):
    """Templates that write calls in the same form share a row."""
    forms = collections.defaultdict(list)
    for name, learned in rows: forms[shown(learned) if learned["shape"] != "usual" else "(none)"].append(name.removesuffix(".jinja"))
    lines = []
    for form, names in sorted(forms.items(), key=lambda item: item[1]):
        lines += [f"| {name} | {form if i == 0 else 'the same'} |" for i, name in enumerate(names)]
    return "\n".join(["| template | a call |", "|---|---|", *lines]) + "\n"


def compare(guide, wanted):
    """Whether the guide's table is the one that is wanted; --write makes it so."""
    text = guide.read_text()
    begin, end = text.index("| template | a call |"), text.rindex("|\n") + 2
    if "--write" in sys.argv: guide.write_text(text[:begin] + wanted + text[end:])
    return "--write" in sys.argv or text[begin:end] == wanted


def main():
    program, shapes, failures, rows = Program(sys.argv[1]), collections.Counter(), 0, []
    program.tell("T", json.dumps(TOOLS))
    guide = pathlib.Path(sys.argv[sys.argv.index("--guide") + 1]) if "--guide" in sys.argv else None
    folder = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 and not sys.argv[2].startswith("--") else fetched()
    for path in sorted(folder.glob("*.jinja")):
        learned, written, wrong, refused = check(path, program)
        shape = learned["shape"] if learned else "refused"
        if learned: rows.append((path.name, learned))
        shapes[shape + (", written" if written else "")] += 1
        print(f"{path.name}: {written} written, {len(wrong)} wrong, {len(refused)} refused by the grammar; {json.dumps(learned, ensure_ascii=False)}")
        for answer, said in wrong: print(f"    {answer!r}\n    {said}")
        for answer in refused if "--refused" in sys.argv else []: print(f"    {answer!r}")
        failures += bool(wrong)
    print(f"{sum(shapes.values())} templates: {dict(shapes)}; {failures} write calls that are not read back")
    if guide and not compare(guide, table(rows)):
        print(f"{guide}: its table is not what was learned: --write replaces it")
        failures += 1
    sys.exit(failures > 0)


if __name__ == "__main__": main()
