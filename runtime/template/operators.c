/* Operators, as Python has them: see operators.h. */
#include "template/operators.h"
#include "template/format.h"
#include "template/lexer.h"

#include <math.h>

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static _Noreturn void fail_overflow(tpl_job *job) { tpl_fail(job, "an integer does not fit 64 bits"); }
static _Noreturn void fail_zero(tpl_job *job) { tpl_fail(job, "division by zero"); }

static int64_t integer_power(tpl_job *job, int64_t base, int64_t exponent) {
  int64_t power = 1;
  for (; exponent; exponent >>= 1) {
    if ((exponent & 1) && __builtin_mul_overflow(power, base, &power)) fail_overflow(job);
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) fail_overflow(job);
  }
  return power;
}

/* Rounded down, as Python does; the remainder has the sign of b. */
static int64_t floor_divide(tpl_job *job, int64_t a, int64_t b, int64_t *remainder) {
  if (b == 0) fail_zero(job);
  if (b == -1) { /* a / b may not fit */
    int64_t negative;
    if (__builtin_sub_overflow(0, a, &negative)) fail_overflow(job);
    return *remainder = 0, negative;
  }
  int64_t quotient = a / b;
  *remainder = a % b;
  if (*remainder && (*remainder < 0) != (b < 0)) {
    *remainder += b;
    quotient--;
  }
  return quotient;
}

static double float_remainder(double a, double b) {
  double r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r == 0 ? copysign(0, b) : r;
}

static tpl_value floats(tpl_job *job, int op, double a, double b) {
  if (b == 0 && (op == '/' || op == T_FLOOR || op == '%')) fail_zero(job);
  switch (op) {
  case '+': return tpl_float(a + b);
  case '-': return tpl_float(a - b);
  case '*': return tpl_float(a * b);
  case '/': return tpl_float(a / b);
  case T_FLOOR: return tpl_float(floor((a - float_remainder(a, b)) / b + 0.5));
  case '%': return tpl_float(float_remainder(a, b));
  default:
    if (a == 0 && b < 0) fail_zero(job);
    return tpl_float(pow(a, b));
  }
}

static tpl_value integers(tpl_job *job, int op, int64_t a, int64_t b) {
  int64_t result = 0, remainder;
  bool overflow = false;
  switch (op) {
  case '+': overflow = __builtin_add_overflow(a, b, &result); break;
  case '-': overflow = __builtin_sub_overflow(a, b, &result); break;
  case '*': overflow = __builtin_mul_overflow(a, b, &result); break;
  case '/':
    if (b == 0) fail_zero(job);
    return tpl_float((double)((long double)a / (long double)b));
  case T_FLOOR: result = floor_divide(job, a, b, &remainder); break;
  case '%':
    if (b != -1) floor_divide(job, a, b, &result);
    break;
  default:
    if (b < 0) return floats(job, op, (double)a, (double)b);
    result = integer_power(job, a, b);
  }
  if (overflow) fail_overflow(job);
  return tpl_int(result);
}

static tpl_value numbers(tpl_job *job, int op, tpl_value a, tpl_value b) {
  if (tpl_is_integer(a) && tpl_is_integer(b)) return integers(job, op, tpl_integer(job, a), tpl_integer(job, b));
  return floats(job, op, tpl_number(a), tpl_number(b));
}

tpl_value tpl_negative(tpl_job *job, tpl_value v) {
  tpl_need_defined(job, v);
  if (v.kind == TPL_FLOAT) return tpl_float(-v.number);
  return integers(job, '-', 0, tpl_integer(job, v));
}

/* ---- strings and lists ------------------------------------------------------------------------------------------- */

/* What is added to a safe string is escaped. */
static void add_to(tpl_builder *b, const tpl_string *s, bool safe) {
  if (safe && !s->safe)
    tpl_add_escaped(b, s);
  else
    tpl_add_string(b, s);
}

static tpl_value add_strings(tpl_job *job, const tpl_string *x, const tpl_string *y) {
  bool safe = x->safe || y->safe;
  tpl_builder b = {.job = job, .safe = safe};
  if (y->len == 0 && !safe) return tpl_string_value(x);
  if (safe)
    add_to(&b, x, safe);
  else
    tpl_continue(&b, x);
  add_to(&b, y, safe);
  return tpl_string_value(tpl_built(&b));
}

static tpl_value add_lists(tpl_job *job, tpl_value a, tpl_value b) {
  tpl_value sum = tpl_list_new(job, a.kind, a.list->n + b.list->n);
  for (size_t i = 0; i < a.list->n; i++) sum.list->items[i] = a.list->items[i];
  for (size_t i = 0; i < b.list->n; i++) sum.list->items[a.list->n + i] = b.list->items[i];
  return sum;
}

static void check_times(tpl_job *job, size_t size, size_t times) {
  if (size && times > TEMPLATE_MEMORY / size) tpl_fail(job, "more than %d MiB of memory", TEMPLATE_MEMORY >> 20);
  tpl_charge(job, size ? times / 8 : 0);
}

static tpl_value repeat(tpl_job *job, tpl_value v, int64_t count) {
  size_t times = count > 0 ? (size_t)count : 0;
  if (v.kind == TPL_STRING) {
    tpl_builder b = {.job = job, .safe = v.string->safe};
    check_times(job, v.string->len, times);
    for (size_t i = 0; i < times && v.string->len; i++) tpl_add_string(&b, v.string);
    return tpl_string_value(tpl_built(&b));
  }
  check_times(job, v.list->n * sizeof(tpl_value), times);
  tpl_value list = tpl_list_new(job, v.kind, v.list->n ? v.list->n * times : 0);
  for (size_t i = 0, k = 0; i < list.list->n; i++, k = k + 1 < v.list->n ? k + 1 : 0)
    list.list->items[i] = v.list->items[k];
  return list;
}

static bool can_repeat(tpl_value v) { return v.kind == TPL_STRING || v.kind == TPL_LIST || v.kind == TPL_TUPLE; }

tpl_value tpl_arithmetic(tpl_run *run, int op, tpl_value a, tpl_value b) {
  tpl_job *job = &run->job;
  tpl_need_defined(job, a);
  if (a.kind == TPL_STRING && op == '%') return tpl_format_percent(run, a.string, b);
  tpl_need_defined(job, b);
  if (tpl_is_number(a) && tpl_is_number(b)) return numbers(job, op, a, b);
  if (op == '+' && a.kind == b.kind) {
    if (a.kind == TPL_STRING) return add_strings(job, a.string, b.string);
    if (a.kind == TPL_LIST || a.kind == TPL_TUPLE) return add_lists(job, a, b);
  }
  if (op == '*' && can_repeat(a) && tpl_is_integer(b)) return repeat(job, a, tpl_integer(job, b));
  if (op == '*' && can_repeat(b) && tpl_is_integer(a)) return repeat(job, b, tpl_integer(job, a));
  const char *sign = op == T_FLOOR ? "//" : op == T_POWER ? "**" : (const char[]){(char)op, '\0'};
  tpl_fail(job, "unsupported operand types for %s: '%s' and '%s'", sign, tpl_type(a), tpl_type(b));
}

/* ---- comparison -------------------------------------------------------------------------------------------------- */

bool tpl_compare(tpl_job *job, int op, tpl_value a, tpl_value b) {
  switch (op) {
  case T_NAME: return tpl_contains(job, b, a);
  case T_DATA: return !tpl_contains(job, b, a);
  case T_EQUAL: return tpl_equal(job, a, b);
  case T_NOT_EQUAL: return !tpl_equal(job, a, b);
  default: break;
  }
  int order = tpl_order(job, a, b);
  if (order == 2) return false;
  return op == '<' ? order < 0 : op == '>' ? order > 0 : op == T_LESS_EQUAL ? order <= 0 : order >= 0;
}

/* ---- slices ------------------------------------------------------------------------------------------------------ */

static bool is_left_out(tpl_value v) { return v.kind == TPL_MISSING || v.kind == TPL_NONE; }

/* A bound of a slice of n elements, from `low` to `high`. */
static int64_t bound(tpl_job *job, tpl_value v, int64_t missing, int64_t n, int64_t low, int64_t high) {
  if (is_left_out(v)) return missing;
  int64_t i = tpl_integer(job, v);
  if (i < 0) i = i < -n ? low : i + n;
  return i < low ? low : i > high ? high : i;
}

static tpl_value slice_string(tpl_job *job, const tpl_string *s, int64_t begin, int64_t step, int64_t count) {
  tpl_builder b = {.job = job, .safe = s->safe};
  if (step == 1) {
    size_t from = tpl_offset(job, s, (size_t)begin), to = from;
    for (int64_t left = count; left > 0 && to < s->len; left--) to = tpl_after(s, to);
    return tpl_string_value(tpl_string_part(job, s, from, count ? to : from));
  }
  const tpl_list *characters = tpl_items(job, tpl_string_value(s));
  for (int64_t i = 0; i < count; i++) tpl_add_string(&b, characters->items[begin + i * step].string);
  return tpl_string_value(tpl_built(&b));
}

static int64_t elements(int64_t from, int64_t to, int64_t by) {
  int64_t count = by > 0 ? (to - from + by - 1) / by : by < 0 ? (from - to - by - 1) / -by : 0;
  return count > 0 ? count : 0;
}

tpl_value tpl_slice(tpl_job *job, tpl_value of, tpl_value begin, tpl_value end, tpl_value step) {
  tpl_need_defined(job, of);
  if (of.kind != TPL_STRING && of.kind != TPL_LIST && of.kind != TPL_TUPLE && of.kind != TPL_RANGE)
    tpl_fail(job, "'%s' object cannot be sliced", tpl_type(of));
  int64_t by = is_left_out(step) ? 1 : tpl_integer(job, step), n = tpl_count(job, of);
  if (by == 0) tpl_fail(job, "slice step cannot be zero");
  if (by > n) by = n + 1;
  if (by < -n) by = -n - 1;
  int64_t low = by < 0 ? -1 : 0, high = by < 0 ? n - 1 : n;
  int64_t from = bound(job, begin, by < 0 ? high : low, n, low, high),
          to = bound(job, end, by < 0 ? low : high, n, low, high);
  int64_t count = elements(from, to, by);
  if (of.kind == TPL_STRING) return slice_string(job, of.string, from, by, count);
  tpl_value slice = tpl_list_new(job, of.kind == TPL_TUPLE ? TPL_TUPLE : TPL_LIST, (size_t)count);
  for (int64_t i = 0; i < count; i++) slice.list->items[i] = of.list->items[from + i * by];
  return slice;
}
