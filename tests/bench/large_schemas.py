#!/usr/bin/env python3
"""How long large schemas of several kinds take to compile or to be refused, and the most memory of the program that does so.

    tests/bench/large_schemas.py build/tests/accepts

Milliseconds are of processor time, the average of ten."""
import json, os, pathlib, sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "golden"))
from program import Program


def objects(n, of): return {"type": "object", "properties": {f"property_{i}": of(i) for i in range(n)}}


def nested(depth):
    schema = {"type": "string"}
    for i in range(depth):
        other = {"type": "array", "items": {"type": "number", "minimum": 0.5, "maximum": 99.5}, "maxItems": 5}
        schema = {"type": "object", "properties": {f"level_{i}": schema, "other": other}, "required": [f"level_{i}"]}
    return schema


FORMATS = ["date-time", "uri", "email", "uuid", "ipv6", "hostname"]
SCHEMAS = {
    "4,000 strings in an enum": {"enum": [f"value number {i:05d} x" for i in range(4000)]},
    "1,000 properties": objects(1000, lambda i: {"type": ["string", "integer"], "description": "x" * 40}),
    "800 definitions that refer to each other": {
        "$defs": {f"d{i}": {"type": "object", "properties": {"a": {"type": "string", "maxLength": 20}, "b": {"$ref": f"#/$defs/d{(i * 7 + 1) % 800}"}}, "required": ["a"]}
                  for i in range(800)}, "$ref": "#/$defs/d0"},
    "700 alternatives": {"anyOf": [{"type": "object", "properties": {"kind": {"const": f"kind{i}"}, "value": {"type": "integer", "minimum": 0, "maximum": i}},
                                    "required": ["kind"], "additionalProperties": False} for i in range(700)]},
    "1,000 properties, 100 of them required": {**objects(1000, lambda i: {"type": "integer", "minimum": i}), "required": [f"property_{i}" for i in range(0, 1000, 10)]},
    "60 objects in each other": nested(60),
    "400 objects in each other": nested(400),
    "500 patterns with lengths": objects(500, lambda i: {"type": "string", "pattern": f"^[a-z]{{1,8}}-{i}(foo|bar)?$", "maxLength": 30}),
    "1,100 patterns with lengths": objects(1100, lambda i: {"type": "string", "pattern": f"^[a-z]{{1,8}}-{i}(foo|bar)?$", "maxLength": 30}),
    "1,700 formats": objects(1700, lambda i: {"type": "string", "format": FORMATS[i % 6]}),
}
TICK = 1000 / os.sysconf("SC_CLK_TCK")


def spent(pid): return sum(map(int, pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13])) * TICK


for name, schema in SCHEMAS.items():
    text, program = json.dumps(schema, separators=(",", ":")), Program(sys.argv[1])
    pid, runs = program.process.pid, 10
    before = spent(pid)
    for _ in range(runs): program.ask("S", text)
    most = next(line.split()[1] for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(f"{name}: {len(text) / 1000:.0f} KB, {(spent(pid) - before) / runs:.0f} ms, {int(most) / 1024:.0f} MB{': ' + program.refusal[-70:] if program.refusal else ''}")
    program.process.kill()
