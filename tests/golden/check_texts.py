"""Whether texts match their schemas, by another program: jsonschema 4.25.1, formats included. FILE is what
tests/bench/schema_texts.lua writes with --texts. Prints the number of texts that match; exits with 1 if one does not. A
text that was cut before its end is counted apart.

    pip install jsonschema[format-nongpl]==4.25.1
    python tests/golden/check_texts.py FILE
"""
import json, sys

import jsonschema

texts = cut = 0
wrong = []
for line in open(sys.argv[1], encoding="utf-8"):
    made = json.loads(line)
    if not made["ended"]:
        cut += 1
        continue
    texts += 1
    kind = jsonschema.validators.validator_for(made["schema"])
    try:
        kind(made["schema"], format_checker=kind.FORMAT_CHECKER).validate(json.loads(made["text"]))
    except (ValueError, jsonschema.ValidationError) as error:
        wrong.append(f"{made['name']}: {error.__class__.__name__}: {' '.join(str(error).split())[:300]}")
print(f"{texts} texts match their schemas, {cut} were cut before their end" if not wrong else "\n".join(wrong))
sys.exit(bool(wrong))
