"""Make grammars.json: which texts other programs accept for recursive grammars, regular expressions and bounds of
integers. Run it from anywhere, with xgrammar, quickjs and jsonschema installed:

    python tests/golden/make_grammars.py

    grammars    GBNF, written by hand and at random, as xgrammar parses it
    regexes     ECMA-262 with the flag u, as QuickJS matches it: "takes" as a whole, "finds" anywhere in the text
    integers    schemas with bounds, as jsonschema validates them
    schemas     random schemas, as jsonschema validates them

Each has texts, and a string with a 1 (accepted) or 0 for each of them.
"""
import json, pathlib, random
import jsonschema, quickjs, xgrammar
from xgrammar.testing import _is_grammar_accept_string as accepts

ROOT = pathlib.Path(__file__).resolve().parents[2]
LETTERS = "ab()[]{},:;+-*/ 01\"\\\nxyé😀"

BY_HAND = [  # a grammar, and some of its texts
    ('root ::= "a" root "b" | ""', ["", "ab", "aabb", "aaabbb"]),
    ('root ::= "a" root "a" | "b" root "b" | [ab]?', ["aba", "abba", "babbab", "a"]),
    ('root ::= e\ne ::= t ([-+] t)*\nt ::= f ([*/] f)*\nf ::= "(" e ")" | "-" f | [01]+', ["1+0*1", "-(1-0)/1", "((0))", "1*-1"]),
    ('root ::= v\nv ::= o | a | s | [01]+\no ::= "{" (s ":" v ("," s ":" v)*)? "}"\na ::= "[" (v ("," v)*)? "]"\ns ::= "\\"" ([^"\\\\\\n] | "\\\\" ["\\\\n])* "\\""',
     ['{"a":[1,0],"b":{}}', '[[],"x\\n\\"y"]', '"é😀"', '{"a":{"b":[]}}']),
    ('root ::= ("(" root ")" | "[" root "]" | "{" root "}")*', ["()[]{}", "([{}])", "", "(()[])"]),
    ('root ::= "(" (root | [xy]+) (" " (root | [xy]+))* ")"', ["(x)", "(x (y x) y)", "((x) (y))"]),
    ('root ::= [a-z] | "\\\\" [a-z] " " root | "(" root " " root ")"', ["\\x x", "(\\a b (x y))", "x"]),
    ('root ::= "<" n ">" (root | [01 ])* "</" n ">"\nn ::= [ab]{1,2}', ["<a></b>", "<ab>1<b></b> </a>"]),
    ('root ::= s (";" s)*\ns ::= "x" | "(" s ")" | "{" root "}"', ["x;x", "{x;(x)}", "((x));{x}"]),
    ('root ::= l\nl ::= "0" l l | "1"', ["1", "011", "01011", "0001111"]),
    ('root ::= "a"{2,3} (root "b"{0,2}){0,2} "x"?', ["aa", "aaaaxb", "aaxaax", "aaaaabbx"]),
    ('root ::= [^\\n]{0,3} ("," root)? [^a\\n]', ["ab,ab1", "x", ",,b", "éé😀\\"]),
    ('root ::= ("a" | ("b" | root2 "y")+)*\nroot2 ::= "x" (root2 | "0"*) "1"', ["abx01y", "xx11y", ""]),
    ('root ::= even\neven ::= "" | [ab] odd\nodd ::= [ab] even', ["", "ab", "abab"]),
    ('root ::= "if(" c ")" s ("else " s)?\nc ::= [xy] | "!" c | c2\nc2 ::= "(" c "&" c ")"\ns ::= "{" s* "}" | root | [xy] ";"',
     ["if(x)y;", "if(!(x&y)){x;}else if(y){}", "if(x)if(y)x;else y;"]),
]


def quoted(text):
    return '"' + "".join({'"': '\\"', "\\": "\\\\", "\n": "\\n"}.get(c, c) for c in text) + '"'


def mutated(rng, text):
    for _ in range(rng.randrange(1, 3)):
        at = rng.randrange(len(text) + 1)
        kind = rng.randrange(4)
        text = [text[:at] + text[at + 1:], text[:at] + rng.choice(LETTERS) + text[at:], text[:at] + rng.choice(LETTERS) + text[at + 1:],
                text[:at] + text[at:at + 3] + text[at:]][kind]
    return text


class RandomGrammar:
    """Rules r0 (the root), r1, .. Before its first letter a choice uses only later rules, so no rule begins with
    itself."""
    def __init__(self, rng):
        self.rng, self.n = rng, rng.randrange(1, 5)
        self.rules = [[self.items(i) for _ in range(rng.randrange(1, 4))] + [[("t", rng.choice("ab01"))]] for i in range(self.n)]

    def items(self, rule):
        rng, letter, items = self.rng, False, []
        for _ in range(rng.randrange(1, 5)):
            kind = rng.randrange(6)
            if kind < 2:
                item, letter = ("t", "".join(rng.choice("ab()01é") for _ in range(rng.randrange(1, 3)))), True
            elif kind == 2:
                item, letter = ("c", rng.choice(["[ab]", "[0-9]", "[^ab\\n]", "[x-z(]"])), True
            else:
                if not letter and rule + 1 >= self.n:
                    continue
                item = ("r", rng.randrange(0 if letter else rule + 1, self.n))
            if rng.randrange(4) == 0:
                least = rng.randrange(3)
                item = ("x", item, least, rng.choice([least + rng.randrange(3), None]))
                letter = letter and (least > 0 or any(i[0] in "tc" for i in items))
            items.append(item)
        return items

    def text(self):
        name = lambda i: "root" if i == 0 else f"r{i}"
        def item(i):
            if i[0] == "t": return quoted(i[1])
            if i[0] == "c": return i[1]
            if i[0] == "r": return name(i[1])
            return "(" + item(i[1]) + ")" + ("*" if i[2:] == (0, None) else "{%d,%s}" % (i[2], "" if i[3] is None else i[3]))
        return "\n".join(name(k) + " ::= " + " | ".join(" ".join(map(item, c)) or '""' for c in choices) for k, choices in enumerate(self.rules))

    def sample(self, rule=0, depth=0):
        choices = self.rules[rule]
        return "".join(self.item(i, depth) for i in (choices[-1] if depth > 4 else self.rng.choice(choices)))

    def item(self, i, depth):
        if i[0] == "t": return i[1]
        if i[0] == "c": return self.rng.choice({"[ab]": "ab", "[0-9]": "0123456789", "[^ab\\n]": "01xyé()", "[x-z(]": "xyz("}[i[1]])
        if i[0] == "r": return self.sample(i[1], depth + 1)
        return "".join(self.item(i[1], depth + 1) for _ in range(self.rng.randrange(i[2], (i[2] + 3 if i[3] is None else i[3]) + 1)))


def grammars():
    for k in range(50):
        rng = random.Random(k)
        if k < len(BY_HAND):
            grammar, own = BY_HAND[k]
        else:
            random_one = RandomGrammar(rng)
            grammar = random_one.text()
            own = [t for t in (random_one.sample() for _ in range(40)) if len(t) < 80]
        texts = sorted(set(own) | {mutated(rng, rng.choice(own)) for _ in range(60)} | {"".join(rng.choice("ab01()") for _ in range(rng.randrange(6))) for _ in range(20)})
        read = xgrammar.Grammar.from_ebnf(grammar)
        yield {"grammar": grammar, "texts": texts, "takes": "".join("01"[accepts(read, t)] for t in texts)}


PATTERNS = [  # patterns as people write them
    "^[a-z]+$", "[0-9]", "^[A-Z][a-z]{2,5}$", r"^\d{4}-\d{2}-\d{2}$", r"^[^@\s]+@[^@\s]+\.[a-z]{2,}$", r"^#(?:[0-9a-f]{3}){1,2}$", "^a|b$", "a|^$", "", "^", "$", "^$",
    r"^(?<year>\d{2})/(\d)$", r"^\+?[0-9 ()-]{3,}$", r"^\w+(\.\w+)*$", r"^[\w.-]+$", r'^"[^"]*"$', r"^\\[tn]$", r"^[\t\n ]*$", r"^\S+\s\S+$", r"^\D\W$", r"^.$", r"^.{2}$", r"\.",
    r"^[^\x00-\x1f]+$", r"^[^]$", r"^\u{1F600}?$", "^\\ud83d\\ude00$", "^é😀?$", r"^[é-ü]$", r"^(a|ab)(c|bcd)(d*)$", r"^(a*)*b$", r"^(a?){3}$", r"^(|a)+$", "^a{0}$", "^(ab){2,}?c+?$", r"^[\]\\^]$",
    r"^[-a]$", r"^[a-]$", r"^[\d-]$", r"^[\b]$", r"^\/\$\{\}$", r"^[.*+]$", r"^\x41\u0042$", r"^(\n|\x7f|\r)$", r"^[\x08-\x0d]$", r'["\\]', r"^\v\f$", r"^[^\n]$", r"^\s$", r"^[\W]$", r"^[^\W]$",
]


def random_regex(rng, depth):
    kind = rng.randrange(6) if depth else rng.randrange(2)
    if kind == 0: return rng.choice(["a", "b", "\\\\", "\"", "\\n", "é", "😀", "\\.", "0"])
    if kind == 1: return rng.choice([".", "[ab]", "[^a]", "\\d", "\\w", "\\s", "\\W", "[0-9a-f]", "[^\\w\"]", "[\\t\\n]"])
    if kind < 4: return random_regex(rng, depth - 1) + random_regex(rng, depth - 1)
    if kind == 4: return "(" + random_regex(rng, depth - 1) + "|" + random_regex(rng, depth - 1) + ")"
    return "(?:" + random_regex(rng, depth - 1) + ")" + rng.choice(["*", "+", "?", "{2}", "{1,}", "{0,2}", "{1,3}?"])


def regexes():
    test = quickjs.Context().eval("(p, s) => new RegExp(p, 'u').test(s)")
    common = ["", "a", "b", "ab", "ba", "abc", "abcd", "aab", "b\n", "é", "😀", "\\", "\"", "\\n", "\t", "\n", "\r", "\v\f", "\x7f", "\b", "\x0b", "\u2028", "\u00a0", "\ufeff", "A", "AB", "-", "]", "^",
              ".", "*", "/${}", "#abc", "#abcdef", "2026-11-24", "26/1", "+12 (3)-4", "a.b", "a@b.de", "\"x\"", "Hello", "x y", "?!", "abababcc", "\\t", "_", "0", "ü"]
    for k in range(len(PATTERNS) + 150):
        rng = random.Random(k)
        pattern = PATTERNS[k] if k < len(PATTERNS) else random_regex(rng, 4)
        if k >= len(PATTERNS) and rng.randrange(4) == 0:
            pattern = rng.choice(["^" + pattern, pattern + "$", "^" + pattern + "$", "^" + pattern + "|" + random_regex(rng, 2) + "$"])
        texts = sorted(set(rng.sample(common, 24 if k >= len(PATTERNS) else len(common))) |
                       {"".join(rng.choice("aab\\\"\né😀.0") for _ in range(rng.randrange(6))) for _ in range(30)})
        yield {"regex": pattern, "texts": texts, "finds": "".join("01"[test(pattern, t)] for t in texts),
               "takes": "".join("01"[test("^(?:" + pattern + ")$", t)] for t in texts)}


def integers():
    names = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]
    for k in range(60):
        rng = random.Random(k)
        near = [0, 1, 9, 10, 99, 100, 999, 1000, 2**31, 2**53, 2**63 - 1, 2**64, 10**18, 10**29]
        reach = rng.choice([12, 120, 1200, None])
        value = lambda: rng.choice([-1, 1]) * (rng.choice(near) + rng.randrange(-2, 3)) if reach is None else rng.randrange(-reach, reach + 1)
        schema = {"type": "integer"}
        low, high = sorted([value(), value()])
        if rng.randrange(5): schema[rng.choice(names[::2])] = low - 2
        if rng.randrange(5): schema[rng.choice(names[1::2])] = high + 2
        if len(schema) == 1: schema["minimum"] = low
        ends = [v for k, v in schema.items() if k != "type"]
        values = {v + d for v in ends + [0] for d in range(-12, 13)} | {v * 10 + d for v in ends for d in (-1, 0, 1)} | {v // 10 for v in ends}
        if reach and reach <= 120: values |= set(range(-130, 131))
        if reach: values |= {rng.randrange(-10 * reach, 10 * reach) for _ in range(60)}
        values = sorted(v for v in values if abs(v) < 10**15 or len(schema) == 3)
        check = jsonschema.Draft202012Validator(schema)
        yield {"schema": json.dumps(schema), "texts": [str(v) for v in values], "takes": "".join("01"[check.is_valid(v)] for v in values)}


NAMES = ["a", "b", "c", "ab", "x1", ""]
NAME_PATTERNS = ["^a", "b$", "^[ab]{1,3}$", "a|b", "^(?!a)", "^x[0-9]+$", "^(a|bc)*$", "(^a$)|c"]


def random_leaf(rng):
    number = lambda: rng.choice([0, 1, 2, 5, 10, -1, -3, 0.5, 1.5, 2.25, -0.75, 100, 99.5])
    return rng.choice([
        lambda: {"type": rng.choice(["string", "integer", "number", "boolean", "null", "array", "object"])},
        lambda: {"enum": rng.sample(["a", "b", "ab", 1, 2, 1.5, None, True, False, [], [1], {"a": 1}, ""], rng.randint(1, 4))},
        lambda: {"const": rng.choice(["a", 1, None, True, "ab", 2])},
        lambda: {"type": "integer", "exclusiveMinimum": number()},
        lambda: {"type": "number", "maximum": number(), "minimum": -3},
        lambda: {"type": "string", "pattern": rng.choice(NAME_PATTERNS)},
        lambda: {"minLength": rng.randint(0, 2), "maxLength": rng.randint(0, 4), "pattern": rng.choice(NAME_PATTERNS)},
        lambda: {"multipleOf": rng.choice([1, 2, 0.5, 0.25, 5])},
        lambda: {"format": rng.choice(["date", "ipv4", "uuid", "unknown"])},
        lambda: rng.choice([True, False, {}])])()


def random_schema(rng, depth):
    if depth == 0 or rng.random() < 0.15:
        return random_leaf(rng)
    below = lambda: random_schema(rng, depth - 1)
    some = lambda most: [below() for _ in range(rng.randint(1, most))]
    kinds = [lambda: {"allOf": some(2)}, lambda: {"anyOf": some(3)}, lambda: {"oneOf": some(3)}, lambda: {"not": below()},
             lambda: {"if": below(), "then": below(), "else": below()},
             lambda: {"type": "object", "properties": {n: below() for n in sorted(rng.sample(NAMES, rng.randint(0, 3)))}},
             lambda: {"properties": {n: below() for n in sorted(rng.sample(NAMES, rng.randint(0, 3)))}},
             lambda: {"required": sorted(rng.sample(NAMES, rng.randint(0, 2)))}, lambda: {"additionalProperties": rng.choice([False, below()])},
             lambda: {"patternProperties": {p: below() for p in rng.sample(NAME_PATTERNS, rng.randint(1, 2))}},
             lambda: {"items": below()}, lambda: {"prefixItems": some(2)}, lambda: {"minItems": rng.randint(0, 2), "maxItems": rng.randint(1, 3)},
             lambda: {rng.choice(["minProperties", "maxProperties"]): rng.randint(0, 3)},
             lambda: {"propertyNames": rng.choice([{"maxLength": 1}, {"pattern": rng.choice(NAME_PATTERNS)}, {"enum": ["a", "b"]}])},
             lambda: {"dependentRequired": {rng.choice(NAMES): rng.sample(NAMES, 1)}}, lambda: {"contains": below()},
             lambda: {"$ref": rng.choice(["#/$defs/p", "#/$defs/q"])}, lambda: {"unevaluatedProperties": rng.choice([False, random_leaf(rng)])},
             lambda: {"dependentSchemas": {rng.choice(NAMES): below()}}]
    made = {}
    for _ in range(rng.choice([1, 1, 2, 3])):
        made.update(rng.choice(kinds)())
    return made


def random_value(rng, depth):
    kind = rng.randrange(9 if depth else 6)
    if kind < 6:
        return rng.choice([["", "a", "b", "ab", "abc", "bc", "x1", "2020-02-29", "2021-02-29", "1.2.3.4"], [0, 1, 2, 3, 5, 10, -1, -3, -4, 100, 101],
                           [0.5, 1.5, 2.25, -0.75, 99.5, 0.125], [None], [True, False], ["a", "b", 1]][kind])
    if kind == 6:
        return [random_value(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    return {n: random_value(rng, depth - 1) for n in sorted(rng.sample(NAMES + ["zz"], rng.randint(0, 3)))}


def schemas():
    """A grammar may refuse what is valid, because of the order of properties, but takes nothing that is not."""
    formats = jsonschema.FormatChecker(["date", "ipv4", "uuid"])
    for k in range(400):
        rng = random.Random(k)
        schema = random_schema(rng, rng.randint(1, 3))
        if isinstance(schema, dict):
            schema["$defs"] = {"p": random_leaf(rng), "q": random_leaf(rng)}
        check = jsonschema.Draft202012Validator(schema, format_checker=formats)
        values = [random_value(rng, 2) for _ in range(40)]
        yield {"schema": json.dumps(schema), "texts": [json.dumps(v, separators=(",", ":")) for v in values],
               "takes": "".join("01"[check.is_valid(v)] for v in values)}


def main():
    made = {"grammars": list(grammars()), "regexes": list(regexes()), "integers": list(integers()), "schemas": list(schemas())}
    for name, cases in made.items():
        verdicts = "".join(c["takes"] for c in cases)
        print(f"{name}: {len(cases)}, {len(verdicts)} texts, {verdicts.count('1')} taken")
    with open(ROOT / "tests/golden/grammars.json", "w") as out:
        lines = [json.dumps(name) + ": [\n" + ",\n".join(map(json.dumps, cases)) + "\n]" for name, cases in made.items()]
        out.write("{" + ",\n".join(lines) + "}\n")


main()
