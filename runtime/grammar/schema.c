/* From a JSON schema to a grammar: see schema.h. This file writes a rule for each set of schemas that a value must
 * match; schema_build.h says what the others do. */
#include "grammar/schema.h"
#include "grammar/exact_json.h"
#include "grammar/gbnf.h"
#include "grammar/schema_build.h"
#include "grammar/written.h"

#include <stdlib.h>
#include <string.h>

/* RFC 8259; numbers are short enough for a double. Escapes of surrogates come in pairs. `plain` is a character in one
 * spelling, so that a text can be distinguished from others. */
static const char common[] =
    "char ::= [^\"\\\\\\x00-\\x1F] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" ([0-9a-cA-CefEF] hex{3} | [dD] ([0-7] hex{2} | "
    "[89abAB] hex{2} \"\\\\u\" [dD] [c-fC-F] hex{2})))\n"
    "plain ::= [^\"\\\\\\x00-\\x1F] | escape\n"
    "wide ::= [^\\x00-\\x7F]\n"
    "escape ::= \"\\\\\" ([\"\\\\bfnrt] | \"u00\" (\"0\" [0-7bef] | \"1\" [0-9a-f]))\n"
    "hex ::= [0-9a-fA-F]\n"
    "number ::= integer (\".\" [0-9]{1,17})? ([eE] [-+]? ([0-9]{1,2} | \"1\" [0-9]{2}))?\n"
    "boolean ::= \"true\" | \"false\"\n"
    "null ::= \"null\"\n"
    "value ::= object | array | string | number | boolean | null\n";

/* ws: where white space may be; comma, colon: with what follows them. */
static const schema_notation any_space = {"ws ", "\",\" ws ", "\":\" ws ", NULL};

/* A rule for needs; the number is known while it is being written. */
struct schema_ruled {
  schema_needs needs;
  int number;
  bool open, used; /* open: it is being written; used: from inside */
  schema_ruled *next;
};

/* The rules of one type of a shape. */
struct schema_piece {
  unsigned types;
  const schema_fact *facts;
  const char *items;
  schema_piece *next;
};

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static const char *put_booleans(schema_compiler *c, const schema_shape *s) {
  bool no[2] = {false, false};
  for (const schema_fact *f = s->facts; f; f = f->next)
    if (f->is == K_NEVER && cJSON_IsBool(f->value)) no[cJSON_IsTrue(f->value)] = true;
  if (!no[0] && !no[1]) return "boolean";
  if (no[0] && no[1]) return NULL;
  const char *name = schema_begin_rule(c);
  fputs(no[0] ? "\"true\"\n" : "\"false\"\n", c->rules);
  return name;
}

static const char *put_nulls(schema_compiler *c, const schema_shape *s) { return (void)c, (void)s, "null"; }

static const struct {
  unsigned types;
  schema_keyword first, last; /* facts that say something of the type */
  const char *any;            /* the rule without facts; NULL: the writer knows it */
  const char *(*put)(schema_compiler *, const schema_shape *);
} writers[] = {{WITH(STRING), K_MIN_LENGTH, K_NEVER, "string", schema_put_strings},
               {NUMBERS, K_MINIMUM, K_MULTIPLE, NULL, schema_put_numbers},
               {WITH(BOOLEAN), K_NEVER, K_NEVER, "boolean", put_booleans},
               {WITH(ARRAY), K_MIN_ITEMS, K_CONTAINS, "array", schema_put_array},
               {WITH(OBJECT), K_MIN_PROPERTIES, K_UNSEEN, "object", schema_put_object},
               {WITH(NULLS), K_NEVER, K_NEVER, "null", put_nulls}};

/* The facts of one writer, in a list of their own. */
static const schema_fact *facts_of(schema_compiler *c, const schema_fact *f, int writer) {
  schema_fact *first = NULL, **last = &first;
  for (; f; f = f->next) {
    if (f->is < writers[writer].first || f->is > writers[writer].last) continue;
    *last = arena_grow(&c->a, f, sizeof *f, sizeof *f);
    (*last)->next = NULL;
    last = (schema_fact **)&(*last)->next;
  }
  return first;
}

static bool are_same_facts(const schema_fact *a, const schema_fact *b) {
  for (; a && b; a = a->next, b = b->next)
    if (a->is != b->is || a->negated != b->negated || a->value != b->value || a->schema != b->schema ||
        a->seen != b->seen || a->name != b->name)
      return false;
  return !a && !b;
}

static size_t mixed(size_t hash, const void *pointer) { return (hash ^ (size_t)pointer) * 0x9E3779B97F4A7C15u; }

static size_t bucket_of(size_t hash) { return (hash >> 32) % SCHEMA_MEMOS; }

/* All facts count: the shapes of an anyOf or a oneOf often begin alike. */
static size_t bucket_of_facts(const schema_fact *f) {
  size_t hash = 0;
  for (; f; f = f->next) hash = mixed(mixed(hash, f->value), f->schema) ^ f->negated;
  return bucket_of(hash);
}

/* Returns the item of a rule for one type of a shape; NULL: no value can match. */
static const char *put_piece(schema_compiler *c, const schema_shape *s, int writer) {
  const schema_shape own = {s->types & writers[writer].types, facts_of(c, s->facts, writer), NULL};
  if (!own.facts && writers[writer].any) return writers[writer].any;
  schema_piece **bucket = &c->pieces[bucket_of_facts(own.facts)], *p;
  for (p = *bucket; p; p = p->next)
    if (p->types == own.types && are_same_facts(p->facts, own.facts)) return p->items;
  p = arena_take(&c->a, sizeof *p);
  *p = (schema_piece){own.types, own.facts, writers[writer].put(c, &own), NULL};
  p->next = *bucket; /* the writer may have added others */
  *bucket = p;
  return p->items;
}

typedef struct {
  const char **items;
  int n, room;
} choices;

static void add_choice(schema_compiler *c, choices *all, const char *items) {
  if (!items) return;
  for (int i = 0; i < all->n; i++)
    if (!strcmp(all->items[i], items)) return;
  if (all->n == all->room) {
    all->room = all->room ? 2 * all->room : 8;
    all->items =
        arena_grow(&c->a, all->items, (size_t)all->n * sizeof *all->items, (size_t)all->room * sizeof *all->items);
  }
  all->items[all->n++] = items;
}

/* The types of which something is said. */
static unsigned types_of_facts(const schema_fact *facts) {
  unsigned types = 0;
  for (; facts; facts = facts->next)
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
      if (facts->is >= writers[i].first && facts->is <= writers[i].last) types |= writers[i].types;
  return types;
}

/* For generation, a schema without a type has those of its keywords, if a value of them can match. */
static void add_shape(schema_compiler *c, choices *all, const schema_shape *s) {
  for (const schema_fact *f = s->facts; f; f = f->next)
    if (f->is == K_ONLY) {
      add_choice(c, all, schema_put_values(c, s));
      return;
    }
  if (s->types == ANY_TYPE && !s->facts) {
    add_choice(c, all, "value");
    return;
  }
  const unsigned implied = c->options.open || s->types != ANY_TYPE ? s->types : types_of_facts(s->facts);
  const int before = all->n;
  for (int pass = 0; pass < 2 && all->n == before; pass++)
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
      if (s->types & writers[i].types && (pass || implied & writers[i].types))
        add_choice(c, all, put_piece(c, s, (int)i));
}

static void put_choices(schema_compiler *c, int number, const choices *all) {
  fprintf(c->rules, "r%d ::= ", number);
  for (int i = 0; i < all->n; i++) fprintf(c->rules, "%s%s ", i ? "| " : "", all->items[i]);
  putc('\n', c->rules);
  if (ftell(c->rules) > GBNF_BYTES) schema_refuse(c, "its grammar has more than %d bytes", GBNF_BYTES);
}

static bool are_same_needs(schema_needs x, schema_needs y) {
  if (x.n != y.n) return false;
  for (int i = 0; i < x.n; i++)
    if (x.of[i].schema != y.of[i].schema || x.of[i].negated != y.of[i].negated) return false;
  return true;
}

static size_t bucket_of_needs(schema_needs needs) {
  size_t hash = 0;
  for (int i = 0; i < needs.n; i++) hash = mixed(hash, needs.of[i].schema) ^ needs.of[i].negated;
  return bucket_of(hash);
}

/* The rule of needs; SCHEMA_NONE: no value can match. */
static int rule_of_needs(schema_compiler *c, schema_needs needs) {
  schema_ruled **bucket = &c->ruled[bucket_of_needs(needs)], *r;
  for (r = *bucket; r; r = r->next)
    if (are_same_needs(r->needs, needs)) {
      r->used |= r->open;
      return r->number;
    }
  if (c->depth++ > SCHEMA_DEPTH) schema_refuse(c, "more than %d nested schemas", SCHEMA_DEPTH);
  const cJSON *at = c->at;
  r = arena_take(&c->a, sizeof *r);
  *r = (schema_ruled){needs, c->made++, true, false, *bucket};
  *bucket = r;
  choices all = {0};
  for (const schema_shape *s = schema_shapes(c, needs); s; s = s->next) {
    if (needs.n) c->at = needs.of[0].schema;
    add_shape(c, &all, s);
  }
  r->open = false;
  c->at = needs.n ? needs.of[0].schema : at;
  if (all.n)
    put_choices(c, r->number, &all);
  else if (r->used)
    schema_refuse(c, "nothing matches this schema, which contains itself");
  else
    r->number = SCHEMA_NONE;
  c->depth--;
  c->at = at;
  return r->number;
}

/* ---- whole schemas ----------------------------------------------------------------------------------------------- */

void schema_put_common(const schema_notation *notation, bool open, FILE *out) {
  const schema_notation s = notation ? *notation : any_space;
  if (!notation) fputs("ws ::= | \" \" | \"\\n\" [ ]{0,20}\n", out);
  fputs(common, out);
  fprintf(out, "integer ::= \"-\"? (\"0\" | [1-9] [0-9]{0,%d})\n", schema_digits(open) - 1);
  fprintf(out, "array ::= \"[\" %s(value %s(%svalue %s)*)? \"]\"\n", s.ws, s.ws, s.comma, s.ws);
  fprintf(out, "object ::= \"{\" %s(member (%smember)*)? \"}\"\n", s.ws, s.comma);
  fputs("string ::= ", out);
  schema_put_quoted(out, s.quote ? s.quote : "\"");
  fputs(s.quote ? "text-0 " : "char* ", out);
  schema_put_quoted(out, s.quote ? s.quote : "\"");
  fprintf(out, "\nmember ::= %s %svalue %s\n", s.quote ? "[a-zA-Z0-9_-]+" : "string", s.colon, s.ws);
}

static void put_root(schema_compiler *c) {
  schema_read_index(c);
  if (rule_of_needs(c, schema_need_one(c, c->root, false)) != SCHEMA_NONE) return;
  c->at = c->root;
  schema_refuse(c, "no value matches the schema");
}

dt_status schema_put(const cJSON *schema, const char *what, const schema_notation *notation,
                     const schema_options *options, int *made, FILE *out, dt_error *err) {
  schema_compiler *c = calloc(1, sizeof *c);
  if (!c) return dt_fail_memory(err, "a JSON schema", sizeof *c);
  c->back = (schema_ways_back){rule_of_needs, schema_fits, schema_fits_needs, schema_is_empty};
  c->what = what;
  c->space = notation ? *notation : any_space;
  if (options) c->options = *options;
  c->made = *made;
  c->root = schema;
  c->rules = out;
  arena_open(&c->a);
  c->a.err = err;
  if (!setjmp(c->a.out)) put_root(c);
  *made = c->made;
  if (!c->a.status && options && options->note && c->ignored)
    snprintf(options->note, SCHEMA_NOTE, "%.180s has no effect", c->ignored);
  const dt_status status = c->a.status;
  arena_close(&c->a);
  free(c);
  return status;
}

dt_status schema_to_gbnf(const char *json, const schema_options *options, char **gbnf, dt_error *err) {
  cJSON *root;
  dt_status status = exact_json_read("JSON schema", json, SCHEMA_BYTES, &root, err);
  if (status) return status;
  char *text = NULL;
  size_t len;
  int made = 0;
  FILE *out = open_memstream(&text, &len);
  if (!out) {
    cJSON_Delete(root);
    return dt_fail_memory(err, "a JSON schema", 4096);
  }
  schema_put_common(NULL, options && options->open, out);
  fputs("root ::= r0\n", out);
  status = schema_put(root, "JSON schema", NULL, options, &made, out, err);
  if (!is_written(out, &text) && !status) status = dt_fail_memory(err, "a JSON schema", 4096);
  cJSON_Delete(root);
  if (status)
    free(text);
  else
    *gbnf = text;
  return status;
}
