"""Random JSON schemas over the keywords, seeded, for check_suites.py."""
from json_cases import Decimal, NAMES, NUMBERS, TEXTS, any_value

PATTERNS = ["^[a-z]+$", "^[A-Z][a-z]{1,4}$", "^\\d{2,4}$", "[0-9]", "^(foo|bar)$", "^x", "z$", "^[a-f0-9]{8}$", "^a.*b$", "^[^a]*$", "^(ab)?c$"]
FORMATS = ["date", "time", "date-time", "ipv4", "ipv6", "uuid", "email", "hostname"]


def string(r):
    made = {"type": "string"}
    if r.random() < 0.3: made["pattern"] = r.choice(PATTERNS)
    if r.random() < 0.3: made["minLength"] = r.randrange(4)
    if r.random() < 0.3: made["maxLength"] = made.get("minLength", 0) + r.randrange(6)
    if r.random() < 0.15: made["format"] = r.choice(FORMATS)
    return made


def number(r):
    made = {"type": r.choice(["integer", "number"])}
    for key in ("minimum", "exclusiveMinimum"):
        if r.random() < 0.25: made[key] = r.choice(NUMBERS)
    for key in ("maximum", "exclusiveMaximum"):
        if r.random() < 0.25: made[key] = r.choice(NUMBERS)
    if r.random() < 0.1: made["multipleOf"] = r.choice([1, 2, 5, 10, 100, Decimal("0.5"), Decimal("0.01")])
    return made


def array(r, depth, refs):
    made = {"type": "array"}
    if r.random() < 0.7: made["items"] = schema(r, depth - 1, refs)
    if r.random() < 0.2: made["prefixItems"] = [schema(r, depth - 1, refs) for _ in range(r.randint(1, 3))]
    if r.random() < 0.3: made["minItems"] = r.randrange(3)
    if r.random() < 0.3: made["maxItems"] = made.get("minItems", 0) + r.randrange(4)
    if r.random() < 0.1: made["uniqueItems"] = True
    if r.random() < 0.07: made["contains"] = schema(r, 0, refs)
    return made


def record(r, depth, refs):
    made = {"type": "object"}
    names = r.sample(NAMES, r.randint(0, 4))
    if names: made["properties"] = {name: schema(r, depth - 1, refs) for name in names}
    if r.random() < 0.6: made["required"] = r.sample(NAMES if r.random() < 0.1 else names, min(len(names), r.randint(0, 3)))
    if r.random() < 0.6: made["additionalProperties"] = r.choice([False, False, True, schema(r, 0, refs)])
    if r.random() < 0.1: made["patternProperties"] = {r.choice(PATTERNS): schema(r, 0, refs)}
    if r.random() < 0.08: made["minProperties"] = r.randrange(3)
    if r.random() < 0.08: made["maxProperties"] = made.get("minProperties", 0) + r.randrange(3)
    if r.random() < 0.05: made["propertyNames"] = {"pattern": r.choice(PATTERNS)} if r.random() < 0.5 else {"maxLength": r.randrange(4)}
    if names and r.random() < 0.05: made["dependentRequired"] = {r.choice(names): [r.choice(names)]}
    return made


def combined(r, depth, refs):
    kind = r.choice(["anyOf", "anyOf", "oneOf", "allOf", "not", "if"])
    if kind == "not": return {**schema(r, 0, refs), "not": schema(r, 0, refs)}
    if kind == "if": return {"if": record(r, 1, refs), "then": record(r, 1, refs), "else": record(r, 1, refs)}
    made = {kind: [schema(r, depth - 1, refs) for _ in range(r.randint(1, 3))]}
    return {**schema(r, 0, refs), **made} if r.random() < 0.2 else made


def schema(r, depth, refs=()):
    kind = r.random()
    if kind < 0.03: return r.choice([{}, {"type": ["string", "null"]}, {"type": ["integer", "boolean"], "minimum": 1}])
    if kind < 0.12: return {"enum": [any_value(r, 1) for _ in range(r.randint(1, 5))]} if r.random() < 0.5 else {"enum": r.sample(TEXTS, 3)}
    if kind < 0.17: return {"const": any_value(r, 1)}
    if kind < 0.2: return {"type": r.choice(["null", "boolean"])}
    if refs and kind < 0.27: return {"$ref": r.choice(refs)}
    if depth <= 0 or kind < 0.45: return string(r) if r.random() < 0.5 else number(r)
    if kind < 0.6: return array(r, depth, refs)
    if kind < 0.75: return combined(r, depth, refs)
    return record(r, depth, refs)


def random_schema(r):
    if r.random() < 0.2:
        where = r.choice(["$defs", "definitions"])
        refs = [f"#/{where}/p", f"#/{where}/q"]
        made = record(r, 3, refs)
        made[where] = {"p": schema(r, 1), "q": record(r, 1, refs[:1])}
        return made
    return schema(r, r.randint(0, 3))
