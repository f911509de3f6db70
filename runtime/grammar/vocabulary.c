/* Building the tree of a vocabulary: see vocabulary.h. */
#include "grammar/vocabulary.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 60000 }; /* a longer text is no token's */

static void close_tree(vocabulary_tree *t) { free(t->node), free(t->twin), free(t->bytes), free(t->offset); }

void vocabulary_close(vocabulary *v) {
  if (!v) return;
  close_tree(&v->later), close_tree(&v->first);
  free(v->is_end);
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
  t->node = calloc(all + 1, sizeof *t->node);
  if (!t->offset || !t->twin || !t->bytes || !t->node) return false;
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
  size_t depth = 0; /* of the path to the token before */
  for (int i = 0; i < n; i++) {
    const entry *e = &sorted[i];
    size_t shared = i ? common(&sorted[i - 1], e) : 0;
    for (; depth > shared; depth--) t->node[path[depth - 1]].skip = t->n;
    for (; depth < e->len; depth++) {
      path[depth] = t->n;
      t->node[t->n++] =
          (vocabulary_node){.token = -1, .depth = (uint16_t)(depth + 1), .byte = (uint8_t)e->bytes[depth]};
    }
    if (e->len > (size_t)t->deepest) t->deepest = (int)e->len;
    int32_t *end = &t->node[path[depth - 1]].token;
    t->twin[e->id] = *end;
    *end = e->id;
  }
  for (; depth > 0; depth--) t->node[path[depth - 1]].skip = t->n;
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
    vocabulary_node *fits = realloc(t->node, ((size_t)t->n + 1) * sizeof *fits);
    if (fits) t->node = fits;
  }
  free(sorted), free(path);
  return room;
}

static bool is_same(const vocabulary_tree *a, const vocabulary_tree *b, int ids) {
  return !memcmp(a->offset, b->offset, ((size_t)ids + 1) * sizeof *a->offset) &&
         !memcmp(a->bytes, b->bytes, a->offset[ids]);
}

dt_status vocabulary_open(int ids, vocabulary_text *text, const void *of, const int32_t *ends, int n_ends,
                          vocabulary **out, dt_error *err) {
  vocabulary *v = calloc(1, sizeof *v);
  bool room = v && (v->is_end = calloc((size_t)ids + 1, 1));
  if (room) {
    v->ids = ids;
    for (int i = 0; i < n_ends; i++) v->is_end[ends[i]] = 1;
    room = open_tree(v, &v->later, text, of, false) && open_tree(v, &v->first, text, of, true);
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
