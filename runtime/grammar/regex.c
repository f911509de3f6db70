/* From a regular expression to a grammar: see regex.h. */
#include "grammar/regex.h"
#include "grammar/characters.h"
#include "grammar/gbnf.h"
#include "grammar/written.h"
#include "text/utf8.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const char *what, *begin, *at, *end;
  bool in_json, in_text; /* in_text: the last item that was written is a text without its closing quote */
  int depth;
  characters set; /* characters of the item that is being read */
  FILE *out;
  dt_status status;
  dt_error *err;
} reader;

__attribute__((format(printf, 2, 3))) static void fail_here(reader *x, const char *format, ...) {
  if (x->status) return;
  char why[200];
  va_list list;
  va_start(list, format);
  vsnprintf(why, sizeof why, format, list);
  va_end(list);
  x->status = dt_fail(x->err, DT_EINPUT, "%s, column %d: %s", x->what, (int)(x->at - x->begin) + 1, why);
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
    if (!x->status && !take(x, "}")) fail_here(x, "expected }");
  } else {
    c = read_hex(x, 4);
    if (c >= 0xD800 && c < 0xDC00 && take(x, "\\u")) {
      int32_t low = read_hex(x, 4);
      c = low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00) : c;
    }
  }
  if (x->status || (c <= 0x10FFFF && !(c >= 0xD800 && c < 0xE000))) return c;
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
  while (!x->status && !take(x, "]")) {
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
      if (x->status) return;
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
  if (x->set.n || x->set.no_memory || x->status) return;
  x->at = from;
  fail_here(x, "this class contains no character");
}

/* ---- items ------------------------------------------------------------------------------------------------------- */

static void close_text(reader *x) {
  if (x->in_text) fputs("\" ", x->out);
  x->in_text = false;
}

static bool repeats(const reader *x) { return peek(x) && strchr("*+?{", peek(x)); }

/* Consecutive single characters become one text. */
static void put_set(reader *x) {
  const rules_range one = x->set.n ? x->set.range[0] : (rules_range){0, 0};
  if (x->set.no_memory) x->status = dt_fail_memory(x->err, x->what, sizeof one);
  if (x->status) return;
  if (x->set.n > 1 || one.low < one.high || (x->in_json && characters_escaped(one.low))) {
    close_text(x);
    characters_put(&x->set, x->in_json, x->out);
    return;
  }
  if (repeats(x)) close_text(x);
  if (!x->in_text) fputs("\"", x->out);
  x->in_text = true;
  characters_put_one(one.low, x->out);
  if (repeats(x)) close_text(x);
}

static int read_count(reader *x) {
  int n = -1;
  for (; peek(x) >= '0' && peek(x) <= '9' && !x->status; x->at++) {
    n = (n < 0 ? 0 : n) * 10 + (*x->at - '0');
    if (n > RULES_NODES) fail_here(x, "more than %d repetitions", RULES_NODES);
  }
  return n;
}

static void put_repetition(reader *x) {
  if (!repeats(x) || x->status) return;
  const char *from = x->at;
  if (take(x, "{")) {
    int least = read_count(x), most = take(x, ",") ? read_count(x) : least;
    bool open = x->at[-1] == ',';
    if (!x->status && (least < 0 || !take(x, "}"))) {
      x->at = from;
      fail_here(x, "expected {2}, {2,} or {2,5}; write \\{ for the character {");
    }
    if (!x->status && !open && most < least) fail_here(x, "{%d,%d}: the maximum is less than the minimum", least, most);
  } else
    x->at++;
  for (; from < x->at; from++) putc(*from, x->out);
  putc(' ', x->out);
  take(x, "?"); /* lazy matching: the texts are the same */
  if (repeats(x)) fail_here(x, "this repeats a repetition: put parentheses around it");
}

static void put_choices(reader *x);

static void put_group(reader *x) {
  const char *from = x->at - 1;
  if (take(x, "?<") && peek(x) != '=' && peek(x) != '!') {
    while (peek(x) && peek(x) != '>') x->at++;
    if (!take(x, ">")) fail_here(x, "the name of this group does not end");
  } else if (x->at[-1] == '<' || (peek(x) == '?' && !take(x, "?:"))) {
    x->at = from;
    fail_here(x, "only the groups (?: ) and (?<name> ) of those that begin with (? are supported");
  }
  if (++x->depth > REGEX_DEPTH) {
    x->at = from;
    fail_here(x, "more than %d nested parentheses", REGEX_DEPTH);
  }
  if (x->status) return;
  close_text(x);
  fputs("(", x->out);
  put_choices(x);
  fputs(") ", x->out);
  if (!x->status && !take(x, ")")) {
    x->at = from;
    fail_here(x, "this parenthesis is not closed");
  }
  x->depth--;
}

static void put_item(reader *x) {
  x->set.n = 0;
  if (take(x, "(")) {
    put_group(x);
  } else {
    if (repeats(x)) fail_here(x, "there is nothing before this to repeat");
    if (strchr("])}", peek(x))) fail_here(x, "this %c closes nothing; write \\%c for the character", peek(x), peek(x));
    if (strchr("^$", peek(x)))
      fail_here(x, "%c is supported only at the %s of the expression, or of an alternative outside of parentheses",
                peek(x), peek(x) == '^' ? "beginning" : "end");
    if (x->status) return;
    if (take(x, "["))
      read_class(x);
    else if (take(x, "."))
      add_known(x, line_ends, COUNT(line_ends), true);
    else {
      int32_t c = take(x, "\\") ? read_escape(x, false) : read_character(x);
      if (c >= 0) characters_add(&x->set, c, c);
    }
    characters_tidy(&x->set);
    put_set(x);
  }
  put_repetition(x);
  if (ftell(x->out) > GBNF_BYTES) fail_here(x, "its grammar has more than %d bytes", GBNF_BYTES);
}

/* Reads alternatives; the outermost ones may have ^ and $ at their ends. */
static void put_choice(reader *x) {
  bool outer = !x->depth, begins = outer && take(x, "^"), ends = false;
  bool inside = outer && x->in_json; /* a longer text */
  const char *from = x->at;
  if (inside && !begins) fputs("plain* ", x->out);
  while (!x->status && x->at < x->end && peek(x) != '|' && !(peek(x) == ')' && x->depth)) {
    if (outer && peek(x) == '$' && (x->at + 1 == x->end || x->at[1] == '|'))
      x->at++, ends = true;
    else
      put_item(x);
  }
  close_text(x);
  if (inside && !ends) fputs("plain* ", x->out);
  if (x->at == from) fputs("\"\" ", x->out);
}

static void put_choices(reader *x) {
  put_choice(x);
  while (!x->status && take(x, "|")) {
    fputs("| ", x->out);
    put_choice(x);
  }
}

dt_status regex_put(const char *regex, bool in_json, const char *what, FILE *out, dt_error *err) {
  size_t len = strlen(regex), good = utf8_valid_prefix(regex, len);
  if (len > GBNF_BYTES) return dt_fail(err, DT_EINPUT, "%s: %zu bytes, the maximum is %d", what, len, GBNF_BYTES);
  if (good < len) return dt_fail(err, DT_EINPUT, "%s: byte %zu is not UTF-8", what, good);
  reader x = {
      .what = what, .begin = regex, .at = regex, .end = regex + len, .in_json = in_json, .out = out, .err = err};
  put_choices(&x);
  characters_free(&x.set);
  return x.status;
}

dt_status regex_to_gbnf(const char *regex, char **gbnf, dt_error *err) {
  char *text = NULL;
  size_t len;
  FILE *out = open_memstream(&text, &len);
  if (!out) return dt_fail_memory(err, "a regular expression", 4096);
  fputs("root ::= ", out);
  dt_status status = regex_put(regex, false, "regular expression", out, err);
  putc('\n', out);
  if (!is_written(out, &text) && !status) status = dt_fail_memory(err, "a regular expression", len);
  if (status)
    free(text);
  else
    *gbnf = text;
  return status;
}
