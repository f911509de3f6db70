/* What a property or an item must match: see schema_build.h. */
#include "grammar/schema_build.h"

#include <string.h>

const cJSON schema_false = {.type = cJSON_False};

static const cJSON *member(const cJSON *schema, const char *name) {
  return cJSON_GetObjectItemCaseSensitive(schema, name);
}

static void add_need(schema_compiler *c, schema_needs *all, const cJSON *schema, bool negated) {
  *all = schema_need_both(c, *all, schema_need_one(c, schema, negated));
}

/* ---- properties -------------------------------------------------------------------------------------------------- */

static bool matches(schema_compiler *c, const cJSON *schema, const char *pattern, const char *name) {
  return automaton_has(schema_pattern(c, schema, pattern), name);
}

/* Adds what the keywords of one schema need of a property. */
static void add_members(schema_compiler *c, schema_needs *all, const cJSON *schema, const char *name) {
  const cJSON *own = member(member(schema, "properties"), name), *more = member(schema, "additionalProperties"), *p;
  bool known = own != NULL;
  if (own) add_need(c, all, own, false);
  cJSON_ArrayForEach(p, member(schema, "patternProperties")) {
    if (!matches(c, schema, p->string, name)) continue;
    known = true;
    add_need(c, all, p, false);
  }
  if (!known && more) add_need(c, all, more, false);
}

bool schema_is_seen(schema_compiler *c, const schema_fact *seen, const char *name) {
  for (; seen; seen = seen->next) {
    const cJSON *p;
    if (seen->negated) continue;
    if (seen->is == K_UNSEEN) return true;
    if (seen->is != K_MEMBERS) continue;
    if (member(seen->schema, "additionalProperties") || member(member(seen->schema, "properties"), name)) return true;
    cJSON_ArrayForEach(
        p, member(seen->schema, "patternProperties")) if (matches(c, seen->schema, p->string, name)) return true;
  }
  return false;
}

schema_needs schema_name_needs(schema_compiler *c, const schema_shape *s, const char *name) {
  schema_needs all = {0, NULL};
  for (const schema_fact *f = s->facts; f; f = f->next) {
    const bool same = f->name && !strcmp(f->name, name);
    if (f->is == K_MEMBERS) add_members(c, &all, f->schema, name);
    if (f->is == K_VALUE && same) add_need(c, &all, f->value, f->negated);
    if (f->is == K_WITHOUT && same) add_need(c, &all, &schema_false, false);
    if (f->is == K_UNSEEN && !schema_is_seen(c, f->seen, name)) add_need(c, &all, f->value, false);
    if (f->is != K_NAMES) continue;
    const cJSON text = {.type = cJSON_String, .valuestring = (char *)name};
    if (!c->back.fits_needs(c, &text, schema_need_one(c, f->value, f->negated)))
      add_need(c, &all, &schema_false, false);
  }
  return all;
}

/* ---- items ------------------------------------------------------------------------------------------------------- */

/* The list of schemas of the first items, and the schema of the others. */
static const cJSON *list_of(const cJSON *schema) {
  const cJSON *prefix = member(schema, "prefixItems"), *items = member(schema, "items");
  return prefix ? prefix : cJSON_IsArray(items) ? items : NULL;
}

static const cJSON *rest_of(const cJSON *schema) {
  const cJSON *items = member(schema, "items");
  return cJSON_IsArray(items) ? member(schema, "additionalItems") : items;
}

int schema_prefix(const schema_shape *s) {
  int longest = 0;
  for (const schema_fact *f = s->facts; f; f = f->next) {
    const int n = f->is == K_ITEMS ? cJSON_GetArraySize(list_of(f->schema)) : 0;
    if (n > longest) longest = n;
  }
  return longest;
}

schema_needs schema_item_needs(schema_compiler *c, const schema_shape *s, int at) {
  schema_needs all = {0, NULL};
  for (const schema_fact *f = s->facts; f; f = f->next) {
    if (f->is != K_ITEMS) continue;
    const cJSON *own = cJSON_GetArrayItem(list_of(f->schema), at), *rest = rest_of(f->schema);
    if (own || rest) add_need(c, &all, own ? own : rest, false);
  }
  return all;
}
