"""The package guidellm: see shared.py. A benchmark of a few requests over both routes, whose texts are those of plain HTTP."""

import importlib.metadata
import json
import pathlib
import subprocess
import sys
import tempfile

from shared import URL, chat, completion, same

PROMPTS, TOKENS = ["Name three colours.", "Count to five.", "What is the sky?"], 16
HELD = {"max_tokens": TOKENS, "ignore_eos": True}
EXPECTED = {
    "/v1/chat/completions": {chat([{"role": "user", "content": p}], **HELD) for p in PROMPTS},
    "/v1/completions": {completion(prompt=p, **HELD) for p in PROMPTS},
}
for route, expected in EXPECTED.items():
    with tempfile.TemporaryDirectory() as folder:
        data, out = pathlib.Path(folder, "prompts.jsonl"), pathlib.Path(folder, "out.json")
        data.write_text("".join(json.dumps({"prompt": p, "output_tokens_count": TOKENS}) + "\n" for p in PROMPTS))
        subprocess.run(
            [pathlib.Path(sys.executable).parent / "guidellm", "run", "--backend", f"kind=openai_http,target={URL},request_format={route}", "--profile",
             "kind=concurrent,streams=2", "--constraint", f"kind=max_requests,count={len(PROMPTS)}", "--data", f"kind=json_file,path={data}", "--output",
             f"kind=json,path={out}", "--disable-console"], check=True, stdout=sys.stderr)
        requests = json.loads(out.read_text())["benchmarks"][0]["requests"]
    assert not requests["errored"] and not requests["incomplete"] and len(requests["successful"]) == len(PROMPTS), (route, requests)
    same({r["output"] for r in requests["successful"]}, expected, route)
    assert all(r["output_tokens"] == TOKENS and r["prompt_tokens"] > 0 for r in requests["successful"]), requests
print("guidellm", importlib.metadata.version("guidellm"))
