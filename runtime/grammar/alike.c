/* Splits a vocabulary's tree: see alike.h. */
#include "grammar/alike.h"

#include <stdlib.h>
#include <string.h>

void alike_close(alike *a) {
  free(a->up_to), free(a->rest.node);
  *a = (alike){0};
}

/* Whether a byte at this depth makes a token one of the others. */
static bool parts(const alike *a, const vocabulary_node *n) {
  return n->depth > VOCABULARY_SHORT || n->byte >= ALIKE_BYTES || !a->has[n->byte];
}

static void set_length(const vocabulary *v, uint64_t *mask, int32_t id) {
  for (; id >= 0; id = v->later.twin[id]) mask[id / 64] |= UINT64_C(1) << id % 64;
}

/* Sets bits of tokens of each length, and copies the nodes on the way to others. `path`: room for the nodes above
 * one. */
static void part(alike *a, const vocabulary *v, int32_t *path) {
  const vocabulary_nodes *of = a->of;
  vocabulary_nodes *rest = &a->rest;
  int parted = 0;         /* the depth of the path from which on tokens are others; 0: there are none */
  int copied = of->above; /* the depth down to which nodes of the path are copied */
  for (int i = 0; i < of->n; i++) {
    const vocabulary_node *n = &of->node[i];
    int depth = n->depth;
    for (; copied >= depth; copied--) rest->node[path[copied]].skip = rest->n;
    if (parted >= depth) parted = 0;
    if (!parted && parts(a, n)) parted = depth;
    path[depth] = i;
    if (!parted) {
      set_length(v, a->up_to + (size_t)depth * vocabulary_words(v), n->token);
      if (n->token >= 0 && depth > a->longest) a->longest = depth;
      continue;
    }
    while (copied < depth) {
      rest->node[rest->n] = of->node[path[++copied]];
      path[copied] = rest->n++;
    }
  }
  for (; copied > of->above; copied--) rest->node[path[copied]].skip = rest->n;
}

bool alike_open(alike *a, const vocabulary *v, const vocabulary_nodes *of, const bool has[ALIKE_BYTES]) {
  size_t words = vocabulary_words(v);
  int32_t *path = calloc((size_t)v->later.deepest + 1, sizeof *path);
  *a = (alike){.of = of,
               .longest = of->above,
               .up_to = calloc((VOCABULARY_SHORT + 1) * words + 1, sizeof *a->up_to),
               .rest = {.node = malloc(((size_t)of->n + 1) * sizeof *of->node), .above = of->above}};
  memcpy(a->has, has, sizeof a->has);
  bool room = path && a->up_to && a->rest.node;
  if (room) {
    part(a, v, path);
    vocabulary_set_deepest(&a->rest);
    for (size_t i = words; i < ((size_t)a->longest + 1) * words; i++) a->up_to[i] |= a->up_to[i - words];
    vocabulary_node *fits = realloc(a->rest.node, ((size_t)a->rest.n + 1) * sizeof *fits);
    if (fits) a->rest.node = fits;
  } else {
    alike_close(a);
  }
  free(path);
  return room;
}
