"""Whether calls of tools match the schemas of their tools, by another program: jsonschema 4.26.0. FILE is what
tests/bench/calls.lua writes with --calls. Prints the number of calls that are complete; exits with 1 if one is wrong.

    python tests/golden/check_arguments.py FILE
"""
import json, sys

import jsonschema

calls = cut = 0
wrong = []
for line in open(sys.argv[1], encoding="utf-8"):
    asked = json.loads(line)
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in asked["tools"]}
    made = asked["message"].get("tool_calls", [])
    if not made and asked["finish_reason"] == "length":
        cut += 1
        continue
    calls += 1
    try:
        (call,) = made
        arguments = json.loads(call["function"]["arguments"])
        jsonschema.Draft202012Validator(schemas[call["function"]["name"]]).validate(arguments)
    except (ValueError, KeyError, jsonschema.ValidationError) as error:
        wrong.append(f"{error!r}: {asked['message']}")
print(f"{calls} calls parse and validate, {cut} were cut before their end" if not wrong else "\n".join(wrong))
sys.exit(bool(wrong))
