/* The accepted path: see accept.h. */
#include "accept.h"

int accept_path(dt_tree *t, const int32_t *choice, int32_t *path, int32_t *bonus) {
  int n = 0, u = 0;
  int32_t next = choice[0];
  for (;;) {
    int child = -1;
    for (int v = t->first_child[u]; v >= 0; v = t->next_sibling[v]) {
      if (!t->kept[v]) continue;
      t->verdict[v] = t->token[v] == next;
      if (t->verdict[v]) child = v;
    }
    if (child < 0) break;
    path[n++] = u = child;
    int low = 0, high = t->n_kept - 1; /* the verified row of u: kept_node is ascending */
    while (low < high) {
      int middle = (low + high) / 2;
      if (t->kept_node[middle] < u)
        low = middle + 1;
      else
        high = middle;
    }
    next = choice[low + 1];
  }
  if (next < 0 && n > 0) next = t->token[path[--n]];
  *bonus = next;
  if (next >= 0) t->phase = TREE_VERIFIED;
  return n;
}
