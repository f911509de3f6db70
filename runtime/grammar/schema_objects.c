/* Objects of schemas. See schema_build.h.
 *
 * Properties that a schema names come first, in the order of their first appearance, and others after them. The names
 * of others are never those that came first; names that the same patterns match share a schema. */
#include "grammar/schema_build.h"

#include <string.h>

enum { COUNTED = 100000, PATTERNS = 8 };

typedef struct {
  const char *name;
  int rule; /* of its value; SCHEMA_NONE: it cannot be there */
  bool must;
} property;

/* Names that are not listed, and their values. */
typedef struct {
  const char *names; /* items of a rule, with the quotes */
  int rule;
} other;

typedef struct {
  schema_compiler *c;
  const schema_shape *s;
  property *of; /* [n] */
  int n, room;
  other *others; /* [n_others] */
  int n_others, room_others;
  int least, most, number;
  const cJSON *extra; /* a property that this schema does not list must be there; NULL: not so */
  int clip;           /* counts above it are not told apart */
} object;

static const cJSON *member(const cJSON *schema, const char *name) {
  return cJSON_GetObjectItemCaseSensitive(schema, name);
}

/* ---- properties -------------------------------------------------------------------------------------------------- */

static property *add_name(object *o, const char *name) {
  for (int i = 0; i < o->n; i++)
    if (!strcmp(o->of[i].name, name)) return &o->of[i];
  if (o->n == o->room) {
    o->room = o->room ? 2 * o->room : 16;
    o->of = arena_grow(&o->c->a, o->of, (size_t)o->n * sizeof *o->of, (size_t)o->room * sizeof *o->of);
  }
  o->of[o->n] = (property){.name = name};
  return &o->of[o->n++];
}

/* Facts are in the opposite of their order. */
static void read_names(object *o, const schema_fact *f) {
  const cJSON *p;
  const schema_fact **list;
  int n = 0;
  for (const schema_fact *g = f; g; g = g->next) n++;
  list = arena_take(&o->c->a, ((size_t)n + 1) * sizeof *list);
  n = 0;
  for (; f; f = f->next) list[n++] = f;
  for (int i = n; i-- > 0;) {
    if (list[i]->is != K_MEMBERS) continue;
    cJSON_ArrayForEach(p, member(list[i]->schema, "properties")) add_name(o, p->string);
  }
  for (int i = n; i-- > 0;) {
    if (list[i]->is != K_EXTRA) continue;
    o->c->at = list[i]->schema;
    if (o->extra) schema_refuse(o->c, "additionalProperties cannot be negated twice for one object");
    o->extra = list[i]->schema;
    cJSON_ArrayForEach(p, member(o->extra, "properties")) add_name(o, p->string);
  }
  for (int i = n; i-- > 0;)
    if (list[i]->is == K_REQUIRED || list[i]->is == K_VALUE)
      add_name(o, list[i]->name)->must = true;
    else if (list[i]->is == K_WITHOUT)
      add_name(o, list[i]->name);
}

/* ---- others ------------------------------------------------------------------------------------------------------ */

static void add_other(object *o, const char *names, int rule) {
  if (rule == SCHEMA_NONE || !names) return;
  if (o->n_others == o->room_others) {
    o->room_others = o->room_others ? 2 * o->room_others : 4;
    o->others = arena_grow(&o->c->a, o->others, (size_t)o->n_others * sizeof *o->others,
                           (size_t)o->room_others * sizeof *o->others);
  }
  o->others[o->n_others++] = (other){names, rule};
}

/* A pattern of patternProperties. */
typedef struct {
  const char *regex;
  const automaton *of;
  const cJSON *schema;
} pattern;

static int read_patterns(object *o, const schema_fact *f, pattern all[PATTERNS], int n) {
  const cJSON *p;
  for (; f; f = f->next) {
    if (f->is == K_UNSEEN) n = read_patterns(o, f->seen, all, n);
    if (f->is != K_MEMBERS) continue;
    cJSON_ArrayForEach(p, member(f->schema, "patternProperties")) {
      int i = 0;
      while (i < n && strcmp(all[i].regex, p->string) != 0) i++;
      if (i < n) continue;
      o->c->at = f->schema;
      if (n == PATTERNS) schema_refuse(o->c, "patternProperties: more than %d patterns of one object", PATTERNS);
      all[n++] = (pattern){p->string, schema_pattern(o->c, f->schema, p->string), f->schema};
    }
  }
  return n;
}

static bool has_bit(const pattern *all, int n, const char *regex, int mask) {
  for (int i = 0; i < n; i++)
    if (!strcmp(all[i].regex, regex)) return mask >> i & 1;
  return false;
}

static bool is_seen_by(const schema_fact *seen, const pattern *all, int n, int mask) {
  const cJSON *p;
  for (; seen; seen = seen->next) {
    if (seen->negated) continue;
    if (seen->is == K_UNSEEN) return true;
    if (seen->is != K_MEMBERS) continue;
    if (member(seen->schema, "additionalProperties")) return true;
    cJSON_ArrayForEach(p, member(seen->schema, "patternProperties")) if (has_bit(all, n, p->string, mask)) return true;
  }
  return false;
}

/* What a property with a name that is not listed needs if the patterns in `mask` match its name. */
static schema_needs needs_of(object *o, const pattern *all, int n, int mask) {
  schema_needs needs = {0, NULL};
  for (const schema_fact *f = o->s->facts; f; f = f->next) {
    const cJSON *p, *more = f->is == K_MEMBERS ? member(f->schema, "additionalProperties") : NULL;
    bool known = false;
    if (f->is == K_UNSEEN && !is_seen_by(f->seen, all, n, mask))
      needs = schema_need_both(o->c, needs, schema_need_one(o->c, f->value, false));
    if (f->is != K_MEMBERS) continue;
    cJSON_ArrayForEach(p, member(f->schema, "patternProperties")) {
      if (!has_bit(all, n, p->string, mask)) continue;
      known = true;
      needs = schema_need_both(o->c, needs, schema_need_one(o->c, p, false));
    }
    if (!known && more) needs = schema_need_both(o->c, needs, schema_need_one(o->c, more, false));
  }
  return needs;
}

/* The names that are not listed and that propertyNames allow; NULL: any. */
static const automaton *free_names(object *o) {
  schema_compiler *c = o->c;
  const automaton *all = NULL;
  const char *what = schema_place(c, c->at, "propertyNames");
  for (const schema_fact *f = o->s->facts; f; f = f->next) {
    if (f->is != K_NAMES) continue;
    const automaton *of = schema_string_needs(c, schema_need_one(c, f->value, f->negated));
    if (of) all = all ? automaton_combine(&c->a, all, of, AUTOMATON_AND, what) : of;
  }
  if (!o->n) return all;
  const char **name = arena_take(&c->a, (size_t)o->n * sizeof *name);
  for (int i = 0; i < o->n; i++) name[i] = o->of[i].name;
  if (!all) all = automaton_of_lengths(&c->a, 0, -1, what);
  return automaton_combine(&c->a, all, automaton_of_texts(&c->a, name, o->n, what), AUTOMATON_MINUS, what);
}

/* Whether other names than those of properties and patterns are closed by the option. */
static bool is_closed(const object *o) {
  bool has_properties = false;
  if (o->c->options.open) return false;
  for (const schema_fact *f = o->s->facts; f; f = f->next) {
    if (f->is == K_UNSEEN) return false;
    if (f->is != K_MEMBERS) continue;
    if (member(f->schema, "additionalProperties")) return false;
    has_properties |= member(f->schema, "properties") != NULL;
  }
  return has_properties && o->least <= o->n;
}

static void read_others(object *o) {
  schema_compiler *c = o->c;
  pattern all[PATTERNS];
  const int n = read_patterns(o, o->s->facts, all, 0);
  const bool closed = is_closed(o);
  if (closed && !n) return;
  int rule[1 << PATTERNS];
  bool some = false;
  for (int mask = closed; mask < 1 << n; mask++) {
    const schema_needs needs = needs_of(o, all, n, mask);
    rule[mask] = schema_is_false(needs) ? SCHEMA_NONE : c->back.rule(c, needs);
    some |= rule[mask] != SCHEMA_NONE;
  }
  if (!some) return;
  if (c->space.quote && (o->n || n))
    schema_refuse(c, "further properties next to listed ones are supported only in JSON");
  const automaton *names = free_names(o);
  const char *what = schema_place(c, c->at, "patternProperties");
  if (c->space.quote) {
    if (names) schema_refuse(c, "propertyNames is supported only in JSON");
    add_other(o, "[a-zA-Z0-9_-]+ ", rule[0]);
    return;
  }
  if (!n) {
    add_other(o, names ? names->n ? schema_put_automaton(c, names, true) : NULL : "string ", rule[0]);
    return;
  }
  for (int mask = closed; mask < 1 << n; mask++) {
    const automaton *of = names ? names : automaton_of_lengths(&c->a, 0, -1, what);
    if (rule[mask] == SCHEMA_NONE) continue;
    for (int i = 0; i < n && of->n; i++)
      of = automaton_combine(&c->a, of, all[i].of, mask >> i & 1 ? AUTOMATON_AND : AUTOMATON_MINUS, what);
    if (of->n) add_other(o, schema_put_automaton(c, of, true), rule[mask]);
  }
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

/* Rule oN-mK: property K. */
static void put_members(object *o) {
  for (int k = 0; k < o->n; k++) {
    if (o->of[k].rule == SCHEMA_NONE) continue;
    fprintf(o->c->rules, "o%d-m%d ::= ", o->number, k);
    schema_put_name(o->c, o->of[k].name);
    fprintf(o->c->rules, "%sr%d %s\n", o->c->space.colon, o->of[k].rule, o->c->space.ws);
  }
  if (!o->n_others) return;
  fprintf(o->c->rules, "o%d-x ::= ", o->number);
  for (int i = 0; i < o->n_others; i++)
    fprintf(o->c->rules, "%s%s %sr%d %s", i ? "| " : "", o->others[i].names, o->c->space.colon, o->others[i].rule,
            o->c->space.ws);
  putc('\n', o->c->rules);
}

/* Whether the object can still end well if `count` properties came before the others. Names of others may repeat, so
 * they count as one for the minimum. */
static bool can_end(const object *o, int count, int met) {
  int missing = o->least - count;
  if (!met && missing < 1) missing = 1;
  return missing <= 0 || (missing == 1 && o->n_others && (o->most < 0 || count < o->most));
}

static void put_end(object *o, int count, int met) {
  FILE *out = o->c->rules;
  const char *comma = o->c->space.comma;
  const int number = o->number, room = o->most < 0 ? -1 : o->most - count;
  const bool must = o->least > count || !met;
  fprintf(out, "o%d-%d-%d-%d ::= ", number, o->n, count, met);
  if (!o->n_others || !room) {
    fputs("\"\"\n", out);
  } else if (count) {
    fprintf(out, "(%so%d-x)", comma, number);
    schema_put_times(o->c, "Properties", must, room);
    putc('\n', out);
  } else {
    fprintf(out, "(o%d-x (%so%d-x)", number, comma, number);
    schema_put_times(o->c, "Properties", 0, room < 0 ? -1 : room - 1);
    fputs(must ? ")\n" : ")?\n", out);
  }
}

static int next_count(const object *o, int count) { return count < o->clip ? count + 1 : count; }

/* States of an object: K properties were decided on, C of them are there, and the extra one is (M = 1) or not. */
typedef struct {
  int k, count, met;
} state;

static bool *alive_at(const object *o, bool *alive, state s) {
  return &alive[((size_t)s.k * (size_t)(o->clip + 1) + (size_t)s.count) * 2 + (size_t)s.met];
}

/* Rule oN-K-C-M: the properties from K on. False: the object cannot end well. */
static bool put_state(object *o, bool *alive, state s) {
  if (s.k == o->n) {
    if (!can_end(o, s.count, s.met)) return false;
    put_end(o, s.count, s.met);
    return true;
  }
  const property *p = &o->of[s.k];
  const bool is_extra = o->extra && !member(member(o->extra, "properties"), p->name);
  const state next = {s.k + 1, next_count(o, s.count), s.met || is_extra}, skip = {s.k + 1, s.count, s.met};
  const bool with = p->rule != SCHEMA_NONE && (o->most < 0 || s.count < o->most) && *alive_at(o, alive, next),
             without = !p->must && *alive_at(o, alive, skip);
  FILE *out = o->c->rules;
  if (!with && !without) return false;
  fprintf(out, "o%d-%d-%d-%d ::= ", o->number, s.k, s.count, s.met);
  if (with)
    fprintf(out, "%so%d-m%d o%d-%d-%d-%d ", s.count ? o->c->space.comma : "", o->number, s.k, o->number, next.k,
            next.count, next.met);
  if (without) fprintf(out, "%so%d-%d-%d-%d", with ? "| " : "", o->number, skip.k, skip.count, skip.met);
  putc('\n', out);
  return true;
}

static bool put_states(object *o) {
  const int width = o->clip + 1, first = o->extra ? 0 : 1;
  if ((long long)(o->n + 1) * width > COUNTED)
    schema_refuse(o->c, "minProperties or maxProperties: too large for %d properties", o->n);
  bool *alive = arena_take(&o->c->a, (size_t)(o->n + 1) * (size_t)width * 2);
  for (int k = o->n; k >= 0; k--)
    for (int count = 0; count < width && count <= k; count++)
      for (int met = first; met < 2; met++) {
        const state s = {k, count, met};
        *alive_at(o, alive, s) = put_state(o, alive, s);
      }
  return *alive_at(o, alive, (state){0, 0, first});
}

const char *schema_put_object(schema_compiler *c, const schema_shape *s) {
  object o = {.c = c, .s = s};
  schema_bounds(c, s, K_MIN_PROPERTIES, K_MAX_PROPERTIES, &o.least, &o.most);
  read_names(&o, s->facts);
  for (int k = 0; k < o.n; k++) {
    const schema_needs needs = schema_name_needs(c, s, o.of[k].name);
    o.of[k].rule = schema_is_false(needs) ? SCHEMA_NONE : c->back.rule(c, needs);
    if (o.of[k].must && o.of[k].rule == SCHEMA_NONE) return NULL;
  }
  read_others(&o);
  o.clip = o.most >= 0 ? o.most : o.least > 1 ? o.least : 1;
  if (o.clip > o.n) o.clip = o.n ? o.n : 1;
  c->at = s->facts ? s->facts->schema : c->at;
  if (o.least > o.n + 1 && o.n_others)
    schema_refuse(c, "minProperties: more than the listed properties and one other are not supported");
  o.number = c->made++;
  put_members(&o);
  if (!put_states(&o)) return NULL;
  const char *name = schema_begin_rule(c);
  fprintf(c->rules, "\"{\" %so%d-0-0-%d \"}\"\n", c->space.ws, o.number, !o.extra);
  return name;
}
