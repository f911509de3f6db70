/* Promise 1 for a backend: plain decoding along every path of a random tree is compared, bit for bit, with passes over
 * parts of that tree. */
#ifndef TREE_CASE_H
#define TREE_CASE_H

#include "rig.h"

#include <math.h>

enum { NODES = 257, SPREAD = 300 }; /* maximum number of tree nodes; slots among which they are scattered */

/* A random tree of tokens below a prefix, and the logits that plain decoding gives along each node's path. */
typedef struct {
  int vocab, prefix, nodes;
  int parent[NODES], depth[NODES]; /* parent -1: the last token of the prefix */
  int32_t token[NODES];
  float *logits[NODES];
  void *slot[NODES];
  size_t slot_bytes;
  dt_snapshot *prefix_rows;
} tree_case;

static void plain_rows(rig *r, tree_case *t, int node) { /* Decodes this node, then all nodes below it, depth first. */
  row_list l = {0};
  row_add_plain(&l, 1, t->token[node], t->prefix + t->depth[node]);
  t->logits[node] = rig_run(r, &l, true);
  for (int v = 0; v < t->vocab; v++) assert_true(isfinite(t->logits[node][v])); /* equal bits must mean something */
  t->slot[node] = rig_slot(r, 1, t->prefix + t->depth[node], &t->slot_bytes);
  for (int child = node + 1; child < t->nodes; child++)
    if (t->parent[child] == node) plain_rows(r, t, child);
}

/* Decodes a prefix and then the whole tree row by row, in sequence 1. */
static void decode_plainly(rig *r, tree_case *t, int prefix, int nodes, uint64_t seed) {
  *t = (tree_case){.vocab = r->vocab, .prefix = prefix, .nodes = nodes};
  for (int p = 0; p < prefix; p++) {
    row_list l = {0};
    row_add_plain(&l, 1, (int32_t)(random_next(&seed) % (uint32_t)r->vocab), p);
    rig_run(r, &l, false);
  }
  ok(r->ops->snapshot(r->cache, 1, prefix, &t->prefix_rows, &err));
  for (int i = 0; i < t->nodes; i++) {
    do t->parent[i] = (int)(random_next(&seed) % (uint32_t)(i + 1)) - 1;
    while (t->parent[i] >= 0 && t->depth[t->parent[i]] + 2 >= ROW_PATH);
    t->depth[i] = t->parent[i] < 0 ? 0 : t->depth[t->parent[i]] + 1;
    t->token[i] = (int32_t)(random_next(&seed) % (uint32_t)r->vocab);
  }
  for (int i = 0; i < t->nodes; i++)
    if (t->parent[i] < 0) plain_rows(r, t, i);
}

static void tree_case_free(rig *r, tree_case *t) {
  for (int i = 0; i < t->nodes; i++) free(t->logits[i]), free(t->slot[i]);
  r->ops->free_snapshot(t->prefix_rows);
}

/* Runs one pass over the tree's first n nodes in a random order (parents first), scattered over slots of sequence 0. */
static void check_batch(rig *r, const tree_case *t, int n, uint64_t seed) {
  int32_t slot[SPREAD], path[ROW_PATH];
  int order[NODES];
  for (int i = 0; i < SPREAD; i++) slot[i] = t->prefix + i;
  for (int i = SPREAD - 1; i > 0; i--) {
    int j = (int)(random_next(&seed) % (uint32_t)(i + 1));
    int32_t swap = slot[i];
    slot[i] = slot[j], slot[j] = swap;
  }
  row_list l = {0};
  bool done[NODES] = {false};
  while (l.n < n) {
    int node = (int)(random_next(&seed) % (uint32_t)n);
    while (done[node] || (t->parent[node] >= 0 && !done[t->parent[node]])) node = (node + 1) % n;
    done[node] = true, order[l.n] = node;
    int length = t->depth[node] + 1, at = node;
    for (int d = length - 1; d >= 0; d--, at = t->parent[at]) path[d] = slot[at];
    row_add(&l, 0, t->token[node], t->prefix, path, length);
  }
  float *logits = rig_run(r, &l, true);
  for (int i = 0; i < n; i++) {
    size_t len;
    void *bytes = rig_slot(r, 0, slot[order[i]], &len);
    if (memcmp(logits + (size_t)i * (size_t)t->vocab, t->logits[order[i]], sizeof(float) * (size_t)t->vocab))
      fail_msg("prefix %d, %d rows: the logits of row %d differ from plain decoding", t->prefix, n, i);
    assert_int_equal(len, t->slot_bytes);
    if (memcmp(bytes, t->slot[order[i]], len))
      fail_msg("prefix %d, %d rows: the keys or values of row %d differ from plain decoding", t->prefix, n, i);
    free(bytes);
  }
  free(logits);
}

#endif
