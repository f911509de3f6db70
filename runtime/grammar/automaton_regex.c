/* From the tree of a regular expression to an automaton: Thompson's automaton with ways that take nothing, and from it
 * the one of the sets of its nodes. See automaton.h. */
#include "grammar/automaton_build.h"

#include <stdlib.h>
#include <string.h>

enum { NODES = 100000, LAST = 0x10FFFF };
static const long long WORK = 30000000; /* ranges that are compared */

typedef enum { TAKE, SPLIT, AT_BEGIN, AT_END, MATCH } way;

typedef struct {
  way kind;
  int next, other;
  const rules_range *range;
  int n;
} node;

typedef struct {
  arena *a;
  const char *what;
  node *node;
  int n, room;
  int tail; /* from here on every text matches; -1: not so */
} thompson;

static int add(thompson *t, node made) {
  if (t->n == NODES)
    arena_leave(t->a, dt_fail(t->a->err, DT_EINPUT, "%s: has more than %d parts: repeat less", t->what, NODES));
  if (t->n == t->room) {
    const int room = t->room ? 2 * t->room : 64;
    t->node = arena_grow(t->a, t->node, (size_t)t->n * sizeof *t->node, (size_t)room * sizeof *t->node);
    t->room = room;
  }
  t->node[t->n] = made;
  return t->n++;
}

static int add_tree(thompson *t, const regex_node *tree, int next);

/* The nodes of the items from this one on. */
static int add_items(thompson *t, const regex_node *item, int next) {
  const regex_node **of, *one;
  int n = 0;
  for (one = item; one; one = one->next) n++;
  of = arena_take(t->a, ((size_t)n + 1) * sizeof *of);
  for (one = item, n = 0; one; one = one->next) of[n++] = one;
  while (n) next = add_tree(t, of[--n], next);
  return next;
}

static int add_repeat(thompson *t, const regex_node *tree, int next) {
  const int end = next;
  if (tree->most < 0) {
    const int split = add(t, (node){.kind = SPLIT, .other = end});
    const int item = add_tree(t, tree->child, split);
    t->node[split].next = item;
    next = split;
  }
  for (int i = tree->least; i < tree->most; i++)
    next = add(t, (node){.kind = SPLIT, .next = add_tree(t, tree->child, next), .other = end});
  for (int i = 0; i < tree->least; i++) next = add_tree(t, tree->child, next);
  return next;
}

static int add_tree(thompson *t, const regex_node *tree, int next) {
  switch (tree->kind) {
  case REGEX_SET: return add(t, (node){.kind = TAKE, .next = next, .range = tree->range, .n = tree->n});
  case REGEX_JOIN: return add_items(t, tree->child, next);
  case REGEX_REPEAT: return add_repeat(t, tree, next);
  case REGEX_BEGIN: return add(t, (node){.kind = AT_BEGIN, .next = next});
  case REGEX_END: return add(t, (node){.kind = AT_END, .next = next});
  case REGEX_EITHER: {
    int all = add_tree(t, tree->child, next);
    for (const regex_node *one = tree->child->next; one; one = one->next)
      all = add(t, (node){.kind = SPLIT, .next = all, .other = add_tree(t, one, next)});
    return all;
  }
  default: break;
  }
  arena_leave(t->a,
              dt_fail(t->a->err, DT_EINPUT,
                      "%s: (?= ) and (?! ) are supported only at the beginning of the expression, after ^", t->what));
}

static int add_any(thompson *t, int next) {
  static const rules_range any = {0, LAST};
  const int split = add(t, (node){.kind = SPLIT, .other = next});
  const int take = add(t, (node){.kind = TAKE, .next = split, .range = &any, .n = 1});
  t->node[split].next = take;
  return split;
}

/* ---- sets of nodes ----------------------------------------------------------------------------------------------- */

typedef struct {
  int *node, n; /* in order; TAKE, AT_END and MATCH */
} set;

typedef struct {
  thompson t;
  automaton_builder b;
  set *of; /* [b.n] */
  int room, buckets, *bucket;
  int *mark, generation, *todo, *found, n_found;
  bool matches; /* the last closure has MATCH */
  long long work;
} subsets;

/* Adds what is reached from a node without a character. */
static void close_over(subsets *s, int from, bool begin, bool end) {
  int n = 0;
  s->todo[n++] = from;
  while (n) {
    const int at = s->todo[--n];
    if (s->mark[at] == s->generation) continue;
    s->mark[at] = s->generation;
    const node *x = &s->t.node[at];
    if (x->kind == SPLIT || (x->kind == AT_BEGIN && begin) || (x->kind == AT_END && end)) {
      s->todo[n++] = x->next;
      if (x->kind == SPLIT) s->todo[n++] = x->other;
    }
    s->matches |= x->kind == MATCH;
    if (x->kind == TAKE || x->kind == AT_END || x->kind == MATCH) s->found[s->n_found++] = at;
  }
}

static void begin_closure(subsets *s) {
  s->generation++;
  s->n_found = 0;
  s->matches = false;
}

static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static unsigned hash_of(set x) {
  unsigned h = 2166136261u;
  for (int i = 0; i < x.n; i++) h = (h ^ (unsigned)x.node[i]) * 16777619u;
  return h;
}

static bool is_same(set x, set y) { return x.n == y.n && !memcmp(x.node, y.node, (size_t)x.n * sizeof *x.node); }

static void grow_subsets(subsets *s) {
  s->buckets = s->buckets ? 2 * s->buckets : 64;
  s->bucket = arena_take(s->b.a, (size_t)s->buckets * sizeof *s->bucket);
  for (int i = 0; i < s->b.n; i++) {
    unsigned h = hash_of(s->of[i]) % (unsigned)s->buckets;
    while (s->bucket[h]) h = (h + 1) % (unsigned)s->buckets;
    s->bucket[h] = i + 1;
  }
}

/* Whether the text may end after the nodes that were found. */
static bool ends(subsets *s, set x, bool begin) {
  begin_closure(s);
  for (int i = 0; i < x.n; i++)
    if (s->t.node[x.node[i]].kind != TAKE) close_over(s, x.node[i], begin, true);
  return s->matches;
}

/* The state of the nodes that were found. */
static int state_of_found(subsets *s, bool begin) {
  if (s->t.tail >= 0 && s->mark[s->t.tail] == s->generation) {
    begin_closure(s);
    close_over(s, s->t.tail, false, false);
  }
  qsort(s->found, (size_t)s->n_found, sizeof *s->found, by_number);
  set x = {s->found, s->n_found};
  if (2 * s->b.n >= s->buckets) grow_subsets(s);
  unsigned h = hash_of(x) % (unsigned)s->buckets;
  for (; s->bucket[h] && !begin; h = (h + 1) % (unsigned)s->buckets)
    if (is_same(s->of[s->bucket[h] - 1], x)) return s->bucket[h] - 1;
  while (s->bucket[h]) h = (h + 1) % (unsigned)s->buckets;
  x.node = arena_grow(s->b.a, x.node, (size_t)x.n * sizeof *x.node, (size_t)x.n * sizeof *x.node);
  const bool accepts = ends(s, x, begin);
  const int state = automaton_add_state(&s->b, accepts);
  if (state >= s->room) {
    const int room = s->room ? 2 * s->room : 64;
    s->of = arena_grow(s->b.a, s->of, (size_t)s->room * sizeof *s->of, (size_t)room * sizeof *s->of);
    s->room = room;
  }
  s->of[state] = x;
  if (!begin) s->bucket[h] = state + 1; /* the first state alone is at the beginning */
  return state;
}

static int by_value(const void *a, const void *b) {
  const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

static bool takes(const node *x, int32_t c) {
  int low = 0, high = x->n;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (x->range[middle].high < c)
      low = middle + 1;
    else
      high = middle;
  }
  return low < x->n && x->range[low].low <= c;
}

/* Where ranges of the set begin or have ended, in order, each once. */
static int borders_of(subsets *s, set x, int32_t **borders) {
  int n = 0, kept = 0;
  for (int i = 0; i < x.n; i++)
    if (s->t.node[x.node[i]].kind == TAKE) n += s->t.node[x.node[i]].n;
  int32_t *at = *borders = arena_take(s->b.a, (2 * (size_t)n + 1) * sizeof **borders);
  for (int i = 0; i < x.n; i++) {
    const node *take = &s->t.node[x.node[i]];
    for (int k = 0; take->kind == TAKE && k < take->n; k++) *at++ = take->range[k].low, *at++ = take->range[k].high + 1;
  }
  qsort(*borders, 2 * (size_t)n, sizeof **borders, by_value);
  for (int i = 0; i < 2 * n; i++)
    if (!kept || (*borders)[i] != (*borders)[kept - 1]) (*borders)[kept++] = (*borders)[i];
  return kept;
}

static void add_edges(subsets *s, int state) {
  int32_t *border;
  const set x = s->of[state];
  const int n = borders_of(s, x, &border);
  s->b.at = state;
  automaton_begin_edges(&s->b, state);
  for (int i = 0; i + 1 < n; i++) {
    begin_closure(s);
    for (int k = 0; k < x.n; k++) {
      const node *take = &s->t.node[x.node[k]];
      if (take->kind == TAKE && takes(take, border[i])) close_over(s, take->next, false, false);
    }
    s->work += x.n + s->n_found;
    if (s->work > WORK) automaton_too_large(&s->b);
    if (s->n_found) automaton_add_edge(&s->b, border[i], border[i + 1] - 1, state_of_found(s, false));
  }
}

static automaton *determine(thompson *t, int first) {
  subsets s = {.t = *t};
  automaton_begin(&s.b, t->a, t->what);
  const size_t n = (size_t)t->n;
  s.mark = arena_take(t->a, n * sizeof *s.mark);
  s.todo = arena_take(t->a, (2 * n + 2) * sizeof *s.todo);
  s.found = arena_take(t->a, n * sizeof *s.found);
  begin_closure(&s);
  close_over(&s, first, true, false);
  state_of_found(&s, true);
  for (int i = 0; i < s.b.n; i++) add_edges(&s, i);
  return automaton_end(&s.b);
}

static automaton *of_items(arena *a, const regex_node *item, bool whole, const char *what) {
  thompson t = {.a = a, .what = what, .tail = -1};
  const int match = add(&t, (node){.kind = MATCH});
  if (!whole) t.tail = add_any(&t, match);
  int first = add_items(&t, item, whole ? add(&t, (node){.kind = AT_END, .next = match}) : t.tail);
  if (!whole) first = add_any(&t, first);
  return determine(&t, first);
}

/* An outermost alternative, which may have (?= ) and (?! ) at its beginning. */
static automaton *of_choice(arena *a, const regex_node *join, bool whole, const char *what) {
  const regex_node *item = join->child, *begin = item && item->kind == REGEX_BEGIN ? item : NULL, *look;
  if (begin) item = item->next;
  look = item;
  while (item && item->kind >= REGEX_AHEAD) item = item->next;
  if (look == item || (!begin && !whole)) return of_items(a, join->child, whole, what);
  regex_node *rest = arena_take(a, sizeof *rest); /* ^, and the items after the assertions */
  *rest = (regex_node){.kind = REGEX_BEGIN, .next = (regex_node *)item};
  automaton *made = of_items(a, rest, whole, what);
  for (; look != item; look = look->next) {
    regex_node *ahead = arena_take(a, 2 * sizeof *ahead);
    ahead[1] = *look->child;
    ahead[1].next = NULL;
    ahead[0] = (regex_node){.kind = REGEX_BEGIN, .next = &ahead[1]};
    made = automaton_combine(a, made, of_items(a, ahead, false, what),
                             look->kind == REGEX_AHEAD ? AUTOMATON_AND : AUTOMATON_MINUS, what);
  }
  return made;
}

static bool has_assertion(const regex_node *tree) {
  if (tree->kind >= REGEX_AHEAD) return true;
  for (const regex_node *child = tree->child; child; child = child->next)
    if (has_assertion(child)) return true;
  return false;
}

automaton *automaton_of(arena *a, const regex_node *tree, bool whole, const char *what) {
  if (tree->kind == REGEX_JOIN) return of_choice(a, tree, whole, what);
  if (!has_assertion(tree)) {
    regex_node *alone = arena_take(a, sizeof *alone);
    *alone = *tree;
    alone->next = NULL;
    return of_items(a, alone, whole, what);
  }
  automaton *made = of_choice(a, tree->child, whole, what);
  for (const regex_node *one = tree->child->next; one; one = one->next)
    made = automaton_combine(a, made, of_choice(a, one, whole, what), AUTOMATON_OR, what);
  return made;
}
