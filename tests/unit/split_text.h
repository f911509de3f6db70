/* What tests of split targets compute with each split. */
#ifndef SPLIT_TEXT_H
#define SPLIT_TEXT_H

#include "rig.h"

enum { TEXT = 105, TREE = 20, SPLIT_SLOTS = TEXT + 60 };

/* A text, a tree after it, then a path of that tree moved to the end of the text, and a copy of it all in another
 * sequence. Returns the logits of the last pass, which has six rows; the caller frees them. The cache has two sequences
 * of SPLIT_SLOTS slots. */
static inline float *generate(rig *r) {
  row_list text = {0}, tree = {0}, next = {0};
  dt_snapshot *copy;
  for (int p = 0; p < TEXT; p++) row_add_plain(&text, 0, p * p % 89, p);
  free(rig_run(r, &text, true));
  row_add_tree(&tree, 0, TEXT, TREE, 5);
  free(rig_run(r, &tree, true));
  int32_t last = 1; /* the first row of the tree with a parent */
  while (tree.path_len[last] < 2) last++;
  ok(r->ops->move(r->cache, 0, tree.path[last], (int32_t[]){TEXT, TEXT + 1}, 2, &err));
  assert_int_equal(r->ops->keep(r->cache, 0, TEXT + 2), TEXT + 2);
  ok(r->ops->snapshot(r->cache, 0, TEXT + 2, &copy, &err));
  ok(r->ops->restore(r->cache, 1, copy, &err));
  r->ops->free_snapshot(copy);
  for (int i = 0; i < 3; i++)
    row_add_plain(&next, 0, 7 + i, TEXT + 2 + i), row_add_plain(&next, 1, 9 + i, TEXT + 2 + i);
  return rig_run(r, &next, true);
}

#endif
