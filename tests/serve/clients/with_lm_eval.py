"""The package lm-eval: see shared.py. A task of our own, whose answers are those of plain HTTP."""

import importlib.metadata
import json
import pathlib
import tempfile

import lm_eval
from lm_eval.tasks import TaskManager
from shared import BASE, N, chat, completion, same

QUESTIONS = ["Name three colours.", "What is the capital of France?", "Count to five."]
TASK = """task: ours
dataset_path: json
dataset_kwargs:
  data_files: {test: %s}
test_split: test
output_type: generate_until
doc_to_text: "{{q}}"
doc_to_target: "{{a}}"
generation_kwargs: {until: ["</s>"], max_gen_toks: %d, temperature: 0}
metric_list:
  - metric: exact_match
"""


def score(name, route, answers, chats):
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder, "ours.jsonl")
        data.write_text("".join(json.dumps({"q": q, "a": a}) + "\n" for q, a in zip(QUESTIONS, answers)))
        pathlib.Path(folder, "ours.yaml").write_text(TASK % (data, N))
        got = lm_eval.simple_evaluate(
            model=name, model_args=f"model=any,base_url={BASE}{route},num_concurrent=2,tokenizer_backend=None,tokenized_requests=False", tasks=["ours"],
            task_manager=TaskManager(include_path=folder), apply_chat_template=chats, log_samples=True, bootstrap_iters=0)
    same([s["resps"][0][0] for s in got["samples"]["ours"]], answers, name)
    assert got["results"]["ours"]["exact_match,none"] == 1, got["results"]


score("local-chat-completions", "/chat/completions", [chat([{"role": "user", "content": q}], stop=["</s>"]) for q in QUESTIONS], True)
score("local-completions", "/completions", [completion(prompt=q, stop=["</s>"]) for q in QUESTIONS], False)
print("lm-eval", importlib.metadata.version("lm-eval"))
