"""The package lm_eval, by other authors, on a task of our own: its log-likelihoods from a server and from transformers. likelihoods.py URL MODEL

Needs lm-eval[api], torch, transformers and accelerate. Prints the largest difference of the sums of log-probabilities; status 1: over 1e-3.
"""

import pathlib
import sys
import tempfile

import lm_eval
from lm_eval.tasks import TaskManager

url, model = sys.argv[1:]
TASK = """task: ours
dataset_path: json
dataset_kwargs:
  data_files: {test: %s}
test_split: test
output_type: multiple_choice
doc_to_text: "{{q}}"
doc_to_choice: "{{choices}}"
doc_to_target: gold
target_delimiter: ""
metric_list:
  - metric: acc
""" % (pathlib.Path(__file__).parent / "task" / "ours.jsonl")


def likelihoods(name, arguments, folder):
    got = lm_eval.simple_evaluate(model=name, model_args=arguments, tasks=["ours"], task_manager=TaskManager(include_path=folder), log_samples=True, bootstrap_iters=0, device="cpu")
    return [(float(r[0][0]), str(r[0][1])) for s in got["samples"]["ours"] for r in s["resps"]]


with tempfile.TemporaryDirectory() as folder:
    pathlib.Path(folder, "ours.yaml").write_text(TASK)
    theirs = likelihoods("hf", f"pretrained={model},dtype=float32", folder)
    ours = likelihoods("local-completions", f"model=any,base_url={url}/v1/completions,num_concurrent=4,tokenizer_backend=huggingface,tokenizer={model}", folder)
worst = max(abs(a[0] - b[0]) for a, b in zip(ours, theirs))
print(f"{len(ours)} log-likelihoods, the largest difference {worst:.2g}")
sys.exit(0 if len(ours) == len(theirs) == 9 and worst < 1e-3 and [o[1] for o in ours] == [t[1] for t in theirs] else 1)
