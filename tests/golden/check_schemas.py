#!/usr/bin/env python3
"""Random JSON schemas and grammars: every complete text must be accepted by a checker of other authors
(python-jsonschema; for grammars, which are written in both languages, the module regex). tests/exact/schemas.lua
compares the texts of policies and batches.

    pip install jsonschema regex
    tests/golden/check_schemas.py build/dtrun [--schemas 200] [--grammars 50] [--stride 1] [--part 1/1] [-m MODEL]
        [-md DRAFT]
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

import jsonschema
import regex

HERE = os.path.dirname(os.path.abspath(__file__))
WORDS = ("name age city tags id count price status note items owner email first_name date_of_birth is_open colour "
         "größe 名前 street_address x").split()
PROMPTS = ("A record as JSON: ", "The answer is ", "Here is the list:\n", "An entry of the table: ", "It was ")


def scalar(r):
    kind = r.randrange(9)
    if kind == 0:
        return {"type": "integer"}
    if kind == 1:
        return {"type": "number"}
    if kind == 2:
        return {"type": "boolean"}
    if kind == 3:
        return {"enum": r.sample(["red", "green", "a \"b\"", "é", 1, 2.5, None, True, [1], {"k": "v"}], r.randint(1, 4))}
    if kind == 4:
        return {"const": r.choice(["fixed text of some length", 12, None, {"a": [1, "b"]}, "日本"])}
    if kind == 5:
        return {"type": ["string", "null"], "maxLength": r.randint(1, 12)}
    if kind == 6:
        return {"type": "string"} if r.random() < 0.2 else {"type": "string", "maxLength": r.randint(0, 30)}
    least = r.randint(0, 4)
    return {"type": "string", "minLength": least, "maxLength": least + r.randint(0, 8)}


def schema(r, depth, refs=()):
    kind = r.random()
    if depth == 0 or kind < 0.3:
        return scalar(r)
    if kind < 0.4:
        return {"anyOf": [schema(r, depth - 1, refs) for _ in range(r.randint(1, 3))]}
    if kind < 0.6:
        array = {"type": "array", "items": schema(r, depth - 1, refs), "maxItems": r.randint(0, 4)}
        if r.random() < 0.5:
            array["minItems"] = r.randint(0, array["maxItems"])
        return array
    if refs and kind < 0.7:
        return {"anyOf": [{"type": "null"}, {"$ref": r.choice(refs)}]}
    names = r.sample(WORDS, r.randint(0, 5))
    made = {"type": "object", "properties": {n: schema(r, depth - 1, refs) for n in names}, "additionalProperties": False}
    if names and r.random() < 0.8:
        made["required"] = r.sample(names, r.randint(0, len(names)))
    return made


def random_schema(r):
    if r.random() < 0.25:
        made = schema(r, 2, ("#/$defs/a",))
        made["$defs"] = {"a": {"type": "object", "properties": {"v": scalar(r), "next": {"anyOf": [
            {"type": "null"}, {"$ref": "#/$defs/a"}]}}, "required": ["next"], "additionalProperties": False}}
        return made
    return schema(r, r.randint(0, 3))


def expression(r, depth):
    """Writes the same expression in both languages."""
    kind = r.randrange(7) if depth else r.randrange(3)
    if kind == 0:
        text = r.choice(["yes", "no", "the ", "42", "a.b", "(x)", "é", "日本", "line\n", "- "])
        return '"%s"' % text.replace("\n", "\\n"), regex.escape(text)
    if kind == 1:
        name = r.choice(["a-z", "0-9", "A-Za-z ", "^\\n\"", "à-ÿ", "^a-y"])
        return "[%s]" % name, "[%s]" % name
    if kind == 2:
        name, most = r.choice(["a-z", "0-9a-f", "a-z ,"]), r.randint(1, 20)
        return "[%s]{1,%d}" % (name, most), "[%s]{1,%d}" % (name, most)
    parts = [expression(r, depth - 1) for _ in range(r.randint(2, 3))]
    if kind < 5:
        return " ".join(p[0] for p in parts), "".join(p[1] for p in parts)
    if kind == 5:
        return "(%s)" % " | ".join(p[0] for p in parts), "(?:%s)" % "|".join(p[1] for p in parts)
    least = r.randint(0, 2)
    times = r.choice(["?", "{%d,%d}" % (least, least + r.randint(0, 3))])
    return "(%s)%s" % (parts[0][0], times), "(?:%s)%s" % (parts[0][1], times)


def random_grammar(r):
    a, b = expression(r, 2), expression(r, 1)
    if r.random() < 0.3:  # rules that contain themselves
        return ('root ::= x "." \nx ::= "(" x ")" | %s\n' % b[0], r"(?P<x>\((?&x)\)|%s)\." % b[1])
    return "root ::= %s y \".\"\ny ::= %s\n" % (a[0], b[0]), a[1] + "(?:" + b[1] + ")\\."


def main():
    p = argparse.ArgumentParser()
    p.add_argument("dtrun")
    p.add_argument("--schemas", type=int, default=200)
    p.add_argument("--grammars", type=int, default=50)
    p.add_argument("--stride", default="1")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--part", default="1/1", help="K/N: every N-th case only, from the K-th on")
    args, rest = p.parse_known_args()
    r = random.Random(args.seed)
    cases, check = [], []
    while len(check) < args.schemas:
        made = random_schema(r)
        jsonschema.Draft202012Validator.check_schema(made)
        check.append(jsonschema.Draft202012Validator(made))
        cases.append({"prompt": r.choice(PROMPTS), "json_schema": json.dumps(made, ensure_ascii=r.random() < 0.5)})
    for _ in range(args.grammars):
        gbnf, expr = random_grammar(r)
        check.append(regex.compile(expr, regex.DOTALL))
        cases.append({"prompt": r.choice(PROMPTS), "grammar": gbnf})
    part, parts = map(int, args.part.split("/"))
    cases, check = cases[part - 1::parts], check[part - 1::parts]
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/cases", "w", encoding="utf-8") as out:
            out.writelines(json.dumps(c) + "\n" for c in cases)
        failed = subprocess.run([args.dtrun, "run", HERE + "/../exact/schemas.lua", "--cases", folder + "/cases", "--texts",
                                 folder + "/texts", "--stride", args.stride, *rest]).returncode
        ended = refused = 0
        with open(folder + "/texts", encoding="utf-8", errors="strict") as lines:
            for line in lines:
                text = json.loads(line)
                if not text["ended"]:
                    continue
                ended += 1
                checker, wrong = check[text["case"] - 1], None
                if isinstance(checker, jsonschema.Draft202012Validator):
                    try:
                        wrong = next(iter(checker.iter_errors(json.loads(text["text"]))), None)
                    except ValueError as error:
                        wrong = error
                elif not checker.fullmatch(text["text"]):
                    wrong = "no match of " + checker.pattern
                if wrong:
                    refused += 1
                    print("WRONG: case %d, temperature %g: %r: %s" % (text["case"], text["temp"], text["text"], wrong))
        print("%d complete texts, %d of them refused by the checkers" % (ended, refused))
    sys.exit(1 if failed or refused or not ended else 0)


main()
