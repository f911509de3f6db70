/* Strings of schemas: lengths and patterns. See schema_build.h. */
#include "grammar/schema_build.h"

#include <string.h>

/* ---- one pattern ------------------------------------------------------------------------------------------------- */

typedef struct pattern {
  const char *regex;
  const regex_node *tree;
  const automaton *all; /* NULL: not made yet */
  struct pattern *next;
} pattern;

static pattern *read_pattern(schema_compiler *c, const cJSON *schema, const char *keyword, const char *regex) {
  schema_cache **bucket = &c->patterns[((size_t)regex >> 4) % SCHEMA_MEMOS];
  for (pattern *p = (pattern *)*bucket; p; p = p->next)
    if (p->regex == regex) return p;
  pattern *made = arena_take(&c->a, sizeof *made);
  *made = (pattern){regex, regex_read(&c->a, regex, schema_place(c, schema, keyword)), NULL, (pattern *)*bucket};
  *bucket = (schema_cache *)made;
  return made;
}

static const automaton *automaton_of_pattern(schema_compiler *c, const cJSON *schema, pattern *p, const char *keyword) {
  if (!p->all) p->all = automaton_of(&c->a, p->tree, false, schema_place(c, schema, keyword));
  return p->all;
}

const automaton *schema_pattern(schema_compiler *c, const cJSON *schema, const char *regex) {
  return automaton_of_pattern(c, schema, read_pattern(c, schema, "patternProperties", regex), "patternProperties");
}

/* The pattern of a K_PATTERN or K_FORMAT; NULL: an unknown format. */
static pattern *pattern_of(schema_compiler *c, const schema_fact *f) {
  c->at = f->schema;
  if (!cJSON_IsString(f->value))
    schema_refuse(c, "%s: expected %s", f->value->string, f->is == K_PATTERN ? "a regular expression" : "a name");
  const char *text = f->value->valuestring, *regex = f->is == K_PATTERN ? text : schema_format(text);
  return regex ? read_pattern(c, f->schema, f->value->string, regex) : NULL;
}

const automaton *schema_text_fact(schema_compiler *c, const schema_fact *f) {
  pattern *p = pattern_of(c, f);
  return p ? automaton_of_pattern(c, f->schema, p, f->value->string) : NULL;
}

/* ---- all of a shape ---------------------------------------------------------------------------------------------- */

static const automaton *both(schema_compiler *c, const automaton *x, const automaton *y, automaton_way way,
                             const char *what) {
  if (!x && way == AUTOMATON_AND) return y;
  if (!x) x = automaton_of_lengths(&c->a, 0, -1, what);
  return automaton_combine(&c->a, x, y, way, what);
}

static const automaton *without_texts(schema_compiler *c, const automaton *all, const schema_shape *s,
                                      const char *what) {
  const char **text;
  int n = 0;
  for (const schema_fact *f = s->facts; f; f = f->next) n += f->is == K_NEVER && cJSON_IsString(f->value);
  if (!n) return all;
  text = arena_take(&c->a, (size_t)n * sizeof *text);
  n = 0;
  for (const schema_fact *f = s->facts; f; f = f->next)
    if (f->is == K_NEVER && cJSON_IsString(f->value)) text[n++] = f->value->valuestring;
  return both(c, all, automaton_of_texts(&c->a, text, n, what), AUTOMATON_MINUS, what);
}

const automaton *schema_strings(schema_compiler *c, const schema_shape *s) {
  const automaton *all = NULL;
  const char *what = schema_place(c, c->at, "pattern");
  int least, most;
  for (const schema_fact *f = s->facts; f; f = f->next) {
    if (f->is != K_PATTERN && f->is != K_FORMAT) continue;
    const automaton *of = schema_text_fact(c, f);
    if (of) all = both(c, all, of, f->negated ? AUTOMATON_MINUS : AUTOMATON_AND, what);
  }
  all = without_texts(c, all, s, what);
  schema_bounds(c, s, K_MIN_LENGTH, K_MAX_LENGTH, &least, &most);
  if (least || most >= 0) all = both(c, all, automaton_of_lengths(&c->a, least, most, what), AUTOMATON_AND, what);
  return all;
}

/* The strings of enum and const. */
static const automaton *known_strings(schema_compiler *c, const schema_shape *s, const schema_fact *only) {
  const cJSON *one = only->name ? only->value : only->value->child;
  int n = 0;
  const char **text = arena_take(&c->a, ((size_t)cJSON_GetArraySize(only->value) + 1) * sizeof *text);
  for (; one; one = only->name ? NULL : one->next)
    if (cJSON_IsString(one) && c->back.fits(c, one, s)) text[n++] = one->valuestring;
  return automaton_of_texts(&c->a, text, n, schema_place(c, c->at, "enum"));
}

const automaton *schema_string_needs(schema_compiler *c, schema_needs needs) {
  const automaton *all = automaton_of_texts(&c->a, NULL, 0, c->what);
  for (const schema_shape *s = schema_shapes(c, needs); s; s = s->next) {
    if (!(s->types & WITH(STRING))) continue;
    const schema_fact *only = s->facts;
    while (only && only->is != K_ONLY) only = only->next;
    const automaton *of = only ? known_strings(c, s, only) : schema_strings(c, s);
    if (!of) return NULL;
    all = automaton_combine(&c->a, all, of, AUTOMATON_OR, schema_place(c, c->at, "pattern"));
  }
  return all;
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static const char *put_lengths(schema_compiler *c, int least, int most) {
  const char *quote = c->space.quote ? c->space.quote : "\"";
  const char *name = schema_begin_rule(c);
  schema_put_quoted(c->rules, quote);
  fputs(c->space.quote ? "mild" : "char", c->rules);
  schema_put_times(c, "Length", least, most);
  schema_put_quoted(c->rules, quote);
  putc('\n', c->rules);
  return name;
}

static const char *put_tree(schema_compiler *c, const regex_node *tree) {
  const char *quote = c->space.quote ? c->space.quote : "\"";
  const char *name = schema_begin_rule(c);
  schema_put_quoted(c->rules, quote);
  fputs("(", c->rules);
  regex_write(tree, !c->space.quote, c->rules);
  fputs(") ", c->rules);
  schema_put_quoted(c->rules, quote);
  putc('\n', c->rules);
  return name;
}

const char *schema_put_automaton(schema_compiler *c, const automaton *all, bool quoted) {
  const int number = c->made++;
  automaton_put(&c->a, all, arena_print(&c->a, "s%d", number), quoted, c->rules);
  fprintf(c->rules, quoted ? "r%d ::= \"\\\"\" s%d-0 \"\\\"\"\n" : "r%d ::= s%d-0\n", number, number);
  return arena_print(&c->a, "r%d", number);
}

const char *schema_put_strings(schema_compiler *c, const schema_shape *s) {
  int least, most, n = 0, others = 0;
  const pattern *one = NULL;
  schema_bounds(c, s, K_MIN_LENGTH, K_MAX_LENGTH, &least, &most);
  if (most >= 0 && most < least) return NULL;
  for (const schema_fact *f = s->facts; f; f = f->next) {
    const pattern *p = f->is == K_PATTERN || f->is == K_FORMAT ? pattern_of(c, f) : NULL;
    others += f->is == K_NEVER && cJSON_IsString(f->value);
    if (!p) continue;
    n++, one = p;
    others += f->negated;
  }
  if (!n && !others) return !least && most < 0 ? "string" : put_lengths(c, least, most);
  if (n == 1 && !others && !least && most < 0 && regex_is_plain(one->tree)) return put_tree(c, one->tree);
  if (c->space.quote) schema_refuse(c, "pattern next to other keywords is supported only in JSON");
  const automaton *all = schema_strings(c, s);
  return all->n ? schema_put_automaton(c, all, true) : NULL;
}
