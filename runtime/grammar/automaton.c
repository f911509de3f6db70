/* Deterministic automata over characters: see automaton.h. */
#include "grammar/automaton.h"
#include "grammar/automaton_build.h"
#include "grammar/characters.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

/* ---- building ---------------------------------------------------------------------------------------------------- */

enum { FEW = 16, FIRST_SURROGATE = 0xD800, LAST_SURROGATE = 0xDFFF };

void automaton_begin(automaton_builder *b, arena *a, const char *what) {
  *b = (automaton_builder){.a = a, .what = what, .most = AUTOMATON_STATES};
}

void automaton_too_large(automaton_builder *b) {
  arena_leave(b->a, dt_fail(b->a->err, DT_EINPUT, "%s: needs more than %d states: shorten it, or repeat less", b->what,
                            b->most));
}

int automaton_add_state(automaton_builder *b, bool accepts) {
  if (b->n == b->most) automaton_too_large(b);
  if (b->n == b->room) {
    const int room = b->room ? 2 * b->room : FEW;
    b->accepts = arena_grow(b->a, b->accepts, (size_t)b->n * sizeof *b->accepts, (size_t)room * sizeof *b->accepts);
    b->first = arena_grow(b->a, b->first, (size_t)b->n * sizeof *b->first, ((size_t)room + 1) * sizeof *b->first);
    b->room = room;
  }
  b->accepts[b->n] = accepts;
  return b->n++;
}

void automaton_begin_edges(automaton_builder *b, int state) { b->first[state] = b->n_edges; }

void automaton_add_edge(automaton_builder *b, int32_t low, int32_t high, int to) {
  if (low >= FIRST_SURROGATE && high <= LAST_SURROGATE) return; /* these are not characters */
  automaton_edge *last = b->n_edges > b->first[b->at] ? &b->edge[b->n_edges - 1] : NULL;
  const bool touch =
      last && (last->high == low - 1 || (last->high == FIRST_SURROGATE - 1 && low == LAST_SURROGATE + 1));
  if (touch && last->to == to) {
    last->high = high;
    return;
  }
  if (b->n_edges == b->room_edges) {
    const int room = b->room_edges ? 2 * b->room_edges : 4 * FEW;
    b->edge = arena_grow(b->a, b->edge, (size_t)b->n_edges * sizeof *b->edge, (size_t)room * sizeof *b->edge);
    b->room_edges = room;
  }
  b->edge[b->n_edges++] = (automaton_edge){low, high, to};
}

/* Marks the states that lead to one that accepts. Edges are followed backwards. */
static void mark_live(const automaton_builder *b, bool *live) {
  int *count = arena_take(b->a, ((size_t)b->n + 2) * sizeof *count), *from, *todo, n = 0;
  from = arena_take(b->a, ((size_t)b->n_edges + 1) * sizeof *from);
  todo = arena_take(b->a, ((size_t)b->n + 1) * sizeof *todo);
  for (int e = 0; e < b->n_edges; e++) count[b->edge[e].to + 2]++;
  for (int i = 1; i <= b->n; i++) count[i + 1] += count[i];
  for (int i = 0; i < b->n; i++)
    for (int e = b->first[i]; e < b->first[i + 1]; e++) from[count[b->edge[e].to + 1]++] = i;
  for (int i = 0; i < b->n; i++)
    if (b->accepts[i]) live[i] = true, todo[n++] = i;
  while (n) {
    const int at = todo[--n];
    for (int k = count[at]; k < count[at + 1]; k++)
      if (!live[from[k]]) live[from[k]] = true, todo[n++] = from[k];
  }
}

automaton *automaton_end(automaton_builder *b) {
  automaton *made = arena_take(b->a, sizeof *made);
  if (!b->n) return made;
  b->first[b->n] = b->n_edges;
  bool *live = arena_take(b->a, (size_t)b->n);
  int *name = arena_take(b->a, (size_t)b->n * sizeof *name), n = 0, edges = 0;
  mark_live(b, live);
  if (!live[0]) return made;
  for (int i = 0; i < b->n; i++)
    if (live[i]) name[i] = n++;
  for (int i = 0; i < b->n; i++) {
    if (!live[i]) continue;
    const int from = b->first[i], to = b->first[i + 1];
    b->accepts[name[i]] = b->accepts[i];
    b->first[name[i]] = edges;
    for (int e = from; e < to; e++) {
      if (!live[b->edge[e].to]) continue;
      b->edge[edges] = b->edge[e];
      b->edge[edges++].to = name[b->edge[e].to];
    }
  }
  b->first[n] = edges;
  if (!b->edge) b->edge = arena_take(b->a, sizeof *b->edge); /* so that addresses can be computed */
  *made = (automaton){.n = n, .accepts = b->accepts, .first = b->first, .edge = b->edge};
  return made;
}

/* ---- two automata ------------------------------------------------------------------------------------------------ */

enum { NONE = -1, LAST = 0x10FFFF };

typedef struct {
  int x, y;
} pair;

typedef struct {
  automaton_builder b;
  const automaton *x, *y;
  automaton_way way;
  pair *of;             /* [b.n], with room for half of the buckets */
  int *bucket, buckets; /* 1 + a state; 0: free */
} product;

static unsigned hash_of(pair p) { return ((unsigned)p.x * 2654435761u) ^ ((unsigned)p.y * 40503u + 0x9E37u); }

static void grow_product(product *p) {
  const int buckets = p->buckets ? 2 * p->buckets : 64;
  const size_t before = (size_t)p->buckets / 2, after = (size_t)buckets / 2;
  p->of = arena_grow(p->b.a, p->of, before * sizeof *p->of, after * sizeof *p->of);
  p->bucket = arena_take(p->b.a, (size_t)buckets * sizeof *p->bucket);
  p->buckets = buckets;
  for (int i = 0; i < p->b.n; i++) {
    unsigned h = hash_of(p->of[i]) % (unsigned)buckets;
    while (p->bucket[h]) h = (h + 1) % (unsigned)buckets;
    p->bucket[h] = i + 1;
  }
}

static bool in(const automaton *x, int state) { return state != NONE && x->accepts[state]; }

static int state_of(product *p, pair of) {
  if (!p->of || 2 * p->b.n >= p->buckets) grow_product(p);
  unsigned h = hash_of(of) % (unsigned)p->buckets;
  for (; p->bucket[h]; h = (h + 1) % (unsigned)p->buckets)
    if (p->of[p->bucket[h] - 1].x == of.x && p->of[p->bucket[h] - 1].y == of.y) return p->bucket[h] - 1;
  const bool x = in(p->x, of.x), y = in(p->y, of.y);
  const int state = automaton_add_state(&p->b, p->way == AUTOMATON_AND  ? x && y
                                               : p->way == AUTOMATON_OR ? x || y
                                                                        : x && !y);
  p->of[state] = of;
  p->bucket[h] = state + 1;
  return state;
}

/* The edges of a state, walked from left to right. */
typedef struct {
  const automaton_edge *at, *end;
} walk;

static walk walk_of(const automaton *x, int state) {
  return state == NONE ? (walk){NULL, NULL} : (walk){x->edge + x->first[state], x->edge + x->first[state + 1]};
}

/* Where a walk leads with character c; *end is lowered to the last character for which that is so. */
static int follow(walk *w, int32_t c, int32_t *end) {
  while (w->at < w->end && w->at->high < c) w->at++;
  if (w->at == w->end) return NONE;
  const bool inside = w->at->low <= c;
  const int32_t last = inside ? w->at->high : w->at->low - 1;
  if (last < *end) *end = last;
  return inside ? w->at->to : NONE;
}

static void add_pair_edges(product *p, pair from) {
  walk x = walk_of(p->x, from.x), y = walk_of(p->y, from.y);
  for (int32_t c = 0, end = LAST; c <= LAST; c = end + 1) {
    end = LAST;
    const pair to = {follow(&x, c, &end), follow(&y, c, &end)};
    const bool live = p->way == AUTOMATON_AND  ? to.x != NONE && to.y != NONE
                      : p->way == AUTOMATON_OR ? to.x != NONE || to.y != NONE
                                               : to.x != NONE;
    if (live) automaton_add_edge(&p->b, c, end, state_of(p, to));
  }
}

automaton *automaton_combine(arena *a, const automaton *x, const automaton *y, automaton_way way, const char *what) {
  product p = {.x = x, .y = y, .way = way};
  automaton_begin(&p.b, a, what);
  const pair first = {x->n ? 0 : NONE, y->n ? 0 : NONE};
  if (first.x != NONE || (way == AUTOMATON_OR && first.y != NONE))
    if (way != AUTOMATON_AND || first.y != NONE) state_of(&p, first);
  for (int i = 0; i < p.b.n; i++) {
    p.b.at = i;
    automaton_begin_edges(&p.b, i);
    add_pair_edges(&p, p.of[i]);
  }
  return automaton_end(&p.b);
}

/* ---- known sets -------------------------------------------------------------------------------------------------- */

static int32_t next_character(const char *text, size_t *len) {
  utf8_next(text, strlen(text), len);
  return utf8_code_point(text, *len);
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* Texts that begin in the same way, in order of their bytes, which is that of their characters. */
typedef struct {
  int from, to;
  size_t at;
} same;

automaton *automaton_of_texts(arena *a, const char *const *text, int n, const char *what) {
  automaton_builder b;
  automaton_begin(&b, a, what);
  if (!n) return automaton_end(&b);
  const char **sorted = arena_grow(a, text, (size_t)n * sizeof *sorted, (size_t)n * sizeof *sorted);
  qsort(sorted, (size_t)n, sizeof *sorted, by_bytes);
  size_t letters = 1;
  for (int i = 0; i < n; i++) letters += strlen(text[i]);
  b.most = letters < AUTOMATON_LETTERS ? (int)letters : AUTOMATON_LETTERS;
  same *of = arena_take(a, ((size_t)b.most + 1) * sizeof *of);
  of[automaton_add_state(&b, false)] = (same){0, n, 0};
  for (int i = 0; i < b.n; i++) {
    same s = of[i];
    b.at = i;
    automaton_begin_edges(&b, i);
    for (; s.from < s.to && !sorted[s.from][s.at]; s.from++) b.accepts[i] = true;
    while (s.from < s.to) {
      size_t len;
      const int32_t c = next_character(sorted[s.from] + s.at, &len);
      int k = s.from + 1;
      while (k < s.to && !strncmp(sorted[k] + s.at, sorted[s.from] + s.at, len)) k++;
      const int state = automaton_add_state(&b, false);
      of[state] = (same){s.from, k, s.at + len};
      automaton_add_edge(&b, c, c, state);
      s.from = k;
    }
  }
  return automaton_end(&b);
}

automaton *automaton_of_lengths(arena *a, int least, int most, const char *what) {
  automaton_builder b;
  automaton_begin(&b, a, what);
  const int last = most < 0 ? least : most;
  for (int i = 0; i <= last; i++) {
    b.at = automaton_add_state(&b, i >= least);
    automaton_begin_edges(&b, i);
    if (i < last || most < 0) automaton_add_edge(&b, 0, LAST, i < last ? i + 1 : i);
  }
  return automaton_end(&b);
}

static void add_digits(automaton_builder *b, int m, int base, int rest) {
  for (int digit = 0; digit < 10; digit++) {
    const int to = (int)(((long long)rest * 10 + digit) % m);
    automaton_add_edge(b, '0' + digit, '0' + digit, base + to);
  }
}

/* State 0: nothing; then for each number of places a state for each remainder; 1..m: in front of the point. */
automaton *automaton_of_multiples(arena *a, int m, int places, const char *what) {
  automaton_builder b;
  automaton_begin(&b, a, what);
  long long unit = 1;
  for (int k = 0; k < places; k++) unit *= 10;
  b.at = automaton_add_state(&b, false);
  automaton_begin_edges(&b, 0);
  automaton_add_edge(&b, '-', '-', 0);
  add_digits(&b, m, 1, 0);
  for (int place = 0; place <= places; place++, unit /= 10)
    for (int rest = 0; rest < m; rest++) {
      b.at = automaton_add_state(&b, rest * (unit % m) % m == 0);
      automaton_begin_edges(&b, b.at);
      if (!place && places) automaton_add_edge(&b, '.', '.', 1 + m * (places + 1) + rest);
      if (!place)
        add_digits(&b, m, 1, rest);
      else if (place < places)
        add_digits(&b, m, 1 + m * (place + 1), rest);
      else
        automaton_add_edge(&b, '0', '0', b.at);
    }
  for (int rest = 0; rest < m && places; rest++) { /* after the point, where a digit must follow */
    b.at = automaton_add_state(&b, false);
    automaton_begin_edges(&b, b.at);
    add_digits(&b, m, 1 + m, rest);
  }
  return automaton_end(&b);
}

bool automaton_has(const automaton *x, const char *text) {
  if (!x->n) return false;
  int state = 0;
  while (*text) {
    size_t len;
    int32_t end = LAST;
    const int32_t c = next_character(text, &len);
    walk w = walk_of(x, state);
    state = follow(&w, c, &end);
    if (state == NONE) return false;
    text += len;
  }
  return x->accepts[state];
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

typedef struct {
  const automaton *x;
  const char *name;
  bool in_json;
  bool *needed;
  int *todo, n_todo;
  rules_range *range; /* of one state */
  FILE *out;
} writer;

static bool is_universal(const automaton *x, int state) {
  const automaton_edge *e = &x->edge[x->first[state]];
  return x->accepts[state] && x->first[state + 1] == x->first[state] + 1 && e->low == 0 && e->high == LAST &&
         e->to == state;
}

/* The only edge of a state that does not accept, if it has only one character that needs no escape. */
static const automaton_edge *only_edge(const writer *w, int state) {
  const automaton_edge *e = &w->x->edge[w->x->first[state]];
  if (w->x->accepts[state] || w->x->first[state + 1] != w->x->first[state] + 1 || e->low != e->high) return NULL;
  return w->in_json && characters_escaped(e->low) ? NULL : e;
}

static void put_state(writer *w, int state) {
  if (!w->needed[state]) w->todo[w->n_todo++] = state;
  w->needed[state] = true;
  fprintf(w->out, "%s-%d ", w->name, state);
}

/* Writes where an edge leads, with a text on the way to there. */
static void put_target(writer *w, int state) {
  const automaton_edge *e;
  int n = 0;
  for (; n < 64 && (e = only_edge(w, state)); state = e->to) {
    if (!n++) putc('"', w->out);
    characters_put_one(e->low, w->out);
  }
  if (n) fputs("\" ", w->out);
  if (w->in_json && is_universal(w->x, state))
    fputs("plain* ", w->out);
  else if (!w->x->accepts[state] || w->x->first[state + 1] > w->x->first[state])
    put_state(w, state);
}

static bool is_new_target(const writer *w, int first, int e) {
  for (int k = first; k < e; k++)
    if (w->x->edge[k].to == w->x->edge[e].to) return false;
  return true;
}

static void put_edges(writer *w, int state) {
  const int first = w->x->first[state], end = w->x->first[state + 1];
  for (int e = first; e < end; e++) {
    if (!is_new_target(w, first, e)) continue;
    characters set = {.range = w->range};
    for (int k = e; k < end; k++)
      if (w->x->edge[k].to == w->x->edge[e].to)
        w->range[set.n++] = (rules_range){w->x->edge[k].low, w->x->edge[k].high};
    characters_tidy(&set);
    if (!set.n) continue;
    if (e > first) fputs("| ", w->out);
    characters_put(&set, w->in_json, w->out);
    put_target(w, w->x->edge[e].to);
  }
}

void automaton_put(arena *a, const automaton *x, const char *name, bool in_json, FILE *out) {
  writer w = {.x = x, .name = name, .in_json = in_json, .out = out};
  int most = 0;
  for (int i = 0; i < x->n; i++)
    if (x->first[i + 1] - x->first[i] > most) most = x->first[i + 1] - x->first[i];
  w.range = arena_take(a, ((size_t)most + 1) * sizeof *w.range);
  w.needed = arena_take(a, (size_t)x->n);
  w.todo = arena_take(a, (size_t)x->n * sizeof *w.todo);
  w.todo[w.n_todo++] = 0;
  w.needed[0] = true;
  while (w.n_todo) {
    const int state = w.todo[--w.n_todo];
    fprintf(out, "%s-%d ::= ", name, state);
    if (x->accepts[state]) fputs("\"\" ", out);
    if (x->accepts[state] && x->first[state + 1] > x->first[state]) fputs("| ", out);
    put_edges(&w, state);
    putc('\n', out);
  }
}
