/* Calls of tools: formats that are learned from small templates, answers that are split into content and calls however
 * the text is cut, and grammars. */
#include "byte_grammar.h"

#include "chat/call_format.h"
#include "chat/calls.h"
#include "chat/free_text.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- templates of each shape ------------------------------------------------------------------------------------- */

#define HEAD                                                                                                           \
  "{%- for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls or [] %}{% set f = c.function %}"
#define TAIL                                                                                                           \
  "{%- if m.role == 'assistant' %}<|end|>{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif "  \
  "%}"
#define ITEMS "{% for k, v in f.arguments.items() %}"
#define BARE "{{ v if v is string else v | tojson }}"

static const struct shape {
  const char *name, *text;
} shapes[] = {
    {"hermes",
     HEAD "{{ '\n' }}<tool_call>\n{\"name\": \"{{ f.name }}\", \"arguments\": {{ f.arguments | tojson }}}\n</tool_call>"
          "{% endfor %}" TAIL},
    {"compact", HEAD "{{ '<|calls|>[' if loop.first else ',' }}{\"name\":\"{{ f.name }}\",\"arguments\":"
                     "{{ f.arguments | tojson(separators=(',', ':')) }}}{{ ']' if loop.last }}{% endfor %}" TAIL},
    {"bare", "{%- for m in messages %}<|{{ m.role }}|>{% if m.tool_calls %}{% set f = m.tool_calls[0].function %}"
             "{\"name\": \"{{ f.name }}\", \"parameters\": {{ f.arguments | tojson }}}{% else %}{{ m.content }}"
             "{% endif %}" TAIL},
    {"identified", HEAD "{{ '[TOOL_CALLS][' if loop.first else ', ' }}{\"name\": \"{{ f.name }}\", \"arguments\": "
                        "{{ f.arguments | tojson }}, \"id\": \"{{ c.id }}\"}{{ ']' if loop.last }}{% endfor %}" TAIL},
    {"numbered", HEAD "{{ '<|begin|>' if loop.first }}<|call|>functions.{{ f.name }}:{{ loop.index0 }}<|args|>"
                      "{{ f.arguments | tojson }}<|call_end|>{{ '<|stop|>' if loop.last }}{% endfor %}" TAIL},
    {"apart", HEAD "[TOOL_CALLS]{{ f.name }}[ARGS]{{ f.arguments | tojson }}{% endfor %}" TAIL},
    {"tags",
     HEAD "{{ '\n' }}<tool_call>\n<function={{ f.name }}>\n" ITEMS "<parameter={{ k }}>\n{{ v if v is mapping else v | "
          "string }}\n</parameter>\n{% endfor %}</function>\n</tool_call>{% endfor %}" TAIL},
    {"pairs",
     HEAD "{{ '\n' }}<call>{{ f.name }}\n" ITEMS "<key>{{ k }}</key>\n<value>" BARE "</value>\n{% endfor %}</call>"
          "{% endfor %}" TAIL},
    {"quoted", HEAD "<|call>{{ f.name + '{' }}" ITEMS
                    "{{ ',' if not loop.first }}{{ k }}:{{ '<|\"|>' + v + '<|\"|>' if v is string else v | "
                    "tojson(separators=(',', ':')) }}{% endfor %}}<call|>{% endfor %}" TAIL},
    {"functions",
     HEAD "{{ '<|calls|>[' if loop.first else ', ' }}{{ f.name }}(" ITEMS "{{ ', ' if not loop.first }}{{ k "
          "}}={{ \"'\" + v + \"'\" if v is string else v | string }}{% endfor %}){{ ']<|calls_end|>' if "
          "loop.last }}{% endfor %}" TAIL},
    {"typed", HEAD "{{ '<calls>' if loop.first }}<invoke name=\"{{ f.name }}\">" ITEMS "<p name=\"{{ k }}\" string=\""
                   "{{ 'true' if v is string else 'false' }}\">" BARE "</p>{% endfor %}</invoke>{{ '</calls>' if "
                   "loop.last }}{% endfor %}" TAIL},
    {"nested", HEAD "{% macro put(v) %}{% if v is mapping %}{% for k, w in v.items() %}<{{ k }}>{{ put(w) }}</{{ k }}>"
                    "{% endfor %}{% elif v is string or v is not sequence %}" BARE "{% else %}{% for w in v %}<item>"
                    "{{ put(w) }}</item>{% endfor %}{% endif %}{% endmacro %}<call name=\"{{ f.name }}\">"
                    "{{ put(f.arguments) }}</call>{% endfor %}" TAIL},
    {"texts",
     "{%- for m in messages %}<|{{ m.role }}|>{% if m.role == 'assistant' %}>>>{{ 'all\n' + m.content + "
     "('>>>' if m.tool_calls else '') if m.content else '' }}{% for c in m.tool_calls or [] %}{{ ('>>>' if not "
     "loop.first else '') + c.function.name + '\n' + c.function.arguments }}{% endfor %}{% else %}"
     "{{ m.content }}{% endif %}{%- if m.role == 'assistant' %}<|end|>{% endif %}{% endfor %}"
     "{% if add_generation_prompt %}<|assistant|>>>>{% endif %}"},
    {"none", "{%- for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"},
};

static dt_chat *open_chat(const char *name) {
  dt_chat *chat;
  const char *text = NULL;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    if (strcmp(shapes[i].name, name) == 0) text = shapes[i].text;
  ok(dt_chat_open(&(dt_chat_source){.name = name, .text = text}, &chat, &err));
  return chat;
}

static dt_call_format *open_format(const char *name) {
  dt_chat *chat = open_chat(name);
  dt_call_format *format;
  ok(dt_call_format_open(chat, &format, &err));
  dt_chat_close(chat);
  return format;
}

static void check_text(const char *name, const char *expected) {
  dt_call_format *format = open_format(name);
  char *text;
  ok(dt_call_format_text(format, &text, &err));
  if (strcmp(text, expected) != 0) fail_msg("%s: %s\nexpected %s", name, text, expected);
  free(text);
  dt_call_format_close(format);
}

static void formats_are_learned(void **state) {
  (void)state;
  check_text("hermes",
             "{\"shape\":\"json\",\"alone\":true,\"first\":\"<tool_call>\\n{\\\"name\\\": \\\"\",\"middle\":\"\\\", "
             "\\\"arguments\\\": \",\"next\":\"}\\n</tool_call>\\n<tool_call>\\n{\\\"name\\\": \\\"\",\"last\":\"}\\n"
             "</tool_call>\",\"comma\":\", \",\"colon\":\": \"}");
  check_text("compact",
             "{\"shape\":\"json\",\"alone\":false,\"first\":\"<|calls|>[{\\\"name\\\":\\\"\",\"middle\":\"\\\",\\\""
             "arguments\\\":\",\"next\":\"},{\\\"name\\\":\\\"\",\"last\":\"}]\",\"comma\":\",\",\"colon\":\":\"}");
  check_text("numbered",
             "{\"shape\":\"json\",\"alone\":false,\"first\":\"<|begin|><|call|>functions.\",\"middle\":\":{0}<|args|>"
             "\",\"next\":\"<|call_end|><|call|>functions.\",\"last\":\"<|call_end|><|stop|>\",\"comma\":\", \","
             "\"colon\":\": \"}");
  check_text(
      "tags",
      "{\"shape\":\"tags\",\"alone\":true,\"python\":true,\"first\":\"<tool_call>\\n<function=\",\"middle\":\">\\n"
      "\",\"before\":\"<parameter=\",\"key_end\":\">\\n\",\"more\":\"<parameter=\",\"value_end\":\"\\n</parameter>"
      "\\n\",\"next\":\"</function>\\n</tool_call>\\n<tool_call>\\n<function=\",\"last\":\"</function>\\n"
      "</tool_call>\"}");
  check_text(
      "quoted",
      "{\"shape\":\"tags\",\"alone\":true,\"python\":false,\"first\":\"<|call>\",\"middle\":\"{\",\"key_end\":\":"
      "\",\"quote\":\"<|\\\"|>\",\"more\":\",\",\"next\":\"}<call|><|call>\",\"last\":\"}<call|>\"}");
  check_text(
      "typed",
      "{\"shape\":\"tags\",\"alone\":false,\"python\":false,\"first\":\"<calls><invoke name=\\\"\",\"middle\":\"\\\""
      ">\",\"before\":\"<p name=\\\"\",\"key_end\":\"\\\" string=\\\"{is_string}\\\">\",\"more\":\"<p name=\\\"\","
      "\"value_end\":\"</p>\",\"next\":\"</invoke><invoke name=\\\"\",\"last\":\"</invoke></calls>\"}");
  dt_call_format *none = open_format("none"), *bare = open_format("bare");
  assert_false(dt_call_format_learned(none));
  assert_true(dt_call_format_learned(bare));
  assert_string_equal(none->first, "<tool_call>\n{\"name\": \"");
  assert_string_equal(bare->first, "{\"name\": \"");
  dt_call_format_close(none), dt_call_format_close(bare);
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

#define PROPERTIES(list) "{\"type\":\"object\",\"properties\":{" list "},\"required\":[\"city\"]}"
#define TOOL(name, parameters)                                                                                         \
  "{\"type\":\"function\",\"function\":{\"name\":\"" name "\",\"parameters\":" parameters "}}"
static const char tools[] = "[" TOOL(
    "get_weather", PROPERTIES("\"city\":{\"type\":\"string\"},\"days\":{\"type\":\"integer\"},\"hourly\":{\"type\":"
                              "\"boolean\"}")) "," TOOL("list", "{\"type\":\"object\",\"properties\":{\"n\":{"
                                                                "\"type\":\"array\",\"items\":{\"type\":"
                                                                "\"integer\"}}},\"required\":[\"n\"]}") "]";

#define WEATHER "{\"city\": \"Zürich <b> 12\", \"days\": 3, \"hourly\": true}"
#define LIST "{\"n\": [1, 2]}"
#define CALL(name, arguments, id)                                                                                      \
  "{\"type\":\"function\",\"id\":\"" id "\",\"function\":{\"name\":\"" name "\",\"arguments\":" arguments "}}"

/* The answer that a template writes for calls: malloc'd. */
static char *render(const char *shape, const char *content, const char *calls) {
  char messages[1000];
  dt_chat *chat = open_chat(shape);
  dt_chat_prompt out = {0};
  snprintf(messages, sizeof messages,
           "[{\"role\":\"user\",\"content\":\"Q\"},{\"role\":\"assistant\",\"content\":\"%s\",\"tool_calls\":[%s]}]",
           content, calls);
  ok(dt_chat_write(chat, &(dt_conversation){.messages = messages, .next = DT_CHAT_NOTHING}, &out, &err));
  dt_chat_close(chat);
  const char *begin = strstr(out.text, "<|assistant|>");
  assert_non_null(begin);
  begin += strlen("<|assistant|>") + (strcmp(shape, "texts") == 0 ? 3 : 0);
  char *answer = strdup(begin), *end = strstr(answer, "<|end|>");
  assert_non_null(end);
  *end = '\0';
  dt_chat_prompt_free(&out);
  return answer;
}

static bool same_json(const char *a, const char *b) {
  cJSON *x = cJSON_Parse(a), *y = cJSON_Parse(b);
  bool same = x && y && cJSON_Compare(x, y, true);
  cJSON_Delete(x), cJSON_Delete(y);
  return same;
}

typedef struct {
  char text[2000]; /* what is heard, with marks around calls */
  size_t n;
  dt_call_part part;
  int calls, most;
} heard;

static void write_heard(heard *h, const char *bytes, size_t len) {
  assert_true(h->n + len < sizeof h->text);
  if (len) memcpy(h->text + h->n, bytes, len);
  h->n += len;
}

static bool hear(void *user, dt_call_part part, int index, const char *bytes, size_t len) {
  heard *h = user;
  char mark[20];
  snprintf(mark, sizeof mark, part == DT_CALL_BEGIN ? "{%d " : part == DT_CALL_BROKEN ? "!%d " : "}", index);
  if (part == DT_CALL_BEGIN || part == DT_CALL_BROKEN || part == DT_CALL_END) write_heard(h, mark, strlen(mark));
  write_heard(h, bytes, len);
  if (part == DT_CALL_BEGIN) write_heard(h, ":", 1);
  return ++h->calls < h->most;
}

static void feed(const dt_call_format *format, const char *answer, size_t a, size_t b, heard *h) {
  dt_calls *calls;
  const size_t cuts[] = {0, a, b, strlen(answer)};
  *h = (heard){.most = 1000};
  ok(dt_calls_open(format, tools, &calls, &err));
  for (int i = 0; i < 3; i++) assert_true(dt_calls_add(calls, answer + cuts[i], cuts[i + 1] - cuts[i], hear, h));
  assert_true(dt_calls_end(calls, hear, h));
  dt_calls_close(calls);
  h->text[h->n] = '\0';
}

/* All cuts of an answer give the same. */
static void check_cuts(const dt_call_format *format, const char *answer, const char *expected) {
  heard whole, cut;
  size_t n = strlen(answer);
  feed(format, answer, n, n, &whole);
  if (expected && strcmp(whole.text, expected) != 0)
    fail_msg("[%s]: [%s], expected [%s]", answer, whole.text, expected);
  for (size_t a = 0; a <= n; a++)
    for (size_t b = a; b <= n; b += 1 + (n > 150) * 6) {
      feed(format, answer, a, b, &cut);
      if (strcmp(whole.text, cut.text) != 0)
        fail_msg("[%s] cut at %zu, %zu: [%s], expected [%s]", answer, a, b, cut.text, whole.text);
    }
}

static void check_answer(const char *shape, const dt_call_format *format, masks *m, const char *content, bool both) {
  char *answer = render(shape, content,
                        both ? CALL("get_weather", WEATHER, "abcdefgh1") "," CALL("list", LIST, "abcdefgh2")
                             : CALL("get_weather", WEATHER, "abcdefgh1"));
  dt_called out = {0};
  ok(dt_calls_read(format, tools, answer, strlen(answer), &out, &err));
  const int n = both && strcmp(shape, "bare") != 0 ? 2 : 1;
  if (out.n_calls != n) fail_msg("%s: %d calls in [%s]", shape, out.n_calls, answer);
  assert_string_equal(out.calls[0].name, "get_weather");
  if (!same_json(out.calls[0].arguments, WEATHER)) fail_msg("%s: %s in [%s]", shape, out.calls[0].arguments, answer);
  if (n > 1) assert_string_equal(out.calls[1].name, "list");
  if (n > 1 && !same_json(out.calls[1].arguments, LIST)) fail_msg("%s: %s", shape, out.calls[1].arguments);
  if (strcmp(shape, "bare") != 0 && strcmp(shape, "texts") != 0) assert_string_equal(out.content, content);
  assert_int_equal(out.len, strlen(out.content));
  dt_called_free(&out);
  check_cuts(format, answer, NULL);
  const char *calls = answer + strspn(answer, "\n");
  /* Lists in tags are not what the grammar writes: it has them as JSON. */
  const bool same = strcmp(shape, "nested") != 0 || !both;
  if (!*content && takes(m, calls) != same)
    fail_msg("%s: the grammar %s [%s]", shape, same ? "refuses" : "takes", calls);
  free(answer);
}

static void calls_are_read_back(void **state) {
  (void)state;
  vocabulary *v = bytes();
  for (size_t i = 0; i + 1 < sizeof shapes / sizeof *shapes; i++) {
    dt_call_format *format = open_format(shapes[i].name);
    char *gbnf;
    if (!dt_call_format_learned(format)) fail_msg("%s is not learned", shapes[i].name);
    ok(dt_call_grammar(format, tools, &(dt_call_options){.required = true, .several = true}, &gbnf, &err));
    masks *m = read_grammar(v, gbnf);
    for (int k = 0; k < 4; k++) check_answer(shapes[i].name, format, m, k & 1 ? "Wait." : "", k & 2);
    masks_release(m);
    free(gbnf);
    dt_call_format_close(format);
  }
  vocabulary_close(v);
}

static void what_is_no_call_stays_text(void **state) {
  (void)state;
  dt_call_format *f = open_format("hermes");
  check_cuts(f, "", "");
  check_cuts(f, " a \n", " a \n");
  check_cuts(f, "a <tool_call> b", "a <tool_call> b");
  check_cuts(f, "a\n<tool_call>\n{\"name\": \"f\"", "a\n<tool_call>\n{\"name\": \"f\"");
  check_cuts(f, "a <tool_call>{\"name\":\"f\",\"arguments\":{\"b\" : [1]}}</tool_call>\n c", "a{0 f:{\"b\" : [1]}}c");
  check_cuts(f, "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}", "{0 f:{}}");
  check_cuts(f, "<tool_call>\n{\"name\": \"f\", \"arguments\": {}", "{0 f:{}}");
  check_cuts(
      f,
      "<tool_call>{\"name\": \"f\", \"arguments\": {}}\n</tool_call> <tool_call>{\"name\": \"g\", \"arguments\": {}}\n",
      "{0 f:{}}{1 g:{}}");
  check_cuts(f, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"}\\\"",
             "{0 f:{\"a\": \"}\\\"!0 <tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"}\\\"");
  check_cuts(f, "<tool_call>{\"name\": \"f\", \"arguments\": {a}}</tool_call>",
             "{0 f:{a}!0 <tool_call>{\"name\": \"f\", \"arguments\": {a}}</tool_call>");
  check_cuts(f, "<tool_call>{\"name\": \"f\", \"arguments\": {}} x",
             "{0 f:{}!0 <tool_call>{\"name\": \"f\", \"arguments\": {}} x");
  check_cuts(f, "<tool_call>{\"name\": \"f\", \"arguments\": []}</tool_call>",
             "<tool_call>{\"name\": \"f\", \"arguments\": []}</tool_call>");
  dt_call_format_close(f);
  f = open_format("bare");
  check_cuts(f, " {\"name\": \"f\", \"parameters\": {\"a\": 1}}", "{0 f:{\"a\": 1}}");
  check_cuts(f, "As {\"name\": \"f\", \"parameters\": {}}", "As {\"name\": \"f\", \"parameters\": {}}");
  dt_call_format_close(f);
}

static void values_follow_the_schema(void **state) {
  (void)state;
  dt_call_format *f = open_format("tags");
#define IN(parameters) "<tool_call>\n<function=get_weather>\n" parameters "</function>\n</tool_call>"
#define P(key, value) "<parameter=" key ">\n" value "\n</parameter>\n"
  check_cuts(f, IN(P("city", "12")), "{0 get_weather:{\"city\": \"12\"}}");
  check_cuts(f, IN(P("city", " a\n\n") P("days", "1e2")), "{0 get_weather:{\"city\": \" a\\n\\n\", \"days\": 1e2}}");
  check_cuts(f, IN(P("hourly", "False") P("x", "[1, 'a', None]")),
             "{0 get_weather:{\"hourly\": false, \"x\": [1, \"a\", null]}}");
  check_cuts(f, IN(P("days", "01") P("x", "\"q\"")), "{0 get_weather:{\"days\": \"01\", \"x\": \"q\"}}");
  check_cuts(f, IN(P("x", "a</parameter") P("city", "\"\\")),
             "{0 get_weather:{\"x\": \"a</parameter\", \"city\": \"\\\"\\\\\"}}");
  check_cuts(f, IN(""), "{0 get_weather:{}}");
  check_cuts(f, "<tool_call><function=g><parameter=a>b</parameter></function></tool_call>", "{0 g:{\"a\": \"b\"}}");
  check_cuts(f, "<tool_call>\n<function=g>\n<parameter=a>\nb\n</parameter>\n",
             "{0 g:{\"a\": \"b\"!0 <tool_call>\n<function=g>\n<parameter=a>\nb\n</parameter>\n");
  dt_call_format_close(f);
}

static void channels_name_tools_in_two_places(void **state) {
  (void)state;
  dt_chat *chat;
  dt_call_format *f;
  static const char text[] =
      "{%- for m in messages %}<|start|>{{ m.role }}{% if m.tool_calls %} to=functions.{{ "
      "m.tool_calls[0].function.name }}"
      "<|channel|>commentary json<|message|>{{ m.tool_calls[0].function.arguments | tojson }}<|call|>{% elif m.role == "
      "'assistant' %}<|channel|>final<|message|>{{ m.content }}<|return|>{% else %}<|message|>{{ m.content }}<|end|>"
      "{% endif %}{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}";
  ok(dt_chat_open(&(dt_chat_source){.name = "channels", .text = text}, &chat, &err));
  ok(dt_call_format_open(chat, &f, &err));
  check_cuts(f, " to=functions.f<|channel|>commentary json<|message|>{\"a\": 1}<|call|>", "{0 f:{\"a\": 1}}");
  check_cuts(f, "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}", "{0 f:{}}");
  dt_call_format_close(f);
  dt_chat_close(chat);
}

static void who_hears_enough_says_so(void **state) {
  (void)state;
  dt_call_format *f = open_format("hermes");
  dt_calls *calls;
  heard h = {.most = 1};
  ok(dt_calls_open(f, NULL, &calls, &err));
  assert_true(dt_calls_add(calls, "<tool_", 6, hear, &h));
  assert_false(dt_calls_add(calls, "x", 1, hear, &h));
  assert_false(dt_calls_add(calls, "y", 1, hear, &h));
  assert_false(dt_calls_end(calls, hear, &h));
  assert_int_equal(h.calls, 1);
  dt_calls_close(calls);
  dt_call_format_close(f);
}

/* ---- grammars ---------------------------------------------------------------------------------------------------- */

static const char marks_of[] = "what the marks are found in";

static void check_texts(const char *shape, const char *list, const dt_call_options *how, const char *const *yes,
                        const char *const *no) {
  dt_call_format *f = open_format(shape);
  vocabulary *v = bytes();
  char *gbnf;
  ok(dt_call_grammar(f, list, how, &gbnf, &err));
  masks *m = read_grammar(v, gbnf);
  for (; *yes; yes++)
    if (!takes(m, *yes)) fail_msg("%s refuses [%s]:\n%s", shape, *yes, gbnf);
  for (; *no; no++)
    if (takes(m, *no)) fail_msg("%s takes [%s]", shape, *no);
  masks_release(m);
  free(gbnf);
  vocabulary_close(v);
  dt_call_format_close(f);
}

static void check_grammar(const char *shape, const char *list, bool several, const char *const *yes,
                          const char *const *no) {
  check_texts(shape, list, &(dt_call_options){.required = true, .several = several}, yes, no);
}

#define H(name, arguments) "<tool_call>\n{\"name\": \"" name "\", \"arguments\": " arguments "}\n</tool_call>"
#define Q(name, parameters) "<tool_call>\n<function=" name ">\n" parameters "</function>\n</tool_call>"

static void grammars_take_calls_only(void **state) {
  (void)state;
  static const char any[] = "[" TOOL("any", "{}") ",{\"function\":{\"name\":\"less\"}}," TOOL(
      "none", "{\"type\":\"object\",\"properties\":{}}") "]";
  static const char strings[] = "[" TOOL(
      "s", "{\"type\":\"object\",\"properties\":{\"e\":{\"enum\":[\"a\",\"b\"]},\"p\":{\"type\":\"string\",\"pattern\":"
           "\"^x+$\"},"
           "\"l\":{\"type\":\"string\",\"maxLength\":2},\"o\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]},"
           "\"r\":{"
           "\"$ref\":\"#/$defs/d\"}},\"$defs\":{\"d\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}}") "]";
  check_grammar("hermes", tools, true,
                (const char *[]){H("list", LIST), H("get_weather", "{\"city\": \"\"}"),
                                 H("list", "{\"n\": []}") "\n" H("list", LIST), NULL},
                (const char *[]){"", "a", H("list", "{}"), H("other", LIST), H("list", "{\"n\":[1, 2]}"),
                                 H("list", "{\"n\": [1, 2], \"m\": 1}"), H("get_weather", "{\"city\": 1}"),
                                 H("list", LIST) "a", NULL});
  check_grammar("hermes", tools, false, (const char *[]){H("list", LIST), NULL},
                (const char *[]){H("list", LIST) "\n" H("list", LIST), NULL});
  check_grammar("hermes", any, false,
                (const char *[]){H("any", "{}"), H("less", "{\"a\": {\"b\": [1, null]}}"), H("none", "{}"), NULL},
                (const char *[]){H("any", "1"), H("none", "{\"a\": 1}"), NULL});
  check_grammar(
      "compact", tools, true,
      (const char *[]){"<|calls|>[{\"name\":\"list\",\"arguments\":{\"n\":[1,2]}},{\"name\":\"list\",\"arguments\":{"
                       "\"n\":[]}}]",
                       NULL},
      (const char *[]){"<|calls|>[{\"name\":\"list\",\"arguments\":{\"n\": [1,2]}}]", NULL});
  check_grammar("tags", tools, true,
                (const char *[]){Q("get_weather", P("city", "a < b </param")), Q("list", P("n", "[1, 2]")),
                                 Q("get_weather", P("city", "") P("hourly", "True")), NULL},
                (const char *[]){Q("get_weather", P("days", "1")), Q("get_weather", P("city", "") P("days", "x")),
                                 Q("get_weather", P("city", "") P("hourly", "true")), Q("list", P("n", "[a]")),
                                 Q("get_weather", P("city", "</parameter>")), Q("list", ""), NULL});
  check_grammar("tags", any, false,
                (const char *[]){Q("any", P("a", "b") P("c", "d")), Q("less", ""), Q("none", ""), NULL},
                (const char *[]){Q("none", P("a", "b")), NULL});
  check_grammar(
      "tags", strings, false,
      (const char *[]){Q("s", P("e", "b") P("p", "xx") P("l", "ab")), Q("s", P("o", "null") P("r", "[\"a\", \"b\"]")),
                       Q("s", P("o", "c")), NULL},
      (const char *[]){Q("s", P("e", "c")), Q("s", P("p", "y")), Q("s", P("l", "abc")), Q("s", P("r", "a")), NULL});
  check_grammar("quoted", tools, false,
                (const char *[]){"<|call>get_weather{city:<|\"|>a<|b\"<|\"|>,days:3}<call|>",
                                 "<|call>list{n:[1,2]}<call|>", NULL},
                (const char *[]){"<|call>get_weather{city:a}<call|>", "<|call>list{n:<|\"|>a<|\"|>}<call|>", NULL});
  check_grammar(
      "typed", strings, false,
      (const char *[]){"<calls><invoke name=\"s\"><p name=\"o\" string=\"true\">a</p></invoke></calls>",
                       "<calls><invoke name=\"s\"><p name=\"o\" string=\"false\">null</p></invoke></calls>", NULL},
      (const char *[]){"<calls><invoke name=\"s\"><p name=\"e\" string=\"false\">a</p></invoke></calls>", NULL});
  check_grammar("none", tools, false, (const char *[]){H("list", LIST), NULL}, (const char *[]){"list", NULL});
}

/* Without a call that is required, any text is taken, and from the mark of a call on nothing but calls. */
static void free_text_may_become_a_call(void **state) {
  (void)state;
  const dt_call_options free_text = {.several = true}, one = {0};
  check_texts("hermes", tools, &free_text,
              (const char *[]){"", "a", "é < b <tool> <tool_cal", "<<tool_<tool_call", H("list", LIST),
                               "I ask.\n\n" H("list", LIST) "\n" H("list", LIST), "<" H("list", LIST),
                               "<tool_<tool_call"
                               "<" H("list", LIST),
                               NULL},
              (const char *[]){"<tool_call>", "a <tool_call> is", "a" H("other", LIST), H("list", "{}"),
                               H("list", LIST) " Done.", NULL});
  check_texts("hermes", tools, &one, (const char *[]){"a" H("list", LIST), NULL},
              (const char *[]){H("list", LIST) "\n" H("list", LIST), NULL});
  check_texts("quoted", tools, &free_text, (const char *[]){"a <|call", "<|call>list{n:[1,2]}<call|>", NULL},
              (const char *[]){"a <|call>", NULL});
}

/* Finds the marks <tool_call> and </tool_call> as the tokens 1 and 2. */
static int32_t mark_at(const void *of, const char *text, size_t n, size_t *len) {
  static const char *const marks[] = {"<tool_call>", "</tool_call>"};
  assert_ptr_equal(of, marks_of);
  for (int i = 0; i < 2; i++) {
    *len = strlen(marks[i]);
    if (n >= *len && !memcmp(text, marks[i], *len)) return i + 1;
  }
  return -1;
}

/* In a vocabulary whose tokens are bytes, the texts of two bytes stand for tokens. */
static void marks_are_demanded_as_tokens(void **state) {
  (void)state;
  dt_call_options how = {.required = true, .several = true, .token = mark_at, .of = marks_of};
  const char *const twice[] = {"\1\n{\"name\": \"list\", \"arguments\": " LIST "}\n\2\n\1\n{\"name\": \"list\", "
                               "\"arguments\": " LIST "}\n\2",
                               NULL};
  check_texts("hermes", tools, &how, twice, (const char *[]){H("list", LIST), NULL});
  how.required = false; /* a model may spell the mark that begins a call in other tokens */
  check_texts("hermes", tools, &how,
              (const char *[]){"<tool_call>\n{\"name\": \"list\", \"arguments\": " LIST "}\n\2", NULL},
              (const char *[]){"a " H("list", LIST), NULL});
}

static void marks_of_free_text_are_bounded(void **state) {
  (void)state;
  char mark[2 * FREE_TEXT_MARK + 3] = "";
  FILE *out = tmpfile();
  assert_non_null(out);
  for (int i = 0; i < FREE_TEXT_MARK; i++) strcat(mark, "é");
  assert_true(free_text_rules(out, "free", mark, NULL, true, ""));
  assert_false(free_text_rules(out, "free", strcat(mark, "é"), NULL, true, ""));
  assert_false(free_text_rules(out, "free", "", NULL, true, ""));
  assert_false(free_text_rules(out, "free", "a\xff", NULL, true, ""));
  fclose(out);
}

/* Reasoning is free, whatever the answer must be. */
static void reasoning_may_come_before_a_call(void **state) {
  (void)state;
  const dt_call_options required = {.required = true, .reasoning_begin = "<think>", .reasoning_end = "\n</think>\n\n"},
                        open = {.required = true,
                                .reasoning_begin = "<think>",
                                .reasoning_end = "</think>",
                                .open = true},
                        asked = {.reasoning_begin = "<think>", .reasoning_end = "</think>", .open = true};
  check_texts("hermes", tools, &required,
              (const char *[]){H("list", LIST), "<think>\na </thin <tool_call> b</think>\n\n" H("list", LIST), NULL},
              (const char *[]){"", "a", "<think>a", "<think>a</think>", "a</think>" H("list", LIST), NULL});
  check_texts("hermes", tools, &open,
              (const char *[]){"</think>" H("list", LIST), "a <tool_call> b\n</think>\n" H("list", LIST), NULL},
              (const char *[]){H("list", LIST), "a", "a</think>b", NULL});
  check_texts("hermes", tools, &asked,
              (const char *[]){"a", "a <tool_call> b", "a</think>b", "a</think>b" H("list", LIST), NULL},
              (const char *[]){"a</think>b <tool_call>", NULL});
}

static void errors_name_the_tool(void **state) {
  (void)state;
  static const char *const bad[][2] = {
      {"{}", "tools: expected a JSON list of functions"},
      {"[", "tools, line 1"},
      {"[]", "tools: the list is empty"},
      {"[1]", "tools[0]: expected"},
      {"[" TOOL("a", "{}") ",{\"type\":\"x\",\"function\":{\"name\":\"f\"}}]", "tools[1]: expected"},
      {"[" TOOL("a b", "{}") "]", "tools[0]: the name a b must have"},
      {"[" TOOL("f", "3") "]", "tools[0] f: parameters: expected a JSON schema"},
      {"[" TOOL("f", "{\"type\":\"string\"}") "]", "tools[0] f: parameters: expected a schema of type object"},
      {"[" TOOL("f", "{\"type\":\"object\",\"properties\":{\"a\":{\"$dynamicRef\":\"#\"}}}") "]",
       "tools[0] f, #/properties/a: the keyword $dynamicRef is not supported"},
      {"[" TOOL("f", "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"pattern\":\"(\"}}}") "]",
       "tools[0] f, #/properties/a: pattern, column"},
  };
  static const char *const of[] = {"hermes", "tags"};
  char *gbnf;
  for (int k = 0; k < 2; k++) {
    dt_call_format *f = open_format(of[k]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
      fails(dt_call_grammar(f, bad[i][0], &(dt_call_options){.required = true}, &gbnf, &err), DT_EINPUT, bad[i][1]);
    dt_calls *calls;
    fails(dt_calls_open(f, "{}", &calls, &err), DT_EINPUT, "tools: expected a JSON list of functions");
    dt_call_format_close(f);
  }
  static const char *const bare[][2] = {
      {"{\"properties\":{},\"required\":[\"x\"]}", "tools[0] f: required: there is no property x"},
      {"{\"properties\":{\"x\":{}},\"minProperties\":1}",
       "the keyword minProperties is not supported for arguments in"},
      {"{\"properties\":{\"x\":{\"type\":\"string\",\"format\":\"date\"}}}",
       "#/properties/x: the keyword format is not"},
      {"{\"properties\":{\"x\":{\"type\":\"string\",\"pattern\":\"a\",\"maxLength\":3}}}",
       "pattern with minLength or maxLength is not supported for arguments in tags"},
  };
  dt_call_format *f = open_format("tags");
  for (size_t i = 0; i < sizeof bare / sizeof *bare; i++) {
    char list[300];
    snprintf(list, sizeof list, "[" TOOL("f", "%s") "]", bare[i][0]);
    fails(dt_call_grammar(f, list, &(dt_call_options){.required = true}, &gbnf, &err), DT_EINPUT, bare[i][1]);
  }
  fails(dt_call_grammar(f, "[" TOOL("f", "{\"type\":\"object\",\"additionalProperties\":true}") "]",
                        &(dt_call_options){.required = true}, &gbnf, &err),
        DT_EINPUT, "tools[0] f: additionalProperties is supported only in formats whose arguments are JSON");
  dt_call_format_close(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(formats_are_learned),
      cmocka_unit_test(calls_are_read_back),
      cmocka_unit_test(what_is_no_call_stays_text),
      cmocka_unit_test(values_follow_the_schema),
      cmocka_unit_test(channels_name_tools_in_two_places),
      cmocka_unit_test(who_hears_enough_says_so),
      cmocka_unit_test(grammars_take_calls_only),
      cmocka_unit_test(free_text_may_become_a_call),
      cmocka_unit_test(marks_are_demanded_as_tokens),
      cmocka_unit_test(marks_of_free_text_are_bounded),
      cmocka_unit_test(reasoning_may_come_before_a_call),
      cmocka_unit_test(errors_name_the_tool),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
