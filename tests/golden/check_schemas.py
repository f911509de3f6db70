"""Checks texts held to random JSON schemas with jsonschema, which is not ours, and that every policy gives the same text.
python3 tests/golden/check_schemas.py [SCHEMAS] [DTRUN] [further arguments of dtrun, as -m MODEL]     needs: jsonschema"""
import json, random, subprocess, sys
import jsonschema

def schema(rng, depth, defs):
    kind = rng.choice(["string", "integer", "number", "boolean", "null", "enum", "const"] + (["object"] * 4 + ["array"] * 2 + ["anyOf", "types", "$ref"]) * (depth > 0))
    value = lambda: rng.choice(["a", "é\n\"", 3, -1.5, True, None, [1, "x"], {"k": 2}])
    if kind == "enum": return {"enum": [value() for _ in range(rng.randrange(1, 4))]}
    if kind == "const": return {"const": value()}
    if kind == "$ref": return {"$ref": "#/$defs/" + rng.choice(defs)}
    if kind == "anyOf": return {"anyOf": [schema(rng, depth - 1, defs) for _ in range(rng.randrange(1, 4))]}
    if kind == "types": return {"type": rng.sample(["string", "integer", "boolean", "null"], 2)}
    if kind == "array":
        least = rng.randrange(3)
        return {"type": "array", "items": schema(rng, depth - 1, defs), "minItems": least, "maxItems": least + rng.randrange(3)}
    if kind == "object":
        names = rng.sample(["name", "age", "is it", "tags", "é", "a\"b"], rng.randrange(1, 5))
        return {"type": "object", "properties": {n: schema(rng, depth - 1, defs) for n in names}, "additionalProperties": False,
                "required": rng.sample(names, rng.randrange(len(names) + 1))}
    if kind == "string":
        least = rng.randrange(4)
        return {"type": "string", "minLength": least, "maxLength": least + rng.randrange(12)}
    return {"type": kind}

def main():
    count, dtrun = int((sys.argv[1:] or ["200"])[0]), (sys.argv[2:] or ["build/dtrun"])[0]
    finished = wrong = runs = 0
    for i in range(count):
        rng = random.Random(i)
        top = schema(rng, 3, ["x", "y"])
        top["$defs"] = {"x": schema(rng, 0, []), "y": schema(rng, 0, [])}
        temp, texts = str(i % 3), {}
        for policy in ["ar", "linear", "dynatree", "rate"]:
            done = subprocess.run([dtrun, policy, "-p", "JSON: ", "-n", "400", "--temp", temp, "-s", str(i), "-q", "--json", "-", "--json-schema", json.dumps(top)] + sys.argv[3:],
                                  capture_output=True)
            if done.returncode: sys.exit(f"schema {i}: {done.stderr.decode()}")
            result = json.loads(done.stdout)
            texts[policy] = result["text"]
            if policy != "ar": continue
            runs += 1
            if result["finish_reason"] != "eos": continue
            finished += 1
            try: jsonschema.validate(json.loads(result["text"]), top)
            except (ValueError, jsonschema.ValidationError) as e:
                wrong += 1
                print(f"schema {i}: {result['text']!r}: {e}")
        if len(set(texts.values())) > 1:
            wrong += 1
            print(f"schema {i}: the texts differ: {texts}")
    print(f"{runs} schemas, {finished} finished, {wrong} wrong")
    sys.exit(wrong > 0 or finished < 0.9 * runs)

main()
