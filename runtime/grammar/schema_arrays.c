/* Arrays of schemas. See schema_build.h. */
#include "grammar/schema_build.h"

#include <string.h>

enum { COUNTED = 4000, UNIQUE = 6 };

typedef struct {
  schema_compiler *c;
  const schema_shape *s;
  int least, most, prefix;
  int *rule;             /* [prefix + 1] of each item, the last of all others */
  schema_needs contains; /* what one of the items needs; n = 0: nothing */
} array;

/* What one of the items needs; n = 0: nothing. */
static schema_needs contained(schema_compiler *c, const schema_shape *s) {
  schema_needs found = {0, NULL};
  for (const schema_fact *f = s->facts; f; f = f->next) {
    const cJSON *of = f->is == K_CONTAINS ? cJSON_GetObjectItemCaseSensitive(f->schema, "contains") : NULL,
                *least = of ? cJSON_GetObjectItemCaseSensitive(f->schema, "minContains") : NULL;
    const bool negated = f->is == K_CONTAINS && f->negated;
    if (!of && !negated) continue;
    c->at = f->schema;
    if (!negated && cJSON_GetObjectItemCaseSensitive(f->schema, "maxContains"))
      schema_refuse(c, "maxContains is not supported");
    const int n = least && !negated ? schema_count(c, &(schema_fact){.schema = f->schema, .value = least}) : 1;
    if (n > 1) schema_refuse(c, "minContains: only 0 and 1 are supported");
    if (n && found.n) schema_refuse(c, "contains: only one per array is supported");
    if (n) found = schema_need_one(c, negated ? f->value : of, negated);
  }
  return found;
}

static void read_items(array *x) {
  x->rule = arena_take(&x->c->a, ((size_t)x->prefix + 1) * sizeof *x->rule);
  for (int i = 0; i <= x->prefix; i++) {
    if (x->most >= 0 && i >= x->most) break;
    x->rule[i] = x->c->back.rule(x->c, schema_item_needs(x->c, x->s, i));
    if (x->rule[i] != SCHEMA_NONE) continue;
    x->most = i; /* the array ends before this item */
    break;
  }
}

/* ---- lists without contains -------------------------------------------------------------------------------------- */

static void put_rest(array *x, int from) {
  const int rule = x->rule[x->prefix], least = x->least > from ? x->least - from : 0;
  const int most = x->most < 0 ? -1 : x->most - from;
  const char *ws = x->c->space.ws, *comma = x->c->space.comma;
  FILE *out = x->c->rules;
  if (!most) return;
  if (from) {
    fprintf(out, "(%sr%d %s)", comma, rule, ws);
    schema_put_times(x->c, "Items", least, most);
    return;
  }
  fprintf(out, "(r%d %s(%sr%d %s)", rule, ws, comma, rule, ws);
  schema_put_times(x->c, "Items", least ? least - 1 : 0, most < 0 ? -1 : most - 1);
  fputs(least ? ") " : ")? ", out);
}

/* The items from number `i` on; those of the prefix are nested, since the array may end after each. */
static void put_items(array *x) {
  int open = 0;
  const char *ws = x->c->space.ws;
  FILE *out = x->c->rules;
  for (int i = 0; i < x->prefix && (x->most < 0 || i < x->most); i++) {
    if (i >= x->least) fputs("(", out), open++;
    fprintf(out, "%sr%d %s", i ? x->c->space.comma : "", x->rule[i], ws);
  }
  if (x->most < 0 || x->most > x->prefix) put_rest(x, x->prefix);
  while (open--) fputs(")? ", out);
}

/* ---- contains ---------------------------------------------------------------------------------------------------- */

/* Rules cN-I-S: the items from number I on, if the wanted one has come before (S = 1) or not. */
static const char *put_containing(array *x) {
  schema_compiler *c = x->c;
  const int last = x->most >= 0 ? x->most : x->least > x->prefix ? x->least : x->prefix > 1 ? x->prefix : 1;
  if (last > COUNTED) schema_refuse(c, "contains with minItems or maxItems: the maximum is %d", COUNTED);
  int *wanted = arena_take(&c->a, ((size_t)x->prefix + 1) * sizeof *wanted);
  for (int i = 0; i <= x->prefix && (x->most < 0 || i < x->most); i++)
    wanted[i] = c->back.rule(c, schema_need_both(c, schema_item_needs(c, x->s, i), x->contains));
  bool *alive = arena_take(&c->a, ((size_t)last + 1)); /* the wanted item can still come */
  for (int i = last; i >= 0; i--) {
    const int at = i < x->prefix ? i : x->prefix;
    alive[i] = (x->most < 0 || i < x->most) && (wanted[at] != SCHEMA_NONE || (i < last && alive[i + 1]));
  }
  if (!alive[0]) return NULL;
  const int number = c->made++;
  for (int i = 0; i <= last; i++)
    for (int seen = 0; seen < 2; seen++) {
      if (!seen && !alive[i]) continue;
      const int at = i < x->prefix ? i : x->prefix, next = i < last ? i + 1 : i;
      const char *comma = i ? c->space.comma : "";
      bool some = false;
      fprintf(c->rules, "c%d-%d-%d ::= ", number, i, seen);
      if (x->most < 0 || i < x->most) {
        if (seen || alive[next]) {
          fprintf(c->rules, "%sr%d %sc%d-%d-%d ", comma, x->rule[at], c->space.ws, number, next, seen);
          some = true;
        }
        if (!seen && wanted[at] != SCHEMA_NONE) {
          fprintf(c->rules, "%s%sr%d %sc%d-%d-1 ", some ? "| " : "", comma, wanted[at], c->space.ws, number, next);
          some = true;
        }
      }
      if (seen && i >= x->least) fputs(some ? "| \"\" " : "\"\" ", c->rules);
      putc('\n', c->rules);
    }
  const char *name = schema_begin_rule(c);
  fprintf(c->rules, "\"[\" %sc%d-0-0 \"]\"\n", c->space.ws, number);
  return name;
}

/* ---- uniqueItems ------------------------------------------------------------------------------------------------- */

static bool is_unique(schema_compiler *c, const schema_shape *s) {
  for (const schema_fact *f = s->facts; f; f = f->next)
    if (f->is == K_UNIQUE && cJSON_IsTrue(f->value)) {
      c->at = f->schema;
      return true;
    }
  return false;
}

/* The values of items, if they are few; 0: they are not. */
static int values_of_items(array *x, const cJSON **all) {
  static const cJSON fixed[] = {{.type = cJSON_True}, {.type = cJSON_False}, {.type = cJSON_NULL}};
  static const unsigned types[] = {WITH(BOOLEAN), WITH(BOOLEAN), WITH(NULLS)};
  int n = 0;
  for (const schema_shape *s = schema_shapes(x->c, schema_item_needs(x->c, x->s, 0)); s; s = s->next) {
    const schema_fact *only = s->facts;
    const cJSON **of = arena_take(&x->c->a, 3 * sizeof *of);
    int n_of = 0;
    while (only && only->is != K_ONLY) only = only->next;
    if (!only && s->types & ~(WITH(BOOLEAN) | WITH(NULLS))) return 0;
    if (only) n_of = schema_values(x->c, s, &of);
    for (int i = 0; !only && i < 3; i++)
      if (s->types & types[i] && schema_fits(x->c, &fixed[i], s)) of[n_of++] = &fixed[i];
    for (int i = 0; i < n_of; i++) {
      int k = 0;
      while (k < n && !schema_is_equal(all[k], of[i])) k++;
      if (k < n) continue;
      if (n == UNIQUE) return 0;
      all[n++] = of[i];
    }
  }
  return n;
}

static int bits(int mask) {
  int n = 0;
  for (; mask; mask &= mask - 1) n++;
  return n;
}

/* Rules uN-M: the items after those in the set M. */
static const char *put_unique(array *x) {
  schema_compiler *c = x->c;
  const cJSON *value[UNIQUE];
  const int n = x->prefix ? 0 : values_of_items(x, value), most = x->most < 0 || x->most > n ? n : x->most;
  if (!n)
    schema_refuse(c, "uniqueItems is supported only for items with at most %d values, or maxItems up to 1", UNIQUE);
  if (x->least > n) return NULL;
  const char *item[UNIQUE];
  for (int i = 0; i < n; i++) {
    item[i] = schema_begin_rule(c);
    schema_put_value(c, value[i]);
    putc('\n', c->rules);
  }
  const int number = c->made++;
  for (int mask = 0; mask < 1 << n; mask++) {
    const int had = bits(mask);
    if (had > most) continue;
    bool some = had >= x->least;
    fprintf(c->rules, "u%d-%d ::= %s", number, mask, some ? "\"\" " : "");
    for (int i = 0; i < n && had < most; i++) {
      if (mask & 1 << i) continue;
      fprintf(c->rules, "%s%s%s %su%d-%d ", some ? "| " : "", had ? c->space.comma : "", item[i], c->space.ws, number,
              mask | 1 << i);
      some = true;
    }
    putc('\n', c->rules);
  }
  const char *name = schema_begin_rule(c);
  fprintf(c->rules, "\"[\" %su%d-0 \"]\"\n", c->space.ws, number);
  return name;
}

const char *schema_put_array(schema_compiler *c, const schema_shape *s) {
  array x = {.c = c, .s = s, .prefix = schema_prefix(s), .contains = contained(c, s)};
  schema_bounds(c, s, K_MIN_ITEMS, K_MAX_ITEMS, &x.least, &x.most);
  if (x.most >= 0 && x.most < x.least) return NULL;
  const bool unique = is_unique(c, s);
  read_items(&x);
  if (x.most >= 0 && x.most < x.least) return NULL;
  if (unique && (x.most < 0 || x.most > 1)) {
    if (x.contains.n) schema_refuse(c, "uniqueItems next to contains is not supported");
    return put_unique(&x);
  }
  if (x.contains.n) return put_containing(&x);
  const char *name = schema_begin_rule(c);
  fprintf(c->rules, "\"[\" %s", c->space.ws);
  put_items(&x);
  fputs("\"]\"\n", c->rules);
  return name;
}
