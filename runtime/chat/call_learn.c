/* The format of calls, learned from what a template writes: see call_format.h. */
#include "chat/call_format.h"
#include "chat/parts.h"
#include "system/need.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Words that no template has. Keys are in alphabetical order, because some templates sort them. */
#define QUESTION "qZw1"
#define ANSWER "aZw2"
#define OTHER "oZw3" /* the tool of the first of two calls */
#define TOOL "gZw4"
#define KEY_1 "kZw5"
#define VALUE_1 "vZw6"
#define KEY_2 "nZw7"
#define VALUE_2 "70317"
#define KEY_3 "tZw8"

#define ID "call0000"
#define SAMPLE_CALL(id, name, arguments)                                                                               \
  "{\"type\":\"function\",\"id\":\"" ID id "\",\"function\":{\"name\":\"" name "\",\"arguments\":" arguments "}}"
#define FIRST_VALUE "wZw9"
#define FIRST_CALL SAMPLE_CALL("1", OTHER, "{\"" KEY_1 "\":\"" FIRST_VALUE "\"}")
#define SECOND_CALL                                                                                                    \
  SAMPLE_CALL("2", TOOL, "{\"" KEY_1 "\":\"" VALUE_1 "\",\"" KEY_2 "\":" VALUE_2 ",\"" KEY_3 "\":true}")
#define PROPERTY(key, type) "\"" key "\":{\"type\":\"" type "\",\"description\":\"d\"}"
#define SAMPLE_TOOL(name)                                                                                              \
  "{\"type\":\"function\",\"function\":{\"name\":\"" name "\",\"description\":\"d\",\"parameters\":{\"type\":"         \
  "\"object\",\"description\":\"d\",\"properties\":{" PROPERTY(KEY_1, "string") "," PROPERTY(                          \
      KEY_2, "integer") "," PROPERTY(KEY_3, "boolean") "},\"required\":[\"" KEY_1 "\"]}}}"

/* ---- texts of the template --------------------------------------------------------------------------------------- */

/* What the template writes after the question: an answer with this content and these calls (or NULL). malloc'd; NULL:
 * it fails, or leaves out the question. */
static char *written(const dt_chat *c, const char *content, const char *calls) {
  static const char *const tools = "[" SAMPLE_TOOL(OTHER) "," SAMPLE_TOOL(TOOL) "]";
  /* Variables that a few templates require of their callers. */
  static const char *const required = "{\"functions\":\"[]\",\"datetime\":\"now\"}";
  static const struct tm now = {.tm_year = 125, .tm_mday = 1};
  char messages[1024], *answer = NULL;
  snprintf(messages, sizeof messages,
           "[{\"role\":\"user\",\"content\":\"" QUESTION "\"},{\"role\":\"assistant\",\"content\":\"%s\"%s%s%s}]",
           content, calls ? ",\"tool_calls\":[" : "", calls ? calls : "", calls ? "]" : "");
  for (int i = 0; i < 3 && !answer; i++) {
    dt_error ignored;
    dt_chat_prompt out = {0};
    const dt_conversation q = {.messages = messages,
                               .tools = i < 2 ? tools : NULL,
                               .settings = &required,
                               .n_settings = i == 1,
                               .next = DT_CHAT_NOTHING,
                               .now = &now};
    if (dt_chat_write(c, &q, &out, &ignored)) continue;
    const char *at = NULL;
    for (const char *next = out.text; (next = strstr(next, QUESTION)); next++) at = next + strlen(QUESTION);
    answer = at ? strdup(at) : NULL;
    dt_chat_prompt_free(&out);
  }
  return answer;
}

/* The beginning of an answer, as the template writes it for the model to go on; malloc'd, or NULL. */
static char *prompt_of(const dt_chat *c) {
  dt_error ignored;
  dt_chat_prompt out = {0};
  const dt_conversation q = {.messages = "[{\"role\":\"user\",\"content\":\"" QUESTION "\"}]", .next = DT_CHAT_ANSWER};
  if (dt_chat_write(c, &q, &out, &ignored)) return NULL;
  const char *at = strstr(out.text, QUESTION);
  char *prompt = at ? strdup(at + strlen(QUESTION)) : NULL;
  dt_chat_prompt_free(&out);
  return prompt;
}

static char *cut(const char *begin, const char *end) { return strndup(begin, (size_t)(end - begin)); }

/* How far two texts are equal, without a part of a mark at the end. */
static size_t common(const char *a, const char *b) {
  size_t n = 0, at;
  while (a[n] && a[n] == b[n]) n++;
  if (!a[n] && !b[n]) return n;
  for (at = n; at > 0 && a[at - 1] != '>' && a[at - 1] != ']' && a[at - 1] != '<' && !chat_is_space(a[at - 1]);) at--;
  return at > 0 && a[at - 1] == '<' ? at - 1 : n;
}

/* ---- where the answer ends --------------------------------------------------------------------------------------- */

/* The end of what belongs to the calls: before what also follows an answer without calls, or begins with the chat's
 * end. between: what stands between two calls, or NULL. */
static size_t end_of_calls(const dt_chat *c, const char *after, const char *plain_end, const char *between) {
  size_t n = strlen(after), m = strlen(plain_end), same = 0, end = n;
  while (same < n && same < m && after[n - 1 - same] == plain_end[m - 1 - same]) same++;
  for (; same > 0; same--) {
    const size_t at = n - same;
    if (at == 0 || strchr(">]})", after[at - 1]) || (chat_is_space(after[at - 1]) && !chat_is_space(after[at]))) break;
  }
  if (same > 0) end = n - same;
  const char *mark = c->end ? strstr(after, c->end) : NULL;
  if (mark && (size_t)(mark - after) < end && !(between && strstr(between, c->end))) end = (size_t)(mark - after);
  while (end > 0 && chat_is_space(after[end - 1])) end--;
  return end;
}

/* ---- what differs from call to call ------------------------------------------------------------------------------ */

/* Replaces each `word` by one byte. */
static void replace(char *text, const char *word, char by) {
  const size_t n = strlen(word);
  for (char *at = text; text && (at = strstr(at, word)); at++) {
    *at = by;
    memmove(at + 1, at + n, strlen(at + n) + 1);
  }
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Two texts before the name, of the first and of a second call, or two after it: where they differ only in a digit,
 * which is one more in the second, that is the number of the call. */
static void find_index(char *one, char *two, bool from_end) {
  const size_t n = one ? strlen(one) : 0, m = two ? strlen(two) : 0;
  for (size_t i = 0; i < n && i < m; i++) {
    char *a = one + (from_end ? n - 1 - i : i), *b = two + (from_end ? m - 1 - i : i);
    if (*a == *b) continue;
    if (!is_digit(*a) || *b != *a + 1 || *a > '1') return;
    *a = *b = *a == '0' ? CALL_INDEX_0 : CALL_INDEX_1;
  }
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

/* The brace that begins the arguments, if they are a JSON object. */
static const char *find_object(const char *name) {
  const char *key = strstr(name, "\"" KEY_1 "\""), *at = key;
  if (!key || !strstr(key, "\"" VALUE_1 "\"")) return NULL;
  while (at > name && chat_is_space(at[-1])) at--;
  return at > name && at[-1] == '{' ? at - 1 : NULL;
}

/* The end of an object without strings that contain brackets. */
static const char *after_object(const char *at) {
  int depth = 0;
  for (; *at; at++) {
    depth += (*at == '{') - (*at == '}');
    if (depth == 0) return at + 1;
  }
  return NULL;
}

static void learn_spacing(dt_call_format *f, const char *object) {
  const char *key = strstr(object, "\"" KEY_1 "\""), *value = strstr(object, "\"" VALUE_1 "\"");
  const char *other = strstr(object, "\"" KEY_2 "\"");
  if (key != object + 1 || !value || !other || other < value) return;
  f->colon = cut(key + strlen("\"" KEY_1 "\""), value);
  f->comma = cut(value + strlen("\"" VALUE_1 "\""), other);
}

/* ---- tags -------------------------------------------------------------------------------------------------------- */

/* The texts around strings and other values differ in quotes, or in a word. text: between a key and a string, which is
 * changed to what all values have; other: between a key and a number. */
static bool learn_values(dt_call_format *f, char *text, const char *other, const char *after) {
  static const char *const words[2][2] = {{"string", "number"}, {"true", "false"}};
  const size_t n = strlen(other);
  f->quote = strdup("");
  if (strcmp(text, other) == 0) return true;
  if (strncmp(text, other, n) == 0 && strncmp(after, text + n, strlen(text + n)) == 0) {
    free(f->quote);
    f->quote = strdup(text + n);
    text[n] = '\0';
    return true;
  }
  for (int i = 0; i < 2; i++) {
    char *at = strstr(text, words[i][0]), *from = strstr(other, words[i][1]);
    if (!at || !from || at - text != from - other) continue;
    replace(text, words[i][0], i ? CALL_IS_STRING : CALL_TYPE);
    return strcmp(text + (at - text) + 1, from + strlen(words[i][1])) == 0;
  }
  return false;
}

/* The length of the ending that two texts share. */
static size_t common_end(const char *a, const char *b) {
  size_t n = strlen(a), m = strlen(b), same = 0;
  while (same < n && same < m && a[n - 1 - same] == b[m - 1 - same]) same++;
  return same;
}

/* name: after the tool's name. *tail: after the last value. */
static bool learn_tags(dt_call_format *f, const char *name, const char **tail) {
  const char *key = strstr(name, KEY_1), *value = key ? strstr(key, VALUE_1) : NULL;
  const char *key_2 = value ? strstr(value, KEY_2) : NULL, *value_2 = key_2 ? strstr(key_2, VALUE_2) : NULL;
  const char *key_3 = value_2 ? strstr(value_2, KEY_3) : NULL, *value_3 = key_3 ? key_3 + strlen(KEY_3) : NULL;
  if (!key_3) return false;
  char *between = cut(key + strlen(KEY_1), value), *between_2 = cut(key_2 + strlen(KEY_2), value_2);
  char *after = cut(value + strlen(VALUE_1), key_2), *after_2 = cut(value_2 + strlen(VALUE_2), key_3);
  f->tags = true;
  bool fine = between && between_2 && after && after_2 && learn_values(f, between, between_2, after);
  if (fine) { /* what follows the third key is as after the second, then true or True */
    const char *at = strpbrk(value_3, "tT");
    while (at && strncmp(at + 1, "rue", 3) != 0) at = strpbrk(at + 1, "tT");
    f->python = at && *at == 'T';
    *tail = at ? at + 4 : NULL;
    fine = at != NULL;
  }
  f->key_end = between, f->more = after_2;
  f->middle = cut(name, key);
  replace(after_2, KEY_2, CALL_KEY);
  free(between_2), free(after);
  return fine && f->middle && f->quote;
}

/* Splits what stands between arguments, before and after them into value_end, more, middle, before and last. */
static bool split_tags(dt_call_format *f) {
  if (!f->last || !f->more || !f->middle) return false;
  size_t n = common(f->more, f->last);
  f->value_end = cut(f->more, f->more + n);
  memmove(f->more, f->more + n, strlen(f->more + n) + 1);
  memmove(f->last, f->last + n, strlen(f->last + n) + 1);
  if (f->next && strncmp(f->next, f->value_end ? f->value_end : "", n) == 0)
    memmove(f->next, f->next + n, strlen(f->next + n) + 1);
  else if (f->next)
    return false;
  const size_t same = common_end(f->middle, f->more), at = strlen(f->middle) - same;
  f->before = strdup(f->middle + at);
  f->middle[at] = '\0';
  return f->value_end && f->before;
}

/* ---- the whole format -------------------------------------------------------------------------------------------- */

/* What precedes the name in a first call: from where the answer begins, after its reasoning. It is "" if the prompt
 * ends with it. */
static char *learn_first(const dt_chat *c, const char *called, const char *plain, const char *name) {
  size_t n = common(called, plain);
  if (called + n >= name) { /* an answer without calls begins in the same way: it names the user instead */
    char *prompt = prompt_of(c);
    n = prompt ? common(called, prompt) : 0;
    free(prompt);
  }
  if (called + n > name) return NULL;
  const char *from = called + n;
  for (const char *at = from; c->reasoning_mark && (at = strstr(at, c->reasoning_mark)) && at < name;)
    from = at += strlen(c->reasoning_mark);
  while (from < name && chat_is_space(*from)) from++;
  return cut(from, name);
}

static bool has_core(const char *text) {
  while (text && chat_is_space(*text)) text++;
  return text && *text;
}

/* Whether `text` ends with `end`, except for white space; *at: where that begins. */
static bool ends_with(const char *text, const char *end, size_t *at) {
  size_t n = strlen(text), m = strlen(end);
  for (;;) {
    while (m > 0 && chat_is_space(end[m - 1])) m--;
    while (n > 0 && chat_is_space(text[n - 1])) n--;
    if (m == 0) break;
    if (n == 0 || text[n - 1] != end[m - 1]) return false;
    n--, m--;
  }
  *at = n;
  return true;
}

/* If what stands between calls ends with what begins the first, calls stand by themselves, and what follows the last
 * one beyond that ends the answer. */
static void find_alone(dt_call_format *f) {
  size_t n;
  if (!f->next || !*f->first || !ends_with(f->next, f->first, &n)) return;
  if (strncmp(f->last, f->next, n) == 0) f->last[n] = '\0', f->alone = true;
}

/* Where the arguments of the first of two calls end; NULL: it is not there. other: its name. second: the name of the
 * other call. */
static const char *end_of_first(const dt_call_format *f, const char *other, const char *second) {
  if (!f->tags) {
    const char *object = strchr(other, '{');
    return object && object < second ? after_object(object) : NULL;
  }
  const char *key = strstr(other, KEY_1), *value = key ? strstr(key + strlen(KEY_1), FIRST_VALUE) : NULL;
  return value && value < second ? value + strlen(FIRST_VALUE) + strlen(f->quote) : NULL;
}

/* Learns what stands between two calls, and which parts of that and of the text before a name number the calls. */
static void learn_next(dt_call_format *f, const char *both) {
  const char *other = both ? strstr(both, OTHER) : NULL, *second = other ? strstr(other, TOOL) : NULL;
  const char *from = second ? end_of_first(f, other, second) : NULL;
  if (!from || from >= second) return;
  f->next = cut(from, second);
  replace(f->next, KEY_1, CALL_KEY), replace(f->next, ID "1", CALL_ID), replace(f->next, ID "2", CALL_ID);
  char *middle = strdup(second + strlen(TOOL));
  replace(middle, TOOL, CALL_NAME), replace(middle, ID "2", CALL_ID);
  find_index(f->first, f->next, true), find_index(f->middle, middle, false);
  free(middle);
}

/* Learns from the second call, by itself and after the first. */
static bool learn_from(const dt_chat *c, dt_call_format *f, const char *called, const char *plain, const char *both) {
  const char *name = strstr(called, TOOL), *tail = NULL, *object = name ? find_object(name) : NULL;
  const char *plain_end = strstr(plain, ANSWER);
  if (!name || !plain_end) return false;
  f->first = learn_first(c, called, plain, name);
  name += strlen(TOOL);
  if (object) {
    f->middle = cut(name, object);
    learn_spacing(f, object);
    tail = after_object(object);
  } else if (!learn_tags(f, name, &tail)) {
    return false;
  }
  replace(f->first, ID "2", CALL_ID), replace(f->middle, ID "2", CALL_ID), replace(f->middle, TOOL, CALL_NAME);
  learn_next(f, both);
  if (tail) f->last = cut(tail, tail + end_of_calls(c, tail, plain_end + strlen(ANSWER), f->next));
  replace(f->last, ID "2", CALL_ID), replace(f->last, TOOL, CALL_NAME), replace(f->last, KEY_3, CALL_KEY);
  /* Without a text before the name, only JSON shows that a call begins. */
  if (!f->last || !f->first || (!*f->first && (f->tags || !has_core(f->next)))) return false;
  if (f->tags && !split_tags(f)) return false;
  find_alone(f);
  return true;
}

static bool fill_missing(dt_call_format *f) {
  char **const texts[] = {&f->first, &f->last, &f->middle, &f->before, &f->more, &f->key_end, &f->value_end, &f->quote};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (!*texts[i] && !(*texts[i] = strdup(""))) return false;
  return true;
}

static void clear(dt_call_format *f) {
  free(f->first), free(f->next), free(f->last), free(f->middle);
  free(f->before), free(f->more), free(f->key_end), free(f->value_end);
  free(f->quote), free(f->comma), free(f->colon);
  *f = (dt_call_format){0};
}

static void learn(const dt_chat *c, dt_call_format *f) {
  char *called = written(c, "", SECOND_CALL), *plain = written(c, ANSWER, NULL);
  char *both = written(c, "", FIRST_CALL "," SECOND_CALL);
  f->learned = called && plain && learn_from(c, f, called, plain, both);
  if (!f->learned) clear(f);
  free(called), free(plain), free(both);
}

static void fill_usual(dt_call_format *f) {
  f->first = strdup("<tool_call>\n{\"name\": \""), f->middle = strdup("\", \"arguments\": ");
  f->last = strdup("}\n</tool_call>"), f->next = strdup("}\n</tool_call>\n<tool_call>\n{\"name\": \"");
  f->comma = strdup(", "), f->colon = strdup(": ");
  f->alone = true;
}

/* Templates in the format of gpt-oss write the recipient of a call before its channel, but the models themselves write
 * it mostly after that. A template's own texts show only the first way. */
static dt_call_format *in_channel(const dt_call_format *f) {
  if (!strstr(f->first, "to=functions.") || !strstr(f->middle, "<|channel|>commentary")) return NULL;
  dt_call_format *also = calloc(1, sizeof *also);
  if (!also) return NULL;
  also->first = strdup("<|channel|>commentary to=functions."), also->middle = strdup("<|constrain|>json<|message|>");
  also->last = strdup(f->last);
  if (fill_missing(also)) return also;
  dt_call_format_close(also);
  return NULL;
}

dt_status dt_call_format_open(const dt_chat *chat, dt_call_format **out, dt_error *err) {
  NEED(chat, "chat");
  NEED(out, "out");
  dt_call_format *f = calloc(1, sizeof *f);
  if (!f) return dt_fail_memory(err, "a format of calls", sizeof *f);
  learn(chat, f);
  if (!f->learned) fill_usual(f);
  if (fill_missing(f)) {
    f->also = in_channel(f);
    *out = f;
    return DT_OK;
  }
  dt_call_format_close(f);
  return dt_fail_memory(err, "a format of calls", sizeof *f);
}

void dt_call_format_close(dt_call_format *f) {
  if (!f) return;
  dt_call_format_close(f->also);
  clear(f);
  free(f);
}

bool dt_call_format_learned(const dt_call_format *f) { return f && f->learned; }
