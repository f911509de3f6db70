/* Filters of texts and numbers. */
#include "template/case.h"
#include "template/format.h"
#include "template/pieces.h"
#include "template/tables.h"
#include "template/write.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <utf8proc.h>

static tpl_value text(const tpl_string *s) { return tpl_string_value(s); }

/* ---- texts ------------------------------------------------------------------------------------------------------- */

#define TEXT_FILTER(name, change)                                                                                      \
  TPL_FUNCTION(name) {                                                                                                 \
    (void)given, (void)all;                                                                                            \
    return text(change(&run->job, tpl_str(&run->job, self)));                                                          \
  }

TEXT_FILTER(do_upper, tpl_upper)
TEXT_FILTER(do_lower, tpl_lower)
TEXT_FILTER(do_capitalize, tpl_capitalize)
TEXT_FILTER(do_title, tpl_title_filter)

TPL_FUNCTION(do_string) {
  (void)given, (void)all;
  return text(tpl_str(&run->job, self));
}

TPL_FUNCTION(do_trim) {
  (void)all;
  bool spaces = !tpl_is_given(given[0]) || given[0].kind == TPL_NONE;
  const tpl_string *set = spaces ? NULL : tpl_need_string(&run->job, given[0]);
  return text(tpl_strip(&run->job, tpl_str(&run->job, self), set, true, true));
}

static const tpl_string *with_safety(tpl_job *job, const tpl_string *s, bool safe) {
  if (s->safe == safe) return s;
  tpl_string *copy = tpl_allocate(job, sizeof *copy);
  *copy = *s;
  copy->safe = safe;
  return copy;
}

TPL_FUNCTION(do_safe) {
  (void)given, (void)all;
  return text(with_safety(&run->job, tpl_str(&run->job, self), true));
}

static tpl_value escaped(tpl_job *job, const tpl_string *s) {
  tpl_builder b = {.job = job};
  tpl_add_escaped(&b, s);
  return text(with_safety(job, tpl_built(&b), true));
}

TPL_FUNCTION(do_escape) {
  (void)given, (void)all;
  const tpl_string *s = tpl_str(&run->job, self);
  return s->safe ? self : escaped(&run->job, s);
}

TPL_FUNCTION(do_forceescape) {
  (void)given, (void)all;
  return escaped(&run->job, tpl_str(&run->job, self));
}

TPL_FUNCTION(do_replace) {
  (void)all;
  tpl_job *job = &run->job;
  int64_t count = given[2].kind == TPL_NONE ? TPL_ALL : tpl_integer_or(job, given[2], TPL_ALL);
  const tpl_string *s = with_safety(job, tpl_str(job, self), false);
  return text(tpl_replace(job, s, tpl_str(job, given[0]), tpl_str(job, given[1]), count));
}

TPL_FUNCTION(do_center) {
  (void)all;
  tpl_job *job = &run->job;
  return text(tpl_pad(job, tpl_str(job, self), tpl_integer_or(job, given[0], 80), tpl_text(job, " "), 0));
}

TPL_FUNCTION(do_format) {
  (void)given;
  tpl_job *job = &run->job;
  const tpl_string *format = tpl_str(job, self);
  if (all->n && all->n_named) tpl_fail(job, "format: arguments by place and by name");
  tpl_value values = all->n_named ? tpl_dict_new(job) : tpl_list_new(job, TPL_TUPLE, all->n);
  for (size_t i = 0; i < all->n_named; i++) tpl_dict_set(job, values.dict, all->named[i].key, all->named[i].value);
  for (size_t i = 0; i < all->n; i++) values.list->items[i] = all->values[i];
  return tpl_format_percent(run, format, values);
}

TPL_FUNCTION(do_wordcount) {
  (void)given, (void)all;
  const tpl_string *s = tpl_str(&run->job, self);
  int64_t words = 0;
  bool inside = false;
  tpl_charge_characters(&run->job, s->len);
  for (size_t at = 0, len; at < s->len; at += len) {
    int32_t c = tpl_character(s, at, &len);
    utf8proc_category_t kind = utf8proc_category(c);
    bool is_mark = kind >= UTF8PROC_CATEGORY_MN && kind <= UTF8PROC_CATEGORY_ME;
    bool is_word = c == '_' || (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_NO && !is_mark);
    words += is_word && !inside;
    inside = is_word;
  }
  return tpl_int(words);
}

/* ---- lines and lengths ------------------------------------------------------------------------------------------- */

static const tpl_string *indention(tpl_job *job, tpl_value width) {
  if (width.kind == TPL_STRING) return width.string;
  return tpl_pad(job, tpl_text(job, ""), tpl_integer_or(job, width, 4), tpl_text(job, " "), -1);
}

/* A text's lines, after one more newline, so that one at the end stays. */
static const tpl_list *lines_of(tpl_job *job, const tpl_string *s) {
  tpl_builder b = {.job = job};
  tpl_add_string(&b, s);
  tpl_add_text(&b, "\n");
  return tpl_split_lines(job, tpl_built(&b), false).list;
}

TPL_FUNCTION(do_indent) {
  (void)all;
  tpl_job *job = &run->job;
  const tpl_string *s = tpl_need_string(job, self), *by = indention(job, given[0]);
  const tpl_list *lines = lines_of(job, s);
  tpl_builder b = {.job = job};
  if (tpl_truth(given[1])) tpl_add_string(&b, by);
  for (size_t i = 0; i < lines->n; i++) {
    if (i) tpl_add_text(&b, "\n");
    if (i && (lines->items[i].string->len || tpl_truth(given[2]))) tpl_add_string(&b, by);
    tpl_add_string(&b, lines->items[i].string);
  }
  return text(with_safety(job, tpl_built(&b), s->safe));
}

static const tpl_string *first_characters(tpl_job *job, const tpl_string *s, int64_t n) {
  return tpl_string_part(job, s, 0, tpl_offset(job, s, n > 0 ? (size_t)n : 0));
}

TPL_FUNCTION(do_truncate) {
  (void)all;
  tpl_job *job = &run->job;
  const tpl_string *end = tpl_is_given(given[2]) ? tpl_need_string(job, given[2]) : tpl_text(job, "...");
  int64_t length = tpl_integer_or(job, given[0], 255), room = length - (int64_t)tpl_length(job, end);
  int64_t leeway = given[3].kind == TPL_NONE ? 5 : tpl_integer_or(job, given[3], 5);
  if (room < 0 || leeway < 0) tpl_fail(job, "truncate: the length is below that of the end");
  if (tpl_count(job, self) <= length + leeway) return self;
  const tpl_string *s = tpl_need_string(job, self);
  const tpl_string *begin = first_characters(job, s, room);
  if (!tpl_truth(given[1])) begin = tpl_split_right(job, begin, tpl_text(job, " "), 1).list->items[0].string;
  tpl_builder b = {.job = job};
  tpl_add_string(&b, begin);
  tpl_add_string(&b, end);
  return text(tpl_built(&b));
}

TPL_FUNCTION(do_length) {
  (void)given, (void)all;
  return tpl_int(tpl_count(&run->job, self));
}

TPL_FUNCTION(do_default) {
  (void)all;
  bool missing = self.kind == TPL_UNDEFINED || (tpl_truth(given[1]) && !tpl_truth(self));
  if (!missing) return self;
  return tpl_is_given(given[0]) ? given[0] : text(tpl_text(&run->job, ""));
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

enum { NUMBER_TEXT = 400 };

/* A number's text without surrounding white space and single underscores between digits; false: not a number. */
static bool number_text(tpl_job *job, const tpl_string *s, char out[NUMBER_TEXT]) {
  size_t n = 0;
  s = tpl_strip(job, s, NULL, true, true);
  if (s->len == 0 || s->len >= NUMBER_TEXT) return false;
  for (size_t i = 0; i < s->len; i++) {
    char c = s->bytes[i];
    bool between = i && i + 1 < s->len && s->bytes[i - 1] != '_' && s->bytes[i + 1] != '_';
    if (c == '\0' || c == ' ' || (c == '_' && !between)) return false;
    if (c != '_') out[n++] = c;
  }
  out[n] = '\0';
  return true;
}

static bool read_float(tpl_job *job, tpl_value v, double *x) {
  char digits[NUMBER_TEXT], *end;
  tpl_need_defined(job, v);
  if (tpl_is_number(v)) return *x = tpl_number(v), true;
  if (v.kind != TPL_STRING || !number_text(job, v.string, digits)) return false;
  if (strpbrk(digits, "xXpP(")) return false; /* which strtod takes */
  *x = strtod(digits, &end);
  return *end == '\0';
}

TPL_FUNCTION(do_float) {
  (void)all;
  double x;
  if (read_float(&run->job, self, &x)) return tpl_float(x);
  return tpl_is_given(given[0]) ? given[0] : tpl_float(0);
}

static int64_t to_integer(tpl_job *job, double x) {
  if (!(fabs(x) < 9.2e18)) tpl_fail(job, "an integer does not fit 64 bits");
  return (int64_t)x;
}

static const char *skip_prefix(const char *digits, int64_t base) {
  static const char prefixes[][3] = {[2] = "0b", [8] = "0o", [16] = "0x"};
  bool known = base == 2 || base == 8 || base == 16;
  return known && strncasecmp(digits, prefixes[base], 2) == 0 ? digits + 2 : digits;
}

static bool read_integer(tpl_job *job, const tpl_string *s, int64_t base, int64_t *i) {
  char digits[NUMBER_TEXT] = "", *end;
  if (base < 2 || base > 36 || !number_text(job, s, digits)) return false;
  const char *begin = digits + (digits[0] == '-' || digits[0] == '+');
  const char *number = skip_prefix(begin, base);
  if (!strchr("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", *number) || !*number) return false;
  errno = 0;
  *i = strtoll(number, &end, (int)base);
  if (*end) return false;
  if (errno) tpl_fail(job, "an integer does not fit 64 bits");
  if (digits[0] == '-') *i = -*i;
  return true;
}

TPL_FUNCTION(do_int) {
  (void)all;
  tpl_job *job = &run->job;
  int64_t base = tpl_integer_or(job, given[1], 10), i;
  double x = 0;
  if (tpl_is_integer(self)) return tpl_int(tpl_integer(job, self));
  if (self.kind == TPL_STRING && read_integer(job, self.string, base, &i)) return tpl_int(i);
  bool is_number = read_float(job, self, &x) && !isnan(x) && !(isinf(x) && self.kind == TPL_STRING);
  if (is_number) return tpl_int(to_integer(job, x));
  return tpl_is_given(given[0]) ? given[0] : tpl_int(0);
}

TPL_FUNCTION(do_abs) {
  (void)given, (void)all;
  tpl_job *job = &run->job;
  tpl_need_defined(job, self);
  if (self.kind == TPL_FLOAT) return tpl_float(fabs(self.number));
  int64_t i = tpl_integer(job, self);
  if (i == INT64_MIN) tpl_fail(job, "an integer does not fit 64 bits");
  return tpl_int(i < 0 ? -i : i);
}

/* Half to even, of the exact binary value, as Python rounds. */
static double round_common(double x, int64_t digits) {
  char number[NUMBER_TEXT + 32];
  if (!isfinite(x) || digits > 30) return x;
  if (digits < 0) {
    double scale = pow(10, (double)-digits);
    return nearbyint(x / scale) * scale;
  }
  snprintf(number, sizeof number, "%.*f", (int)digits, x);
  return strtod(number, NULL);
}

TPL_FUNCTION(do_round) {
  (void)all;
  tpl_job *job = &run->job;
  int64_t digits = tpl_integer_or(job, given[0], 0);
  const tpl_string *method = tpl_is_given(given[1]) ? tpl_need_string(job, given[1]) : tpl_text(job, "common");
  bool up = tpl_string_is(method, "ceil"), down = tpl_string_is(method, "floor");
  tpl_need_defined(job, self);
  if (!tpl_is_number(self)) tpl_fail(job, "round takes a number, not %s", tpl_type(self));
  if (!up && !down) {
    if (!tpl_string_is(method, "common")) tpl_fail(job, "round: method must be common, ceil or floor");
    if (tpl_is_integer(self) && digits >= 0) return tpl_int(tpl_integer(job, self));
    return tpl_float(round_common(tpl_number(self), digits));
  }
  double scale = pow(10, (double)digits), scaled = tpl_number(self) * scale;
  return tpl_float((up ? ceil(scaled) : floor(scaled)) / scale);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static const tpl_string *json_indent(tpl_job *job, tpl_value v) {
  if (!tpl_is_given(v) || v.kind == TPL_NONE) return NULL;
  return indention(job, v);
}

TPL_FUNCTION(do_json) {
  (void)all;
  tpl_job *job = &run->job;
  tpl_json_style style = {tpl_truth(given[0]), tpl_truth(given[3]), json_indent(job, given[1]), NULL, NULL};
  style.comma = tpl_text(job, style.indent ? "," : ", ");
  style.colon = tpl_text(job, ": ");
  if (tpl_is_given(given[2]) && given[2].kind != TPL_NONE) {
    const tpl_list *separators = tpl_items(job, given[2]);
    if (separators->n != 2) tpl_fail(job, "tojson: separators must be two");
    style.comma = tpl_need_string(job, separators->items[0]);
    style.colon = tpl_need_string(job, separators->items[1]);
  }
  tpl_builder b = {.job = job};
  tpl_write_json(&b, self, &style);
  return text(tpl_built(&b));
}

const tpl_native tpl_text_filters[] = {{"abs", do_abs, ""},
                                       {"capitalize", do_capitalize, ""},
                                       {"center", do_center, "width?"},
                                       {"count", do_length, ""},
                                       {"d", do_default, "default_value? boolean?"},
                                       {"default", do_default, "default_value? boolean?"},
                                       {"e", do_escape, ""},
                                       {"escape", do_escape, ""},
                                       {"float", do_float, "default?"},
                                       {"forceescape", do_forceescape, ""},
                                       {"format", do_format, "*"},
                                       {"indent", do_indent, "width? first? blank?"},
                                       {"int", do_int, "default? base?"},
                                       {"length", do_length, ""},
                                       {"lower", do_lower, ""},
                                       {"replace", do_replace, "old new count?"},
                                       {"round", do_round, "precision? method?"},
                                       {"safe", do_safe, ""},
                                       {"string", do_string, ""},
                                       {"title", do_title, ""},
                                       {"tojson", do_json, "ensure_ascii? indent? separators? sort_keys?"},
                                       {"trim", do_trim, "chars?"},
                                       {"truncate", do_truncate, "length? killwords? end? leeway?"},
                                       {"upper", do_upper, ""},
                                       {"wordcount", do_wordcount, ""},
                                       {0}};
