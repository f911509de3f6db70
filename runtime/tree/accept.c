/* The accepted path: see accept.h. */
#include "tree/accept.h"

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
    next = choice[dt_tree_row(t, u)];
  }
  if (next < 0 && n > 0) next = t->token[path[--n]];
  *bonus = next;
  if (next >= 0) t->phase = TREE_VERIFIED;
  return n;
}
