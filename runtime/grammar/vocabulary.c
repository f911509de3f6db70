/* Building the tree of a vocabulary: see vocabulary.h. */
#include "grammar/vocabulary.h"
#include "grammar/alike.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 60000 }; /* maximum length of a token's text */

static void close_tree(vocabulary_tree *t) { free(t->nodes.node), free(t->twin), free(t->bytes), free(t->offset); }

void vocabulary_close(vocabulary *v) {
  if (!v) return;
  close_tree(&v->later), close_tree(&v->first), alike_close(v->alikes);
  free(v->is_end), free(v->up_to), free(v->spaced.node);
  free(v);
}

typedef struct {
  const char *bytes;
  size_t len;
  int32_t id;
} entry;

static int by_text(const void *a, const void *b) {
  const entry *x = a, *y = b;
  int order = memcmp(x->bytes, y->bytes, x->len < y->len ? x->len : y->len);
  if (order) return order;
  if (x->len != y->len) return x->len < y->len ? -1 : 1;
  return x->id < y->id ? -1 : 1;
}

static bool read_texts(const vocabulary *v, vocabulary_tree *t, vocabulary_text *text, const void *of, bool first) {
  char buffer[16];
  size_t all = 0, len;
  for (int32_t id = 0; id < v->ids; id++) text(of, id, first, buffer, &len), all += len;
  t->offset = malloc(((size_t)v->ids + 1) * sizeof *t->offset);
  t->twin = malloc((size_t)v->ids * sizeof *t->twin);
  t->bytes = malloc(all + 1);
  t->nodes.node = calloc(all + 1, sizeof *t->nodes.node);
  if (!t->offset || !t->twin || !t->bytes || !t->nodes.node) return false;
  all = 0;
  for (int32_t id = 0; id < v->ids; id++) {
    const char *bytes = text(of, id, first, buffer, &len);
    t->offset[id] = all;
    t->twin[id] = -1;
    if (v->is_end[id] || len > LONGEST) continue;
    memcpy(t->bytes + all, bytes, len);
    all += len;
  }
  t->offset[v->ids] = all;
  return true;
}

static size_t common(const entry *a, const entry *b) {
  size_t n = 0;
  while (n < a->len && n < b->len && a->bytes[n] == b->bytes[n]) n++;
  return n;
}

/* `path`: room for the nodes above one. */
static void grow_tree(vocabulary_tree *t, const entry *sorted, int n, int32_t *path) {
  vocabulary_nodes *to = &t->nodes;
  size_t depth = 0; /* of the path to the token before */
  for (int i = 0; i < n; i++) {
    const entry *e = &sorted[i];
    size_t shared = i ? common(&sorted[i - 1], e) : 0;
    for (; depth > shared; depth--) to->node[path[depth - 1]].skip = to->n;
    for (; depth < e->len; depth++) {
      path[depth] = to->n;
      to->node[to->n++] =
          (vocabulary_node){.token = -1, .depth = (uint16_t)(depth + 1), .byte = (uint8_t)e->bytes[depth]};
    }
    if (e->len > (size_t)t->deepest) t->deepest = (int)e->len;
    int32_t *end = &to->node[path[depth - 1]].token;
    t->twin[e->id] = *end;
    *end = e->id;
  }
  for (; depth > 0; depth--) to->node[path[depth - 1]].skip = to->n;
}

static bool open_tree(const vocabulary *v, vocabulary_tree *t, vocabulary_text *text, const void *of, bool first) {
  if (!read_texts(v, t, text, of, first)) return false;
  entry *sorted = malloc((size_t)v->ids * sizeof *sorted);
  int32_t *path = calloc(LONGEST + 1, sizeof *path);
  int n = 0;
  for (int32_t id = 0; sorted && id < v->ids; id++) {
    size_t len = t->offset[id + 1] - t->offset[id];
    if (len) sorted[n++] = (entry){t->bytes + t->offset[id], len, id};
  }
  bool room = sorted && path;
  if (room) {
    qsort(sorted, (size_t)n, sizeof *sorted, by_text);
    grow_tree(t, sorted, n, path);
    vocabulary_set_deepest(&t->nodes);
    vocabulary_node *fits = realloc(t->nodes.node, ((size_t)t->nodes.n + 1) * sizeof *fits);
    if (fits) t->nodes.node = fits;
  }
  free(sorted), free(path);
  return room;
}

static bool is_same(const vocabulary_tree *a, const vocabulary_tree *b, int ids) {
  return !memcmp(a->offset, b->offset, ((size_t)ids + 1) * sizeof *a->offset) &&
         !memcmp(a->bytes, b->bytes, a->offset[ids]);
}

/* Moves the nodes below the space from `later` to `spaced`. */
static bool part_spaced(vocabulary *v) {
  vocabulary_nodes *of = &v->later.nodes, *to = &v->spaced;
  int space = 0;
  while (space < of->n && of->node[space].byte != ' ') space = of->node[space].skip;
  if (space == of->n) return true;
  vocabulary_node *begin = of->node + space + 1;
  int n = of->node[space].skip - space - 1, rest = of->n - n - space - 1;
  *to = (vocabulary_nodes){.node = malloc(((size_t)n + 1) * sizeof *to->node), .n = n, .above = 1};
  if (!to->node) return false;
  memcpy(to->node, begin, (size_t)n * sizeof *begin);
  memmove(begin, begin + n, (size_t)rest * sizeof *begin);
  of->n -= n;
  of->node[space].deepest = 1;
  for (int i = 0; i < n; i++) to->node[i].skip -= space + 1;
  for (int i = space; i < of->n; i++) of->node[i].skip -= n;
  return true;
}

static bool part_by_length(vocabulary *v) {
  size_t words = vocabulary_words(v);
  v->up_to = calloc((VOCABULARY_SHORT + 1) * words + 1, sizeof *v->up_to);
  for (int32_t id = 0; id < v->ids && v->up_to; id++) {
    size_t len = v->later.offset[id + 1] - v->later.offset[id];
    if (len && len <= VOCABULARY_SHORT) v->up_to[len * words + (size_t)id / 64] |= UINT64_C(1) << id % 64;
  }
  for (size_t i = words; i < (VOCABULARY_SHORT + 1) * words && v->up_to; i++) v->up_to[i] |= v->up_to[i - words];
  return v->up_to != NULL;
}

dt_status vocabulary_open(int ids, vocabulary_text *text, const void *of, const int32_t *ends, int n_ends,
                          vocabulary **out, dt_error *err) {
  vocabulary *v = calloc(1, sizeof *v);
  bool room = v && (v->is_end = calloc((size_t)ids + 1, 1));
  if (room) {
    v->ids = ids;
    for (int i = 0; i < n_ends; i++) v->is_end[ends[i]] = 1;
    room = open_tree(v, &v->later, text, of, false) && open_tree(v, &v->first, text, of, true) && part_spaced(v) &&
           part_by_length(v) && (v->alikes = alike_open(v));
  }
  if (!room) {
    vocabulary_close(v);
    return dt_fail_memory(err, "a vocabulary's texts", (size_t)ids * 64);
  }
  v->differ = !is_same(&v->later, &v->first, ids);
  if (!v->differ) {
    close_tree(&v->first);
    v->first = (vocabulary_tree){0};
  }
  *out = v;
  return DT_OK;
}
