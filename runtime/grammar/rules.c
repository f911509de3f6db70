/* Builds and completes rules: see rules.h. */
#include "grammar/rules.h"

#include <stdlib.h>
#include <string.h>

int32_t rules_add(rules *r, rules_node node) {
  r->full |= r->n > RULES_NODES;
  if (r->n == r->capacity && rules_have_room(r)) {
    int capacity = r->capacity ? 2 * r->capacity : 64;
    if (capacity > RULES_NODES) capacity = RULES_NODES + 1;
    rules_node *grown = realloc(r->node, (size_t)capacity * sizeof *grown);
    if (grown) r->node = grown, r->capacity = capacity;
    r->no_memory = !grown;
    if (!r->n && grown) r->node[r->n++] = (rules_node){.kind = NODE_END};
  }
  if (!rules_have_room(r)) return 0;
  r->node[r->n] = node;
  return r->n++;
}

void rules_free(rules *r) {
  for (int i = 0; i < r->tokens; i++) free(r->token[i].text);
  free(r->token), free(r->node);
  *r = (rules){0};
}

static rules_way way_of(rules *r, rules_node node) {
  int32_t at = rules_add(r, node);
  return (rules_way){at, at};
}

static rules_way nothing(rules *r) { return way_of(r, (rules_node){.kind = NODE_EMPTY}); }

/* Room for node 0 at least: the first call made it. */
static void go_on(rules *r, int32_t from, int32_t at) {
  if (r->node) r->node[from].next = at;
}

rules_way rules_join(rules *r, rules_way a, rules_way b) {
  go_on(r, a.last, b.first);
  return (rules_way){a.first, b.last};
}

rules_way rules_either(rules *r, rules_way a, rules_way b) {
  rules_way end = nothing(r);
  int32_t split = rules_add(r, (rules_node){.kind = NODE_SPLIT, .next = a.first, .other = b.first});
  go_on(r, a.last, end.first);
  go_on(r, b.last, end.first);
  return (rules_way){split, end.last};
}

rules_way rules_text(rules *r, const char *bytes, size_t len) {
  rules_way all = nothing(r);
  for (size_t i = 0; i < len && rules_have_room(r); i++) {
    uint8_t byte = (uint8_t)bytes[i];
    all = rules_join(r, all, way_of(r, (rules_node){.kind = NODE_BYTES, .low = byte, .high = byte}));
  }
  return all;
}

static bool is_token(const rules_named *t, int32_t id, const char *text, size_t len) {
  return text ? t->text && strlen(t->text) == len && !memcmp(t->text, text, len) : !t->text && t->id == id;
}

/* Adds a token to the list. False: there is no room. */
static bool add_token(rules *r, int32_t id, const char *text, size_t len) {
  r->full |= r->tokens == RULES_TOKENS;
  if (r->full) return false;
  rules_named *grown = realloc(r->token, ((size_t)r->tokens + 1) * sizeof *grown);
  char *copy = text ? strndup(text, len) : NULL;
  if (grown) r->token = grown;
  if (!grown || (text && !copy)) {
    free(copy);
    r->no_memory = true;
    return false;
  }
  r->token[r->tokens++] = (rules_named){id, copy};
  return true;
}

rules_way rules_token(rules *r, int32_t id, const char *text, size_t len) {
  int i = 0;
  while (i < r->tokens && !is_token(&r->token[i], id, text, len)) i++;
  if (i == r->tokens && !add_token(r, id, text, len)) return nothing(r);
  return rules_text(r, (char[]){(char)RULES_TOKEN, (char)(0x80 | i >> 7), (char)(0x80 | (i & 0x7F))}, 3);
}

/* ---- repetition -------------------------------------------------------------------------------------------------- */

static rules_way star(rules *r, rules_way a) {
  rules_way end = nothing(r);
  int32_t split = rules_add(r, (rules_node){.kind = NODE_SPLIT, .next = a.first, .other = end.first});
  go_on(r, a.last, split);
  return (rules_way){split, end.last};
}

static rules_way call(rules *r, int32_t rule) { return way_of(r, (rules_node){.kind = NODE_CALL, .other = rule}); }

/* Adds a node before an item of a repetition. `first` is the first node of its kind; 0: this one. Returns the first. */
static int32_t before_item(rules *r, int32_t at, int32_t first, int left) {
  if (!first) first = at;
  if (r->node) r->node[at].first = first, r->node[at].left = (uint8_t)(left < UINT8_MAX ? left : UINT8_MAX);
  return first;
}

/* An item that is needed more than once becomes a rule, which is called that often. */
rules_way rules_repeat(rules *r, rules_way a, int least, int most) {
  if (least == 0 && most == 1) return rules_either(r, a, nothing(r));
  if (least == 0 && most < 0) return star(r, a);
  if (least == 1 && most == 1) return a;
  int32_t rule = rules_add(r, (rules_node){.kind = NODE_EMPTY, .next = a.first});
  go_on(r, a.last, rules_add(r, (rules_node){.kind = NODE_RETURN}));
  rules_way all = nothing(r);
  int32_t first = 0;
  for (int i = 0; i < least && rules_have_room(r); i++) {
    rules_way once = call(r, rule);
    first = before_item(r, once.first, first, least - i);
    all = rules_join(r, all, once);
  }
  if (most < 0) return rules_join(r, all, star(r, call(r, rule)));
  rules_way end = nothing(r);
  first = 0;
  for (int i = least; i < most && rules_have_room(r); i++) {
    rules_way once = call(r, rule);
    int32_t split = rules_add(r, (rules_node){.kind = NODE_SPLIT, .next = once.first, .other = end.first});
    first = before_item(r, split, first, most - i);
    all = rules_join(r, all, (rules_way){split, once.last});
  }
  return rules_join(r, all, end);
}

/* ---- characters -------------------------------------------------------------------------------------------------- */

static int by_low(const void *a, const void *b) {
  const rules_range *x = a, *y = b;
  return (x->low > y->low) - (x->low < y->low);
}

static int encode(int32_t c, uint8_t out[4]) {
  if (c < 0x80) return out[0] = (uint8_t)c, 1;
  int n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  static const uint8_t lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
  for (int i = n - 1; i > 0; i--, c >>= 6) out[i] = (uint8_t)(0x80 | (c & 0x3F));
  out[0] = (uint8_t)(lead[n] | c);
  return n;
}

static void add_way(rules *r, rules_way *all, rules_way a) { *all = all->last ? rules_either(r, *all, a) : a; }

/* Characters low..high of one length whose bytes but the last few are the same, and these run through all their values
 * or the first of them does alone: after https://swtch.com/~rsc/regexp/regexp3.html, step 3. */
static void add_block(rules *r, rules_way *all, int32_t low, int32_t high) {
  uint8_t a[4], b[4];
  int n = encode(low, a);
  encode(high, b);
  rules_way way = nothing(r);
  for (int i = 0; i < n; i++)
    way = rules_join(r, way, way_of(r, (rules_node){.kind = NODE_BYTES, .low = a[i], .high = b[i]}));
  add_way(r, all, way);
}

static void add_range(rules *r, rules_way *all, int32_t low, int32_t high) {
  static const int32_t border[] = {0x7F, 0x7FF, 0xD7FF, 0xDFFF, 0xFFFF};
  for (size_t i = 0; i < sizeof border / sizeof *border; i++)
    if (low <= border[i] && high > border[i]) {
      add_range(r, all, low, border[i]);
      add_range(r, all, border[i] + 1, high);
      return;
    }
  if (low >= 0xD800 && high <= 0xDFFF) return;
  for (int bits = 6; bits <= 18 && high >= 0x80; bits += 6) {
    int32_t m = (1 << bits) - 1;
    if ((low & ~m) == (high & ~m)) break;
    if (low & m) {
      add_range(r, all, low, low | m);
      add_range(r, all, (low | m) + 1, high);
      return;
    }
    if ((high & m) != m) {
      add_range(r, all, low, (high & ~m) - 1);
      add_range(r, all, high & ~m, high);
      return;
    }
  }
  add_block(r, all, low, high);
}

rules_way rules_character(rules *r, rules_range *range, int n, bool others) {
  if (n) qsort(range, (size_t)n, sizeof *range, by_low);
  rules_way all = {0, 0};
  int32_t free = 0; /* the first character that no range before has */
  for (int i = 0; i < n && rules_have_room(r); i++) {
    if (range[i].high < free) continue;
    int32_t low = range[i].low > free ? range[i].low : free;
    if (others && low > free) add_range(r, &all, free, low - 1);
    int32_t high = range[i].high;
    while (!others && i + 1 < n && range[i + 1].low <= high + 1) high = range[++i].high > high ? range[i].high : high;
    if (!others) add_range(r, &all, low, high);
    free = high + 1;
  }
  if (others && free <= 0x10FFFF) add_range(r, &all, free, 0x10FFFF);
  return all;
}

/* ---- fixing ------------------------------------------------------------------------------------------------------ */

/* A rule that is being searched: the call that led to it, and where its nodes begin on the stack. */
typedef struct {
  int32_t rule, call;
  int base;
} visit;

enum { SEEN = 1, OPEN = 2, DONE = 4, MAY_BE_EMPTY = 8 }; /* marks of a node, the last three of a rule's first */

typedef struct {
  rules *r;
  uint8_t *mark;
  int32_t *todo;
  visit *open;
  int n_todo, n_open;
} search;

static void enter(search *s, int32_t rule, int32_t from) {
  s->mark[rule] |= OPEN;
  s->open[s->n_open++] = (visit){rule, from, s->n_todo};
  s->todo[s->n_todo++] = rule;
}

/* Searches the nodes that are reached before the first byte. Returns the first node of a rule that begins with itself;
 * 0: there is none. */
static int32_t find_left_recursion(search *s, int32_t root) {
  enter(s, root, 0);
  while (s->n_open) {
    visit v = s->open[s->n_open - 1];
    if (s->n_todo == v.base) {
      s->n_open--;
      s->mark[v.rule] = (uint8_t)((s->mark[v.rule] & ~OPEN) | DONE);
      if (v.call && s->mark[v.rule] & MAY_BE_EMPTY) s->todo[s->n_todo++] = s->r->node[v.call].next;
      continue;
    }
    int32_t at = s->todo[--s->n_todo];
    if (s->mark[at] & SEEN) continue;
    s->mark[at] |= SEEN;
    const rules_node *n = &s->r->node[at];
    if (n->kind == NODE_RETURN) s->mark[v.rule] |= MAY_BE_EMPTY;
    if (n->kind == NODE_EMPTY || n->kind == NODE_SPLIT) s->todo[s->n_todo++] = n->next;
    if (n->kind == NODE_SPLIT) s->todo[s->n_todo++] = n->other;
    if (n->kind != NODE_CALL) continue;
    if (s->mark[n->other] & OPEN) return n->other;
    if (!(s->mark[n->other] & DONE))
      enter(s, n->other, at);
    else if (s->mark[n->other] & MAY_BE_EMPTY)
      s->todo[s->n_todo++] = n->next;
  }
  return 0;
}

/* Checks all rules that are called, even if they cannot be reached from the root. */
static int32_t search_all(search *s) {
  int32_t found = find_left_recursion(s, s->r->root);
  for (int i = 1; i < s->r->n && !found; i++)
    if (s->r->node[i].kind == NODE_CALL && !(s->mark[s->r->node[i].other] & DONE))
      found = find_left_recursion(s, s->r->node[i].other);
  return found;
}

/* Returns the first node that is not empty, and shortens the path to it. */
static int32_t behind_empty(rules *r, int32_t at) {
  while (r->node[at].kind == NODE_EMPTY) {
    int32_t next = r->node[at].next;
    if (r->node[next].kind == NODE_EMPTY) r->node[at].next = r->node[next].next;
    at = next;
  }
  return at;
}

/* Removes the links to empty nodes, and marks calls before a return as tail calls. */
static void shorten(rules *r) {
  r->root = behind_empty(r, r->root);
  for (int i = 1; i < r->n; i++) {
    rules_node *n = &r->node[i];
    n->next = behind_empty(r, n->next);
    if (n->kind == NODE_SPLIT || n->kind == NODE_CALL) n->other = behind_empty(r, n->other);
  }
  for (int i = 1; i < r->n; i++)
    if (r->node[i].kind == NODE_CALL && r->node[r->node[i].next].kind == NODE_RETURN) r->node[i].next = RULES_TAIL;
}

static void classify(rules *r) {
  bool begins[257] = {true};
  for (int i = 1; i < r->n; i++)
    if (r->node[i].kind == NODE_BYTES) begins[r->node[i].low] = begins[r->node[i].high + 1] = true;
  r->classes = 0;
  for (int b = 0; b < 256; b++) {
    if (begins[b]) r->byte_of[r->classes++] = (uint8_t)b;
    r->class_of[b] = (uint8_t)(r->classes - 1);
  }
}

dt_status rules_finish(rules *r, const char *(*name)(const void *of, int32_t node), const void *of, dt_error *err) {
  if (r->full) return dt_fail(err, DT_EINPUT, "grammar: more than %d parts: shorten it, or repeat less", RULES_NODES);
  if (r->no_memory) return dt_fail_memory(err, "a grammar", 2ull * (size_t)r->n * sizeof *r->node);
  size_t n = (size_t)r->n;
  search s = {.r = r, .mark = calloc(n, 1), .todo = malloc(3 * n * sizeof *s.todo), .open = malloc(n * sizeof *s.open)};
  bool room = s.mark && s.todo && s.open;
  int32_t left = room ? search_all(&s) : 0;
  const char *which = NULL;
  for (int i = s.n_open - 1; left && i >= 0 && !which; i--) { /* the innermost with a name, of those in the circle */
    which = name(of, s.open[i].rule);
    if (s.open[i].rule == left) break;
  }
  free(s.mark), free(s.todo), free(s.open);
  if (!room) return dt_fail_memory(err, "a grammar", n * 18);
  if (left)
    return dt_fail(err, DT_EINPUT,
                   "grammar: rule %s begins with itself, which is not supported: write a ::= b (c)* for a ::= a c | b",
                   which ? which : "?");
  shorten(r);
  classify(r);
  return DT_OK;
}
