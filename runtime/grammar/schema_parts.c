/* Messages about schemas, and parts of rules: see schema_build.h. */
#include "grammar/schema_build.h"
#include "text/utf8.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* A schema, and those that it is in. */
typedef struct trail {
  const cJSON *at;
  const struct trail *in;
} trail;

/* Adds the path to a schema to `place`: a JSON pointer, shortened if it is long. */
static void put_trail(const trail *t, char place[SCHEMA_PLACE]) {
  if (!t->in) return;
  put_trail(t->in, place);
  const size_t len = strlen(place);
  if (t->at->string) {
    snprintf(place + len, SCHEMA_PLACE - len, "/%s", t->at->string);
    return;
  }
  int k = 0;
  for (const cJSON *child = t->in->at->child; child != t->at; child = child->next) k++;
  snprintf(place + len, SCHEMA_PLACE - len, "/%d", k);
}

/* Searches the schemas in one that ends a trail, without writing anything on the way: there may be thousands. */
static bool find_place(const trail *t, const cJSON *schema, char place[SCHEMA_PLACE]) {
  if (t->at == schema) {
    put_trail(t, place);
    return true;
  }
  const cJSON *child;
  cJSON_ArrayForEach(child, t->at) {
    if (find_place(&(trail){child, t}, schema, place)) return true;
  }
  return false;
}

/* Where a mistake is, for its message. */
static void name_place(const schema_compiler *c, const cJSON *schema, char place[SCHEMA_PLACE]) {
  snprintf(place, SCHEMA_PLACE, "%.100s, #", c->what);
  if (schema == c->root || !schema || !find_place(&(trail){c->root, NULL}, schema, place))
    snprintf(place, SCHEMA_PLACE, "%.100s", c->what);
  place[utf8_valid_prefix(place, strlen(place))] = '\0';
}

const char *schema_place(schema_compiler *c, const cJSON *schema, const char *keyword) {
  char place[SCHEMA_PLACE];
  name_place(c, schema, place);
  return arena_print(&c->a, "%s: %s", place, keyword);
}

void schema_refuse(schema_compiler *c, const char *format, ...) {
  char why[240], place[SCHEMA_PLACE];
  va_list list;
  va_start(list, format);
  vsnprintf(why, sizeof why, format, list);
  va_end(list);
  name_place(c, c->at, place);
  arena_leave(&c->a, dt_fail(c->a.err, DT_EINPUT, "%s: %s", place, why));
}

int schema_digits(bool open) { return open ? 30 : 18; }

void schema_fail_memory(schema_compiler *c) { arena_leave(&c->a, dt_fail_memory(c->a.err, "a JSON schema", 4096)); }

/* ---- parts of rules ---------------------------------------------------------------------------------------------- */

void schema_put_quoted(FILE *out, const char *text) {
  putc('"', out);
  for (const char *at = text; *at; at++) {
    if ((unsigned char)*at < ' ') {
      fprintf(out, "\\x%02X", (unsigned)*at);
      continue;
    }
    if (*at == '"' || *at == '\\') putc('\\', out);
    putc(*at, out);
  }
  fputs("\" ", out);
}

void schema_put_name(schema_compiler *c, const char *name) {
  const cJSON text = {.type = cJSON_String, .valuestring = (char *)name};
  char *json = c->space.quote ? NULL : cJSON_PrintUnformatted(&text);
  if (!json && !c->space.quote) schema_fail_memory(c);
  schema_put_quoted(c->rules, json ? json : name);
  free(json);
}

const char *schema_begin_rule(schema_compiler *c) {
  const int number = c->made++;
  fprintf(c->rules, "r%d ::= ", number);
  return arena_print(&c->a, "r%d", number);
}

int schema_count(schema_compiler *c, const schema_fact *f) {
  const cJSON *n = f->value;
  if (cJSON_IsRaw(n) && n->valuedouble >= 0 && n->valuedouble == n->valueint) return n->valueint;
  if (f->schema) c->at = f->schema;
  schema_refuse(c, "%s: expected a whole number from 0 to %d", n->string ? n->string : "a count", INT_MAX - 1);
}

void schema_bounds(schema_compiler *c, const schema_shape *s, schema_keyword min, schema_keyword max, int *least,
                   int *most) {
  *least = 0, *most = -1;
  for (const schema_fact *f = s->facts; f; f = f->next) {
    if (f->is != min && f->is != max) continue;
    const int n = schema_count(c, f);
    if (f->is == min && n > *least) *least = n;
    if (f->is == max && (*most < 0 || n < *most)) *most = n;
    c->at = f->schema;
  }
}

/* Writes how often an item is repeated, from `least` to `most` times (-1: without a limit), as the keywords min and max
 * of `what` say. */
void schema_put_times(schema_compiler *c, const char *what, int least, int most) {
  c->parts += least + (most > least ? 2ll * ((long long)most - least) : 0); /* as rules_repeat makes them */
  if (c->parts >= RULES_NODES)
    schema_refuse(c, "%s%s: the bounds of the schema up to here make a grammar of more than %d parts: lower them",
                  most < 0 ? "min" : "max", what, RULES_NODES);
  if (most < 0)
    fprintf(c->rules, "{%d,} ", least);
  else
    fprintf(c->rules, "{%d,%d} ", least, most);
}

bool schema_is_false(schema_needs needs) {
  for (int i = 0; i < needs.n; i++)
    if (needs.of[i].negated ? cJSON_IsTrue(needs.of[i].schema) : cJSON_IsFalse(needs.of[i].schema)) return true;
  return false;
}
