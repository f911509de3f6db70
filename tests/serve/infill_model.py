"""Gives a copy of models/mini-target marks for fill-in-the-middle: infill_model.py FOLDER. They take the ids of its last tokens and the place of their merges."""

import json
import pathlib
import sys

MARKS = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"]

path = pathlib.Path(sys.argv[1]) / "tokenizer.json"
file = json.loads(path.read_text())
model, size = file["model"], len(file["model"]["vocab"])
model["vocab"] = {token: i for token, i in model["vocab"].items() if i < size - len(MARKS)}
model["merges"] = [pair for pair in model["merges"] if (pair if isinstance(pair, str) else " ".join(pair)).replace(" ", "") in model["vocab"]]
like = file["added_tokens"][0]
file["added_tokens"] += [{**like, "id": size - len(MARKS) + i, "content": mark} for i, mark in enumerate(MARKS)]
path.write_text(json.dumps(file))
