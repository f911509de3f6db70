/* Parting a vocabulary's tree: see alike.h. */
#include "grammar/alike.h"

#include <stdlib.h>
#include <string.h>

void alike_close(alike *a) {
  free(a->up_to), free(a->rest);
  *a = (alike){0};
}

/* Whether a byte at this depth makes a token one of the others. */
static bool parts(const alike *a, const vocabulary_node *n) {
  return n->depth > ALIKE_LONGEST || n->byte >= ALIKE_BYTES || !a->has[n->byte];
}

static void set_length(const vocabulary_tree *t, uint64_t *mask, int32_t id) {
  for (; id >= 0; id = t->twin[id]) mask[id / 64] |= UINT64_C(1) << id % 64;
}

/* Sets bits of tokens of each length, and copies the nodes on the way to others. `path`: room for the nodes above one. */
static void part(alike *a, const vocabulary_tree *t, size_t words, int32_t *path) {
  int parted = 0; /* the depth of the path from which on tokens are others; 0: none is */
  int copied = 0; /* nodes of the path that are copied */
  for (int i = 0; i < t->n; i++) {
    const vocabulary_node *n = &t->node[i];
    int depth = n->depth;
    for (; copied >= depth; copied--) a->rest[path[copied]].skip = a->n;
    if (parted >= depth) parted = 0;
    if (!parted && parts(a, n)) parted = depth;
    path[depth] = i;
    if (!parted) {
      set_length(t, a->up_to + (size_t)depth * words, n->token);
      if (n->token >= 0 && depth > a->longest) a->longest = depth;
      continue;
    }
    while (copied < depth) {
      a->rest[a->n] = t->node[path[++copied]];
      path[copied] = a->n++;
    }
  }
  for (; copied > 0; copied--) a->rest[path[copied]].skip = a->n;
}

bool alike_open(alike *a, const vocabulary *v, const bool has[ALIKE_BYTES]) {
  const vocabulary_tree *t = &v->later;
  size_t words = ((size_t)v->ids + 63) / 64;
  int32_t *path = calloc((size_t)t->deepest + 1, sizeof *path);
  *a = (alike){.up_to = calloc((ALIKE_LONGEST + 1) * words + 1, sizeof *a->up_to),
               .rest = malloc(((size_t)t->n + 1) * sizeof *a->rest)};
  memcpy(a->has, has, sizeof a->has);
  bool room = path && a->up_to && a->rest;
  if (room) {
    part(a, t, words, path);
    for (size_t i = words; i < ((size_t)a->longest + 1) * words; i++) a->up_to[i] |= a->up_to[i - words];
    vocabulary_node *fits = realloc(a->rest, ((size_t)a->n + 1) * sizeof *fits);
    if (fits) a->rest = fits;
  } else {
    alike_close(a);
  }
  free(path);
  return room;
}
