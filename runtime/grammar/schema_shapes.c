/* From schemas to alternatives without anyOf, $ref and the like: see schema_build.h. */
#include "grammar/schema_build.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHAPES = 4000, STEPS = 2000000 };

/* A list of shapes; NULL: no value matches. */
typedef const schema_shape *shapes;

/* A schema whose shapes are being searched, and the one that needs them. */
typedef struct frame {
  schema_need of;
  const struct frame *around;
} frame;

struct schema_memo {
  schema_need of;
  shapes found;
  schema_memo *next;
};

static shapes one_shape(schema_compiler *c, unsigned types) {
  if (!types) return NULL;
  schema_shape *made = arena_take(&c->a, sizeof *made);
  made->types = types;
  return made;
}

static const schema_fact *cons(schema_compiler *c, schema_fact fact, const schema_fact *next) {
  schema_fact *made = arena_take(&c->a, sizeof *made);
  *made = fact;
  made->next = next;
  return made;
}

static shapes add_shape(schema_compiler *c, unsigned types, const schema_fact *facts, shapes next) {
  if (++c->shapes > STEPS) schema_refuse(c, "its alternatives are too many to be combined");
  schema_shape *made = arena_take(&c->a, sizeof *made);
  *made = (schema_shape){types, facts, (schema_shape *)next};
  return made;
}

static shapes reversed(schema_compiler *c, shapes list) {
  shapes all = NULL;
  for (; list; list = list->next) all = add_shape(c, list->types, list->facts, all);
  return all;
}

static shapes with_fact(schema_compiler *c, shapes list, unsigned types, schema_fact fact) {
  shapes all = NULL;
  for (shapes s = list; s; s = s->next)
    all = add_shape(c, s->types, s->types & types ? cons(c, fact, s->facts) : s->facts, all);
  return reversed(c, all);
}

/* ---- and, or ----------------------------------------------------------------------------------------------------- */

static bool has_fact(const schema_fact *facts, schema_keyword is, const char *name) {
  for (; facts; facts = facts->next)
    if (facts->is == is && !strcmp(facts->name, name)) return true;
  return false;
}

/* Whether a property must be there and must not. */
static bool clash(const schema_fact *facts, const schema_fact *end, const schema_fact *others) {
  for (; facts != end; facts = facts->next) {
    if ((facts->is == K_REQUIRED || facts->is == K_VALUE) && has_fact(others, K_WITHOUT, facts->name)) return true;
    if (facts->is == K_WITHOUT && (has_fact(others, K_REQUIRED, facts->name) || has_fact(others, K_VALUE, facts->name)))
      return true;
  }
  return false;
}

static const schema_fact *join_facts(schema_compiler *c, const schema_fact *first, const schema_fact *last) {
  if (!last) return first;
  if (!first) return last;
  return cons(c, *last, join_facts(c, first, last->next));
}

static shapes both(schema_compiler *c, shapes x, shapes y) {
  shapes all = NULL;
  int n = 0;
  for (shapes s = x; s; s = s->next)
    for (shapes t = y; t; t = t->next) {
      unsigned types = s->types & t->types;
      if (types & WITH(OBJECT) && clash(s->facts, NULL, t->facts)) types &= ~WITH(OBJECT);
      if (!types) continue;
      if (++n > SHAPES) schema_refuse(c, "more than %d alternatives of allOf, anyOf, oneOf, if and others", SHAPES);
      all = add_shape(c, types, join_facts(c, s->facts, t->facts), all);
    }
  return reversed(c, all);
}

static shapes either(schema_compiler *c, shapes x, shapes y) {
  if (!x) return y;
  if (!y) return x;
  shapes all = y;
  for (shapes s = reversed(c, x); s; s = s->next) all = add_shape(c, s->types, s->facts, all);
  return all;
}

/* ---- one schema -------------------------------------------------------------------------------------------------- */

static shapes search(schema_compiler *c, const cJSON *schema, bool negated, const frame *around);

static unsigned type_of(schema_compiler *c, const cJSON *name) {
  static const struct {
    const char *name;
    unsigned types;
  } of[] = {{"string", WITH(STRING)}, {"integer", WITH(INTEGER)}, {"number", NUMBERS},   {"boolean", WITH(BOOLEAN)},
            {"array", WITH(ARRAY)},   {"object", WITH(OBJECT)},   {"null", WITH(NULLS)}, {"any", ANY_TYPE}};
  const char *text = cJSON_GetStringValue(name);
  for (size_t i = 0; text && i < sizeof of / sizeof *of; i++)
    if (!strcmp(text, of[i].name)) return of[i].types;
  schema_refuse(c, "type: %.60s%sstring, integer, number, boolean, array, object and null are supported",
                text ? text : "", text ? " is not supported; " : "");
}

static unsigned types_of(schema_compiler *c, const cJSON *named) {
  unsigned types = 0;
  const cJSON *one;
  if (!cJSON_IsArray(named)) return type_of(c, named);
  cJSON_ArrayForEach(one, named) types |= type_of(c, one);
  return types;
}

static unsigned type_of_value(const cJSON *value) {
  if (cJSON_IsString(value)) return WITH(STRING);
  if (cJSON_IsRaw(value)) return NUMBERS;
  if (cJSON_IsBool(value)) return WITH(BOOLEAN);
  if (cJSON_IsNull(value)) return WITH(NULLS);
  return cJSON_IsArray(value) ? WITH(ARRAY) : WITH(OBJECT);
}

static shapes narrow(schema_compiler *c, shapes list, unsigned types) { return both(c, list, one_shape(c, types)); }

static const cJSON *member(const cJSON *schema, const char *name) {
  return cJSON_GetObjectItemCaseSensitive(schema, name);
}

static const cJSON *list_of(schema_compiler *c, const cJSON *k) {
  if (!cJSON_IsArray(k) || !k->child) schema_refuse(c, "%s: expected a list of schemas", k->string);
  return k->child;
}

static shapes any_of(schema_compiler *c, const cJSON *k, bool negated, const frame *around) {
  shapes all = NULL;
  for (const cJSON *one = list_of(c, k); one; one = one->next) all = either(c, all, search(c, one, negated, around));
  return all;
}

static shapes all_of(schema_compiler *c, const cJSON *k, bool negated, const frame *around) {
  shapes all = one_shape(c, ANY_TYPE);
  for (const cJSON *one = list_of(c, k); one; one = one->next) all = both(c, all, search(c, one, negated, around));
  return all;
}

static bool are_disjoint(schema_compiler *c, shapes x, shapes y) {
  for (shapes s = x; s; s = s->next)
    for (shapes t = y; t; t = t->next) {
      const schema_shape *m =
          both(c, &(schema_shape){s->types, s->facts, NULL}, &(schema_shape){t->types, t->facts, NULL});
      if (m && !c->back.is_empty(c, m)) return false;
    }
  return true;
}

/* Branches that are not provably disjoint exclude each other. */
static shapes one_of(schema_compiler *c, const cJSON *k, const frame *around) {
  int n = 0, i = 0;
  const cJSON *one;
  shapes all = NULL, *of;
  for (one = list_of(c, k); one; one = one->next) n++;
  of = arena_take(&c->a, (size_t)n * sizeof *of);
  for (one = k->child; one; one = one->next) of[i++] = search(c, one, false, around);
  for (i = 0; i < n; i++) {
    shapes alone = of[i];
    int j = 0;
    for (one = k->child; one; one = one->next, j++) {
      if (j == i || are_disjoint(c, of[i], of[j])) continue;
      const int before[2] = {c->branch[0], c->branch[1]};
      c->branch[0] = i + 1, c->branch[1] = j + 1;
      alone = both(c, alone, search(c, one, true, around));
      c->branch[0] = before[0], c->branch[1] = before[1];
    }
    all = either(c, all, alone);
  }
  return all;
}

static shapes with_required(schema_compiler *c, shapes list, const cJSON *names, const char *of) {
  const cJSON *name;
  if (cJSON_IsBool(names)) return list; /* of draft 3, in which it belongs to a property */
  if (!cJSON_IsArray(names)) schema_refuse(c, "%s: expected a list", of);
  cJSON_ArrayForEach(name, names) {
    if (!cJSON_IsString(name)) schema_refuse(c, "%s: expected names", of);
    list = with_fact(c, list, WITH(OBJECT), (schema_fact){.is = K_REQUIRED, .name = name->valuestring});
  }
  return list;
}

static shapes with_name(schema_compiler *c, const char *name, schema_keyword is) {
  return with_fact(c, one_shape(c, WITH(OBJECT)), WITH(OBJECT), (schema_fact){.is = is, .name = name});
}

/* If a property is there, others must be, or a schema must match. */
static shapes dependent(schema_compiler *c, const cJSON *k, const frame *around) {
  const cJSON *one;
  shapes all = one_shape(c, ANY_TYPE);
  if (!cJSON_IsObject(k)) schema_refuse(c, "%s: expected an object", k->string);
  cJSON_ArrayForEach(one, k) {
    const char *name = one->string;
    shapes with = with_name(c, name, K_REQUIRED);
    if (cJSON_IsString(one))
      with = with_fact(c, with, WITH(OBJECT), (schema_fact){.is = K_REQUIRED, .name = one->valuestring});
    else if (cJSON_IsArray(one))
      with = with_required(c, with, one, k->string);
    else
      with = both(c, with, search(c, one, false, around));
    shapes without = either(c, one_shape(c, ANY_TYPE & ~WITH(OBJECT)), with_name(c, name, K_WITHOUT));
    all = both(c, all, either(c, with, without));
  }
  return all;
}

static shapes conditional(schema_compiler *c, const cJSON *schema, const cJSON *k, bool negated, const frame *around) {
  const cJSON *then = member(schema, "then"), *or_else = member(schema, "else");
  if (!then && !or_else) return negated ? NULL : one_shape(c, ANY_TYPE);
  shapes any = negated ? NULL : one_shape(c, ANY_TYPE);
  shapes yes = then ? search(c, then, negated, around) : any, no = or_else ? search(c, or_else, negated, around) : any;
  return either(c, both(c, search(c, k, false, around), yes), both(c, search(c, k, true, around), no));
}

static bool is_first(const cJSON *schema, const cJSON *k, schema_keyword is) {
  for (const cJSON *before = schema->child; before != k; before = before->next) {
    const schema_known *known = schema_known_of(before->string);
    if (known && known->is == is) return false;
  }
  return true;
}

static void note_ignored(schema_compiler *c, const cJSON *schema, const char *name, bool other) {
  c->at = schema;
  if (c->options.strict) {
    if (other) schema_refuse(c, "%s does not belong to the given type", name);
    schema_refuse(c, "the keyword %.60s is not supported", name);
  }
  if (!c->ignored) c->ignored = arena_print(&c->a, "%s", schema_place(c, schema, name));
}

static shapes apply(schema_compiler *c, const cJSON *schema, const cJSON *k, const frame *around) {
  const char *name = k->string;
  if (!strcmp(name, "type")) return one_shape(c, types_of(c, k));
  if (!strcmp(name, "allOf")) return all_of(c, k, false, around);
  if (!strcmp(name, "anyOf")) return any_of(c, k, false, around);
  if (!strcmp(name, "oneOf")) return one_of(c, k, around);
  if (!strcmp(name, "not")) return search(c, k, true, around);
  if (!strcmp(name, "if")) return conditional(c, schema, k, false, around);
  if (!strcmp(name, "$ref")) return search(c, schema_target(c, schema, k), false, around);
  return dependent(c, k, around);
}

static const cJSON *made_count(schema_compiler *c, long long n) {
  cJSON *made = arena_take(&c->a, sizeof *made);
  made->type = cJSON_Raw;
  made->valuestring = arena_print(&c->a, "%lld", n);
  made->valuedouble = (double)n;
  made->valueint = (int)n;
  return made;
}

/* minimum and maximum with exclusiveMinimum: true next to them, as in draft 4. */
static schema_keyword bound_of(const cJSON *schema, const cJSON *k, schema_keyword is) {
  if (is == K_MINIMUM && cJSON_IsTrue(member(schema, "exclusiveMinimum"))) return K_ABOVE;
  if (is == K_MAXIMUM && cJSON_IsTrue(member(schema, "exclusiveMaximum"))) return K_BELOW;
  return (is == K_ABOVE || is == K_BELOW) && cJSON_IsBool(k) ? K_IGNORED : is;
}

/* Checks a value whose children a schema and its negation read. */
static void check_children(schema_compiler *c, const cJSON *k) {
  const bool map = !strcmp(k->string, "properties") || !strcmp(k->string, "patternProperties");
  if (map && !cJSON_IsObject(k)) schema_refuse(c, "%s: expected an object", k->string);
  if (!strcmp(k->string, "enum") && !cJSON_IsArray(k)) schema_refuse(c, "enum: expected a list of values");
}

static shapes with_values(schema_compiler *c, shapes list, const cJSON *schema, const cJSON *k) {
  const bool is_const = !strcmp(k->string, "const");
  unsigned types = is_const ? type_of_value(k) : 0;
  const cJSON *one;
  if (!is_const && cJSON_GetArraySize(k) > SCHEMA_VALUES) /* two lists are compared value by value */
    schema_refuse(c, "enum: more than %d values", SCHEMA_VALUES);
  if (!is_const) cJSON_ArrayForEach(one, k) types |= type_of_value(one);
  return with_fact(c, narrow(c, list, types), ANY_TYPE,
                   (schema_fact){.is = K_ONLY, .schema = schema, .value = k, .name = is_const ? "const" : NULL});
}

static shapes add_keyword(schema_compiler *c, shapes all, const cJSON *schema, const cJSON *k, const frame *around) {
  const schema_known *known = schema_known_of(k->string);
  c->at = schema;
  if (!known) {
    note_ignored(c, schema, k->string, false);
    return all;
  }
  if (known->is == K_IGNORED) return all;
  check_children(c, k);
  if (known->is == K_REFUSED) schema_refuse(c, "the keyword %.60s is not supported", k->string);
  if (known->is == K_APPLIES) return both(c, all, apply(c, schema, k, around));
  if (known->is == K_ONLY) return with_values(c, all, schema, k);
  if (known->is == K_REQUIRED) return with_required(c, all, k, k->string);
  const schema_keyword is = bound_of(schema, k, known->is);
  if (is == K_IGNORED || is == K_UNSEEN) return all;
  if ((is == K_MEMBERS || is == K_ITEMS || is == K_CONTAINS) && !is_first(schema, k, is)) return all;
  return with_fact(c, all, known->types, (schema_fact){.is = is, .schema = schema, .value = k});
}

/* unevaluatedProperties comes last, since it belongs to what all the others say. */
static shapes add_unseen(schema_compiler *c, shapes all, const cJSON *schema) {
  const cJSON *k = member(schema, "unevaluatedProperties");
  shapes made = NULL;
  if (!k) return all;
  for (shapes s = all; s; s = s->next)
    made = add_shape(c, s->types,
                     cons(c, (schema_fact){.is = K_UNSEEN, .schema = schema, .value = k, .seen = s->facts}, s->facts),
                     made);
  return reversed(c, made);
}

static void check_types(schema_compiler *c, const cJSON *schema) {
  const cJSON *named = member(schema, "type"), *k;
  if (!named) return;
  const unsigned types = types_of(c, named);
  cJSON_ArrayForEach(k, schema) {
    const schema_known *known = schema_known_of(k->string);
    if (known && known->types && !(known->types & types)) note_ignored(c, schema, k->string, true);
  }
}

static shapes positive(schema_compiler *c, const cJSON *schema, const frame *around) {
  const cJSON *ref = member(schema, "$ref"), *k;
  if (ref && schema_is_old(c)) return search(c, schema_target(c, schema, ref), false, around);
  shapes all = one_shape(c, ANY_TYPE);
  cJSON_ArrayForEach(k, schema) all = add_keyword(c, all, schema, k, around);
  c->at = schema;
  check_types(c, schema);
  return add_unseen(c, all, schema);
}

/* ---- negation ---------------------------------------------------------------------------------------------------- */

_Noreturn static void refuse_negation(schema_compiler *c, const char *name) {
  if (c->branch[0])
    schema_refuse(c,
                  "oneOf: one value may match both branches %d and %d, and %.60s in the second cannot be negated: use "
                  "anyOf, or give both a property with different values of const",
                  c->branch[0] - 1, c->branch[1] - 1, name);
  schema_refuse(c, "not: %.60s cannot be negated", name);
}

static shapes of_type(schema_compiler *c, unsigned types, schema_fact fact) {
  return with_fact(c, one_shape(c, types), types, fact);
}

static shapes unlike_value(schema_compiler *c, const cJSON *value, const cJSON *schema) {
  const unsigned type = type_of_value(value);
  if (type == WITH(NULLS)) return one_shape(c, ANY_TYPE & ~type);
  if (type == WITH(STRING) || type == WITH(BOOLEAN))
    return of_type(c, ANY_TYPE, (schema_fact){.is = K_NEVER, .schema = schema, .value = value});
  if (type != NUMBERS) refuse_negation(c, "an array or object in enum or const");
  shapes below = of_type(c, NUMBERS, (schema_fact){.is = K_BELOW, .schema = schema, .value = value}),
         above = of_type(c, NUMBERS, (schema_fact){.is = K_ABOVE, .schema = schema, .value = value});
  return either(c, one_shape(c, ANY_TYPE & ~NUMBERS), either(c, below, above));
}

static shapes unlike_values(schema_compiler *c, const cJSON *schema, const cJSON *k) {
  if (!strcmp(k->string, "const")) return unlike_value(c, k, schema);
  shapes all = one_shape(c, ANY_TYPE);
  const cJSON *one;
  cJSON_ArrayForEach(one, k) all = both(c, all, unlike_value(c, one, schema));
  return all;
}

/* A count beyond a bound on it. */
static shapes beyond(schema_compiler *c, const cJSON *schema, const cJSON *k, const schema_known *known) {
  static const schema_keyword opposite[][2] = {
      {K_MIN_LENGTH, K_MAX_LENGTH}, {K_MIN_ITEMS, K_MAX_ITEMS}, {K_MIN_PROPERTIES, K_MAX_PROPERTIES}};
  const int n = schema_count(c, &(schema_fact){.schema = schema, .value = k});
  for (int i = 0; i < 3; i++)
    for (int side = 0; side < 2; side++)
      if (opposite[i][side] == known->is) {
        const int to = side ? n + 1 : n - 1;
        if (to < 0) return NULL;
        return of_type(c, known->types,
                       (schema_fact){.is = opposite[i][!side], .schema = schema, .value = made_count(c, to)});
      }
  return NULL;
}

static shapes without_members(schema_compiler *c, const cJSON *schema, const cJSON *k) {
  shapes all = NULL;
  const cJSON *one;
  if (strcmp(k->string, "properties") != 0) {
    if (cJSON_IsTrue(k)) return NULL;
    const cJSON *patterns = member(schema, "patternProperties");
    if (!strcmp(k->string, "patternProperties") && !k->child) return NULL;
    if (!cJSON_IsFalse(k) || (patterns && patterns->child)) refuse_negation(c, k->string);
    return of_type(c, WITH(OBJECT), (schema_fact){.is = K_EXTRA, .schema = schema, .value = k});
  }
  cJSON_ArrayForEach(one, k) all = either(
      c, all,
      of_type(c, WITH(OBJECT),
              (schema_fact){.is = K_VALUE, .negated = true, .schema = schema, .value = one, .name = one->string}));
  return all;
}

static shapes without_required(schema_compiler *c, const cJSON *k) {
  shapes all = NULL;
  const cJSON *name;
  if (cJSON_IsBool(k)) return NULL;
  if (!cJSON_IsArray(k)) schema_refuse(c, "required: expected a list");
  cJSON_ArrayForEach(name, k) {
    if (!cJSON_IsString(name)) schema_refuse(c, "required: expected names");
    all = either(c, all, with_name(c, name->valuestring, K_WITHOUT));
  }
  return all;
}

/* No branch matches, or two do. */
static shapes none_or_two(schema_compiler *c, const cJSON *k, const frame *around) {
  shapes all = all_of(c, k, true, around);
  for (const cJSON *one = list_of(c, k); one; one = one->next)
    for (const cJSON *other = one->next; other; other = other->next)
      all = either(c, all, both(c, search(c, one, false, around), search(c, other, false, around)));
  return all;
}

static shapes negate_applied(schema_compiler *c, const cJSON *schema, const cJSON *k, const frame *around) {
  const char *name = k->string;
  if (!strcmp(name, "type")) return one_shape(c, ANY_TYPE & ~types_of(c, k));
  if (!strcmp(name, "allOf")) return any_of(c, k, true, around);
  if (!strcmp(name, "anyOf")) return all_of(c, k, true, around);
  if (!strcmp(name, "oneOf")) return none_or_two(c, k, around);
  if (!strcmp(name, "not")) return search(c, k, false, around);
  if (!strcmp(name, "if")) return conditional(c, schema, k, true, around);
  if (!strcmp(name, "$ref")) return search(c, schema_target(c, schema, k), true, around);
  refuse_negation(c, name);
}

static shapes negate_keyword(schema_compiler *c, const cJSON *schema, const cJSON *k, const frame *around) {
  static const schema_keyword opposite[][2] = {
      {K_MINIMUM, K_BELOW}, {K_MAXIMUM, K_ABOVE}, {K_ABOVE, K_MAXIMUM}, {K_BELOW, K_MINIMUM}};
  const schema_known *known = schema_known_of(k->string);
  c->at = schema;
  if (!known || known->is == K_IGNORED) return NULL;
  check_children(c, k);
  const schema_keyword is = bound_of(schema, k, known->is);
  for (int i = 0; i < 4; i++)
    if (is == opposite[i][0])
      return of_type(c, NUMBERS, (schema_fact){.is = opposite[i][1], .schema = schema, .value = k});
  switch (is) {
  case K_APPLIES: return negate_applied(c, schema, k, around);
  case K_ONLY: return unlike_values(c, schema, k);
  case K_PATTERN:
    return of_type(c, WITH(STRING), (schema_fact){.is = is, .negated = true, .schema = schema, .value = k});
  case K_FORMAT:
    if (!cJSON_IsString(k) || !schema_format(k->valuestring)) return NULL;
    refuse_negation(c, "format");
  case K_REQUIRED: return without_required(c, k);
  case K_MEMBERS: return without_members(c, schema, k);
  case K_IGNORED: return NULL;
  case K_MIN_LENGTH:
  case K_MAX_LENGTH:
  case K_MIN_ITEMS:
  case K_MAX_ITEMS:
  case K_MIN_PROPERTIES:
  case K_MAX_PROPERTIES: return beyond(c, schema, k, known);
  default: break;
  }
  if (is == K_ITEMS && cJSON_IsTrue(k)) return NULL;
  if (is == K_ITEMS && !strcmp(k->string, "items") && !cJSON_IsArray(k) && !member(schema, "prefixItems"))
    return of_type(c, WITH(ARRAY), (schema_fact){.is = K_CONTAINS, .negated = true, .schema = schema, .value = k});
  if (is == K_UNIQUE && cJSON_IsFalse(k)) return NULL;
  refuse_negation(c, k->string);
}

static shapes negative(schema_compiler *c, const cJSON *schema, const frame *around) {
  const cJSON *ref = member(schema, "$ref"), *k;
  if (ref && schema_is_old(c)) return search(c, schema_target(c, schema, ref), true, around);
  shapes all = NULL;
  cJSON_ArrayForEach(k, schema) all = either(c, all, negate_keyword(c, schema, k, around));
  return all;
}

static const schema_fact *reversed_facts(schema_compiler *c, const schema_fact *facts) {
  const schema_fact *all = NULL;
  for (; facts; facts = facts->next) all = cons(c, *facts, all);
  return all;
}

/* What stands inside of `not` is not seen by unevaluatedProperties outside of it. */
static shapes hide(schema_compiler *c, shapes list) {
  shapes all = NULL;
  for (shapes s = list; s; s = s->next) {
    const schema_fact *facts = NULL;
    for (const schema_fact *f = s->facts; f; f = f->next) {
      schema_fact copy = *f;
      copy.negated |= f->is == K_MEMBERS || f->is == K_UNSEEN;
      facts = cons(c, copy, facts);
    }
    all = add_shape(c, s->types, reversed_facts(c, facts), all);
  }
  return reversed(c, all);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static shapes search(schema_compiler *c, const cJSON *schema, bool negated, const frame *around) {
  if (cJSON_IsBool(schema)) return cJSON_IsTrue(schema) == !negated ? one_shape(c, ANY_TYPE) : NULL;
  if (!cJSON_IsObject(schema)) {
    c->at = schema;
    schema_refuse(c, "a schema must be an object, true or false");
  }
  schema_memo **memo = &c->memo[((size_t)schema >> 4) % SCHEMA_MEMOS], *m;
  for (m = *memo; m; m = m->next)
    if (m->of.schema == schema && m->of.negated == negated) return m->found;
  int depth = 0;
  for (const frame *f = around; f; f = f->around) {
    if (f->of.schema == schema && f->of.negated == negated) {
      const cJSON *ref = member(c->at, "$ref");
      schema_refuse(c, "%s%.80s leads back to itself: put a property or an item in between", ref ? "$ref: " : "",
                    ref ? ref->valuestring : "this schema");
    }
    if (++depth > SCHEMA_DEPTH) schema_refuse(c, "more than %d nested schemas", SCHEMA_DEPTH);
  }
  const cJSON *at = c->at;
  const frame here = {{schema, negated}, around};
  m = arena_take(&c->a, sizeof *m);
  m->of = here.of;
  m->found = negated ? hide(c, negative(c, schema, &here)) : positive(c, schema, &here);
  m->next = *memo;
  *memo = m;
  c->at = at;
  return m->found;
}

const schema_shape *schema_shapes(schema_compiler *c, schema_needs needs) {
  shapes all = one_shape(c, ANY_TYPE);
  const int before = c->shapes;
  for (int i = 0; i < needs.n; i++) all = both(c, all, search(c, needs.of[i].schema, needs.of[i].negated, NULL));
  c->shapes = before;
  return all;
}

/* ---- needs ------------------------------------------------------------------------------------------------------- */

schema_needs schema_need_one(schema_compiler *c, const cJSON *schema, bool negated) {
  schema_need *made = arena_take(&c->a, sizeof *made);
  *made = (schema_need){schema, negated};
  return (schema_needs){1, made};
}

static bool has_need(schema_needs x, schema_need of) {
  for (int i = 0; i < x.n; i++)
    if (x.of[i].schema == of.schema && x.of[i].negated == of.negated) return true;
  return false;
}

schema_needs schema_need_both(schema_compiler *c, schema_needs x, schema_needs y) {
  if (!x.n || !y.n) return x.n ? x : y;
  schema_need *made = arena_grow(&c->a, x.of, (size_t)x.n * sizeof *made, (size_t)(x.n + y.n) * sizeof *made);
  schema_needs all = {x.n, made};
  for (int i = 0; i < y.n; i++)
    if (!has_need(all, y.of[i])) made[all.n++] = y.of[i];
  return all;
}
