"""Conversations whose roles come in any order, as Hugging Face transformers writes them: tests/golden/chat/orders.json,
for tests/unit/test_chat.c.

The templates are those of make_chat.py that write each message with its role. Needs transformers and jinja2.
"""
import json

from make_chat import DATE, TEMPLATES, here, strftime_now
from transformers.utils.chat_template_utils import _compile_jinja_template

ORDERS = ["system user user", "user system", "user assistant", "system", "assistant user", "system system user", "user user system user", "user assistant assistant system user",
          "system user assistant", "user assistant user system"]
TEXTS = ["Be brief.", "  Hello! \n", "Who\n\nwrote it?", "más \u00a0", "ok"]


def conversation(template, bos, eos, order):
    messages = [{"role": role, "content": TEXTS[i % len(TEXTS)]} for i, role in enumerate(order.split())]
    compiled = _compile_jinja_template(template)
    compiled.globals["strftime_now"] = strftime_now
    return {"messages": messages, "text": compiled.render(messages=messages, add_generation_prompt=True, bos_token=bos, eos_token=eos)}


golden = []
for model in ("smollm2", "chatml", "llama3", "llama3.1", "llama3.2"):
    layout, template, bos, eos = TEMPLATES[model]
    golden.append({"model": model, "template": template, "tokens": {"bos_token": bos, "eos_token": eos}, "cases": [conversation(template, bos, eos, order) for order in ORDERS]})
(here / "chat" / "orders.json").write_text(json.dumps({"today": DATE, "templates": golden}, ensure_ascii=False, indent=1) + "\n")
