/* Formats: see format.h. */
#include "template/format.h"
#include "template/write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WIDTH = 100000, MOST_DIGITS = 100 };

typedef struct {
  const tpl_string *fill; /* one character */
  char align;             /* < > ^ =, or 0: as the type has it */
  char sign;              /* + - or a space */
  bool alternate, zeros, commas;
  int width, precision; /* precision: -1, not given */
  char type;            /* 0: not given */
} format_spec;

typedef struct {
  tpl_run *run;
  tpl_job *job;
  const tpl_string *format;
  size_t at;
  tpl_builder out;
} formatter;

static char peek(const formatter *x) { return x->at < x->format->len ? x->format->bytes[x->at] : '\0'; }

static bool take(formatter *x, char c) {
  if (peek(x) != c || x->at == x->format->len) return false;
  x->at++;
  return true;
}

static char take_one(formatter *x, const char *of) {
  char c = peek(x);
  if (!c || !strchr(of, c)) return '\0';
  x->at++;
  return c;
}

/* -1: there is no number. */
static int take_number(formatter *x) {
  int n = -1;
  for (char c; (c = take_one(x, "0123456789")) != '\0';) {
    n = (n < 0 ? 0 : n * 10) + c - '0';
    if (n > MOST_WIDTH) tpl_fail(x->job, "a format wider than %d characters", MOST_WIDTH);
  }
  return n;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void pad(formatter *x, const format_spec *spec, int64_t n) {
  static const tpl_string space = {.bytes = " ", .len = 1}, zero = {.bytes = "0", .len = 1};
  for (int64_t i = 0; i < n; i++) tpl_add_string(&x->out, spec->fill ? spec->fill : spec->zeros ? &zero : &space);
}

/* sign: the sign and the prefix ("-0x"), which the alignment "=" puts before the fill. */
static void write_padded(formatter *x, const format_spec *spec, const char *sign, const tpl_string *text, char align) {
  int64_t length = (int64_t)tpl_length(x->job, text) + (int64_t)strlen(sign), gap = spec->width - length;
  if (spec->align) align = spec->align;
  int64_t before = gap <= 0 || align == '<' ? 0 : align == '^' ? gap / 2 : gap;
  if (align == '=') tpl_add_text(&x->out, sign);
  pad(x, spec, before);
  if (align != '=') tpl_add_text(&x->out, sign);
  tpl_add_string(&x->out, text);
  pad(x, spec, gap - before);
}

static void write_text(formatter *x, const format_spec *spec, const tpl_string *text) {
  if (spec->precision >= 0) text = tpl_string_part(x->job, text, 0, tpl_offset(x->job, text, (size_t)spec->precision));
  write_padded(x, spec, "", text, '<');
}

static const char *sign_of(const format_spec *spec, bool negative) {
  return negative ? "-" : spec->sign == '+' ? "+" : spec->sign == ' ' ? " " : "";
}

/* The digits with commas between groups of three, up to a point. */
static const tpl_string *grouped(tpl_job *job, const char *digits, bool commas) {
  tpl_builder b = {.job = job};
  size_t whole = strcspn(digits, ".e");
  for (size_t i = 0; i < whole; i++) {
    if (commas && i && (whole - i) % 3 == 0) tpl_add_text(&b, ",");
    tpl_add(&b, digits + i, 1, false);
  }
  tpl_add_text(&b, digits + whole);
  return tpl_built(&b);
}

static void write_number(formatter *x, const format_spec *spec, bool negative, const char *prefix, const char *digits) {
  char sign[8];
  snprintf(sign, sizeof sign, "%s%s", sign_of(spec, negative), prefix);
  write_padded(x, spec, sign, grouped(x->job, digits, spec->commas), spec->zeros && !spec->fill ? '=' : '>');
}

static void write_integer(formatter *x, const format_spec *spec, int64_t value) {
  char digits[80];
  uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  unsigned base = spec->type == 'x' || spec->type == 'X' ? 16 : spec->type == 'o' ? 8 : spec->type == 'b' ? 2 : 10;
  size_t at = sizeof digits - 1;
  digits[at] = '\0';
  do digits[--at] = (spec->type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[magnitude % base];
  while (magnitude /= base);
  const char prefix[] = {'0', spec->type, '\0'};
  write_number(x, spec, value < 0, base != 10 && spec->alternate ? prefix : "", digits + at);
}

static void write_float(formatter *x, const format_spec *spec, double value) {
  char digits[512], form[16];
  char type = spec->type == '%' ? 'f' : spec->type ? spec->type : 'g';
  if (spec->type == '%') value *= 100;
  if (spec->precision > MOST_DIGITS) tpl_fail(x->job, "a format of more than %d digits", MOST_DIGITS);
  snprintf(form, sizeof form, "%%%s.*%c", spec->alternate ? "#" : "", type);
  snprintf(digits, sizeof digits, form, spec->precision < 0 ? 6 : spec->precision, value);
  if (!spec->type && spec->precision < 0) tpl_number_text(digits, value);
  if (spec->type == '%') strcat(digits, "%");
  bool negative = digits[0] == '-';
  write_number(x, spec, negative, "", digits + negative);
}

static void write_character(formatter *x, const format_spec *spec, tpl_value v) {
  char text[4];
  if (v.kind == TPL_STRING) {
    write_text(x, spec, v.string);
    return;
  }
  int64_t c = tpl_integer(x->job, v);
  if (c < 0 || c > 0x10FFFF) tpl_fail(x->job, "%%c takes a code point");
  tpl_builder b = {.job = x->job};
  tpl_add(&b, text, tpl_encode((int32_t)c, text), false);
  write_text(x, spec, tpl_built(&b));
}

static void write_value(formatter *x, const format_spec *spec, tpl_value v) {
  tpl_need_defined(x->job, v);
  if (spec->type == 'c')
    write_character(x, spec, v);
  else if (tpl_is_number(v) && spec->type && strchr("eEfFgG%", spec->type))
    write_float(x, spec, tpl_number(v));
  else if (tpl_is_integer(v) && (spec->type ? strchr("dxXobn", spec->type) != NULL : v.kind == TPL_INT))
    write_integer(x, spec, tpl_integer(x->job, v));
  else if (v.kind == TPL_FLOAT && !spec->type)
    write_float(x, spec, v.number);
  else if (!spec->type || (spec->type == 's' && v.kind == TPL_STRING))
    write_text(x, spec, tpl_str(x->job, v));
  else
    tpl_fail(x->job, "format '%c' does not take %s", spec->type, tpl_type(v));
}

/* ---- %s ---------------------------------------------------------------------------------------------------------- */

typedef struct {
  tpl_value values;
  size_t used;
} percent_values;

static tpl_value next_value(formatter *x, percent_values *values) {
  tpl_value all = values->values;
  size_t n = all.kind == TPL_TUPLE ? all.list->n : 1;
  if (values->used == n) tpl_fail(x->job, "not enough arguments for format string");
  return all.kind == TPL_TUPLE ? all.list->items[values->used++] : (values->used++, all);
}

static tpl_value named_value(formatter *x, tpl_value values) {
  size_t from = x->at;
  while (x->at < x->format->len && peek(x) != ')') x->at++;
  if (values.kind != TPL_DICT) tpl_fail(x->job, "format requires a mapping");
  const tpl_string *name = tpl_string_part(x->job, x->format, from, x->at);
  const tpl_value *found = tpl_dict_get(x->job, values.dict, tpl_string_value(name));
  if (!take(x, ')') || !found) tpl_fail(x->job, "format: no such key");
  return *found;
}

static int number_or_star(formatter *x, percent_values *values) {
  if (!take(x, '*')) return take_number(x);
  int64_t n = tpl_integer(x->job, next_value(x, values));
  if (n < 0 || n > MOST_WIDTH) tpl_fail(x->job, "a format wider than %d characters", MOST_WIDTH);
  return (int)n;
}

static void read_percent_flags(formatter *x, format_spec *spec) {
  for (char c; (c = take_one(x, "-+ #0")) != '\0';) {
    if (c == '-') spec->align = '<';
    if (c == '+' || (c == ' ' && !spec->sign)) spec->sign = c;
    if (c == '#') spec->alternate = true;
    if (c == '0') spec->zeros = true;
  }
  if (spec->align == '<') spec->zeros = false;
}

static void write_percent(formatter *x, format_spec *spec, tpl_value v) {
  if (strchr("sra", spec->type)) {
    tpl_builder b = {.job = x->job};
    if (spec->type == 's')
      tpl_write(&b, v);
    else
      tpl_write_repr(&b, v);
    spec->zeros = false;
    if (!spec->align) spec->align = '>';
    write_text(x, spec, tpl_built(&b));
    return;
  }
  if (strchr("iu", spec->type)) spec->type = 'd';
  if (spec->type == 'd' && v.kind == TPL_FLOAT) v = tpl_int((int64_t)v.number);
  write_value(x, spec, v);
}

static void convert_percent(formatter *x, percent_values *values) {
  format_spec spec = {.precision = -1};
  if (take(x, '%')) {
    tpl_add_text(&x->out, "%");
    return;
  }
  tpl_value v = {0};
  if (take(x, '(')) v = named_value(x, values->values), values->used = 1;
  read_percent_flags(x, &spec);
  spec.width = number_or_star(x, values);
  if (take(x, '.')) spec.precision = number_or_star(x, values);
  take_one(x, "hlL");
  spec.type = take_one(x, "sradiuoxXeEfFgGc");
  if (!spec.type) tpl_fail(x->job, "unsupported or incomplete format");
  if (!tpl_is_given(v)) v = next_value(x, values);
  write_percent(x, &spec, v);
}

/* Copies the text up to one of the marks; false: there is none. */
static bool copy_up_to(formatter *x, const char *marks) {
  size_t from = x->at;
  while (x->at < x->format->len && (!peek(x) || !strchr(marks, peek(x)))) x->at++;
  tpl_add_part(&x->out, x->format, from, x->at);
  return x->at < x->format->len;
}

tpl_value tpl_format_percent(tpl_run *run, const tpl_string *format, tpl_value all) {
  formatter x = {run, &run->job, format, 0, {.job = &run->job, .safe = format->safe}};
  percent_values values = {all, 0};
  while (copy_up_to(&x, "%")) {
    x.at++;
    tpl_charge(x.job, 1);
    convert_percent(&x, &values);
  }
  bool can_be_left = all.kind == TPL_DICT || all.kind == TPL_LIST || all.kind == TPL_RANGE || all.kind == TPL_UNDEFINED;
  bool all_used = all.kind == TPL_TUPLE ? values.used == all.list->n : values.used == 1 || can_be_left;
  if (!all_used) tpl_fail(x.job, "not all arguments converted during string formatting");
  return tpl_string_value(tpl_built(&x.out));
}

/* ---- {} ---------------------------------------------------------------------------------------------------------- */

typedef struct {
  const tpl_arguments *all;
  size_t next; /* by place */
} brace_values;

static const tpl_string *take_until(formatter *x, const char *ends) {
  size_t from = x->at;
  while (x->at < x->format->len && (!peek(x) || !strchr(ends, peek(x)))) x->at++;
  return tpl_string_part(x->job, x->format, from, x->at);
}

static bool to_index(const tpl_string *s, size_t *index) {
  *index = 0;
  for (size_t i = 0; i < s->len; i++) {
    if (s->bytes[i] < '0' || s->bytes[i] > '9' || i > 8) return false;
    *index = *index * 10 + (size_t)(s->bytes[i] - '0');
  }
  return s->len > 0;
}

static tpl_value field_root(formatter *x, brace_values *values) {
  const tpl_string *name = take_until(x, ".[!:}");
  size_t index = values->next;
  if (name->len == 0) values->next++;
  if (name->len == 0 || to_index(name, &index)) {
    if (index >= values->all->n) tpl_fail(x->job, "format: no argument %zu", index);
    return values->all->values[index];
  }
  for (size_t i = 0; i < values->all->n_named; i++)
    if (tpl_string_equal(values->all->named[i].key.string, name)) return values->all->named[i].value;
  tpl_fail(x->job, "format: no argument of that name");
}

static tpl_value field(formatter *x, brace_values *values) {
  tpl_value v = field_root(x, values);
  size_t index;
  for (;;) {
    if (take(x, '.')) {
      v = tpl_attribute(x->run, v, take_until(x, ".[!:}"));
    } else if (take(x, '[')) {
      const tpl_string *key = take_until(x, "]");
      v = tpl_item(x->run, v, to_index(key, &index) ? tpl_int((int64_t)index) : tpl_string_value(key));
      take(x, ']');
    } else {
      return v;
    }
  }
}

static void read_brace_spec(formatter *x, format_spec *spec) {
  size_t len = 1;
  if (x->at < x->format->len) tpl_character(x->format, x->at, &len);
  if (x->at + len < x->format->len && strchr("<>^=", x->format->bytes[x->at + len]) && x->format->bytes[x->at + len]) {
    spec->fill = tpl_string_part(x->job, x->format, x->at, x->at + len);
    x->at += len;
  }
  spec->align = take_one(x, "<>^=");
  spec->sign = take_one(x, "+- ");
  spec->alternate = take(x, '#');
  spec->zeros = take(x, '0');
  spec->width = take_number(x);
  spec->commas = take(x, ',');
  if (take(x, '.')) spec->precision = take_number(x);
  spec->type = take_one(x, "bcdeEfFgGnosxX%");
}

static void convert_braces(formatter *x, brace_values *values) {
  format_spec spec = {.precision = -1};
  tpl_value v = field(x, values);
  char conversion = take(x, '!') ? take_one(x, "rsa") : 's';
  if (conversion == 'r' || conversion == 'a') {
    tpl_builder b = {.job = x->job};
    tpl_write_repr(&b, v);
    v = tpl_string_value(tpl_built(&b));
  }
  if (take(x, ':')) read_brace_spec(x, &spec);
  if (!take(x, '}') || !conversion) tpl_fail(x->job, "unsupported format in braces");
  if (x->format->safe && v.kind == TPL_STRING && !v.string->safe) {
    tpl_builder b = {.job = x->job};
    tpl_add_escaped(&b, v.string);
    v = tpl_string_value(tpl_built(&b));
  }
  if (v.kind == TPL_UNDEFINED && spec.width <= 0) return;
  write_value(x, &spec, v);
}

tpl_value tpl_format_braces(tpl_run *run, const tpl_string *format, const tpl_arguments *all) {
  formatter x = {run, &run->job, format, 0, {.job = &run->job, .safe = format->safe}};
  brace_values values = {all, 0};
  while (copy_up_to(&x, "{}")) {
    char brace = take_one(&x, "{}");
    tpl_charge(x.job, 1);
    if (take(&x, brace))
      tpl_add(&x.out, &brace, 1, false);
    else if (brace == '{')
      convert_braces(&x, &values);
    else
      tpl_fail(x.job, "a single '}' in a format");
  }
  return tpl_string_value(tpl_built(&x.out));
}
