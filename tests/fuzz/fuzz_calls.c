/* The first byte chooses a format and whether the tools are known, the second the size of a piece in bytes. The rest is
 * an answer, which must have the same parts in pieces as whole. Its content and broken calls are bytes of the answer,
 * and the arguments of calls are JSON. */
#include "fuzz.h"

#include "chat/calls.h"

#include <cjson/cJSON.h>

typedef struct {
  char *text; /* parts, each after a byte that gives its kind */
  size_t n, room, arguments;
  dt_call_part part;
  int index;
} heard;

static void add(heard *h, const char *bytes, size_t len) {
  if (h->n + len + 1 > h->room) {
    h->room = 2 * (h->n + len + 1);
    h->text = realloc(h->text, h->room);
    if (!h->text) abort();
  }
  if (len) memcpy(h->text + h->n, bytes, len);
  h->text[h->n += len] = '\0';
}

static bool hear(void *user, dt_call_part part, int index, const char *bytes, size_t len) {
  heard *h = user;
  if ((index != h->index && (part != DT_CALL_BEGIN && part != DT_CALL_CONTENT)) || index < h->index) abort();
  if (part == DT_CALL_END) {
    cJSON *json = cJSON_Parse(h->text + h->arguments);
    /* cJSON refuses what is nested too deeply, and strings with escapes of half characters. */
    if (!json && !strstr(h->text + h->arguments, "\\u") && !strchr(h->text + h->arguments, '[')) abort();
    cJSON_Delete(json);
  }
  if (part != h->part || h->n == 0 || part == DT_CALL_BEGIN) add(h, &(char){(char)(1 + part)}, 1);
  if (part != h->part && part == DT_CALL_ARGUMENTS) h->arguments = h->n;
  h->part = part, h->index = index;
  add(h, bytes, len);
  return true;
}

static const char tools[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\",\"properties\":{\"s\":{"
    "\"type\":\"string\"},\"n\":{\"type\":\"integer\"},\"o\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}}}}"
    "}]";

static heard parts(const dt_call_format *format, bool known, const char *answer, size_t len, size_t piece) {
  heard h = {0};
  dt_calls *calls;
  if (dt_calls_open(format, known ? tools : NULL, &calls, NULL)) abort();
  for (size_t at = 0; at < len; at += piece)
    if (!dt_calls_add(calls, answer + at, len - at < piece ? len - at : piece, hear, &h)) abort();
  if (!dt_calls_end(calls, hear, &h)) abort();
  dt_calls_close(calls);
  return h;
}

#define HEAD                                                                                                           \
  "{%- for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls or [] %}{% set f = c.function %}"
#define TAIL "{% endfor %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
#define ITEMS "{% for k, v in f.arguments.items() %}"

/* As in tests/unit/test_calls.c. */
static const char *const templates[] = {
    HEAD "<tool_call>\n{\"name\": \"{{ f.name }}\", \"arguments\": {{ f.arguments | tojson }}}\n</tool_call>" TAIL,
    HEAD
    "{{ '<|begin|>' if loop.first }}<|call|>functions.{{ f.name }}:{{ loop.index0 }}<|args|>{{ f.arguments | tojson "
    "}}<|call_end|>{{ '<|stop|>' if loop.last }}" TAIL,
    HEAD
    "{{ '[' if loop.first else ', ' }}{\"name\": \"{{ f.name }}\", \"arguments\": {{ f.arguments | tojson }}}{{ ']' "
    "if loop.last }}" TAIL,
    HEAD "<call>\n<function={{ f.name }}>\n" ITEMS "<parameter={{ k }}>\n{{ v | string }}\n</parameter>\n{% endfor "
         "%}</function>\n</call>" TAIL,
    HEAD "<|call>{{ f.name + '{' }}" ITEMS
         "{{ ',' if not loop.first }}{{ k }}:{{ '<|\"|>' + v + '<|\"|>' if v is string "
         "else v | tojson }}{% endfor %}}<call|>" TAIL,
    HEAD "{{ '<|calls|>[' if loop.first else ', ' }}{{ f.name }}(" ITEMS
         "{{ ', ' if not loop.first }}{{ k }}={{ \"'\" + v "
         "+ \"'\" if v is string else v | string }}{% endfor %}){{ ']' if loop.last }}" TAIL,
    HEAD "<call name=\"{{ f.name }}\">" ITEMS "<{{ k }}>{{ v if v is string else v | tojson }}</{{ k }}>{% endfor "
         "%}</call>" TAIL,
    "{%- for m in messages %}{{ m.role }}{% if m.tool_calls %} to=functions.{{ m.tool_calls[0].function.name "
    "}}<|channel|>commentary json<|message|>{{ m.tool_calls[0].function.arguments | tojson }}{% elif m.role == "
    "'assistant' "
    "%}<|message|>{{ m.content }}{% else %}{{ m.content }}{% endif %}{% endfor %}{% if add_generation_prompt "
    "%}assistant{% "
    "endif %}"};

enum { TEMPLATES = sizeof templates / sizeof *templates };

static const dt_call_format *format_of(int i) {
  static dt_call_format *formats[TEMPLATES];
  dt_chat *chat;
  if (formats[i]) return formats[i];
  if (dt_chat_open(&(dt_chat_source){.name = "fuzz", .text = templates[i]}, &chat, NULL)) abort();
  if (dt_call_format_open(chat, &formats[i], NULL) || !dt_call_format_learned(formats[i])) abort();
  dt_chat_close(chat);
  return formats[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  if (size < 3) return 0;
  const dt_call_format *format = format_of(bytes[0] % TEMPLATES);
  const char *answer = (const char *)bytes + 2;
  const bool known = bytes[0] & 8;
  heard whole = parts(format, known, answer, size - 2, size - 2),
        pieces = parts(format, known, answer, size - 2, 1 + bytes[1] % 16);
  if (whole.n != pieces.n || (whole.n && memcmp(whole.text, pieces.text, whole.n) != 0)) abort();
  free(whole.text), free(pieces.text);
  return 0;
}
