/* Methods of strings. */
#include "template/case.h"
#include "template/format.h"
#include "template/pieces.h"
#include "template/tables.h"
#include "template/write.h"

#include <string.h>
#include <utf8proc.h>

static tpl_value text(const tpl_string *s) { return tpl_string_value(s); }

/* A string that is given, or NULL. */
static const tpl_string *string_or_none(tpl_run *run, tpl_value v) {
  return tpl_is_given(v) && v.kind != TPL_NONE ? tpl_need_string(&run->job, v) : NULL;
}

/* ---- strings of strings ------------------------------------------------------------------------------------------ */

#define CHANGE(name, change)                                                                                           \
  TPL_FUNCTION(name) {                                                                                                 \
    (void)given, (void)all;                                                                                            \
    return text(change(&run->job, self.string));                                                                       \
  }

CHANGE(do_upper, tpl_upper)
CHANGE(do_lower, tpl_lower)
CHANGE(do_capitalize, tpl_capitalize)
CHANGE(do_title, tpl_title)
CHANGE(do_swapcase, tpl_swap_case)

static tpl_value strip(tpl_run *run, tpl_value self, tpl_value set, bool left, bool right) {
  return text(tpl_strip(&run->job, self.string, string_or_none(run, set), left, right));
}

TPL_FUNCTION(do_strip) { return (void)all, strip(run, self, given[0], true, true); }
TPL_FUNCTION(do_lstrip) { return (void)all, strip(run, self, given[0], true, false); }
TPL_FUNCTION(do_rstrip) { return (void)all, strip(run, self, given[0], false, true); }

TPL_FUNCTION(do_split) {
  (void)all;
  int64_t count = tpl_integer_or(&run->job, given[1], TPL_ALL);
  return tpl_split(&run->job, self.string, string_or_none(run, given[0]), count);
}

TPL_FUNCTION(do_rsplit) {
  (void)all;
  int64_t count = tpl_integer_or(&run->job, given[1], TPL_ALL);
  return tpl_split_right(&run->job, self.string, string_or_none(run, given[0]), count);
}

TPL_FUNCTION(do_splitlines) { return (void)all, tpl_split_lines(&run->job, self.string, tpl_truth(given[0])); }

/* What is put into a safe string is escaped. */
static const tpl_string *fitting(tpl_run *run, tpl_value self, const tpl_string *s) {
  if (!self.string->safe || s->safe) return s;
  tpl_builder b = {.job = &run->job};
  tpl_add_escaped(&b, s);
  return tpl_built(&b);
}

TPL_FUNCTION(do_replace) {
  (void)all;
  tpl_job *job = &run->job;
  const tpl_string *from = fitting(run, self, tpl_need_string(job, given[0]));
  const tpl_string *to = fitting(run, self, tpl_need_string(job, given[1]));
  return text(tpl_replace(job, self.string, from, to, tpl_integer_or(job, given[2], TPL_ALL)));
}

TPL_FUNCTION(do_join) {
  (void)all;
  const tpl_list *items = tpl_items(&run->job, given[0]);
  tpl_builder b = {.job = &run->job, .safe = self.string->safe};
  for (size_t i = 0; i < items->n; i++) {
    if (i) tpl_add_string(&b, self.string);
    tpl_add_string(&b, fitting(run, self, tpl_need_string(&run->job, items->items[i])));
    tpl_charge(&run->job, 1);
  }
  return text(tpl_built(&b));
}

TPL_FUNCTION(do_format) { return (void)given, tpl_format_braces(run, self.string, all); }

TPL_FUNCTION(do_removeprefix) {
  (void)all;
  const tpl_string *s = self.string, *prefix = tpl_need_string(&run->job, given[0]);
  bool has = s->len >= prefix->len && memcmp(s->bytes, prefix->bytes, prefix->len) == 0 && prefix->len;
  return has ? text(tpl_string_part(&run->job, s, prefix->len, s->len)) : self;
}

TPL_FUNCTION(do_removesuffix) {
  (void)all;
  const tpl_string *s = self.string, *suffix = tpl_need_string(&run->job, given[0]);
  size_t n = s->len - suffix->len;
  bool has = s->len >= suffix->len && memcmp(s->bytes + n, suffix->bytes, suffix->len) == 0 && suffix->len;
  return has ? text(tpl_string_part(&run->job, s, 0, n)) : self;
}

static tpl_value pad(tpl_run *run, tpl_value self, const tpl_value *given, int side) {
  const tpl_string *fill = tpl_is_given(given[1]) ? tpl_need_string(&run->job, given[1]) : tpl_text(&run->job, " ");
  if (tpl_length(&run->job, fill) != 1) tpl_fail(&run->job, "the fill character must be exactly one character long");
  return text(tpl_pad(&run->job, self.string, tpl_integer(&run->job, given[0]), fill, side));
}

TPL_FUNCTION(do_ljust) { return (void)all, pad(run, self, given, -1); }
TPL_FUNCTION(do_rjust) { return (void)all, pad(run, self, given, 1); }
TPL_FUNCTION(do_center) { return (void)all, pad(run, self, given, 0); }

TPL_FUNCTION(do_zfill) {
  (void)all;
  const tpl_string *s = self.string, *zero = tpl_text(&run->job, "0");
  int64_t width = tpl_integer(&run->job, given[0]);
  if (s->len == 0 || (s->bytes[0] != '-' && s->bytes[0] != '+')) return text(tpl_pad(&run->job, s, width, zero, 1));
  tpl_builder b = {.job = &run->job};
  tpl_add_part(&b, s, 0, 1);
  tpl_add_string(&b, tpl_pad(&run->job, tpl_string_part(&run->job, s, 1, s->len), width - 1, zero, 1));
  return text(tpl_built(&b));
}

static tpl_value three(tpl_run *run, const tpl_string *a, const tpl_string *b, const tpl_string *c) {
  tpl_value parts = tpl_list_new(&run->job, TPL_TUPLE, 3);
  parts.list->items[0] = text(a);
  parts.list->items[1] = text(b);
  parts.list->items[2] = text(c);
  return parts;
}

/* The text before the separator, the separator, and the text after it. */
static tpl_value parts_at(tpl_run *run, const tpl_string *s, size_t at, size_t len) {
  return three(run, tpl_string_part(&run->job, s, 0, at), tpl_string_part(&run->job, s, at, at + len),
               tpl_string_part(&run->job, s, at + len, s->len));
}

/* ---- places in a string ------------------------------------------------------------------------------------------ */

typedef struct {
  size_t from, to; /* bytes; from > to: no such part */
} part;

/* Where a part of a string is looked at, from character `begin` to `end`. */
static part part_of(tpl_run *run, const tpl_string *s, tpl_value begin, tpl_value end) {
  bool has_begin = tpl_is_given(begin) && begin.kind != TPL_NONE, has_end = tpl_is_given(end) && end.kind != TPL_NONE;
  if (!has_begin && !has_end) return (part){0, s->len};
  int64_t n = (int64_t)tpl_length(&run->job, s);
  int64_t from = has_begin ? tpl_integer(&run->job, begin) : 0, to = has_end ? tpl_integer(&run->job, end) : n;
  if (from < 0) from = from + n < 0 ? 0 : from + n;
  if (to < 0) to = to + n < 0 ? 0 : to + n;
  if (from > n || from > to) return (part){1, 0};
  return (part){tpl_offset(&run->job, s, (size_t)from), tpl_offset(&run->job, s, (size_t)to)};
}

static size_t find_last(tpl_run *run, const tpl_string *s, const tpl_string *what, part in) {
  size_t last = SIZE_MAX;
  if (in.from > in.to || what->len > in.to - in.from) return SIZE_MAX;
  for (size_t at = in.to - what->len + 1; at-- > in.from && last == SIZE_MAX;)
    if (what->len == 0 || memcmp(s->bytes + at, what->bytes, what->len) == 0) last = at;
  tpl_charge_characters(&run->job, (in.to - in.from));
  return last;
}

static size_t find(tpl_run *run, tpl_value self, const tpl_value *given, bool last) {
  const tpl_string *s = self.string, *what = tpl_need_string(&run->job, given[0]);
  part in = part_of(run, s, given[1], given[2]);
  return last ? find_last(run, s, what, in) : tpl_find(&run->job, s, what, in.from, in.to);
}

/* The character that begins at a byte; -1, or a failure, where nothing was found. */
static tpl_value place(tpl_run *run, tpl_value self, size_t at, bool must) {
  if (at == SIZE_MAX && must) tpl_fail(&run->job, "substring not found");
  if (at == SIZE_MAX) return tpl_int(-1);
  tpl_string before = *self.string;
  before.len = at;
  return tpl_int((int64_t)tpl_length(&run->job, &before));
}

TPL_FUNCTION(do_find) { return (void)all, place(run, self, find(run, self, given, false), false); }
TPL_FUNCTION(do_rfind) { return (void)all, place(run, self, find(run, self, given, true), false); }
TPL_FUNCTION(do_index) { return (void)all, place(run, self, find(run, self, given, false), true); }
TPL_FUNCTION(do_rindex) { return (void)all, place(run, self, find(run, self, given, true), true); }

TPL_FUNCTION(do_count) {
  (void)all;
  const tpl_string *s = self.string, *what = tpl_need_string(&run->job, given[0]);
  part in = part_of(run, s, given[1], given[2]);
  int64_t n = 0;
  if (what->len == 0) {
    tpl_value between = in.from > in.to ? (tpl_value){0} : text(tpl_string_part(&run->job, s, in.from, in.to));
    return tpl_int(tpl_is_given(between) ? tpl_count(&run->job, between) + 1 : 0);
  }
  for (size_t at; (at = tpl_find(&run->job, s, what, in.from, in.to)) != SIZE_MAX; n++) in.from = at + what->len;
  return tpl_int(n);
}

TPL_FUNCTION(do_partition) {
  (void)all;
  size_t at = find(run, self, given, false);
  const tpl_string *none = tpl_text(&run->job, "");
  return at == SIZE_MAX ? three(run, self.string, none, none) : parts_at(run, self.string, at, given[0].string->len);
}

TPL_FUNCTION(do_rpartition) {
  (void)all;
  size_t at = find(run, self, given, true);
  const tpl_string *none = tpl_text(&run->job, "");
  return at == SIZE_MAX ? three(run, none, none, self.string) : parts_at(run, self.string, at, given[0].string->len);
}

/* ---- beginnings and ends ----------------------------------------------------------------------------------------- */

static bool has_at(const tpl_string *s, const tpl_string *what, part in, bool end) {
  if (in.from > in.to || what->len > in.to - in.from) return false;
  return what->len == 0 || memcmp(s->bytes + (end ? in.to - what->len : in.from), what->bytes, what->len) == 0;
}

/* One of a tuple is enough. */
static tpl_value has_end(tpl_run *run, tpl_value self, const tpl_value *given, bool end) {
  part in = part_of(run, self.string, given[1], given[2]);
  if (given[0].kind != TPL_TUPLE) return tpl_bool(has_at(self.string, tpl_need_string(&run->job, given[0]), in, end));
  const tpl_list *list = given[0].list;
  for (size_t i = 0; i < list->n; i++)
    if (has_at(self.string, tpl_need_string(&run->job, list->items[i]), in, end)) return tpl_bool(true);
  return tpl_bool(false);
}

TPL_FUNCTION(do_startswith) { return (void)all, has_end(run, self, given, false); }
TPL_FUNCTION(do_endswith) { return (void)all, has_end(run, self, given, true); }

/* ---- questions about all characters ------------------------------------------------------------------------------ */

typedef bool is_one(int32_t c);

static tpl_value all_are(tpl_run *run, const tpl_string *s, is_one *is) {
  tpl_charge_characters(&run->job, s->len);
  for (size_t at = 0, len; at < s->len; at += len)
    if (!is(tpl_character(s, at, &len))) return tpl_bool(false);
  return tpl_bool(s->len > 0);
}

static bool is_letter(int32_t c) {
  utf8proc_category_t kind = utf8proc_category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

static bool is_decimal(int32_t c) { return utf8proc_category(c) == UTF8PROC_CATEGORY_ND; }

/* Superscripts and circled digits are digits, too. */
static bool is_digit(int32_t c) {
  bool raised = c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 || (c >= 0x2074 && c <= 0x2079);
  return is_decimal(c) || raised || (c >= 0x2080 && c <= 0x2089) || (c >= 0x2460 && c <= 0x2468);
}

static bool is_numeric(int32_t c) {
  utf8proc_category_t kind = utf8proc_category(c);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL || kind == UTF8PROC_CATEGORY_NO;
}

static bool is_letter_or_number(int32_t c) { return is_letter(c) || is_numeric(c); }
static bool is_ascii(int32_t c) { return c < 0x80; }

#define QUESTION(name, is)                                                                                             \
  TPL_FUNCTION(name) {                                                                                                 \
    (void)given, (void)all;                                                                                            \
    return all_are(run, self.string, is);                                                                              \
  }

QUESTION(do_isalpha, is_letter)
QUESTION(do_isalnum, is_letter_or_number)
QUESTION(do_isdecimal, is_decimal)
QUESTION(do_isdigit, is_digit)
QUESTION(do_isnumeric, is_numeric)
QUESTION(do_isspace, tpl_is_space)

TPL_FUNCTION(do_isascii) {
  (void)given, (void)all;
  return self.string->len ? all_are(run, self.string, is_ascii) : tpl_bool(true);
}

TPL_FUNCTION(do_islower) { return (void)given, (void)all, tpl_bool(tpl_is_lower(&run->job, self.string)); }
TPL_FUNCTION(do_isupper) { return (void)given, (void)all, tpl_bool(tpl_is_upper(&run->job, self.string)); }

const tpl_native tpl_string_method_table[] = {{"strip", do_strip, "chars?"},
                                              {"lstrip", do_lstrip, "chars?"},
                                              {"rstrip", do_rstrip, "chars?"},
                                              {"split", do_split, "sep? maxsplit?"},
                                              {"rsplit", do_rsplit, "sep? maxsplit?"},
                                              {"startswith", do_startswith, "prefix start? end?"},
                                              {"endswith", do_endswith, "suffix start? end?"},
                                              {"replace", do_replace, "old new count?"},
                                              {"format", do_format, "*"},
                                              {"join", do_join, "iterable"},
                                              {"upper", do_upper, ""},
                                              {"lower", do_lower, ""},
                                              {"title", do_title, ""},
                                              {"capitalize", do_capitalize, ""},
                                              {"swapcase", do_swapcase, ""},
                                              {"splitlines", do_splitlines, "keepends?"},
                                              {"find", do_find, "sub start? end?"},
                                              {"rfind", do_rfind, "sub start? end?"},
                                              {"index", do_index, "sub start? end?"},
                                              {"rindex", do_rindex, "sub start? end?"},
                                              {"count", do_count, "sub start? end?"},
                                              {"partition", do_partition, "sep start? end?"},
                                              {"rpartition", do_rpartition, "sep start? end?"},
                                              {"removeprefix", do_removeprefix, "prefix"},
                                              {"removesuffix", do_removesuffix, "suffix"},
                                              {"ljust", do_ljust, "width fillchar?"},
                                              {"rjust", do_rjust, "width fillchar?"},
                                              {"center", do_center, "width fillchar?"},
                                              {"zfill", do_zfill, "width"},
                                              {"isalpha", do_isalpha, ""},
                                              {"isalnum", do_isalnum, ""},
                                              {"isdecimal", do_isdecimal, ""},
                                              {"isdigit", do_isdigit, ""},
                                              {"isnumeric", do_isnumeric, ""},
                                              {"isspace", do_isspace, ""},
                                              {"isascii", do_isascii, ""},
                                              {"islower", do_islower, ""},
                                              {"isupper", do_isupper, ""},
                                              {0}};
