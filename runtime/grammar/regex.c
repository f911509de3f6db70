/* Reading regular expressions: see regex.h. */
#include "grammar/regex.h"
#include "grammar/characters.h"
#include "grammar/gbnf.h"
#include "text/utf8.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

typedef struct {
  const char *what, *begin, *at, *end;
  int depth;
  characters set; /* characters of the item that is being read */
  bool failed;
  arena *a;
} reader;

__attribute__((format(printf, 2, 3))) static void fail_here(reader *x, const char *format, ...) {
  if (x->failed) return;
  char why[200];
  va_list list;
  va_start(list, format);
  vsnprintf(why, sizeof why, format, list);
  va_end(list);
  x->failed = true;
  dt_fail(x->a->err, DT_EINPUT, "%s, column %d: %s", x->what, (int)(x->at - x->begin) + 1, why);
}

static char peek(const reader *x) { return x->at < x->end ? *x->at : '\0'; }

static bool take(reader *x, const char *what) {
  size_t n = strlen(what);
  if ((size_t)(x->end - x->at) < n || memcmp(x->at, what, n)) return false;
  x->at += n;
  return true;
}

/* ---- characters -------------------------------------------------------------------------------------------------- */

static const rules_range digits[] = {{'0', '9'}}, word[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
                         line_ends[] = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}},
                         spaces[] = {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
                                     {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                                     {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

static void add_known(reader *x, const rules_range *range, int n, bool others) {
  for (int i = 0; i < n && !others; i++) characters_add(&x->set, range[i].low, range[i].high);
  for (int i = 0; i <= n && others; i++)
    characters_add(&x->set, i ? range[i - 1].high + 1 : 0, i < n ? range[i].low - 1 : 0x10FFFF);
}

static int32_t read_hex(reader *x, int n) {
  int32_t c = 0;
  for (int i = 0; i < n; i++, x->at++) {
    if (!isxdigit((unsigned char)peek(x))) {
      fail_here(x, "expected %d hexadecimal digits", n);
      return 0;
    }
    c = c * 16 + (*x->at <= '9' ? *x->at - '0' : (*x->at | 0x20) - 'a' + 10);
  }
  return c;
}

/* Reads what follows \u: four digits (twice for a pair of surrogates), or any number of digits in braces. */
static int32_t read_unicode(reader *x) {
  const char *from = x->at;
  int32_t c;
  if (take(x, "{")) {
    int n = (int)strspn(x->at, "0123456789abcdefABCDEF");
    c = read_hex(x, n >= 1 && n <= 6 ? n : 6);
    if (!x->failed && !take(x, "}")) fail_here(x, "expected }");
  } else {
    c = read_hex(x, 4);
    if (c >= 0xD800 && c < 0xDC00 && take(x, "\\u")) {
      int32_t low = read_hex(x, 4);
      c = low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00) : c;
    }
  }
  if (x->failed || (c <= 0x10FFFF && !(c >= 0xD800 && c < 0xE000))) return c;
  x->at = from;
  fail_here(x, "U+%X is not a character", (unsigned)c);
  return 0;
}

/* Reads what follows a backslash. Returns the code point of one character; for a known set, adds it and returns -1. */
static int32_t read_escape(reader *x, bool in_class) {
  static const char *const not_read[][2] = {
      {"bB", "word boundaries"}, {"123456789k", "back references"}, {"pP", "character properties"}};
  char c = peek(x);
  if (x->at == x->end) {
    fail_here(x, "there is nothing after \\");
    return 0;
  }
  x->at++;
  switch (c) {
  case 'd':
  case 'D': return add_known(x, digits, COUNT(digits), c == 'D'), -1;
  case 'w':
  case 'W': return add_known(x, word, COUNT(word), c == 'W'), -1;
  case 's':
  case 'S': return add_known(x, spaces, COUNT(spaces), c == 'S'), -1;
  case 't': return '\t';
  case 'n': return '\n';
  case 'r': return '\r';
  case 'v': return '\v';
  case 'f': return '\f';
  case '0':
    if (!isdigit((unsigned char)peek(x))) return '\0';
    break;
  case 'c':
    if (isalpha((unsigned char)peek(x))) return *x->at++ & 0x1F;
    break;
  case 'x': return read_hex(x, 2);
  case 'u': return read_unicode(x);
  default: break;
  }
  if (c == 'b' && in_class) return '\b';
  if (strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ ", c)) return c;
  x->at--;
  for (int i = 0; i < 3; i++)
    if (strchr(not_read[i][0], c)) fail_here(x, "%s (\\%c) are not supported", not_read[i][1], c);
  fail_here(x, "unknown escape; supported: \\d \\w \\s \\t \\n \\r \\v \\f \\xHH \\uHHHH, and \\ before punctuation");
  return 0;
}

static int32_t read_character(reader *x) {
  size_t len = 0;
  utf8_next(x->at, (size_t)(x->end - x->at), &len); /* all of it is well-formed */
  x->at += len;
  return utf8_code_point(x->at - len, len);
}

static int32_t read_member(reader *x) { return take(x, "\\") ? read_escape(x, true) : read_character(x); }

static void read_class(reader *x) {
  const char *from = x->at - 1;
  bool others = take(x, "^");
  while (!x->failed && !take(x, "]")) {
    if (x->at == x->end) {
      x->at = from;
      fail_here(x, "this class does not end");
      return;
    }
    const char *begin = x->at;
    int32_t low = read_member(x), high = low;
    if (peek(x) == '-' && x->at + 1 < x->end && x->at[1] != ']') {
      x->at++;
      high = read_member(x);
      if (x->failed) return;
      if (low < 0 || high < 0 || high < low) {
        x->at = begin;
        fail_here(x, low < 0 || high < 0 ? "a range needs a character on both sides; write \\- for the character -"
                                         : "the range ends before it begins");
      }
    }
    if (low >= 0) characters_add(&x->set, low, high);
  }
  characters_tidy(&x->set);
  if (others) characters_invert(&x->set);
  if (x->set.n || x->set.no_memory || x->failed) return;
  x->at = from;
  fail_here(x, "this class contains no character");
}

/* ---- items ------------------------------------------------------------------------------------------------------- */

static regex_node *node_of(reader *x, regex_kind kind) {
  regex_node *made = arena_take(x->a, sizeof *made);
  made->kind = kind;
  return made;
}

static bool repeats(const reader *x) { return peek(x) && strchr("*+?{", peek(x)); }

static regex_node *node_of_set(reader *x) {
  regex_node *made = node_of(x, REGEX_SET);
  const size_t bytes = (size_t)x->set.n * sizeof *x->set.range;
  made->range = arena_grow(x->a, x->set.range, bytes, bytes);
  made->n = x->set.n;
  return made;
}

/* Reads a number of repetitions; -1: there is none. */
static int read_count(reader *x) {
  int n = -1;
  for (; peek(x) >= '0' && peek(x) <= '9' && !x->failed; x->at++) {
    n = (n < 0 ? 0 : n) * 10 + (*x->at - '0');
    if (n > RULES_NODES) fail_here(x, "more than %d repetitions", RULES_NODES);
  }
  return n;
}

static void read_bounds(reader *x, const char *from, regex_node *into) {
  into->least = read_count(x);
  into->most = take(x, ",") ? read_count(x) : into->least;
  const bool open = x->at[-1] == ',';
  if (!x->failed && (into->least < 0 || !take(x, "}"))) {
    x->at = from;
    fail_here(x, "expected {2}, {2,} or {2,5}; write \\{ for the character {");
  }
  if (!x->failed && !open && into->most < into->least)
    fail_here(x, "{%d,%d}: the maximum is less than the minimum", into->least, into->most);
}

static regex_node *read_repetition(reader *x, regex_node *item) {
  if (!repeats(x) || x->failed) return item;
  const char *from = x->at;
  regex_node *made = node_of(x, REGEX_REPEAT);
  made->child = item;
  made->most = -1;
  if (take(x, "{"))
    read_bounds(x, from, made);
  else if (take(x, "+"))
    made->least = 1;
  else if (take(x, "?"))
    made->most = 1;
  else
    x->at++;
  take(x, "?"); /* lazy matching: the texts are the same */
  if (repeats(x)) fail_here(x, "this repeats a repetition: put parentheses around it");
  return made;
}

static regex_node *read_choices(reader *x);

static regex_node *read_group(reader *x) {
  const char *from = x->at - 1;
  regex_node *look = take(x, "?=") ? node_of(x, REGEX_AHEAD) : take(x, "?!") ? node_of(x, REGEX_NOT) : NULL;
  if (!look && take(x, "?<") && peek(x) != '=' && peek(x) != '!') {
    while (peek(x) && peek(x) != '>') x->at++;
    if (!take(x, ">")) fail_here(x, "the name of this group does not end");
  } else if (!look && (x->at[-1] == '<' || (peek(x) == '?' && !take(x, "?:")))) {
    x->at = from;
    fail_here(x, "only the groups (?: ), (?<name> ), (?= ) and (?! ) of those that begin with (? are supported");
  }
  if (++x->depth > REGEX_DEPTH) {
    x->at = from;
    fail_here(x, "more than %d nested parentheses", REGEX_DEPTH);
  }
  if (x->failed) return NULL;
  regex_node *inside = read_choices(x);
  if (!x->failed && !take(x, ")")) {
    x->at = from;
    fail_here(x, "this parenthesis is not closed");
  }
  x->depth--;
  if (look) look->child = inside;
  return look ? look : inside;
}

/* Reads a set of one or more characters. */
static regex_node *read_set(reader *x) {
  x->set.n = 0;
  if (strchr("])}", peek(x))) fail_here(x, "this %c closes nothing; write \\%c for the character", peek(x), peek(x));
  if (x->failed) return NULL;
  if (take(x, "["))
    read_class(x);
  else if (take(x, "."))
    add_known(x, line_ends, COUNT(line_ends), true);
  else {
    int32_t c = take(x, "\\") ? read_escape(x, false) : read_character(x);
    if (c >= 0) characters_add(&x->set, c, c);
  }
  characters_tidy(&x->set);
  if (x->set.no_memory && !x->failed) {
    x->failed = true;
    dt_fail_memory(x->a->err, x->what, sizeof(rules_range));
  }
  return x->failed ? NULL : node_of_set(x);
}

static regex_node *read_item(reader *x) {
  if (take(x, "^")) return node_of(x, REGEX_BEGIN);
  if (take(x, "$")) return node_of(x, REGEX_END);
  if (repeats(x)) fail_here(x, "there is nothing before this to repeat");
  regex_node *item = x->failed ? NULL : take(x, "(") ? read_group(x) : read_set(x);
  return item && item->kind < REGEX_AHEAD ? read_repetition(x, item) : item;
}

static regex_node *read_choice(reader *x) {
  regex_node *made = node_of(x, REGEX_JOIN), **last = &made->child;
  while (!x->failed && x->at < x->end && peek(x) != '|' && !(peek(x) == ')' && x->depth)) {
    *last = read_item(x);
    if (*last) last = &(*last)->next;
  }
  return made;
}

static regex_node *read_choices(reader *x) {
  regex_node *first = read_choice(x), *last = first;
  if (peek(x) != '|') return first;
  regex_node *made = node_of(x, REGEX_EITHER);
  made->child = first;
  while (!x->failed && take(x, "|")) last = last->next = read_choice(x);
  return made;
}

regex_node *regex_read(arena *a, const char *regex, const char *what) {
  size_t len = strlen(regex), good = utf8_valid_prefix(regex, len);
  if (len > REGEX_BYTES)
    arena_leave(a, dt_fail(a->err, DT_EINPUT, "%s: %zu bytes, the maximum is %d", what, len, REGEX_BYTES));
  if (good < len) arena_leave(a, dt_fail(a->err, DT_EINPUT, "%s: byte %zu is not UTF-8", what, good));
  reader *x = arena_take(a, sizeof *x);
  *x = (reader){.what = what, .begin = regex, .at = regex, .end = regex + len, .a = a};
  jmp_buf out;
  memcpy(out, a->out, sizeof out);
  regex_node *volatile tree = NULL;
  if (!setjmp(a->out)) tree = read_choices(x); /* the set owns memory of its own */
  memcpy(a->out, out, sizeof out);
  characters_free(&x->set);
  if (!tree || x->failed) arena_leave(a, a->status ? a->status : DT_EINPUT);
  return tree;
}
