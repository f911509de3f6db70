/* Whether a value matches, and whether none can: see schema_build.h. */
#include "grammar/decimal.h"
#include "grammar/schema_build.h"

#include <string.h>

enum { TRYING = 5, EFFORT = 20000 };

static const cJSON *member(const cJSON *schema, const char *name) {
  return cJSON_GetObjectItemCaseSensitive(schema, name);
}

static bool are_equal_lists(const cJSON *a, const cJSON *b) {
  a = a->child, b = b->child;
  for (; a && b; a = a->next, b = b->next)
    if (!schema_is_equal(a, b)) return false;
  return !a && !b;
}

bool schema_is_equal(const cJSON *a, const cJSON *b) {
  const cJSON *one;
  if (a->type != b->type) return false;
  if (cJSON_IsRaw(a)) return decimal_compare(a->valuestring, b->valuestring) == 0;
  if (cJSON_IsString(a)) return !strcmp(a->valuestring, b->valuestring);
  if (cJSON_IsArray(a)) return are_equal_lists(a, b);
  if (!cJSON_IsObject(a)) return true;
  if (cJSON_GetArraySize(a) != cJSON_GetArraySize(b)) return false;
  cJSON_ArrayForEach(one, a) {
    const cJSON *other = member(b, one->string);
    if (!other || !schema_is_equal(one, other)) return false;
  }
  return true;
}

static unsigned type_of(const cJSON *value) {
  if (cJSON_IsString(value)) return WITH(STRING);
  if (cJSON_IsRaw(value)) return decimal_is_integer(value->valuestring) ? WITH(INTEGER) : WITH(FRACTION);
  if (cJSON_IsBool(value)) return WITH(BOOLEAN);
  if (cJSON_IsNull(value)) return WITH(NULLS);
  return cJSON_IsArray(value) ? WITH(ARRAY) : WITH(OBJECT);
}

static int characters_of(const char *text) {
  int n = 0;
  for (; *text; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
  return n;
}

static bool fits_only(const cJSON *value, const schema_fact *f) {
  const cJSON *one;
  if (f->name) return schema_is_equal(value, f->value);
  cJSON_ArrayForEach(one, f->value) if (schema_is_equal(value, one)) return true;
  return false;
}

static bool fits_string(schema_compiler *c, const cJSON *value, const schema_fact *f) {
  switch (f->is) {
  case K_MIN_LENGTH: return characters_of(value->valuestring) >= schema_count(c, f);
  case K_MAX_LENGTH: return characters_of(value->valuestring) <= schema_count(c, f);
  case K_PATTERN:
  case K_FORMAT: {
    const automaton *of = schema_text_fact(c, f);
    return !of || automaton_has(of, value->valuestring) != f->negated;
  }
  case K_NEVER: return !schema_is_equal(value, f->value);
  default: return true;
  }
}

static bool fits_number(schema_compiler *c, const cJSON *value, const schema_fact *f) {
  if (f->is < K_MINIMUM || f->is > K_MULTIPLE) return true;
  const char *bound = schema_number(c, f);
  if (f->is == K_MULTIPLE) return schema_is_multiple(c, f, value->valuestring);
  const int order = decimal_compare(value->valuestring, bound);
  return f->is == K_MINIMUM ? order >= 0 : f->is == K_MAXIMUM ? order <= 0 : f->is == K_ABOVE ? order > 0 : order < 0;
}

static bool is_unique(const cJSON *list) {
  for (const cJSON *a = list->child; a; a = a->next)
    for (const cJSON *b = a->next; b; b = b->next)
      if (schema_is_equal(a, b)) return false;
  return true;
}

static bool fits_contains(schema_compiler *c, const cJSON *value, const schema_fact *f) {
  const cJSON *of = member(f->schema, "contains"), *least = member(f->schema, "minContains"),
              *most = member(f->schema, "maxContains"), *one;
  int n = 0;
  if (f->negated) {
    cJSON_ArrayForEach(one, value) if (schema_fits_needs(c, one, schema_need_one(c, f->value, true))) return true;
    return false;
  }
  if (!of) return true;
  cJSON_ArrayForEach(one, value) n += schema_fits_needs(c, one, schema_need_one(c, of, false));
  return n >= (least ? schema_count(c, &(schema_fact){.value = least}) : 1) &&
         (!most || n <= schema_count(c, &(schema_fact){.value = most}));
}

static bool fits_array(schema_compiler *c, const cJSON *value, const schema_fact *f, const schema_shape *s) {
  const cJSON *one;
  int i = 0;
  switch (f->is) {
  case K_MIN_ITEMS: return cJSON_GetArraySize(value) >= schema_count(c, f);
  case K_MAX_ITEMS: return cJSON_GetArraySize(value) <= schema_count(c, f);
  case K_UNIQUE: return !cJSON_IsTrue(f->value) || is_unique(value);
  case K_CONTAINS: return fits_contains(c, value, f);
  case K_ITEMS:
    cJSON_ArrayForEach(one, value) if (!schema_fits_needs(c, one, schema_item_needs(c, s, i++))) return false;
    return true;
  default: return true;
  }
}

static bool fits_object(schema_compiler *c, const cJSON *value, const schema_fact *f, const schema_shape *s) {
  const cJSON *one;
  switch (f->is) {
  case K_MIN_PROPERTIES: return cJSON_GetArraySize(value) >= schema_count(c, f);
  case K_MAX_PROPERTIES: return cJSON_GetArraySize(value) <= schema_count(c, f);
  case K_REQUIRED:
  case K_VALUE:
    if (!member(value, f->name)) return false;
    break;
  case K_EXTRA:
    cJSON_ArrayForEach(one, value) if (!member(member(f->schema, "properties"), one->string)) return true;
    return false;
  case K_MEMBERS:
  case K_WITHOUT:
  case K_NAMES:
  case K_UNSEEN: break;
  default: return true;
  }
  cJSON_ArrayForEach(one, value) if (!schema_fits_needs(c, one, schema_name_needs(c, s, one->string))) return false;
  return true;
}

bool schema_fits(schema_compiler *c, const cJSON *value, const schema_shape *s) {
  const unsigned type = type_of(value);
  if (!(type & s->types)) return false;
  for (const schema_fact *f = s->facts; f; f = f->next) {
    if (f->is == K_ONLY && !fits_only(value, f)) return false;
    if (type == WITH(STRING) && !fits_string(c, value, f)) return false;
    if (type == WITH(BOOLEAN) && f->is == K_NEVER && schema_is_equal(value, f->value)) return false;
    if (type & NUMBERS && !fits_number(c, value, f)) return false;
    if (type == WITH(ARRAY) && !fits_array(c, value, f, s)) return false;
    if (type == WITH(OBJECT) && !fits_object(c, value, f, s)) return false;
  }
  return true;
}

bool schema_fits_needs(schema_compiler *c, const cJSON *value, schema_needs needs) {
  if (!needs.n) return true;
  for (const schema_shape *s = schema_shapes(c, needs); s; s = s->next)
    if (schema_fits(c, value, s)) return true;
  return false;
}

/* ---- contradictions ---------------------------------------------------------------------------------------------- */

const schema_shape *schema_without(schema_compiler *c, const schema_shape *s, const schema_fact *fact) {
  schema_shape *rest = arena_take(&c->a, sizeof *rest);
  *rest = (schema_shape){.types = s->types, .facts = fact->next};
  for (const schema_fact *f = s->facts; f != fact; f = f->next) {
    schema_fact *copy = arena_take(&c->a, sizeof *copy);
    *copy = *f;
    copy->next = rest->facts;
    rest->facts = copy;
  }
  return rest;
}

static bool is_empty_values(schema_compiler *c, const schema_shape *all, const schema_fact *only) {
  const schema_shape *s = schema_without(c, all, only); /* its own values match it */
  const cJSON *one;
  if (only->name) return !schema_fits(c, only->value, s);
  cJSON_ArrayForEach(one, only->value) if (schema_fits(c, one, s)) return false;
  return true;
}

static bool is_empty_string(schema_compiler *c, const schema_shape *s) {
  int n = 0, least, most;
  for (const schema_fact *f = s->facts; f; f = f->next) n += f->is == K_PATTERN || f->is == K_FORMAT;
  schema_bounds(c, s, K_MIN_LENGTH, K_MAX_LENGTH, &least, &most);
  if (most >= 0 && most < least) return true;
  const automaton *all = n > 1 ? schema_strings(c, s) : NULL;
  return all && !all->n;
}

static bool is_empty_number(schema_compiler *c, const schema_shape *s) {
  for (const schema_fact *f = s->facts; f; f = f->next)
    for (const schema_fact *g = s->facts; g; g = g->next) {
      if ((f->is != K_MINIMUM && f->is != K_ABOVE) || (g->is != K_MAXIMUM && g->is != K_BELOW)) continue;
      const int order = decimal_compare(schema_number(c, f), schema_number(c, g));
      if (order > 0 || (order == 0 && (f->is == K_ABOVE || g->is == K_BELOW))) return true;
    }
  return false;
}

/* Whether nothing matches the needs, as far as a search of limited depth shows. */
static bool are_empty(schema_compiler *c, schema_needs needs) {
  if (!needs.n || c->trying >= TRYING || c->effort > EFFORT) return false;
  for (const schema_shape *s = schema_shapes(c, needs); s; s = s->next)
    if (!schema_is_empty(c, s)) return false;
  return true;
}

static bool is_empty_array(schema_compiler *c, const schema_shape *s) {
  int least, most;
  schema_bounds(c, s, K_MIN_ITEMS, K_MAX_ITEMS, &least, &most);
  if (most >= 0 && most < least) return true;
  const int prefix = schema_prefix(s);
  for (int i = 0; i < least && i <= prefix; i++)
    if (are_empty(c, schema_item_needs(c, s, i))) return true;
  return false;
}

static bool is_empty_object(schema_compiler *c, const schema_shape *s) {
  int least, most;
  schema_bounds(c, s, K_MIN_PROPERTIES, K_MAX_PROPERTIES, &least, &most);
  if (most >= 0 && most < least) return true;
  for (const schema_fact *f = s->facts; f; f = f->next)
    if ((f->is == K_REQUIRED || f->is == K_VALUE) && are_empty(c, schema_name_needs(c, s, f->name))) return true;
  return false;
}

static bool is_empty_boolean(const schema_shape *s) {
  int seen = 0;
  for (const schema_fact *f = s->facts; f; f = f->next)
    if (f->is == K_NEVER && cJSON_IsBool(f->value)) seen |= cJSON_IsTrue(f->value) ? 1 : 2;
  return seen == 3;
}

bool schema_is_empty(schema_compiler *c, const schema_shape *s) {
  c->trying++, c->effort++;
  const schema_fact *only = s->facts;
  while (only && only->is != K_ONLY) only = only->next;
  const unsigned t = s->types;
  const bool empty =
      only ? is_empty_values(c, s, only)
           : (!(t & WITH(STRING)) || is_empty_string(c, s)) && (!(t & NUMBERS) || is_empty_number(c, s)) &&
                 (!(t & WITH(BOOLEAN)) || is_empty_boolean(s)) && !(t & WITH(NULLS)) &&
                 (!(t & WITH(ARRAY)) || is_empty_array(c, s)) && (!(t & WITH(OBJECT)) || is_empty_object(c, s));
  c->trying--;
  return empty;
}
