/* Reading GBNF: see gbnf.h. */
#include "grammar/gbnf.h"
#include "text/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const char *text; /* in the source */
  int len;
  int32_t first;
  bool defined;
} named;

typedef struct {
  const char *begin, *at, *end;
  rules *r;
  named *name; /* in the order of their first use */
  int n_names, depth;
  int *bucket; /* [BUCKETS] 1 + the last name of the hash; next: the one before */
  int *next;
  rules_range *range; /* [GBNF_BYTES] of a class */
  dt_status status;
  dt_error *err;
} reader;

enum { BUCKETS = 4096, MAX_ID = 100000000 };

__attribute__((format(printf, 2, 3))) static void fail_here(reader *g, const char *format, ...) {
  if (g->status) return;
  char what[256];
  va_list list;
  va_start(list, format);
  vsnprintf(what, sizeof what, format, list);
  va_end(list);
  int line = 1;
  const char *from = g->begin;
  for (const char *c = g->begin; c < g->at; c++)
    if (*c == '\n') line++, from = c + 1;
  g->status = dt_fail(g->err, DT_EINPUT, "grammar, line %d, column %d: %s", line, (int)(g->at - from) + 1, what);
}

/* NUL does not end the text, since it is refused before. */
static char peek(const reader *g) { return g->at < g->end ? *g->at : '\0'; }

static bool take(reader *g, const char *what) {
  size_t n = strlen(what);
  if ((size_t)(g->end - g->at) < n || memcmp(g->at, what, n)) return false;
  g->at += n;
  return true;
}

static void skip(reader *g, bool lines) {
  for (;; g->at++) {
    if (peek(g) == '#')
      while (g->at < g->end && *g->at != '\n' && *g->at != '\r') g->at++;
    char c = peek(g);
    if (!(c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r')))) return;
  }
}

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

/* The rule of the name that comes next, which may be defined later. */
static named *read_name(reader *g) {
  const char *from = g->at;
  uint32_t hash = 2166136261u;
  while (is_word(peek(g))) hash = (hash ^ (uint8_t)*g->at++) * 16777619u;
  int len = (int)(g->at - from), *at = &g->bucket[hash % BUCKETS];
  if (!len) {
    fail_here(g, "expected a name of letters, digits and -");
    return NULL;
  }
  for (int i = *at; i; i = g->next[i - 1])
    if (g->name[i - 1].len == len && !memcmp(g->name[i - 1].text, from, (size_t)len)) return &g->name[i - 1];
  g->name[g->n_names] = (named){.text = from, .len = len, .first = rules_add(g->r, (rules_node){.kind = NODE_EMPTY})};
  g->next[g->n_names] = *at;
  *at = g->n_names + 1;
  return &g->name[g->n_names++];
}

static int hex(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

static int32_t read_hex(reader *g, int digits) {
  uint32_t c = 0;
  const char *from = g->at;
  for (; g->at - from < digits; g->at++) {
    int digit = hex(peek(g));
    if (digit < 0) {
      fail_here(g, "expected %d hexadecimal digits", digits);
      return 0;
    }
    c = c << 4 | (uint32_t)digit;
  }
  if (c <= 0x10FFFF && !(c >= 0xD800 && c <= 0xDFFF)) return (int32_t)c;
  g->at = from;
  fail_here(g, "U+%X is not a character", (unsigned)c);
  return 0;
}

/* Reads one character of a text or class and returns its code point. */
static int32_t read_character(reader *g) {
  if (peek(g) != '\\') {
    size_t len = 0;
    if (g->at == g->end || peek(g) == '\n') {
      fail_here(g, "the text or class does not end in its line");
      return 0;
    }
    utf8_next(g->at, (size_t)(g->end - g->at), &len); /* all of it is well-formed */
    g->at += len;
    return utf8_code_point(g->at - len, len);
  }
  g->at++;
  char c = peek(g);
  g->at += g->at < g->end;
  switch (c) {
  case 'n': return '\n';
  case 'r': return '\r';
  case 't': return '\t';
  case '\\':
  case '"':
  case '[':
  case ']': return c;
  case 'x': return read_hex(g, 2);
  case 'u': return read_hex(g, 4);
  case 'U': return read_hex(g, 8);
  default:
    g->at -= c != '\0';
    fail_here(g, "unknown escape; supported: \\n \\r \\t \\\\ \\\" \\[ \\] \\xHH \\uHHHH \\UHHHHHHHH");
    return 0;
  }
}

static rules_way read_text(reader *g) {
  rules_way all = rules_text(g->r, "", 0);
  while (!g->status && !take(g, "\"")) {
    int32_t c = read_character(g);
    all = rules_join(g->r, all, rules_character(g->r, &(rules_range){c, c}, 1, false));
  }
  return all;
}

static rules_way read_class(reader *g) {
  const char *from = g->at;
  bool others = take(g, "^");
  int n = 0;
  while (!g->status && !take(g, "]")) {
    int32_t low = read_character(g), high = low;
    if (peek(g) == '-' && g->at + 1 < g->end && g->at[1] != ']') {
      g->at++;
      high = read_character(g);
    }
    if (high < low) fail_here(g, "the range ends before it begins");
    g->range[n++] = (rules_range){low, high};
  }
  rules_way all = rules_character(g->r, g->range, n, others);
  if (!all.last && rules_have_room(g->r)) {
    g->at = from;
    fail_here(g, "this class contains no character");
  }
  return all;
}

/* A number of up to `most`; -1: there is none. */
static int read_number(reader *g, int most, const char *what) {
  int n = -1;
  for (; peek(g) >= '0' && peek(g) <= '9'; g->at++) {
    n = (n < 0 ? 0 : n) * 10 + (*g->at - '0');
    if (n > most) {
      fail_here(g, "more than %d %s", most, what);
      return 0;
    }
  }
  return n;
}

static int read_count(reader *g) { return read_number(g, RULES_NODES, "repetitions"); }

static rules_way read_repetition(reader *g, rules_way item) {
  if (take(g, "*")) return rules_repeat(g->r, item, 0, -1);
  if (take(g, "+")) return rules_repeat(g->r, item, 1, -1);
  if (take(g, "?")) return rules_repeat(g->r, item, 0, 1);
  if (!take(g, "{")) return item;
  skip(g, true);
  int least = read_count(g), most = least;
  if (least < 0 && !g->status) fail_here(g, "expected a number of repetitions");
  skip(g, true);
  if (take(g, ",")) {
    skip(g, true);
    most = read_count(g);
    skip(g, true);
  }
  if (!g->status && !take(g, "}")) fail_here(g, "expected }, as in {2}, {2,} or {2,5}");
  if (!g->status && most >= 0 && most < least)
    fail_here(g, "{%d,%d}: the maximum is less than the minimum", least, most);
  return g->status ? item : rules_repeat(g->r, item, least, most);
}

/* <name> or <[id]>: a token. */
static rules_way read_token(reader *g) {
  const char *from = g->at;
  while (g->at < g->end && *g->at != '>' && *g->at != '\n') g->at++;
  if (!take(g, ">")) {
    g->at = from;
    fail_here(g, "expected a token, as in <think> or <[1000]>");
    return (rules_way){0, 0};
  }
  const char *end = g->at;
  if (from[1] != '[') return rules_token(g->r, -1, from, (size_t)(end - from));
  g->at = from + 2;
  const int id = read_number(g, MAX_ID, "tokens");
  if (!g->status && (id < 0 || !take(g, "]>"))) fail_here(g, "expected the id of a token, as in <[1000]>");
  return rules_token(g->r, id, NULL, 0);
}

static rules_way read_choices(reader *g, bool nested);

static rules_way read_item(reader *g) {
  rules_way item = {0, 0};
  if (take(g, "\""))
    item = read_text(g);
  else if (peek(g) == '<')
    item = read_token(g);
  else if (take(g, "["))
    item = read_class(g);
  else if (take(g, "."))
    item = rules_character(g->r, NULL, 0, true);
  else if (take(g, "(")) {
    if (++g->depth > GBNF_DEPTH) {
      fail_here(g, "more than %d nested parentheses", GBNF_DEPTH);
      return item;
    }
    skip(g, true);
    item = read_choices(g, true);
    if (!g->status && rules_have_room(g->r) && !take(g, ")")) fail_here(g, "expected )");
    g->depth--;
  } else {
    const named *rule = read_name(g);
    int32_t call = rules_add(g->r, (rules_node){.kind = NODE_CALL, .other = rule ? rule->first : 0});
    item = (rules_way){call, call};
  }
  return item;
}

static rules_way read_items(reader *g, bool nested) {
  rules_way all = rules_text(g->r, "", 0);
  while (!g->status) {
    char c = peek(g);
    if (c == '!')
      fail_here(g, "the negation of a token (!) is not supported");
    else if (c == '*' || c == '+' || c == '?' || c == '{')
      fail_here(g, "there is nothing before this to repeat");
    if (g->status || !(c == '"' || c == '[' || c == '.' || c == '(' || c == '<' || is_word(c))) break;
    rules_way item = read_item(g);
    skip(g, nested);
    while (!g->status && strchr("*+?{", peek(g)) && peek(g)) {
      item = read_repetition(g, item);
      skip(g, nested);
    }
    all = rules_join(g->r, all, item);
    if (!rules_have_room(g->r)) break;
  }
  return all;
}

static rules_way read_choices(reader *g, bool nested) {
  rules_way all = read_items(g, nested);
  while (!g->status && take(g, "|")) {
    skip(g, true);
    all = rules_either(g->r, all, read_items(g, nested));
  }
  return all;
}

static void read_rule(reader *g) {
  const char *from = g->at;
  named *rule = read_name(g);
  if (!rule) return;
  if (rule->defined) {
    g->at = from;
    fail_here(g, "rule %.*s is defined twice", rule->len < 60 ? rule->len : 60, rule->text);
    return;
  }
  rule->defined = true;
  skip(g, false);
  if (!take(g, "::=")) fail_here(g, "expected ::=");
  skip(g, true);
  int32_t first = rule->first; /* names may move */
  rules_way all = read_choices(g, false);
  if (!rules_have_room(g->r) || g->status) return;
  if (g->at < g->end && peek(g) != '\n' && peek(g) != '\r') fail_here(g, "expected the end of the line");
  int32_t back = rules_add(g->r, (rules_node){.kind = NODE_RETURN});
  rules_join(g->r, (rules_way){first, first}, rules_join(g->r, all, (rules_way){back, back}));
  skip(g, true);
}

static const char *name_of(const void *of, int32_t node) {
  static _Thread_local char shown[64];
  const reader *g = of;
  for (int i = 0; i < g->n_names; i++)
    if (g->name[i].first == node) {
      snprintf(shown, sizeof shown, "%.*s", g->name[i].len, g->name[i].text);
      return shown;
    }
  return NULL;
}

static void check_names(reader *g) {
  g->at = g->end;
  for (int i = 0; i < g->n_names && !g->status; i++) {
    if (g->name[i].len == 4 && !memcmp(g->name[i].text, "root", 4) && g->name[i].defined) g->r->root = g->name[i].first;
    if (g->name[i].defined) continue;
    g->at = g->name[i].text;
    fail_here(g, "there is no rule %.*s", g->name[i].len < 60 ? g->name[i].len : 60, g->name[i].text);
  }
  if (!g->status && !g->r->root) fail_here(g, "there is no rule root, which matches the whole text");
}

dt_status gbnf_read(const char *text, size_t len, rules *out, dt_error *err) {
  *out = (rules){0};
  if (len > GBNF_BYTES) return dt_fail(err, DT_EINPUT, "grammar: %zu bytes, the maximum is %d", len, GBNF_BYTES);
  static const char mark[] = "\xEF\xBB\xBF"; /* byte order mark, with which some editors begin a file */
  if (len >= 3 && memcmp(text, mark, 3) == 0) text += 3, len -= 3;
  reader g = {.begin = text, .at = text, .end = text + len, .r = out, .err = err};
  if (memchr(text, 0, len)) return dt_fail(err, DT_EINPUT, "grammar: byte %zu is NUL", strnlen(text, len));
  if (utf8_valid_prefix(text, len) < len)
    return dt_fail(err, DT_EINPUT, "grammar: byte %zu is not UTF-8", utf8_valid_prefix(text, len));
  g.name = calloc(len + 1, sizeof *g.name);
  g.next = malloc((len + 1) * sizeof *g.next);
  g.range = malloc((len + 1) * sizeof *g.range);
  g.bucket = calloc(BUCKETS, sizeof *g.bucket);
  if (!g.name || !g.next || !g.range || !g.bucket)
    g.status = dt_fail_memory(err, "a grammar", (len + 1) * (sizeof *g.name + sizeof *g.range));
  if (!g.status) skip(&g, true);
  while (!g.status && g.at < g.end && rules_have_room(out)) read_rule(&g);
  if (rules_have_room(out)) check_names(&g);
  if (!g.status) g.status = rules_finish(out, name_of, &g, err);
  free(g.name), free(g.next), free(g.range), free(g.bucket);
  return g.status;
}
