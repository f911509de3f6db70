/* The token tree: see tree.h. */
#include "tree/tree.h"
#include "system/need.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY (1 + DT_TREE_ENTRIES)

dt_status dt_tree_open(dt_tree **out, dt_error *err) {
  NEED(out, "out");
  dt_tree *t = calloc(1, sizeof *t);
  if (!t) return dt_fail_memory(err, "a token tree", sizeof *t);
  t->token = malloc(CAPACITY * sizeof(int32_t));
  t->parent = malloc(CAPACITY * sizeof(int32_t));
  t->depth = malloc(CAPACITY * sizeof(int32_t));
  t->first_child = malloc(CAPACITY * sizeof(int32_t));
  t->last_child = malloc(CAPACITY * sizeof(int32_t));
  t->next_sibling = malloc(CAPACITY * sizeof(int32_t));
  t->logp = malloc(CAPACITY * sizeof(float));
  t->own = malloc(CAPACITY * sizeof(float));
  t->cumlogp = malloc(CAPACITY * sizeof(double));
  t->draft = malloc(CAPACITY * sizeof(int16_t));
  t->verdict = malloc(CAPACITY);
  t->kept = malloc(CAPACITY);
  t->drafts = calloc(DT_TREE_DRAFTS + 1, sizeof(dt_tree_draft));
  t->kept_node = malloc(DT_TREE_VERIFY * sizeof(int32_t));
  t->scratch = malloc(2 * CAPACITY * sizeof(int32_t));
  if (!t->token || !t->parent || !t->depth || !t->first_child || !t->last_child || !t->next_sibling || !t->logp ||
      !t->own || !t->cumlogp || !t->draft || !t->verdict || !t->kept || !t->drafts || !t->kept_node || !t->scratch) {
    dt_tree_close(t);
    return dt_fail_memory(err, "a token tree", CAPACITY * 40ull + DT_TREE_DRAFTS * sizeof(dt_tree_draft));
  }
  dt_tree_reset(t, 0, 0, 1);
  *out = t;
  return DT_OK;
}

void dt_tree_close(dt_tree *t) {
  if (!t) return;
  free(t->token), free(t->parent), free(t->depth);
  free(t->first_child), free(t->last_child), free(t->next_sibling);
  free(t->logp), free(t->own), free(t->cumlogp), free(t->draft), free(t->verdict), free(t->kept);
  free(t->drafts), free(t->kept_node), free(t->scratch);
  free(t);
}

static int append(dt_tree *t, int parent, int32_t token, float logp, float own) {
  int v = t->nodes++;
  t->token[v] = token;
  t->parent[v] = parent;
  t->depth[v] = parent < 0 ? 0 : t->depth[parent] + 1;
  t->first_child[v] = t->last_child[v] = t->next_sibling[v] = -1;
  t->logp[v] = logp;
  t->own[v] = own;
  t->cumlogp[v] = parent < 0 ? 0 : t->cumlogp[parent] + logp;
  t->draft[v] = -1;
  t->verdict[v] = -1;
  t->kept[v] = 0;
  if (parent >= 0) {
    if (t->last_child[parent] < 0)
      t->first_child[parent] = v;
    else
      t->next_sibling[t->last_child[parent]] = v;
    t->last_child[parent] = v;
    if (t->depth[v] > t->deepest) t->deepest = t->depth[v];
  }
  return v;
}

void dt_tree_reset(dt_tree *t, int32_t root, int max_depth, int vocab) {
  if (!t) return;
  t->phase = TREE_OPEN;
  t->nodes = 0;
  t->limit = DT_TREE_VERIFY;
  t->max_depth = max_depth > 0 ? max_depth : 0;
  t->deepest = 0;
  t->vocab = vocab > 0 ? vocab : 0;
  t->calibration = (dt_tree_calibration){.scale = 1, .slope = 1, .share = 1};
  t->n_drafts = 0;
  t->n_kept = 0;
  append(t, -1, root, 0, 0);
  t->kept[0] = 1;
}

int dt_tree_size(const dt_tree *t) { return t ? t->nodes - 1 : 0; }

int dt_tree_room(const dt_tree *t) { return t ? t->limit - dt_tree_size(t) : 0; }

int dt_tree_depth_room(const dt_tree *t) { return t ? t->max_depth - t->deepest : 0; }

dt_status dt_tree_check_open(const dt_tree *t, dt_error *err) {
  NEED(t, "tree");
  if (t->phase == TREE_OPEN) return DT_OK;
  return dt_fail(err, DT_ESTATE, "the tree cannot change any more: %s",
                 t->phase == TREE_SEALED     ? "keep has settled what is verified"
                 : t->phase == TREE_VERIFIED ? "it is verified; commit or rollback comes next"
                                             : "its iteration is committed; the next draft starts an empty one");
}

static bool has_node(const dt_tree *t, int u) { return t && u >= 0 && u < t->nodes; }

dt_status dt_tree_check(const dt_tree *t, int u, const char *what, dt_error *err) {
  NEED(t, "tree");
  if (has_node(t, u)) return DT_OK;
  return dt_fail(err, DT_ESTATE, "%s: there is no node %d (the tree has 0..%d)", what ? what : "node", u, t->nodes - 1);
}

dt_status dt_tree_limit(dt_tree *t, int limit, dt_error *err) {
  dt_status s = dt_tree_check_open(t, err);
  if (s) return s;
  if (limit < 1 || limit > DT_TREE_ENTRIES)
    return dt_fail(err, DT_ESTATE, "limit: %d is out of range: 1..%d", limit, DT_TREE_ENTRIES);
  if (limit < dt_tree_size(t))
    return dt_fail(err, DT_ESTATE, "limit: %d is below the tree's present size %d", limit, dt_tree_size(t));
  t->limit = limit;
  return DT_OK;
}

int dt_tree_child(const dt_tree *t, int u, int32_t token) {
  if (!has_node(t, u)) return -1;
  for (int v = t->first_child[u]; v >= 0; v = t->next_sibling[v])
    if (t->token[v] == token) return v;
  return -1;
}

int dt_tree_row(const dt_tree *t, int u) {
  if (!has_node(t, u) || t->phase < TREE_SEALED) return -1;
  int low = 0, high = t->n_kept; /* kept_node is ascending */
  while (low < high) {
    int middle = (low + high) / 2;
    if (t->kept_node[middle] < u)
      low = middle + 1;
    else
      high = middle;
  }
  return u == 0 ? 0 : low < t->n_kept && t->kept_node[low] == u ? low + 1 : -1;
}

static bool has_room_below(const dt_tree *t, int u) { return dt_tree_room(t) > 0 && t->depth[u] < t->max_depth; }

dt_status dt_tree_add(dt_tree *t, int u, int32_t token, float logp, int *v, dt_error *err) {
  dt_status s = dt_tree_check_open(t, err);
  if (!s) s = dt_tree_check(t, u, "parent", err);
  if (s) return s;
  if (token < 0 || token >= t->vocab)
    return dt_fail(err, DT_ESTATE, "token: %d is out of range: 0..%d", token, t->vocab - 1);
  NEED(v, "v");
  if (!(logp <= 0)) return dt_fail(err, DT_ESTATE, "logp: %g is not a log-probability: at most 0", (double)logp);
  *v = dt_tree_child(t, u, token);
  if (*v < 0 && has_room_below(t, u)) *v = append(t, u, token, logp, logp);
  return DT_OK;
}

/* Fails unless the tree grows and u is a node with candidates. */
static dt_status check_branch(const dt_tree *t, int u, dt_error *err) {
  dt_status s = dt_tree_check_open(t, err);
  if (!s) s = dt_tree_check(t, u, "node", err);
  if (!s && !dt_tree_draft_of(t, u))
    s = dt_fail(err, DT_ESTATE, "node %d has no candidates yet: call draft_step first", u);
  return s;
}

dt_status dt_tree_branch(dt_tree *t, int u, int b, int *first, int *last, dt_error *err) {
  NEED(first, "first");
  NEED(last, "last");
  dt_status s = check_branch(t, u, err);
  if (s) return s;
  const dt_tree_draft *d = dt_tree_draft_of(t, u);
  *first = t->nodes;
  for (int i = 0, added = 0; i < d->count && added < b && has_room_below(t, u); i++)
    if (dt_tree_child(t, u, d->token[i]) < 0) {
      append(t, u, d->token[i], d->logp[i], d->own[i]);
      added++;
    }
  *last = t->nodes - 1;
  return DT_OK;
}

/* Moves *next to the first candidate of u, from *next on, that is not a child of u yet; false: none. */
static bool seek_candidate(const dt_tree *t, int u, int32_t *next) {
  const dt_tree_draft *d = dt_tree_draft_of(t, u);
  while (*next < d->count && dt_tree_child(t, u, d->token[*next]) >= 0) ++*next;
  return *next < d->count;
}

/* The place in `open`, a list of nodes with their next candidates, of the node whose candidate makes the likeliest
 * path. */
static int likeliest(const dt_tree *t, const int32_t *open, int n, const int32_t *next) {
  int best = -1;
  double best_cumlogp = 0;
  for (int i = 0; i < n; i++) {
    double cumlogp = t->cumlogp[open[i]] + dt_tree_draft_of(t, open[i])->logp[next[open[i]]];
    if (best < 0 || cumlogp > best_cumlogp) best = i, best_cumlogp = cumlogp;
  }
  return best;
}

dt_status dt_tree_branch_best(dt_tree *t, const int32_t *ids, int n, int k, int *first, int *last, dt_error *err) {
  NEED_LIST(ids, n, "ids");
  NEED(first, "first");
  NEED(last, "last");
  dt_status s = dt_tree_check_open(t, err);
  for (int i = 0; i < n && !s; i++) s = check_branch(t, ids[i], err);
  if (s) return s;
  int32_t *open = t->scratch;            /* nodes that can get a child, each once */
  int32_t *next = t->scratch + CAPACITY; /* [node] its first candidate that is not a child; -1: node not listed */
  int n_open = 0;
  memset(next, 0xff, (size_t)t->nodes * sizeof *next);
  for (int i = 0; i < n; i++) {
    int u = ids[i];
    if (next[u] >= 0) continue;
    next[u] = 0;
    if (t->depth[u] < t->max_depth && seek_candidate(t, u, &next[u])) open[n_open++] = u;
  }
  *first = t->nodes;
  for (int added = 0; added < k && n_open > 0 && dt_tree_room(t) > 0; added++) {
    int i = likeliest(t, open, n_open, next), u = open[i];
    const dt_tree_draft *d = dt_tree_draft_of(t, u);
    append(t, u, d->token[next[u]], d->logp[next[u]], d->own[next[u]]);
    if (!seek_candidate(t, u, &next[u])) memmove(open + i, open + i + 1, (size_t)(--n_open - i) * sizeof *open);
  }
  *last = t->nodes - 1;
  return DT_OK;
}

static bool better(const dt_tree *t, int32_t a, int32_t b) {
  return t->cumlogp[a] > t->cumlogp[b] || (t->cumlogp[a] == t->cumlogp[b] && a < b);
}

/* Restores the heap whose root is the worst of its n nodes, from place i downwards. */
static void sift(const dt_tree *t, int32_t *heap, int i, int n) {
  for (int child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && better(t, heap[child], heap[child + 1])) child++;
    if (!better(t, heap[i], heap[child])) return;
    int32_t swap = heap[i];
    heap[i] = heap[child], heap[child] = swap;
  }
}

int dt_tree_best(const dt_tree *t, int k, int first, int last, int32_t *out) {
  int n = 0;
  if (k <= 0 || !out || !has_node(t, first) || !has_node(t, last)) return 0;
  for (int v = first; v <= last; v++) { /* out is a heap of the k best so far, the worst at its root */
    if (n < k) {
      out[n++] = v;
      if (n == k || v == last)
        for (int i = n / 2 - 1; i >= 0; i--) sift(t, out, i, n);
    } else if (better(t, v, out[0])) {
      out[0] = v;
      sift(t, out, 0, n);
    }
  }
  for (int left = n - 1; left > 0; left--) { /* moves the worst to the back, one after the other */
    int32_t worst = out[0];
    out[0] = out[left], out[left] = worst;
    sift(t, out, 0, left);
  }
  return n;
}

/* Lists the nodes marked in kept, and closes the tree. */
static void seal(dt_tree *t) {
  t->n_kept = 0;
  for (int v = 1; v < t->nodes; v++)
    if (t->kept[v]) t->kept_node[t->n_kept++] = v;
  t->phase = TREE_SEALED;
}

static void forget_kept(dt_tree *t) { memset(t->kept + 1, 0, (size_t)(t->nodes - 1)); }

dt_status dt_tree_keep(dt_tree *t, const int32_t *ids, int n, dt_error *err) {
  NEED(t, "tree");
  NEED_LIST(ids, n, "ids");
  dt_status s = dt_tree_check_open(t, err);
  int count = 0;
  for (int i = 0; i < n && !s; i++) {
    if ((s = dt_tree_check(t, ids[i], "keep", err))) break;
    count += !t->kept[ids[i]];
    t->kept[ids[i]] = 1;
  }
  for (int i = 0; i < n && !s; i++)
    if (ids[i] > 0 && !t->kept[t->parent[ids[i]]])
      s = dt_fail(err, DT_ESTATE, "keep: node %d is kept without its parent %d", ids[i], t->parent[ids[i]]);
  if (!s && count > DT_TREE_VERIFY)
    s = dt_fail(err, DT_ESTATE, "keep: %d nodes are more than one pass verifies: at most %d", count, DT_TREE_VERIFY);
  if (s) {
    if (t->phase == TREE_OPEN) forget_kept(t);
    return s;
  }
  seal(t);
  return DT_OK;
}

dt_status dt_tree_keep_best(dt_tree *t, int k, dt_error *err) {
  dt_status s = dt_tree_check_open(t, err);
  if (s) return s;
  if (k < 0 || k > DT_TREE_VERIFY) return dt_fail(err, DT_ESTATE, "keep: %d is out of range: 0..%d", k, DT_TREE_VERIFY);
  int n = dt_tree_best(t, k, 1, t->nodes - 1, t->scratch);
  return dt_tree_keep(t, t->scratch, n, err);
}

dt_status dt_tree_check_seal(const dt_tree *t, dt_error *err) {
  NEED(t, "tree");
  if (t->phase == TREE_SEALED) return DT_OK;
  dt_status s = dt_tree_check_open(t, err);
  if (!s && dt_tree_size(t) > DT_TREE_VERIFY)
    s = dt_fail(err, DT_ESTATE, "the tree has %d nodes and one pass verifies at most %d: call keep first",
                dt_tree_size(t), DT_TREE_VERIFY);
  return s;
}

dt_status dt_tree_seal(dt_tree *t, dt_error *err) {
  dt_status s = dt_tree_check_seal(t, err);
  if (s || t->phase == TREE_SEALED) return s;
  memset(t->kept + 1, 1, (size_t)dt_tree_size(t));
  seal(t);
  return DT_OK;
}

int dt_tree_draft_room(const dt_tree *t) { return t ? DT_TREE_DRAFTS - t->n_drafts : 0; }

static bool is_undrafted(const dt_tree *t, int u) { return has_node(t, u) && t->draft[u] < 0; }

void dt_tree_no_draft(dt_tree *t, int u) {
  if (is_undrafted(t, u)) t->draft[u] = DT_TREE_DRAFTS;
}

dt_tree_draft *dt_tree_new_draft(dt_tree *t, int u) {
  if (!is_undrafted(t, u)) return NULL;
  if (!dt_tree_draft_room(t)) {
    dt_tree_no_draft(t, u);
    return NULL;
  }
  t->draft[u] = (int16_t)t->n_drafts;
  return &t->drafts[t->n_drafts++];
}

const dt_tree_draft *dt_tree_draft_of(const dt_tree *t, int u) {
  int i = has_node(t, u) ? t->draft[u] : -1;
  return i < 0 ? NULL : &t->drafts[i];
}
