/* From a template's text to tokens: see lexer.h. */
#include "template/lexer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

typedef struct {
  tpl_job *job;
  const tpl_string *source; /* with \n at the ends of lines */
  size_t at;
  char open[TEMPLATE_LEVELS]; /* the brackets that are open */
  int n_open;
  bool line_starts; /* the last text taken ended with a newline */
  tpl_token *tokens;
  size_t n, capacity;
} lexer;

/* ---- looking ----------------------------------------------------------------------------------------------------- */

static size_t left(const lexer *x) { return x->source->len - x->at; }
static char peek(const lexer *x, size_t i) { return i < left(x) ? x->source->bytes[x->at + i] : '\0'; }

static bool sees(const lexer *x, const char *text) {
  size_t n = strlen(text);
  return left(x) >= n && memcmp(x->source->bytes + x->at, text, n) == 0;
}

static void advance(lexer *x, size_t n) {
  for (size_t i = 0; i < n; i++) x->job->line += x->source->bytes[x->at + i] == '\n';
  if (n) x->line_starts = x->source->bytes[x->at + n - 1] == '\n';
  x->at += n;
}

static bool take(lexer *x, const char *text) {
  if (!sees(x, text)) return false;
  advance(x, strlen(text));
  return true;
}

static size_t space_length(const lexer *x, size_t at) {
  size_t len, begin = at;
  while (at < x->source->len && tpl_is_space(tpl_character(x->source, at, &len))) at += len;
  return at - begin;
}

static void skip_space(lexer *x) { advance(x, space_length(x, x->at)); }

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static tpl_token *add(lexer *x, int kind, const tpl_string *text) {
  if (x->n == x->capacity) {
    size_t wanted = x->capacity ? 2 * x->capacity : 256;
    x->tokens = tpl_grow(x->job, x->tokens, x->capacity, wanted, sizeof *x->tokens);
    x->capacity = wanted;
  }
  x->tokens[x->n] = (tpl_token){.kind = kind, .line = x->job->line, .text = text};
  return &x->tokens[x->n++];
}

static const tpl_string *piece(lexer *x, size_t n) { return tpl_string_part(x->job, x->source, x->at, x->at + n); }

/* Takes the mark that ends a tag. `trims`: a newline after it goes too, unless a "+" precedes the mark. */
static bool take_end(lexer *x, const char *mark, bool trims) {
  size_t signs = peek(x, 0) == '-' || (peek(x, 0) == '+' && trims) ? 1 : 0;
  char sign = signs ? peek(x, 0) : '\0';
  size_t n = strlen(mark);
  if (left(x) < signs + n || memcmp(x->source->bytes + x->at + signs, mark, n) != 0) return false;
  n += signs;
  if (sign == '-') n += space_length(x, x->at + n);
  if (!sign && trims && peek(x, n) == '\n') n++;
  advance(x, n);
  return true;
}

/* ---- numbers and strings in tags --------------------------------------------------------------------------------- */

static bool is_digit(char c, int base) {
  const char *digits = "0123456789abcdef", *found = c ? strchr(digits, c >= 'A' && c <= 'Z' ? c | 0x20 : c) : NULL;
  return found && found - digits < base;
}

/* Digits with single underscores between them. */
static size_t digits(const lexer *x, size_t i, int base) {
  size_t from = i;
  while (is_digit(peek(x, i), base) || (i > from && peek(x, i) == '_' && is_digit(peek(x, i + 1), base))) i++;
  return i - from;
}

/* The length of a float's digits, 0: an integer. */
static size_t float_length(const lexer *x) {
  size_t n = digits(x, 0, 10), whole = n;
  if (peek(x, n) == '.' && digits(x, n + 1, 10)) n += 1 + digits(x, n + 1, 10);
  if ((peek(x, n) | 0x20) == 'e') {
    size_t sign = peek(x, n + 1) == '+' || peek(x, n + 1) == '-', exponent = digits(x, n + 1 + sign, 10);
    if (exponent) n += 1 + sign + exponent;
  }
  return n > whole ? n : 0;
}

static void copy_digits(lexer *x, size_t n, char out[64]) {
  size_t to = 0;
  for (size_t i = 0; i < n; i++) {
    if (peek(x, i) == '_') continue;
    if (to == 63) tpl_fail(x->job, "a number of more than 63 digits");
    out[to++] = peek(x, i);
  }
  out[to] = '\0';
}

static void lex_number(lexer *x) {
  char text[64], sign = (char)(peek(x, 1) | 0x20);
  int base = peek(x, 0) != '0' ? 10 : sign == 'x' ? 16 : sign == 'o' ? 8 : sign == 'b' ? 2 : 10;
  size_t prefix = base == 10 ? 0 : 2, n = base == 10 ? float_length(x) : 0;
  bool is_float = n > 0;
  if (!is_float) n = prefix + digits(x, prefix, base);
  tpl_token *token = add(x, T_NUMBER, piece(x, n));
  advance(x, prefix);
  copy_digits(x, n - prefix, text);
  errno = 0;
  token->number = is_float ? tpl_float(strtod(text, NULL)) : tpl_int(strtoll(text, NULL, base));
  if (errno && !is_float) tpl_fail(x->job, "%s does not fit 64 bits", text);
  advance(x, n - prefix);
}

static size_t code_escape(const tpl_string *s, size_t at, size_t n, int base, tpl_builder *b) {
  int32_t c = 0;
  size_t i = 0;
  for (; i < n && at + i < s->len && is_digit(s->bytes[at + i], base); i++) {
    char digit = s->bytes[at + i];
    c = c * base + (digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10);
    if (c > 0x10FFFF) break;
  }
  if (i == 0 || (base == 16 && i < n) || c > 0x10FFFF) tpl_fail(b->job, "a truncated or unknown escape in a string");
  char text[4];
  tpl_add(b, text, tpl_encode(c >= 0xD800 && c <= 0xDFFF ? 0xFFFD : c, text), false);
  return i;
}

/* Adds the character of the escape that follows a backslash; returns the length of the escape. */
static size_t unescape(const tpl_string *s, size_t at, tpl_builder *b) {
  static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
  char c = s->bytes[at];
  const char *known = c ? strchr(from, c) : NULL;
  if (known) return tpl_add(b, &to[known - from], 1, false), 1;
  if (c == '\n') return 1;
  if (c == 'x') return 1 + code_escape(s, at + 1, 2, 16, b);
  if (c == 'u') return 1 + code_escape(s, at + 1, 4, 16, b);
  if (c == 'U') return 1 + code_escape(s, at + 1, 8, 16, b);
  if (c >= '0' && c <= '7') return code_escape(s, at, 3, 8, b);
  tpl_add_text(b, "\\");
  return 0;
}

static void lex_string(lexer *x) {
  char quote = peek(x, 0);
  size_t n = 1;
  while (n < left(x) && peek(x, n) != quote) n += peek(x, n) == '\\' ? 2 : 1;
  if (n >= left(x)) tpl_fail(x->job, "a string without end");
  const tpl_string *s = tpl_string_part(x->job, x->source, x->at + 1, x->at + n);
  tpl_builder b = {.job = x->job};
  for (size_t i = 0; i < s->len;) {
    const char *slash = memchr(s->bytes + i, '\\', s->len - i);
    size_t to = slash ? (size_t)(slash - s->bytes) : s->len;
    tpl_add_part(&b, s, i, to);
    i = slash ? to + 1 + unescape(s, to + 1, &b) : to;
  }
  add(x, T_STRING, tpl_built(&b));
  advance(x, n + 1);
}

/* ---- tags -------------------------------------------------------------------------------------------------------- */

static bool is_word(int32_t c) {
  if (c < 0x80) return c == '_' || is_digit((char)c, 10) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
  utf8proc_category_t kind = utf8proc_category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_NO;
}

static size_t name_length(const lexer *x) {
  size_t n = 0, len;
  while (n < left(x) && is_word(tpl_character(x->source, x->at + n, &len))) n += len;
  return n;
}

static void bracket(lexer *x, char c) {
  static const char opening[] = "([{", closing[] = ")]}";
  const char *opens = strchr(opening, c), *closes = strchr(closing, c);
  if (opens) {
    if (x->n_open == TEMPLATE_LEVELS) tpl_fail(x->job, "more than %d brackets in brackets", TEMPLATE_LEVELS);
    x->open[x->n_open++] = closing[opens - opening];
  }
  if (!closes) return;
  if (x->n_open == 0) tpl_fail(x->job, "unexpected '%c'", c);
  if (x->open[--x->n_open] != c) tpl_fail(x->job, "unexpected '%c', expected '%c'", c, x->open[x->n_open]);
}

static void lex_operator(lexer *x) {
  static const struct {
    const char *text;
    int kind;
  } two[] = {{"==", T_EQUAL},      {"!=", T_NOT_EQUAL}, {"<=", T_LESS_EQUAL},
             {">=", T_MORE_EQUAL}, {"**", T_POWER},     {"//", T_FLOOR}};
  for (size_t i = 0; i < sizeof two / sizeof *two; i++) {
    if (!sees(x, two[i].text)) continue;
    add(x, two[i].kind, piece(x, 2));
    advance(x, 2);
    return;
  }
  char c = peek(x, 0);
  if (!c || !strchr("+-/*%~[](){}><=.:|,;", c)) tpl_fail(x->job, "unexpected character '%c'", c);
  bracket(x, c);
  add(x, c, piece(x, 1));
  advance(x, 1);
}

static void lex_item(lexer *x) {
  size_t space = space_length(x, x->at);
  bool follows_dot = x->n && x->tokens[x->n - 1].kind == '.';
  if (space) {
    advance(x, space);
  } else if (is_digit(peek(x, 0), 10) && follows_dot) { /* a.0.b is no float */
    size_t n = digits(x, 0, 10);
    char text[64];
    copy_digits(x, n, text);
    add(x, T_NUMBER, piece(x, n))->number = tpl_int(strtoll(text, NULL, 10));
    advance(x, n);
  } else if (is_digit(peek(x, 0), 10)) {
    lex_number(x);
  } else if (name_length(x)) {
    size_t n = name_length(x);
    add(x, T_NAME, piece(x, n));
    advance(x, n);
  } else if (peek(x, 0) == '\'' || peek(x, 0) == '"') {
    lex_string(x);
  } else {
    lex_operator(x);
  }
}

static void lex_tag(lexer *x, int begin) {
  bool is_block = begin == T_BLOCK_BEGIN;
  add(x, begin, piece(x, 2));
  advance(x, 2);
  if (peek(x, 0) == '-' || peek(x, 0) == '+') advance(x, 1);
  for (;;) {
    int line = x->job->line;
    if (x->n_open == 0 && take_end(x, is_block ? "%}" : "}}", is_block)) {
      add(x, is_block ? T_BLOCK_END : T_PRINT_END, tpl_text(x->job, "end of tag"))->line = line;
      return;
    }
    if (left(x) == 0) tpl_fail(x->job, "a tag without end");
    lex_item(x);
  }
}

static void lex_comment(lexer *x) {
  advance(x, 2);
  if (peek(x, 0) == '-' || peek(x, 0) == '+') advance(x, 1);
  while (!take_end(x, "#}", true)) {
    if (left(x) == 0) tpl_fail(x->job, "a comment without end");
    advance(x, 1);
  }
}

/* ---- text between tags ------------------------------------------------------------------------------------------- */

/* Where the text before a tag ends; the tag is at `end`. */
static size_t text_end(const lexer *x, size_t end) {
  char sign = end + 2 < x->source->len ? x->source->bytes[end + 2] : '\0';
  size_t to = end, len;
  bool is_print = x->source->bytes[end + 1] == '{';
  if (sign == '+' || (sign != '-' && is_print)) return end;
  for (; to > x->at; to = tpl_before(x->source, to)) {
    size_t before = tpl_before(x->source, to);
    if (!tpl_is_space(tpl_character(x->source, before, &len))) break;
    if (sign != '-' && x->source->bytes[before] == '\n') return to;
  }
  return sign == '-' || (to == x->at && x->line_starts) ? to : end;
}

/* Takes the text up to the tag at `end`, which is not yet taken. */
static void lex_text(lexer *x, size_t end) {
  size_t to = end < x->source->len ? text_end(x, end) : end;
  if (to > x->at) add(x, T_DATA, piece(x, to - x->at));
  advance(x, end - x->at);
}

/* At "{%": takes the tag if it is that of `name`. */
static bool take_word_tag(lexer *x, const char *name, bool trims) {
  lexer before = *x;
  int line = x->job->line;
  advance(x, 2);
  if (peek(x, 0) == '-' || peek(x, 0) == '+') advance(x, 1);
  skip_space(x);
  if (take(x, name)) {
    skip_space(x);
    if (take_end(x, "%}", trims)) return true;
  }
  *x = before;
  x->job->line = line;
  return false;
}

static size_t find_tag(const lexer *x, size_t from, const char *kinds) {
  while (from < x->source->len) {
    const char *found = memchr(x->source->bytes + from, '{', x->source->len - from);
    if (!found) break;
    from = (size_t)(found - x->source->bytes);
    if (from + 1 < x->source->len && found[1] && strchr(kinds, found[1])) return from;
    from++;
  }
  return x->source->len;
}

static void lex_raw(lexer *x) {
  size_t begin = x->at;
  if (left(x) == 0) return; /* as Jinja2 has it */
  for (size_t end = find_tag(x, begin, "%"); end < x->source->len; end = find_tag(x, end + 1, "%")) {
    lexer looking = *x;
    int line = x->job->line;
    looking.at = end;
    bool ends = take_word_tag(&looking, "endraw", true);
    x->job->line = line;
    if (!ends) continue;
    lex_text(x, end);
    take_word_tag(x, "endraw", true);
    return;
  }
  tpl_fail(x->job, "a raw block without end");
}

/* As in Jinja2, the last newline is removed, and lines end with \n. */
static void normalize(lexer *x, const char *text, size_t len) {
  tpl_builder b = {.job = x->job};
  for (size_t i = 0; i < len;) {
    const char *cr = memchr(text + i, '\r', len - i);
    size_t to = cr ? (size_t)(cr - text) : len;
    tpl_add(&b, text + i, to - i, false);
    if (cr) tpl_add_text(&b, "\n");
    i = to + (cr != NULL) + (to + 1 < len && text[to + 1] == '\n');
  }
  if (b.len && b.bytes[b.len - 1] == '\n') b.len--;
  x->source = tpl_built(&b);
}

const tpl_token *tpl_lex(tpl_job *job, const char *text, size_t len) {
  lexer x = {.job = job, .line_starts = true};
  job->line = 1;
  normalize(&x, text, len);
  while (x.at < x.source->len) {
    lex_text(&x, find_tag(&x, x.at, "%{#"));
    if (x.at == x.source->len) break;
    if (peek(&x, 1) == '#')
      lex_comment(&x);
    else if (peek(&x, 1) == '{')
      lex_tag(&x, T_PRINT_BEGIN);
    else if (take_word_tag(&x, "raw", false))
      lex_raw(&x);
    else
      lex_tag(&x, T_BLOCK_BEGIN);
  }
  add(&x, T_END, tpl_text(job, "end of template"));
  return x.tokens;
}
