#!/usr/bin/env python3
"""JSON schemas of others, and random ones: which of them compile, which instances their grammars accept, and that none is accepted
that the schema refuses. Other engines' results stand beside dtrun's, if their packages are installed.

    pip install jsonschema[format-nongpl]==4.25.1 pydantic==2.12.4 llguidance==1.9.1 xgrammar==0.2.8 llama-cpp-python==0.3.36
    tests/golden/check_suites.py build/tests/accepts [--suite FOLDER] [--maskbench FOLDER] [--sample 1200] [--random 2000]
        [--beside llguidance,xgrammar,llama.cpp] [--show]

--suite: json/tests of jsonschema's source package (JSON-Schema-Test-Suite). --maskbench: maskbench/data of
github.com/guidance-ai/jsonschemabench. A value is accepted if one of its spellings is: compact, with spaces, or in lines, each with its keys
as given and in the order of the schema's properties. Exits with 1 if dtrun accepts what a schema refuses, formats apart: by the standard they
need not be checked."""
import argparse, collections, json, pathlib, random, re, sys

import jsonschema, referencing

from client_schemas import client_schemas
from json_cases import cases, dump, load, ordered, spellings
from program import Program
from random_schemas import random_schema

HERE = pathlib.Path(__file__).parent
Group = collections.namedtuple("Group", "schema tests")  # tests: (texts of an instance, whether it is accepted)


class Engine:
    def __init__(self, name, *command): self.name, self.command, self.program = name, command, Program(*command)

    def ask(self, kind, text):
        """The answer and the refusal. A program that ends is begun again."""
        try:
            return self.program.ask(kind, text), self.program.refusal
        except (ValueError, OSError):
            self.program = Program(*self.command)
            return None, "no answer"


class Tally:
    def __init__(self):
        self.groups = self.compiled = self.valid = self.valid_accepted = self.invalid = self.invalid_refused = self.right = 0
        self.refusals, self.wrong, self.missed, self.milliseconds = collections.Counter(), [], [], []
        self.unknown = 0        # accepted texts that only a format unknown to dtrun refuses
        self.refused_empty = 0  # refused groups without a valid instance: their schemas may accept nothing

    def row(self, name):
        share = lambda n, all: f"{n}/{all}"
        middle = sorted(self.milliseconds)[len(self.milliseconds) // 2] if self.milliseconds else 0
        return [name, f"{share(self.compiled, self.groups)} ({100 * self.compiled / max(self.groups, 1):.1f} %)", share(self.valid_accepted, self.valid), share(self.invalid_refused, self.invalid),
                f"{self.right} ({100 * self.right / max(self.groups, 1):.1f} %)", str(len(self.wrong)), f"{middle:.2f}", f"{max(self.milliseconds, default=0):.0f}"]


def short(refusal):
    """What a refusal is about, without the place."""
    found = re.search(r"keyword (\S+)|([Uu]nimplemented keys?: .*)", refusal)
    return (found[1] or found[2]) if found else re.sub(r"^.*?(#[^:]*|JSON schema[^:]*): ", "", refusal)[:70]


FORMATS = "date-time date time duration email hostname ipv4 ipv6 uri uuid".split()


def only_unknown_formats(schema, text):
    """Whether the text matches the schema but for formats that dtrun does not know, such as regex. By the standard they say nothing."""
    schema = json.loads(schema)
    kind = jsonschema.validators.validator_for(schema)
    known = jsonschema.FormatChecker(())
    known.checkers = {name: kind.FORMAT_CHECKER.checkers[name] for name in FORMATS if name in kind.FORMAT_CHECKER.checkers}
    try:
        return kind(schema, format_checker=known).is_valid(json.loads(text))
    except (ValueError, referencing.exceptions.Unresolvable):  # no JSON, or a reference to another document: some engines do not mind
        return False


def check(engine, group, tally):
    tally.groups += 1
    took, refusal = engine.ask("S", group.schema)
    if refusal is not None:
        tally.refused_empty += not any(right for _, right in group.tests)
        return tally.refusals.update([short(refusal)])
    tally.compiled += 1
    tally.milliseconds.append(took)
    whole = True
    for texts, right in group.tests:
        accepted = next((text for text in texts if engine.ask("A", text)[0] is True), None)
        if right: tally.valid += 1
        else: tally.invalid += 1
        if right and accepted is not None: tally.valid_accepted += 1
        elif right: tally.missed.append((group.schema, texts[0]))
        elif accepted is None: tally.invalid_refused += 1
        elif only_unknown_formats(group.schema, accepted): tally.unknown += 1
        else: tally.wrong.append((group.schema, accepted))
        whole = whole and right == (accepted is not None)
    tally.right += whole


# ---- the suites --------------------------------------------------------------------------------------------------------


def texts_of(schema, value): return list(dict.fromkeys(spellings(value) + spellings(ordered(schema, schema, value))))


def groups_of(schema, tests): return Group(dump(schema), [(texts_of(schema, test["data"]), test["valid"]) for test in tests])


def test_suite(folder, draft, under="", names="*.json"):
    uri = {"draft7": "http://json-schema.org/draft-07/schema#"}.get(draft)
    for path in sorted((folder / draft / under).glob(names)):
        for group in load(path.read_text()):
            schema = group["schema"]
            if uri and isinstance(schema, dict): schema.setdefault("$schema", uri)
            yield groups_of(schema, group["tests"])


def formats(folder):
    for name in FORMATS: yield from test_suite(folder, "draft2020-12", "optional/format", name + ".json")


def maskbench(folder, n):
    paths = sorted(folder.glob("*.json"))
    for path in random.Random(1).sample(paths, min(n, len(paths))):
        made = json.loads(path.read_text())
        yield groups_of(load(json.dumps(made["schema"])), load(json.dumps(made["tests"])))


def clients():
    r = random.Random(1)
    for schema in client_schemas().values(): yield made_group(r, json.dumps(schema), 8)


def made_group(r, text, n):
    schema = load(text)
    return Group(text, [([text], right) for text, right in cases(r, schema, n)])


def randoms(n, seed):
    for i in range(n):
        r = random.Random(f"{seed}/{i}")
        yield made_group(r, dump(random_schema(r)), 3)


# ---- the tables ----------------------------------------------------------------------------------------------------------


def table(rows):
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows: print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def run(name, groups, engines, show):
    """Prints a suite's table; returns how often the first engine accepted what it should not."""
    groups = list(groups)
    print(f"\n{name}, {len(groups)} groups")
    tallies = {engine.name: Tally() for engine in engines}
    for group in groups:
        for engine in engines: check(engine, group, tallies[engine.name])
    table([["", "compiled", "valid accepted", "invalid refused", "groups wholly right", "WRONG", "ms to compile", "most"], *(tally.row(name) for name, tally in tallies.items())])
    for engine in engines:
        own = tallies[engine.name]
        reasons = ", ".join(f"{what} {n}" for what, n in own.refusals.most_common(14))
        print(f"  refused by {engine.name} ({own.refused_empty} of {own.groups - own.compiled} have no valid instance): {reasons}")
    own = tallies[engines[0].name]
    if own.unknown: print(f"  {own.unknown} texts of {engines[0].name} are refused by a format alone that it does not know")
    for kind, found in (("WRONG", own.wrong), ("missed", own.missed if show else [])):
        for schema, text in found[:20]: print(f"  {kind}: {text!r:.300} by {schema:.600}")
    sys.stdout.flush()
    return len(own.wrong)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("accepts")
    p.add_argument("--suite", type=pathlib.Path)
    p.add_argument("--maskbench", type=pathlib.Path)
    p.add_argument("--sample", type=int, default=1200)
    p.add_argument("--random", type=int, default=2000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--beside", default="")
    p.add_argument("--show", action="store_true", help="print valid instances that dtrun refuses, too")
    args = p.parse_args()
    engines = [Engine("dtrun", args.accepts)] + [Engine(name, sys.executable, str(HERE / "rivals_accept.py"), name) for name in args.beside.split(",") if name]
    suites = []
    if args.suite:
        run("JSON-Schema-Test-Suite, formats, draft2020-12", formats(args.suite), engines, args.show)
        suites += [(f"JSON-Schema-Test-Suite, {draft}", test_suite(args.suite, draft)) for draft in ("draft2020-12", "draft7")]
    if args.maskbench: suites.append(("maskbench", maskbench(args.maskbench, args.sample)))
    suites += [("schemas of clients", clients()), (f"{args.random} random schemas, seed {args.seed}", randoms(args.random, args.seed))]
    wrong = sum(run(name, groups, engines, args.show) for name, groups in suites)
    print(f"\ndtrun accepted {wrong} texts that a schema refuses")
    sys.exit(1 if wrong else 0)


main()
