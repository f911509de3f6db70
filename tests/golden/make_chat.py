"""Conversations as Hugging Face transformers writes them: tests/golden/chat/golden.json, for tests/unit/test_chat.c.

usage: make_chat.py [FOLDER]      with FOLDER: also writes FOLDER/golden.json for the published templates FOLDER/*.jinja

The ids of all conversations come from apply_chat_template with a small tokenizer of the model's kind
(tests/golden/tokenizer/kinds) to which the template's own tokens are added. For SmolLM2 there are also the ids of
the tokenizer in models/SmolLM2-135M-Instruct.Q4_1.gguf (scripts/get-model).

The templates below contain what the published ones contain for system, user and assistant. What the published ones
contain for tools is left out; check_templates.py compares published ones. Needs transformers, torch, gguf
and jinja2.
"""
import datetime, json, pathlib, sys

from tokenizers import AddedToken, Tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerFast
from transformers.utils.chat_template_utils import _compile_jinja_template

SYSTEM_OWN = "{% if messages[0]['role'] == 'system' %}{% set system = messages[0]['content'] %}{% set messages = messages[1:] %}{% endif %}"
DEEPSEEK = (
    "{{bos_token}}{% for m in messages %}{% if m['role'] == 'system' %}{{m['content']}}{% endif %}{% endfor %}"
    "{% for m in messages %}{% if m['role'] == 'user' %}{{'<｜User｜>' + m['content']}}{% endif %}"
    "{% if m['role'] == 'assistant' %}{% set content = m['content'] %}{% if '</think>' in content %}"
    "{% set content = content.split('</think>')[-1] %}{% endif %}{{'<｜Assistant｜>' + content + '<｜end▁of▁sentence｜>'}}{% endif %}{% endfor %}"
)
MISTRAL = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token}}{% else %}{{ raise_exception('roles') }}{% endif %}{% endfor %}"
)
MISTRAL_V3 = (
    SYSTEM_OWN + '{#- [AVAILABLE_TOOLS] -#}{{- bos_token }}{%- for message in messages %}{%- if message["role"] == "user" %}'
    '{%- if loop.last and system is defined %}{{- "[INST] " + system + "\\n\\n" + message["content"] + "[/INST]" }}'
    '{%- else %}{{- "[INST] " + message["content"] + "[/INST]" }}{%- endif %}'
    '{%- else %}{{- " " + message["content"]|trim + eos_token}}{%- endif %}{%- endfor %}'
)
QWEN3 = r"""{%- if messages[0].role == 'system' %}
    {{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == "user" %}
        {{- '<|im_start|>user\n' + message.content + '<|im_end|>\n' }}
    {%- elif message.role == "assistant" %}
        {%- set content = message.content %}
        {%- if '</think>' in content %}
            {%- set content = content.split('</think>')[-1].lstrip('\n') %}
        {%- endif %}
        {{- '<|im_start|>assistant\n' + content + '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}"""
VICUNA_SYSTEM = (
    "A chat between a curious user and an artificial intelligence assistant. "
    "The assistant gives helpful, detailed, and polite answers to the user\\'s questions."
)
LLAMA31 = r"""{{- bos_token }}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\n\n" }}
{{- "Cutting Knowledge Date: December 2023\n" }}
{{- "Today Date: " + date_string + "\n\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}"""

SMOLLM3 = r"""{%- set reasoning_mode = "/think" -%}
{{- "<|im_start|>system\n" -}}
{%- if messages[0].role == "system" -%}
  {%- set system_message = messages[0].content -%}
  {%- if "/no_think" in system_message -%}{%- set reasoning_mode = "/no_think" -%}{%- endif -%}
  {%- set custom_instructions = system_message.replace("/no_think", "").replace("/think", "").rstrip() -%}
{%- endif -%}
{%- if "/system_override" in system_message -%}
  {{- custom_instructions.replace("/system_override", "").rstrip() -}}
  {{- "<|im_end|>\n" -}}
{%- else -%}
  {{- "## Metadata\n\n" -}}
  {{- "Knowledge Cutoff Date: June 2025\n" -}}
  {%- set today = strftime_now("%d %B %Y") -%}
  {{- "Today Date: " ~ today ~ "\n" -}}
  {{- "Reasoning Mode: " + reasoning_mode + "\n\n" -}}
  {{- "## Custom Instructions\n\n" -}}
  {%- if custom_instructions -%}
    {{- custom_instructions + "\n\n" -}}
  {%- elif reasoning_mode == "/think" -%}
    {{- "You are a helpful AI assistant named SmolLM, trained by Hugging Face. Your role is to think, and then to answer.\n\n" -}}
  {%- else -%}
    {{- "You are a helpful AI assistant named SmolLM, trained by Hugging Face.\n\n" -}}
  {%- endif -%}
{%- endif -%}
{# ───── main loop ───── #}
{%- for message in messages -%}
  {%- if message.role == "user" -%}
    {{ "<|im_start|>" + message.role + "\n" + message.content + "<|im_end|>\n" }}
  {%- elif message.role == "assistant" -%}
    {%- if reasoning_mode == "/think" -%}
      {{ "<|im_start|>assistant\n" + message.content.lstrip("\n") + "<|im_end|>\n" }}
    {%- else -%}
      {{ "<|im_start|>assistant\n" + "<think>\n\n</think>\n" + message.content.lstrip("\n") + "<|im_end|>\n" }}
    {%- endif -%}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {%- if reasoning_mode == "/think" -%}{{ "<|im_start|>assistant\n" }}{%- else -%}{{ "<|im_start|>assistant\n" + "<think>\n\n</think>\n" }}{%- endif -%}
{%- endif -%}"""
SMOLLM3_CLOSED = (SMOLLM3.replace('{%- endif -%}\n{# ───── main', '{%- endif -%}\n{{- "<|im_end|>\\n" -}}\n{# ───── main').replace("/system_override", "/never")
                  .replace('  {%- set today = strftime_now("%d %B %Y") -%}\n  {{- "Today Date: " ~ today ~ "\\n" -}}\n', ""))
PHI3 = ("{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}{{'<|user|>' + '\n' + message['content'] + '<|end|>' + '\n' + '<|assistant|>' + '\n'}}"
        "{% elif message['role'] == 'assistant' %}{{message['content'] + '<|end|>' + '\n'}}{% else %}{{ raise_exception('system') }}{% endif %}{% endfor %}")
PHI35 = ("{% for message in messages %}{% if message['role'] == 'system' and message['content'] %}{{'<|system|>\n' + message['content'] + '<|end|>\n'}}"
         "{% elif message['role'] == 'user' %}{{'<|user|>\n' + message['content'] + '<|end|>\n'}}{% elif message['role'] == 'assistant' %}"
         "{{'<|assistant|>\n' + message['content'] + '<|end|>\n'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}")
PHI4_MINI = ("{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}"
             "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% else %}{{ eos_token }}{% endif %}")
PHI4 = ("{% for message in messages %}{% if (message['role'] == 'system') %}{{'<|im_start|>system<|im_sep|>' + message['content'] + '<|im_end|>'}}"
        "{% elif (message['role'] == 'user') %}{{'<|im_start|>user<|im_sep|>' + message['content'] + '<|im_end|>'}}{% elif (message['role'] == 'assistant') %}"
        "{{'<|im_start|>assistant<|im_sep|>' + message['content'] + '<|im_end|>'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant<|im_sep|>' }}{% endif %}")
# Gemma's template, in our own words
GEMMA = ("{{ bos_token }}{% set ns = namespace(first='') %}{% for m in messages %}{% if m.role == 'system' %}SYSTEM{% else %}"
         "{{ '<start_of_turn>' + ('user' if m.role == 'user' else 'model') + '\n' + ns.first + m.content|trim + '<end_of_turn>\n' }}{% set ns.first = '' %}"
         "{% endif %}{% endfor %}{{ '<start_of_turn>model\n' }}")
GEMMA2, GEMMA3 = (GEMMA.replace("SYSTEM", how) for how in ("{{ raise_exception('System role not supported') }}", "{% set ns.first = m.content + '\n\n' %}"))
GEMMA4 = (r"{%- macro shown(text) -%}{%- set ns = namespace(all='') -%}{%- for part in text.split('<channel|>') -%}{%- set ns.all = ns.all + part.split('<|channel>')[0] -%}"
          r"{%- endfor -%}{{- ns.all|trim -}}{%- endmacro -%}{{- bos_token -}}{%- for m in messages -%}{{- '<|turn>' + ('model' if m.role == 'assistant' else m.role) + '\n' -}}"
          r"{%- if m.role == 'assistant' -%}{{- shown(m.content) -}}{%- else -%}{{- m.content|trim -}}{%- endif -%}{{- '<turn|>\n' -}}{%- endfor -%}{{- '<|turn>model\n' -}}")
GRANITE = (r"{%- if messages[0]['role'] == 'system' %}{%- set system_message = messages[0]['content'] %}{%- set loop_messages = messages[1:] %}{%- else %}DEFAULT"
           r"{%- set loop_messages = messages %}{%- endif %}{%- if system_message %}{{- '<|start_of_role|>system<|end_of_role|>' + system_message + '<|end_of_text|>\n' }}{%- endif %}"
           r"{%- for message in loop_messages %}{{- '<|start_of_role|>' + message['role'] + '<|end_of_role|>' + message['content'] + '<|end_of_text|>\n' }}"
           r"{%- if loop.last and add_generation_prompt %}{{- '<|start_of_role|>assistant' }}{{- '<|end_of_role|>' }}{%- endif %}{%- endfor %}")
GRANITE30, GRANITE33, GRANITE40 = (GRANITE.replace("DEFAULT", how) for how in (
    "{%- set system_message = '' %}",
    """{%- set system_message = "Knowledge Cutoff Date: April 2024. Today's Date: " + strftime_now('%B %d, %Y') + ". You are Granite, developed by IBM." %}"""
    """{%- set system_message = system_message + " You are a helpful AI assistant." %}""",
    "{%- set g4_default_system_message = 'You are a helpful assistant. Please ensure responses are professional, accurate, and safe.' %}"
    "{%- set system_message = g4_default_system_message %}"))
GRANITE31 = GRANITE33.replace("strftime_now('%B %d, %Y')", '"December 12, 2024"').replace("2024. Today's", r"2024.\nToday's").replace('". You', r'".\nYou').replace('Date: " + "', "Date: ").replace('2024" + "', "2024")
OLMO2 = ("{{ bos_token }}{% for message in messages %}{% if message['role'] == 'system' %}{{ '<|system|>\n' + message['content'] + '\n' }}{% elif message['role'] == 'user' %}"
         "{{ '<|user|>\n' + message['content'] + '\n' }}{% elif message['role'] == 'assistant' %}{{ '<|assistant|>\n'  + message['content'] + eos_token + '\n' }}{% endif %}"
         "{% if loop.last and add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}{% endfor %}")

# text only, without functions; the instructed models have two literals as system text, and those that think complete a
# given one
OLMO3_BEGIN = "{%- set has_system = messages|selectattr('role', 'equalto', 'system')|list|length > 0 -%}{%- if not has_system -%}{{- '<|im_start|>system\n"
OLMO3_TURNS = ("{%- elif message['role'] == 'user' -%}{{- '<|im_start|>user\n' + message['content'] + '<|im_end|>\n' -}}{%- elif message['role'] == 'assistant' -%}"
               "{{- '<|im_start|>assistant\n' -}}{{- message['content'] -}}{%- if not loop.last -%}{{- '<|im_end|>' + '\n' -}}{%- else -%}{{- eos_token -}}{%- endif -%}"
               "{%- endif -%}{%- if loop.last and add_generation_prompt -%}{{- '<|im_start|>assistant\n")
NO_FUNCTIONS = "You do not currently have access to any functions. <functions></functions>"
OLMO3 = (OLMO3_BEGIN + "You are a helpful function-calling AI assistant. ' -}}{%- if tools is none or (tools | length) == 0 -%}{{- '" + NO_FUNCTIONS + "<|im_end|>\n' -}}"
         "{%- endif -%}{%- endif -%}{%- for message in messages -%}{%- if message['role'] == 'system' -%}{{- '<|im_start|>system\n' + message['content'] -}}"
         "{{- '<|im_end|>\n' -}}" + OLMO3_TURNS + "' -}}{%- endif -%}{%- endfor -%}")
OLMO3_THINK = (OLMO3_BEGIN + "You are OLMo, a helpful function-calling AI assistant built by Ai2. " + NO_FUNCTIONS + "<|im_end|>\n' }}{%- endif -%}"
               "{%- for message in messages -%}{%- if message['role'] == 'system' -%}{{ '<|im_start|>system\n' + message['content'] }}{{ ' " + NO_FUNCTIONS + "<|im_end|>\n' }}"
               + OLMO3_TURNS + "<think>' }}{%- endif -%}{%- endfor -%}")

HARMONY = r"""{{- "<|start|>system<|message|>" }}{%- set model_identity = "You are ChatGPT, a large language model trained by OpenAI." %}
{{- model_identity + "\nKnowledge cutoff: 2024-06\nCurrent date: " + strftime_now("%Y-%m-%d") + "\n\nReasoning: medium\n\n" }}
{{- "# Valid channels: analysis, commentary, final. Channel must be included for every message.<|end|>" }}
{%- for m in messages %}{%- if m.role == "system" and m.content %}{{- "<|start|>developer<|message|># Instructions\n\n" + m.content + "\n\n<|end|>" }}
{%- elif m.role == "user" %}{{- "<|start|>user<|message|>" + m.content + "<|end|>" }}
{%- elif m.role == "assistant" %}{{- "<|start|>assistant<|channel|>final<|message|>" + m.content + "<|end|>" }}{%- endif %}{%- endfor %}
{%- if add_generation_prompt %}{{- "<|start|>assistant" }}{%- endif %}"""
GLM45 = r"""[gMASK]<sop>{%- for m in messages %}{%- if m.role == "system" %}{{- "<|system|>\n" + m.content }}
{%- elif m.role == "user" %}{{- "<|user|>\n" + m.content }}{%- elif m.role == "assistant" %}{%- set content = m.content.split('</think>')[-1].strip() %}
{{- "<|assistant|>\n<think></think>" + ("\n" + content if content else "") }}{%- endif %}{%- endfor %}{%- if add_generation_prompt %}{{- "<|assistant|>" }}{%- endif %}"""

# name of the model -> the layout (runtime/chat/layouts/) that resembles it, its template, its tokens
TEMPLATES = {
    "smollm2": ("chatml", "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are a helpful AI assistant named "
                "SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
                "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}", "", ""),
    "qwen2.5": ("chatml", "{%- if messages[0]['role'] == 'system' %}{{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}{%- else %}"
                "{{- '<|im_start|>system\\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\\n' }}{%- endif %}"
                "{%- for message in messages %}{%- if message.role != 'system' %}{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}"
                "{%- endif %}{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}", "", ""),
    "qwen3": ("chatml", QWEN3, "", ""),
    "qwen3-thinking": ("chatml", QWEN3.replace(r"{{- '<|im_start|>assistant\n' }}", r"{{- '<|im_start|>assistant\n<think>\n' }}"), "", ""),
    "chatml": ("chatml", "{% for m in messages %}{{'<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{{ '<|im_start|>assistant\\n' }}", "", ""),
    "llama2": ("llama2", SYSTEM_OWN + "{% for m in messages %}{% if loop.index0 == 0 and system is defined %}{% set content = '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + m['content'] %}"
               "{% else %}{% set content = m['content'] %}{% endif %}{% if m['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
               "{% else %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}", "<s>", "</s>"),
    "llama3": ("llama3", "{% for m in messages %}{% set content = '<|start_header_id|>' + m['role'] + '<|end_header_id|>\n\n'+ m['content'] | trim + '<|eot_id|>' %}"
               "{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}",
               "<|begin_of_text|>", "<|eot_id|>"),
    "llama3.1": ("llama3.1", LLAMA31.replace("strftime_now is defined", "false").replace('strftime_now("%d %b %Y")', '""'), "<|begin_of_text|>", "<|eot_id|>"),
    "llama3.2": ("llama3.1", LLAMA31, "<|begin_of_text|>", "<|eot_id|>"),
    "mistral-v0.2": ("mistral", MISTRAL, "<s>", "</s>"),
    "mistral-v0.1": ("mistral-v0.1", MISTRAL.replace("+ eos_token}}", "+ eos_token + ' ' }}"), "<s>", "</s>"),
    "mistral-v1": ("mistral-v1", SYSTEM_OWN + "{{- bos_token }}{%- for m in messages %}{%- if m['role'] == 'user' %}{%- if loop.first and system is defined %}"
                   "{{- ' [INST] ' + system + '\\n\\n' + m['content'] + ' [/INST]' }}{%- else %}{{- ' [INST] ' + m['content'] + ' [/INST]' }}{%- endif %}"
                   "{%- else %}{{- ' ' + m['content'] + eos_token}}{%- endif %}{%- endfor %}", "<s>", "</s>"),
    "mistral-v3": ("mistral-v3", MISTRAL_V3, "<s>", "</s>"),
    "mistral-nemo": ("mistral-v3-tekken", MISTRAL_V3.replace('"[INST] "', '"[INST]"').replace('" " + message["content"]|trim', 'message["content"]'), "<s>", "</s>"),
    "mistral-v7": ("mistral-v7", "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}{{ '[INST] ' + m['content'] + '[/INST]' }}{% elif m['role'] == 'system' %}"
                   "{{ '[SYSTEM_PROMPT] ' + m['content'] + '[/SYSTEM_PROMPT]' }}{% else %}{{ ' ' + m['content'] + eos_token }}{% endif %}{% endfor %}", "<s>", "</s>"),
    "vicuna-lines": ("vicuna-lines", "{% if messages[0]['role'] == 'system' %}{% set system = messages[0]['content'].strip() + '\\n\\n' %}{% set messages = messages[1:] %}{% else %}"
                     "{% set system = '' %}{% endif %}{{ bos_token + system }}{% for message in messages %}{% if message['role'] == 'user' %}"
                     "{{ 'USER: ' + message['content'].strip() + '\\n' }}{% else %}{{ 'ASSISTANT: ' + message['content'].strip() + eos_token + '\\n' }}{% endif %}{% endfor %}"
                     "{{ 'ASSISTANT:' }}", "<s>", "</s>"),
    "vicuna-spaces": ("vicuna-spaces", SYSTEM_OWN + "{% if system is not defined %}{% set system = '" + VICUNA_SYSTEM + "' %}{% endif %}{{ system }}{% for m in messages %}"
                      "{% if m['role'] == 'user' %}{{ ' USER: ' + m['content'] }}{% else %}{{ ' ASSISTANT: ' + m['content'] + eos_token }}{% endif %}{% endfor %}{{ ' ASSISTANT:' }}",
                      "", "</s>"),
    "vicuna": ("vicuna", SYSTEM_OWN + "{% if system is not defined %}{% set system = '" + VICUNA_SYSTEM + "' %}{% endif %}{{ bos_token + system + ' ' }}{% for m in messages %}"
               "{% if m['role'] == 'user' %}{{ 'USER: ' + m['content'] + ' ' }}{% else %}{{ 'ASSISTANT: ' + m['content'] + eos_token }}{% endif %}{% endfor %}{{ 'ASSISTANT:' }}",
               "<s>", "</s>"),
    "zephyr": ("zephyr", "{% for message in messages %}\n{% if message['role'] == 'user' %}\n{{ '<|user|>\n' + message['content'] + eos_token }}\n{% elif message['role'] == 'system' %}\n"
               "{{ '<|system|>\n' + message['content'] + eos_token }}\n{% elif message['role'] == 'assistant' %}\n{{ '<|assistant|>\n'  + message['content'] + eos_token }}\n{% endif %}\n"
               "{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}", "<s>", "</s>"),
    "deepseek-r1": ("deepseek-r1", DEEPSEEK + "{% if add_generation_prompt %}{{'<｜Assistant｜><think>\\n'}}{% endif %}", "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"),
    "deepseek-r1-first": ("deepseek-r1", DEEPSEEK + "{% if add_generation_prompt %}{{'<｜Assistant｜>'}}{% endif %}", "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"),
    "smollm3": ("smollm3", SMOLLM3, "", ""), "smollm3-closed": ("smollm3", SMOLLM3_CLOSED, "", ""),
    "phi3": ("phi3-no-system", PHI3, "<s>", "<|endoftext|>"), "phi3.5": ("phi3", PHI35, "", "<|endoftext|>"),
    "phi4": ("phi4", PHI4, "", "<|im_end|>"), "phi4-mini": ("phi4-mini", PHI4_MINI, "", "<|endoftext|>"),
    "gemma2": ("gemma2", GEMMA2, "<bos>", "<eos>"), "gemma3": ("gemma3", GEMMA3, "<bos>", "<eos>"), "gemma4": ("gemma4", GEMMA4, "<bos>", "<eos>"),
    "gemma4-no-reasoning": ("gemma4", GEMMA4 + r"{{- '<|channel>thought\n<channel|>' -}}", "<bos>", "<eos>"),
    "granite3.0": ("granite", GRANITE30, "", ""), "granite3.1": ("granite", GRANITE31, "", ""), "granite3.3": ("granite", GRANITE33, "", ""),
    "granite4.0": ("granite", GRANITE40, "", ""), "olmo2": ("olmo2", OLMO2, "<|endoftext|>", "<|endoftext|>"),
    "gpt-oss": ("harmony", HARMONY, "", "<|return|>"), "glm4.5": ("glm4.5", GLM45, "", "<|endoftext|>"),
    "olmo3": ("chatml", OLMO3, "", "<|endoftext|>"), "olmo3-think": ("chatml", OLMO3_THINK, "", "<|endoftext|>"),
}
# layout -> the kind of tokenizer that models with it have, and the tokens that such a model adds
CHATML, SENTENCEPIECE = ["<|im_start|>", "<|im_end|>"], ["<s>", "</s>"]
HEADERS = ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
MARKS, SYSTEM_MARKS = ["[INST]", "[/INST]"], ["[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"]
TOKENIZERS = {
    "chatml": ("qwen2", CHATML), "llama2": ("llama2", SENTENCEPIECE), "llama3": ("llama3", HEADERS), "llama3.1": ("llama3", HEADERS),
    "mistral": ("llama2", SENTENCEPIECE), "mistral-v0.1": ("llama2", SENTENCEPIECE), "mistral-v1": ("metaspace_first", SENTENCEPIECE + MARKS),
    "mistral-v3": ("llama2", SENTENCEPIECE + MARKS), "mistral-v3-tekken": ("tekken", SENTENCEPIECE + MARKS),
    "mistral-v7": ("llama2", SENTENCEPIECE + MARKS + SYSTEM_MARKS), "vicuna-lines": ("llama2", SENTENCEPIECE),
    "vicuna-spaces": ("llama2", SENTENCEPIECE), "vicuna": ("llama2", SENTENCEPIECE), "zephyr": ("llama2", SENTENCEPIECE),
    "deepseek-r1": ("llama3", ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<think>", "</think>"]),
    "smollm3": ("llama3", [*CHATML, "<think>", "</think>"]), "phi3": ("phi3", []), "phi3-no-system": ("phi3", []), "phi4": ("cl100k", []),
    "phi4-mini": ("o200k", ["<|system|>", "<|assistant|>"]), "gemma2": ("gemma", []), "gemma3": ("gemma", []), "gemma4": ("gemma", ["<|channel>", "<channel|>"]),
    "granite": ("smollm", ["<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>"]), "olmo2": ("cl100k", []),
    "harmony": ("o200k", ["<|start|>", "<|channel|>", "<|message|>", "<|return|>"]),
    "glm4.5": ("cl100k", ["[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<think>", "</think>"]),
}
CONVERSATIONS = [
    (None, ["Hello!"]),
    ("Be brief.", ["Hello!"]),
    (None, ["Who wrote Faust?", "Goethe did.", "When?", "In 1808 and 1832.", "Thanks."]),
    ("  You are terse.\n", ["  two  words \n", " an answer \u00a0", "\u3000más\n\nlines\t", "", "ok"]),
    (None, ["Think!", "<think>\nhm </think> no\n</think>\n\nSo it is.", "More."]),
    ("Be brief. /no_think ", ["Hi", "\n\n<|channel>thought\nhm <channel|> Yes.<|channel>more\n<channel|>\nNo <|channel>.", "More."]),
    ("/no_think", ["Hi"]),
    ("/system_override Talk like a pirate. /think \n", ["Hi"]),
]
DATE = "05 Aug 2025"


def messages_of(system, turns):
    messages = [{"role": "system", "content": system}] if system is not None else []
    return messages + [{"role": "assistant" if i % 2 else "user", "content": text} for i, text in enumerate(turns)]


def strftime_now(form):
    return datetime.datetime.strptime(DATE, "%d %b %Y").strftime(form)


def render(template, system, turns, bos, eos):
    compiled = _compile_jinja_template(template)
    compiled.globals["strftime_now"] = strftime_now
    try:
        return compiled.render(messages=messages_of(system, turns), add_generation_prompt=True, bos_token=bos, eos_token=eos)
    except Exception as failure:  # a template may refuse a system text
        if system is None:
            raise failure
        return None


def small_tokenizer(layout, template, bos, eos):
    kind, added = TOKENIZERS[layout]
    small = Tokenizer.from_file(str(here / "tokenizer" / "kinds" / f"{kind}.json"))
    added = [token for token in added if small.token_to_id(token) is None]
    small.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in added])
    names = {name: token for name, token in (("bos_token", bos), ("eos_token", eos)) if token}
    return kind, added, PreTrainedTokenizerFast(tokenizer_object=small, chat_template=template, **names)


def describe(model, layout, template, bos, eos):
    """Returns golden.json's entry of a template. If there is no layout, it is a published one, and has texts only."""
    entry = {"model": model, "template": template, "tokens": {"bos_token": bos, "eos_token": eos}}
    if layout:
        entry["tokenizer"], entry["added"], tokenizer = small_tokenizer(layout, template, bos, eos)
    entry["cases"] = []
    for system, turns in CONVERSATIONS:
        case = {"system": system, "turns": turns, "text": render(template, system, turns, bos, eos)}
        if layout and case["text"] is not None:
            how = {"add_generation_prompt": True}  # the compiled template is render()'s, with its date
            assert tokenizer.apply_chat_template(messages_of(system, turns), tokenize=False, **how) == case["text"], model
            ids = tokenizer.apply_chat_template(messages_of(system, turns), return_dict=False, **how)
            case["small_ids"] = " ".join(map(str, ids))
        entry["cases"].append(case)
    return entry


def write(path, templates, smollm2=None):
    golden = [describe(model, *said) for model, said in templates.items()]
    for case in (case for entry in golden if smollm2 and entry["model"] == "smollm2" for case in entry["cases"]):
        case["ids"] = " ".join(map(str, smollm2.encode(case["text"], add_special_tokens=False)))
    path.write_text(json.dumps({"today": DATE, "templates": golden}, ensure_ascii=False, indent=1) + "\n")


here = pathlib.Path(__file__).parent
if __name__ == "__main__":
    if len(sys.argv) > 1:
        tokens = {"llama-2": ("<s>", "</s>"), "llama2": ("<s>", "</s>"), "llama-3": ("<|begin_of_text|>", "<|eot_id|>"), "llama3": ("<|begin_of_text|>", "<|eot_id|>"),
                  "mistral": ("<s>", "</s>"), "vicuna": ("<s>", "</s>"), "zephyr": ("<s>", "</s>"), "tinyllama": ("<s>", "</s>"),
                  "deepseek": ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"), "gemma": ("<bos>", "<eos>"), "olmo-2": ("<|endoftext|>", "<|endoftext|>")}
        files = sorted(pathlib.Path(sys.argv[1]).glob("*.jinja"))
        write(pathlib.Path(sys.argv[1]) / "golden.json", {
            f.stem: (None, f.read_text(), *next((t for name, t in tokens.items() if name in f.stem), ("", ""))) for f in files})
    smollm2 = AutoTokenizer.from_pretrained(here.parent.parent / "models", gguf_file="SmolLM2-135M-Instruct.Q4_1.gguf")
    assert smollm2.apply_chat_template([{"role": "user", "content": "Hello!"}], add_generation_prompt=True, tokenize=False) == render(
        TEMPLATES["smollm2"][1], None, ["Hello!"], "", "")
    write(here / "chat" / "golden.json", TEMPLATES, smollm2)
