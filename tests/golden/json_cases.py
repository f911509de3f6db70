"""JSON schemas and instances of them, seeded: instances that a schema accepts, others that differ from them in one place, and their
spellings. The verdict is python-jsonschema's; numbers are exact (Decimal)."""
import copy, decimal, functools, json, re

import jsonschema
from jsonschema import validators

decimal.getcontext().prec = 400
Decimal = decimal.Decimal


def load(text):
    """Strict JSON: no NaN, no key twice, numbers exact."""
    def once(pairs):
        if len({key for key, _ in pairs}) != len(pairs): raise ValueError("a key twice")
        return dict(pairs)

    def none(name): raise ValueError(name)
    return json.loads(text, parse_float=Decimal, parse_constant=none, object_pairs_hook=once)


def dump(value, comma=",", colon=":", indent=None, depth=0):
    if isinstance(value, Decimal): return str(value)
    if not isinstance(value, (dict, list)): return json.dumps(value, ensure_ascii=False)
    ends = "{}" if isinstance(value, dict) else "[]"
    if not value: return ends
    write = functools.partial(dump, comma=comma, colon=colon, indent=indent, depth=depth + 1)
    items = [json.dumps(k, ensure_ascii=False) + colon + write(v) for k, v in value.items()] if isinstance(value, dict) else map(write, value)
    line = "\n" + " " * (indent * depth) if indent else ""
    more = line + " " * indent if indent else ""
    return ends[0] + more + (comma + more).join(items) + line + ends[1]


def spellings(value):
    """Compact, as Python writes it, and in lines."""
    return list(dict.fromkeys([dump(value), dump(value, ", ", ": "), dump(value, ",", ": ", 2)]))


# ---- the verdict ---------------------------------------------------------------------------------------------------


def is_number(_, value): return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def is_integer(checker, value):
    if not isinstance(value, Decimal): return is_number(checker, value) and value == int(value)
    return value.as_tuple().exponent >= 0 or value == value.to_integral_value()  # int() would write out 1e999999


def matches(validator, pattern, value, schema):
    """As ECMA-262 says: $ is the end, not the place before a last newline; classes are of ASCII."""
    if validator.is_type(value, "string") and not re.search(re.sub(r"(?<!\\)\$", r"\\Z", pattern), value, re.ASCII):
        yield jsonschema.ValidationError(f"{value!r} does not match {pattern!r}")


@functools.cache
def exact(kind):
    checker = kind.TYPE_CHECKER.redefine("number", is_number).redefine("integer", is_integer)
    return validators.extend(kind, validators={"pattern": matches}, type_checker=checker)


def validator(schema, formats=True):
    kind = exact(validators.validator_for(schema, default=jsonschema.Draft202012Validator))
    return kind(schema, format_checker=kind.FORMAT_CHECKER if formats else None)


# ---- the order of keys: that of the schema --------------------------------------------------------------------------


def found(root, ref):
    at = root
    for part in ref.lstrip("#").split("/")[1:] if ref.startswith("#") else [None]:
        part = part and part.replace("~1", "/").replace("~0", "~")
        at = at.get(part) if isinstance(at, dict) else at[int(part)] if isinstance(at, list) and part.isdigit() and int(part) < len(at) else None
    return at


def parts(root, schema, depth=0):
    """The schemas that a schema has for the same value."""
    if not isinstance(schema, dict) or depth > 12: return
    yield schema
    if isinstance(schema.get("$ref"), str): yield from parts(root, found(root, schema["$ref"]), depth + 1)
    for key in ("allOf", "anyOf", "oneOf"):
        for part in schema[key] if isinstance(schema.get(key), list) else []: yield from parts(root, part, depth + 1)
    for key in ("if", "then", "else"): yield from parts(root, schema.get(key), depth + 1)


def ordered(root, schema, value):
    """The value with its keys in the order of the schema's properties; others follow."""
    if isinstance(value, list):
        items = [part["items"] for part in parts(root, schema) if isinstance(part.get("items"), dict)]
        return [ordered(root, {"allOf": items} if items else None, item) for item in value]
    if not isinstance(value, dict): return value
    below = {}
    for part in parts(root, schema):
        for key, sub in part["properties"].items() if isinstance(part.get("properties"), dict) else ():
            below.setdefault(key, []).append(sub)
        if isinstance(part.get("additionalProperties"), dict): below.setdefault(None, []).append(part["additionalProperties"])
    keys = [key for key in below if key in value] + [key for key in value if key not in below]
    return {key: ordered(root, {"allOf": below.get(key, below.get(None, []))}, value[key]) for key in keys}


# ---- instances -------------------------------------------------------------------------------------------------------

TEXTS = ["", "a", "ab", "abc", "x1", "A-1", "hello world", "é", "日本", "a\"b\\c", "\x7f", "😀", "0", "2024-02-29", "12:30:00Z", "2024-02-29T12:30:00Z",
         "127.0.0.1", "::1", "123e4567-e89b-12d3-a456-426614174000", "me@example.org", "example.org", "https://example.org/a?b=c", "AAAA", "aaaaaaaaaa"]
NUMBERS = [0, 1, -1, 2, 3, 5, 7, 10, 12, 99, 100, 101, -100, 12345678901234567890, Decimal("0.5"), Decimal("1.5"), Decimal("2.6"), Decimal("-0.25"),
           Decimal("1E+20"), Decimal("1.0"), Decimal("0.1"), Decimal("3.14159")]
NAMES = "a b c d name id x_y é".split()


def any_value(r, depth=2):
    kind = r.randrange(7 if depth else 5)
    if kind == 0: return r.choice([True, False, None])
    if kind < 3: return r.choice(NUMBERS)
    if kind < 5: return r.choice(TEXTS)
    if kind == 5: return [any_value(r, depth - 1) for _ in range(r.randrange(4))]
    return {name: any_value(r, depth - 1) for name in r.sample(NAMES, r.randrange(4))}


def text_of(r, schema):
    """A text for a pattern of random_schemas.py, or of a length."""
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        body = re.sub(r"^\^|\$$", "", pattern)
        made = re.sub(r"\[([^]])[^]]*\](?:\{(\d+)[^}]*\}|\+|\*)?|\\d(?:\{(\d+)[^}]*\}|\+|\*)?|\(([^)|]*)[^)]*\)\??",
                      lambda m: m[1] * int(m[2] or r.choice([1, 2, 3])) if m[1] else m[4] if m[4] is not None else "4" * int(m[3] or 2), body)
        if r.random() < 0.7: return made
    least = schema.get("minLength", 0)
    if (least or "maxLength" in schema) and r.random() < 0.7:
        most = schema.get("maxLength", least + 3)
        return "".join(r.choice("abz09 é😀\"") for _ in range(int(r.choice([least, most, min(most, least + 1)]))))
    return r.choice(TEXTS)


def number_of(r, schema):
    ends = [schema[key] for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum") if is_number(None, schema.get(key))]
    if ends and r.random() < 0.8: return r.choice(ends) + r.choice([0, 1, -1, Decimal("0.5"), Decimal("0.01"), Decimal("-0.01")])
    if is_number(None, schema.get("multipleOf")) and r.random() < 0.8: return schema["multipleOf"] * r.randint(-3, 12)
    return r.choice(NUMBERS)


def value_of(r, root, schema, depth=6):
    """A value that a schema may accept."""
    if not isinstance(schema, dict) or depth < 0: return any_value(r, 1)
    if "const" in schema: return copy.deepcopy(schema["const"])
    if schema.get("enum"): return copy.deepcopy(r.choice(schema["enum"]))
    merged = {}
    for part in parts(root, schema):
        if part is not schema and r.random() < 0.35 and "$ref" not in schema: continue
        for key, value in part.items():
            both = merged.get(key)
            merged[key] = {**both, **value} if isinstance(both, dict) and isinstance(value, dict) else both + value if key == "required" and both else value
    if merged is not schema and ("const" in merged or merged.get("enum")): return value_of(r, root, {k: merged[k] for k in ("const", "enum") if k in merged}, depth)
    kind = merged.get("type")
    if isinstance(kind, list): kind = r.choice(kind)
    if kind is None:
        hints = [("object", ("properties", "required", "patternProperties", "additionalProperties", "minProperties", "propertyNames")), ("array", ("items", "prefixItems", "minItems", "contains", "uniqueItems")),
                 ("string", ("pattern", "minLength", "maxLength", "format")), ("number", ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"))]
        kinds = [name for name, keys in hints if any(key in merged for key in keys)]
        if not kinds or r.random() < 0.15: return any_value(r)
        kind = r.choice(kinds)
    if kind == "object": return object_of(r, root, merged, depth)
    if kind == "array":
        first = merged.get("prefixItems") or (merged["items"] if isinstance(merged.get("items"), list) else [])
        least = merged.get("minItems", 0)
        n = least if depth < 2 else r.choice([least, merged.get("maxItems", least + 2), len(first), least + 1])
        rest = merged.get("items") if isinstance(merged.get("items"), dict) else merged.get("additionalItems")
        made = [value_of(r, root, first[i] if i < len(first) else rest, depth - 1) for i in range(min(int(n), 12))]
        if made and isinstance(merged.get("contains"), dict): made[r.randrange(len(made))] = value_of(r, root, merged["contains"], depth - 1)
        return made
    if kind == "string": return text_of(r, merged)
    if kind == "integer": return int(number_of(r, merged))
    if kind == "number": return number_of(r, merged)
    return None if kind == "null" else r.random() < 0.5


def object_of(r, root, schema, depth):
    properties = schema.get("properties", {})
    required = set(schema.get("required", []))
    more = r.choice([0, 0.5, 1]) if depth > 2 else 0
    made = {}
    for name in [*properties, *(name for name in schema.get("required", []) if name not in properties)]:
        if name in required or r.random() < more: made[name] = value_of(r, root, properties.get(name), depth - 1)
    for pattern, sub in schema.get("patternProperties", {}).items():
        if r.random() < more: made[text_of(r, {"pattern": pattern})] = value_of(r, root, sub, depth - 1)
    rest = schema.get("additionalProperties", True)
    least = schema.get("minProperties", 0)
    while rest is not False and (len(made) < least or r.random() < 0.2) and len(made) < 12:
        made.setdefault(r.choice(NAMES), value_of(r, root, rest, depth - 1))
    return made


def places(value, at=()):
    yield at
    for key, below in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(below, at + (key,))


def broken(r, value):
    """The value, changed in one place."""
    value = copy.deepcopy(value)
    *above, last = (None, *r.choice(list(places(value))))
    holder = {"": value}
    at = holder
    for key in ["", *above[1:]] if last is not None else []: at = at[key]
    last = "" if last is None else last
    was = at[last]
    change = r.randrange(8)
    if isinstance(was, dict) and change < 4: was.pop(r.choice(list(was)), None) if was and change < 2 else was.update({r.choice(NAMES): any_value(r, 1)})
    elif isinstance(was, list) and change < 4: was.append(copy.deepcopy(was[0]) if was and change < 2 else any_value(r, 1))
    elif isinstance(was, list) and was and change < 6: was.pop()
    elif isinstance(was, str) and change < 5: at[last] = r.choice([was + r.choice("a0 é"), was[:-1], was[1:], was.upper()])
    elif is_number(None, was) and change < 5: at[last] = was + r.choice([1, -1, Decimal("0.5"), 100, -100, Decimal("0.01")])
    else: at[last] = any_value(r, 1)
    return holder[""]


def misspelled(r, text):
    """The text, changed in one character."""
    at, made = r.randrange(len(text)), r.randrange(4)
    if made == 0: return text[:at] + text[at + 1:]
    if made == 1: return text[:at] + text[at] + text[at:]
    character = r.choice('{}[]":,0123456789eE+-. \n\t\\abtfnu\x01\x7fé')
    return text[:at] + character + text[at + (made == 2):]


def verdict(checker, text):
    """None: the schema is beyond the checker."""
    try: return checker.is_valid(load(text))
    except ValueError: return False
    except Exception: return None


def cases(r, schema, n):
    """Pairs (text, whether it is accepted): up to n valid values in all spellings, twice as many broken ones, and n broken texts."""
    checker, made = validator(schema), {}
    valid = []
    for _ in range(4 * n):
        if len(valid) >= n: break
        value = ordered(schema, schema, value_of(r, schema, schema))
        right = verdict(checker, dump(value))
        if right: valid.append(value)
        made[dump(value)] = right
    for value in valid: made.update({text: True for text in spellings(value)})
    for value in valid or [any_value(r)]:
        for _ in range(2):
            other = ordered(schema, schema, broken(r, value))
            text = r.choice(spellings(other))
            made[text] = verdict(checker, text)
        text = misspelled(r, r.choice(spellings(value)))
        if verdict(checker, text) is False: made[text] = False  # if it is accepted, its white space may be unusual
    return [(text, right) for text, right in made.items() if right is not None]
