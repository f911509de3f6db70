/* Numbers of schemas: bounds and multiples, as regular expressions over their digits. See schema_build.h. */
#include "grammar/decimal.h"
#include "grammar/integers.h"
#include "grammar/schema_build.h"

#include <string.h>

enum { PLAIN = 80, DIGITS = 15, MULTIPLES = 4000, SMALL_MULTIPLE = 100 };

const char *schema_number(schema_compiler *c, const schema_fact *f) {
  if (cJSON_IsRaw(f->value)) return f->value->valuestring;
  c->at = f->schema;
  schema_refuse(c, "%s: expected a number", f->value->string);
}

static bool is_bound(const schema_fact *f) { return f->is >= K_MINIMUM && f->is <= K_BELOW; }

/* ---- multiples --------------------------------------------------------------------------------------------------- */

/* multipleOf as m units of 10^-places. */
static int unit_of(schema_compiler *c, const schema_fact *f, int *places) {
  char plain[PLAIN];
  long long m = 0;
  const char *text = schema_number(c, f), *point = NULL;
  c->at = f->schema;
  if (!decimal_plain(text, plain) || *plain == '-' || !strcmp(plain, "0"))
    schema_refuse(c, "multipleOf: expected a number greater than 0");
  for (const char *at = plain; *at; at++)
    if (*at == '.')
      point = at;
    else if (m <= MULTIPLES)
      m = m * 10 + (*at - '0');
  *places = point ? (int)strlen(point + 1) : 0;
  if (m * (*places + 2) > MULTIPLES)
    schema_refuse(c, "multipleOf: %.40s has too many digits: the maximum is about %d units of the last digit", text,
                  MULTIPLES);
  return (int)m;
}

bool schema_is_multiple(schema_compiler *c, const schema_fact *f, const char *number) {
  char plain[PLAIN];
  int places, after = -1, rest = 0;
  const int m = unit_of(c, f, &places);
  if (!decimal_plain(number, plain)) schema_refuse(c, "multipleOf: %.40s has too many digits", number);
  for (const char *at = plain + (*plain == '-'); *at; at++) {
    if (*at == '.') {
      after = 0;
      continue;
    }
    if (after >= 0 && ++after > places) return false; /* the last digit is not 0 */
    rest = (rest * 10 + (*at - '0')) % m;
  }
  for (; places > (after < 0 ? 0 : after); places--) rest = rest * 10 % m;
  return rest == 0;
}

/* ---- bounds ------------------------------------------------------------------------------------------------------ */

typedef struct {
  schema_compiler *c;
  char whole[PLAIN], part[PLAIN]; /* the digits in front of the point and after it */
  int places;                     /* digits after the point that numbers may have */
  bool strict;
} bound;

static const char *any_fraction(const bound *b) { return arena_print(&b->c->a, "(?:\\.[0-9]{1,%d})?", b->places); }

/* Fractions that are at least the bound's. */
static const char *fraction_from(const bound *b) {
  arena *a = &b->c->a;
  const int p = b->places;
  const char *rest = b->strict ? arena_print(a, "0{0,%d}[1-9][0-9]{0,%d}", p, p) : arena_print(a, "[0-9]{0,%d}", p);
  if (!*b->part) return b->strict ? arena_print(a, "\\.%s", rest) : any_fraction(b);
  for (size_t i = strlen(b->part); i-- > 0;) {
    const char d = b->part[i];
    rest = d == '9' ? arena_print(a, "9%s", rest) : arena_print(a, "(?:%c%s|[%c-9][0-9]{0,%d})", d, rest, d + 1, p);
  }
  return arena_print(a, "\\.%s", rest);
}

/* Fractions that are at most the bound's; NULL: none. */
static const char *fraction_to(const bound *b) {
  arena *a = &b->c->a;
  const int p = b->places;
  const char *rest = b->strict ? NULL : arena_print(a, "0{0,%d}", p);
  if (!*b->part) return b->strict ? NULL : arena_print(a, "(?:\\.0{1,%d})?", p);
  const size_t n = strlen(b->part);
  for (size_t i = n; i-- > 0;) {
    const char d = b->part[i];
    const char *same = rest ? arena_print(a, i + 1 < n ? "%c(?:%s)?" : "%c%s", d, rest) : NULL;
    const char *less = d > '0' ? arena_print(a, "[0-%c][0-9]{0,%d}", d - 1, p) : NULL;
    rest = same && less ? arena_print(a, "(?:%s|%s)", same, less) : same ? same : less;
  }
  return arena_print(a, "(?:\\.%s)?", rest);
}

/* Numbers without a sign, at least the bound. */
static const char *size_from(const bound *b) {
  arena *a = &b->c->a;
  const int n = (int)strlen(b->whole);
  const char *any = any_fraction(b), *all = arena_print(a, "%s%s", b->whole, fraction_from(b));
  const int most = n >= DIGITS ? n : DIGITS;
  if (most > n) all = arena_print(a, "%s|[1-9][0-9]{%d,%d}%s", all, n, most - 1, any);
  for (int i = 0; i < n; i++)
    if (b->whole[i] < '9')
      all = arena_print(a, "%s|%.*s[%c-9][0-9]{%d}%s", all, i, b->whole, b->whole[i] + 1, n - 1 - i, any);
  return all;
}

/* Numbers without a sign, at most the bound; NULL: none. */
static const char *size_to(const bound *b) {
  arena *a = &b->c->a;
  const int n = (int)strlen(b->whole);
  const char *any = any_fraction(b), *same = fraction_to(b);
  const char *all = same ? arena_print(a, "%s%s", b->whole, same) : NULL;
  if (n > 1) all = arena_print(a, "%s%s(?:0|[1-9][0-9]{0,%d})%s", all ? all : "", all ? "|" : "", n - 2, any);
  for (int i = 0; i < n; i++) {
    const char low = i == 0 && n > 1 ? '1' : '0';
    if (b->whole[i] > low)
      all = arena_print(a, "%s%s%.*s[%c-%c][0-9]{%d}%s", all ? all : "", all ? "|" : "", i, b->whole, low,
                        b->whole[i] - 1, n - 1 - i, any);
  }
  return all;
}

static void split(schema_compiler *c, const schema_fact *f, bound *b, bool *negative) {
  char plain[PLAIN];
  c->at = f->schema;
  if (!decimal_plain(schema_number(c, f), plain)) schema_refuse(c, "%s: more than 60 digits", f->value->string);
  *negative = *plain == '-';
  const char *at = plain + *negative;
  const size_t n = strcspn(at, ".");
  snprintf(b->whole, sizeof b->whole, "%.*s", (int)n, at);
  snprintf(b->part, sizeof b->part, "%s", at[n] ? at + n + 1 : "");
}

/* Numbers on one side of a bound. */
static const char *side_of(schema_compiler *c, const schema_fact *f, int places) {
  bound b = {.c = c, .places = places, .strict = f->is == K_ABOVE || f->is == K_BELOW};
  const bool above = f->is == K_MINIMUM || f->is == K_ABOVE;
  bool negative;
  split(c, f, &b, &negative);
  const bool zero = !strcmp(b.whole, "0") && !*b.part;
  const char *any = arena_print(&c->a, "(?:0|[1-9][0-9]*)%s", any_fraction(&b));
  if (above && !negative) return arena_print(&c->a, "^(?:%s)$", size_from(&b));
  if (above) {
    const char *to = size_to(&b);
    return to ? arena_print(&c->a, "^(?:%s|-(?:%s))$", any, to) : arena_print(&c->a, "^(?:%s)$", any);
  }
  if (negative || (zero && b.strict)) return arena_print(&c->a, "^-(?:%s)$", size_from(&b));
  const char *to = size_to(&b);
  return arena_print(&c->a, "^(?:-%s%s%s)$", any, to ? "|" : "", to ? to : "");
}

/* How many digits numbers may have after the point, so that doubles tell them from the bounds. */
static int places_of(schema_compiler *c, const schema_shape *s) {
  int places = DIGITS - 1, longest = 1;
  for (const schema_fact *f = s->facts; f; f = f->next) {
    bound b;
    bool negative;
    if (!is_bound(f)) continue;
    split(c, f, &b, &negative);
    const int whole = (int)strlen(b.whole), part = (int)strlen(b.part);
    if (DIGITS - whole < places) places = DIGITS - whole;
    if (part > longest) longest = part;
  }
  return places > longest ? places : longest;
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static const char *put_items(schema_compiler *c, const char *items) {
  const char *name = schema_begin_rule(c);
  fprintf(c->rules, "%s\n", items);
  return name;
}

static const char *put_integers(schema_compiler *c, const schema_shape *s) {
  integers between = {0};
  for (const schema_fact *f = s->facts; f; f = f->next) {
    if (!is_bound(f)) continue;
    const char *text = schema_number(c, f);
    const bool strict = f->is == K_ABOVE || f->is == K_BELOW;
    c->at = f->schema;
    if (!(f->is == K_MINIMUM || f->is == K_ABOVE ? integers_from : integers_to)(&between, text, strict))
      schema_refuse(c, "%s: more than %d digits", f->value->string, INTEGERS_DIGITS);
  }
  if (integers_empty(&between)) return NULL;
  if (!between.has_low && !between.has_high) return "integer";
  const char *name = schema_begin_rule(c);
  integers_put(&between, schema_digits(c->options.open), c->rules);
  putc('\n', c->rules);
  return name;
}

static const automaton *automaton_of_text(schema_compiler *c, const char *regex) {
  return automaton_of(&c->a, regex_read(&c->a, regex, c->what), false, schema_place(c, c->at, "minimum"));
}

static const char *put_digits(schema_compiler *c, const schema_shape *s, bool whole, bool fractions, bool small) {
  const char *what = schema_place(c, c->at, "minimum"), *digits = small ? "{0,29}" : "*";
  const int places = places_of(c, s);
  const char *base = !fractions ? arena_print(&c->a, "^-?(?:0|[1-9][0-9]%s)$", digits)
                     : whole    ? arena_print(&c->a, "^-?(?:0|[1-9][0-9]%s)(?:\\.[0-9]{1,%d})?$", digits, places)
                                : arena_print(&c->a, "^-?(?:0|[1-9][0-9]%s)\\.[0-9]{0,%d}[1-9]$", digits, places - 1);
  const automaton *all = automaton_of_text(c, base);
  for (const schema_fact *f = s->facts; f; f = f->next) {
    const automaton *of = NULL;
    if (is_bound(f)) of = automaton_of_text(c, side_of(c, f, places));
    if (f->is == K_MULTIPLE) {
      int after;
      const int m = unit_of(c, f, &after);
      of = automaton_of_multiples(&c->a, m, after, what);
    }
    if (of) all = automaton_combine(&c->a, all, of, AUTOMATON_AND, what);
  }
  return all->n ? schema_put_automaton(c, all, false) : NULL;
}

const char *schema_put_numbers(schema_compiler *c, const schema_shape *s) {
  const bool whole = s->types & WITH(INTEGER), fractions = s->types & WITH(FRACTION);
  int bounds = 0;
  bool multiples = false, small = true, from_zero = false;
  for (const schema_fact *f = s->facts; f; f = f->next) {
    bounds += is_bound(f);
    from_zero |= f->is == K_MINIMUM && decimal_compare(schema_number(c, f), "0") == 0;
    if (f->is != K_MULTIPLE) continue;
    int places;
    multiples = true;
    if (unit_of(c, f, &places) > SMALL_MULTIPLE) small = false;
  }
  if (!multiples && !fractions) return put_integers(c, s);
  if (!multiples && !bounds && whole) return "number";
  if (!multiples && bounds == 1 && from_zero && whole)
    return put_items(c, "(\"0\" | [1-9] [0-9]{0,29}) (\".\" [0-9]{1,17})? ([eE] [-+]? ([0-9]{1,2} | \"1\" [0-9]{2}))?");
  return put_digits(c, s, whole, fractions, small);
}
