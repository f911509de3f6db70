/* A reader of JSON: see read_json.h. */
#include "template/read_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  tpl_job *job;
  const template_variable *variable;
  const char *at, *end;
  bool marked;
} reader;

static _Noreturn void fail(const reader *x, const char *expected) {
  tpl_fail(x->job, "%s: byte %zu of its JSON: expected %s", x->variable->name ? x->variable->name : "variables",
           (size_t)(x->at - x->variable->json) + 1, expected);
}

static void skip_space(reader *x) {
  while (x->at < x->end && strchr(" \t\n\r", *x->at) && *x->at) x->at++;
}

static bool take(reader *x, const char *text) {
  size_t n = strlen(text);
  if ((size_t)(x->end - x->at) < n || memcmp(x->at, text, n) != 0) return false;
  x->at += n;
  return true;
}

static bool take_mark(reader *x, const char *mark) {
  skip_space(x);
  bool taken = take(x, mark);
  skip_space(x);
  return taken;
}

/* ---- strings ----------------------------------------------------------------------------------------------------- */

static int32_t hex4(reader *x) {
  int32_t c = 0;
  for (int i = 0; i < 4; i++) {
    const char *digits = "0123456789abcdef", *found = x->at < x->end && *x->at ? strchr(digits, *x->at | 0x20) : NULL;
    if (!found || !*found) fail(x, "four hexadecimal digits");
    c = c * 16 + (int32_t)(found - digits);
    x->at++;
  }
  return c;
}

/* The character after \u. A lone surrogate becomes U+FFFD. */
static int32_t escaped_character(reader *x) {
  int32_t c = hex4(x);
  if (c < 0xD800 || c > 0xDFFF) return c;
  const char *after = x->at;
  if (c < 0xDC00 && take(x, "\\u")) {
    int32_t low = hex4(x);
    if (low >= 0xDC00 && low <= 0xDFFF) return 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    x->at = after;
  }
  return 0xFFFD;
}

static void read_escape(reader *x, tpl_builder *b) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  char text[4];
  if (take(x, "u")) {
    size_t n = tpl_encode(escaped_character(x), text);
    tpl_add(b, text, n, x->marked);
    return;
  }
  const char *known = x->at < x->end && *x->at ? strchr(from, *x->at) : NULL;
  if (!known) fail(x, "an escape");
  x->at++;
  tpl_add(b, &to[known - from], 1, x->marked);
}

static const tpl_string *read_string(reader *x) {
  tpl_builder b = {.job = x->job};
  if (!take(x, "\"")) fail(x, "a string");
  while (!take(x, "\"")) {
    const char *from = x->at;
    while (x->at < x->end && *x->at != '"' && *x->at != '\\') x->at++;
    tpl_add(&b, from, (size_t)(x->at - from), x->marked);
    if (x->at == x->end) fail(x, "the end of a string");
    if (take(x, "\\")) read_escape(x, &b);
  }
  return tpl_built(&b);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static tpl_value read_number(reader *x) {
  char text[400];
  size_t n = 0;
  while (x->at + n < x->end && x->at[n] && strchr("+-.0123456789eE", x->at[n])) n++;
  if (n == 0 || n >= sizeof text) fail(x, n ? "a number of fewer digits" : "a value");
  memcpy(text, x->at, n);
  text[n] = '\0';
  char *end;
  errno = 0;
  tpl_value v = strpbrk(text, ".eE") ? tpl_float(strtod(text, &end)) : tpl_int(strtoll(text, &end, 10));
  if (*end) fail(x, "a number");
  if (errno == ERANGE && v.kind == TPL_INT) fail(x, "an integer of 64 bits");
  x->at += n;
  return v;
}

static tpl_value read_value(reader *x);

static tpl_value read_list(reader *x) {
  tpl_value list = tpl_list_new(x->job, TPL_LIST, 0);
  if (take_mark(x, "]")) return list;
  do tpl_append(x->job, list, read_value(x));
  while (take_mark(x, ","));
  if (!take_mark(x, "]")) fail(x, "',' or ']'");
  return list;
}

static tpl_value read_dict(reader *x) {
  tpl_value dict = tpl_dict_new(x->job);
  if (take_mark(x, "}")) return dict;
  do {
    skip_space(x);
    tpl_value key = tpl_string_value(read_string(x));
    if (!take_mark(x, ":")) fail(x, "':'");
    tpl_dict_set(x->job, dict.dict, key, read_value(x));
  } while (take_mark(x, ","));
  if (!take_mark(x, "}")) fail(x, "',' or '}'");
  return dict;
}

static tpl_value read_value(reader *x) {
  tpl_value v;
  skip_space(x);
  tpl_enter(x->job);
  if (take(x, "{"))
    v = read_dict(x);
  else if (take(x, "["))
    v = read_list(x);
  else if (x->at < x->end && *x->at == '"')
    v = tpl_string_value(read_string(x));
  else if (take(x, "true") || take(x, "false"))
    v = tpl_bool(x->at[-2] == 'u');
  else if (take(x, "null"))
    v = tpl_none();
  else
    v = read_number(x);
  tpl_leave(x->job);
  return v;
}

/* ---- whose words ------------------------------------------------------------------------------------------------- */

static void unmark(tpl_value *string) {
  if (string->kind == TPL_STRING) ((tpl_string *)string->string)->n_marked = 0;
}

/* Templates may build control tokens from the usual roles: "<|" + role + "|>". */
static bool is_usual_role(const tpl_string *role) {
  static const char *const roles[] = {"system", "developer", "user", "assistant", "tool", "function"};
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
    if (tpl_string_is(role, roles[i])) return true;
  return false;
}

/* A message is read twice, because its role decides whether it is marked. */
static tpl_value read_message(reader *x) {
  const char *begin = x->at;
  x->marked = false;
  tpl_value v = read_value(x), *role = v.kind == TPL_DICT ? (tpl_value *)tpl_dict_named(x->job, v.dict, "role") : NULL;
  if (role && role->kind == TPL_STRING && tpl_string_is(role->string, "assistant")) return v;
  x->at = begin;
  x->marked = true;
  v = read_value(x);
  role = v.kind == TPL_DICT ? (tpl_value *)tpl_dict_named(x->job, v.dict, "role") : NULL;
  if (role && role->kind == TPL_STRING && is_usual_role(role->string)) unmark(role);
  return v;
}

static tpl_value read_messages(reader *x) {
  tpl_value list = tpl_list_new(x->job, TPL_LIST, 0);
  if (!take_mark(x, "[")) fail(x, "a list of messages");
  if (take_mark(x, "]")) return list;
  do tpl_append(x->job, list, read_message(x));
  while (take_mark(x, ","));
  if (!take_mark(x, "]")) fail(x, "',' or ']'");
  return list;
}

tpl_value tpl_read_json(tpl_job *job, const template_variable *variable) {
  reader x = {job, variable, variable->json, variable->json + variable->len, variable->origin != TEMPLATE_OWN};
  tpl_value v = variable->origin == TEMPLATE_MESSAGES ? read_messages(&x) : read_value(&x);
  skip_space(&x);
  if (x.at != x.end) fail(&x, "the end");
  return v;
}
