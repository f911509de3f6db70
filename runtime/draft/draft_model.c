/* A separate draft model with the target's tokenizer, or a draft head: see draft.h. Row i of the committed text is in
 * slot i of its cache; the rows of the tree follow the text.
 *
 * A head's text is shifted by one: its row i reads token i + 1 together with the target's feature of row i. The text
 * that a head sees therefore begins with the second token; its last row is the root's, as in a model. A row of a tree
 * reads the head's own output for its parent, so each level of the tree needs a separate pass. None of these rows is
 * kept after a commit, since their features were guessed. */
#include "draft/results.h"
#include "draft/text_rows.h"
#include "system/min_max.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define NODES (1 + DT_TREE_ENTRIES)

/* Maximum number of committed tokens that join the pass of a step. If there are more, they are computed in a separate
 * pass first, so that a step has few rows, since the paths of its rows can be long. */
#define RIDE_ALONG 64
#define SEQUENCE_ROWS (DT_TREE_DRAFTS + RIDE_ALONG) /* maximum number of rows of a sequence in one step */

/* A pass has room for the rows of this many sequences that draft from the maximum number of nodes; more sequences take
 * several passes. It also has room for the longest paths of one sequence, or for shorter paths of many. */
#define PASS_SEQUENCES 8

typedef struct {
  int32_t *slot; /* [NODES] row of each node; -1: none */
  int nodes;     /* no node from here on has a row */
} tree_rows;

typedef struct {
  text_rows t;
  tree_rows *tree; /* [sequences] */
  int most;        /* maximum number of rows in the pass of a step */
  struct {
    int32_t seq, node; /* owner of a row; node -1: a committed token that joins the step */
  } * owner;           /* [most] */
  int32_t *wanted;     /* [most] */
  draft_results results;
} draft_model;

/* ---- a tree ------------------------------------------------------------------------------------------------------ */

static void draft_begin(drafter *base, int seq, int length) {
  draft_model *d = (draft_model *)base;
  tree_rows *q = &d->tree[seq];
  memset(q->slot, 0xff, (size_t)q->nodes * sizeof *q->slot);
  q->nodes = 0;
  kv_begin(&d->t.seq[seq].kv, text_rows_seen(&d->t, length));
}

static void own(draft_model *d, int seq, int node) {
  d->owner[d->t.rows.n - 1].seq = seq;
  d->owner[d->t.rows.n - 1].node = node;
}

/* Adds missing rows of the last committed tokens to the pass. The root's row belongs to the tree if it is wanted: then
 * it gets a result, and the call returns true. */
static bool add_ends(draft_model *d, int seq, const draft_text *text, bool with_root) {
  int first = d->t.seq[seq].kv.rows;
  if (with_root && first > text->length - 1) first = text->length - 1;
  for (int i = first; i < text->length; i++) {
    text_rows_add(&d->t, seq, text->tokens, i, i + 1);
    own(d, seq, i == text->length - 1 ? 0 : -1);
  }
  return first < text->length;
}

/* Adds a row for node u and, before it, rows for its ancestors that have none. Adds no row at all if it needs more than
 * `room` rows, or positions that the model does not have. Returns the number of rows. */
static int add_node(draft_model *d, int seq, const draft_text *text, int u, int room) {
  tree_rows *q = &d->tree[seq];
  const dt_tree *t = text->tree;
  int missing = 0;
  for (int v = u; v > 0 && q->slot[v] < 0; v = t->parent[v]) missing++;
  if (missing > room || text->length - 1 + t->depth[u] >= d->t.context) return 0;
  for (int above = missing - 1; above >= 0; above--) {
    int v = u;
    for (int up = above; up > 0; up--) v = t->parent[v];
    q->slot[v] = kv_reserve(&d->t.seq[seq].kv);
    q->nodes = dt_max(q->nodes, v + 1);
    int32_t *path =
        pass_row(&d->t.rows, seq, text_rows_token(&d->t, t->token[v]), q->slot[v], text->length, t->depth[v]);
    for (int a = v; a > 0; a = t->parent[a]) path[t->depth[a] - 1] = q->slot[a];
    own(d, seq, v);
  }
  return missing;
}

enum { ALL_LEVELS = -1 };

/* The node at this level on the path to u that has no result yet; -1: none. */
static int wanted_node(const dt_tree *t, int u, int level) {
  if (level != ALL_LEVELS) {
    if (t->depth[u] < level) return -1;
    while (t->depth[u] > level) u = t->parent[u];
  }
  return dt_tree_draft_of(t, u) ? -1 : u;
}

/* Adds a sequence's rows to the pass: for its nodes in the list, at one level of the tree or all levels. */
static void add_nodes(draft_model *d, int seq, const draft_text *text, const dt_node_ref *nodes, int n, int level) {
  bool any = false, root = false;
  for (int i = 0; i < n; i++) {
    int u = nodes[i].seq == seq ? wanted_node(text->tree, nodes[i].node, level) : -1;
    any |= u >= 0, root |= u == 0;
  }
  int room = any ? dt_tree_draft_room(text->tree) : 0;
  if (!room || text->length < 1 || text->length > d->t.context) return;
  room -= add_ends(d, seq, text, root);
  for (int i = 0; i < n; i++) {
    int u = nodes[i].seq == seq ? wanted_node(text->tree, nodes[i].node, level) : -1;
    if (u > 0) room -= add_node(d, seq, text, u, room);
  }
}

/* Stores the result of the pass after node u. */
static void take_result(const draft_model *d, dt_tree *t, int u, int result) {
  dt_tree_draft *to = dt_tree_new_draft(t, u);
  if (!to) return;
  draft_results_read(&d->results, result, to);
  dt_tree_calibrate_draft(t, to);
}

/* Removes the rows of nodes, as if they had never been added. */
static void take_back(draft_model *d) {
  for (int i = 0; i < d->t.rows.n; i++) {
    if (d->owner[i].node <= 0) continue;
    d->tree[d->owner[i].seq].slot[d->owner[i].node] = -1;
    kv_give_back(&d->t.seq[d->owner[i].seq].kv, 1);
  }
}

/* Runs the collected rows, and counts the time since *start for their sequences. */
static dt_status run_step(draft_model *d, const draft_text *texts, double *start, dt_error *err) {
  dt_out out = draft_results_out(&d->results, d->wanted, d->t.sampling, d->t.vocab);
  if (d->t.rows.n == 0) return DT_OK;
  d->t.rows.features = d->owner[d->t.rows.n - 1].node <= 0 ? d->t.features : NULL;
  dt_rows rows = pass_rows(&d->t.rows);
  for (int i = 0; i < rows.n; i++)
    if (d->owner[i].node >= 0) {
      const draft_text *text = &texts[d->owner[i].seq];
      d->wanted[out.n] = i;
      draft_results_want(&d->results, &out, text->adjustments, text->tree, d->owner[i].node);
    }
  dt_status status = d->t.pair->ops->forward(d->t.draft->weights, d->t.cache, &rows, &out, err);
  if (status) {
    take_back(d);
    return status;
  }
  for (int j = 0; j < out.n; j++)
    take_result(d, texts[d->owner[d->wanted[j]].seq].tree, d->owner[d->wanted[j]].node, j);
  double now = dt_clock_ms();
  for (int i = 0; i < rows.n; i++) { /* rows of a sequence are adjacent */
    int seq = d->owner[i].seq;
    dt_stats *stats = texts[seq].stats;
    stats->draft_rows++;
    if (i > 0 && d->owner[i - 1].seq == seq) continue;
    d->t.seq[seq].kv.rows = text_rows_seen(&d->t, texts[seq].length);
    stats->draft_passes++;
    stats->draft_ms += now - *start;
  }
  *start = now;
  pass_begin(&d->t.rows, d->t.rows.path_stride);
  return DT_OK;
}

/* Runs passes for nodes at one level of the trees, or at all levels. */
static dt_status step_level(draft_model *d, const draft_text *texts, const dt_node_ref *nodes, int n, int level,
                            double *start, dt_error *err) {
  int longest = 1;
  for (int i = 0; i < n; i++) longest = dt_max(longest, texts[nodes[i].seq].tree->deepest);
  pass_begin(&d->t.rows, dt_min(longest, DT_TREE_DRAFTS)); /* a deeper row would need too many rows before it */
  dt_status status = DT_OK;
  for (int seq = 0; seq < d->t.sequences && !status; seq++) {
    bool fits = d->t.rows.n + SEQUENCE_ROWS <= d->most && pass_fits(&d->t.rows, SEQUENCE_ROWS);
    if (!fits) status = run_step(d, texts, start, err);
    if (!status) {
      draft_text text = text_rows_view(&d->t, texts[seq]);
      add_nodes(d, seq, &text, nodes, n, level);
    }
  }
  return status ? status : run_step(d, texts, start, err);
}

static int deepest_of(const draft_text *texts, const dt_node_ref *nodes, int n) {
  int depth = 0;
  for (int i = 0; i < n; i++) depth = dt_max(depth, texts[nodes[i].seq].tree->depth[nodes[i].node]);
  return depth;
}

/* Whether the node gets its guesses from a pass. */
static bool wants_pass(const draft_model *d, const draft_text *texts, dt_node_ref node) {
  const draft_text *text = &texts[node.seq];
  return !dt_tree_draft_of(text->tree, node.node) && text_rows_seen(&d->t, text->length) <= d->t.context;
}

/* Computes the rows of a text that do not ride along, in a pass of their own. */
static dt_status catch_up(draft_model *d, int seq, const draft_text *whole, dt_error *err) {
  const draft_text text = text_rows_view(&d->t, *whole);
  const int before = d->t.seq[seq].kv.rows, last = text.length - RIDE_ALONG;
  if (before >= last) return DT_OK;
  pass_begin(&d->t.rows, 1);
  dt_status status = text_rows_collect(&d->t, seq, &text, last, err);
  if (!status) status = text_rows_run(&d->t, err);
  if (status) {
    d->t.seq[seq].kv.rows = before;
    return status;
  }
  text.stats->draft_passes++;
  text.stats->draft_rows += last - before;
  return DT_OK;
}

static dt_status draft_step(drafter *base, const draft_text *texts, const dt_node_ref *nodes, int n, dt_error *err) {
  draft_model *d = (draft_model *)base;
  dt_status status = DT_OK;
  int left;
  for (int i = 0; i < n && !status; i++)
    if (wants_pass(d, texts, nodes[i]))
      status = text_rows_prompt(base, nodes[i].seq, &texts[nodes[i].seq], INT_MAX, &left, err);
  double start = dt_clock_ms();
  for (int i = 0; i < n && !status; i++)
    if (wants_pass(d, texts, nodes[i])) status = catch_up(d, nodes[i].seq, &texts[nodes[i].seq], err);
  if (!d->t.features && !status) status = step_level(d, texts, nodes, n, ALL_LEVELS, &start, err);
  int levels = d->t.features ? 1 + deepest_of(texts, nodes, n) : 0;
  for (int level = 0; level < levels && !status; level++) status = step_level(d, texts, nodes, n, level, &start, err);
  for (int i = 0; i < n && !status; i++) dt_tree_no_draft(texts[nodes[i].seq].tree, nodes[i].node);
  return status;
}

/* Keeps the longest run of nodes from the path's beginning that have rows, if the text before them has rows too. A head
 * keeps none. */
static dt_status draft_keep(drafter *base, int seq, int before, const int32_t *path, int n, dt_error *err) {
  draft_model *d = (draft_model *)base;
  const tree_rows *q = &d->tree[seq];
  kv_slots *kv = &d->t.seq[seq].kv;
  int32_t slot[DT_TREE_VERIFY], from[DT_TREE_VERIFY], to[DT_TREE_VERIFY];
  int run = 0;
  if (kv->rows == before && !d->t.features)
    while (run < n && q->slot[path[run]] >= 0) slot[run] = q->slot[path[run]], run++;
  int moves = kv_keep(kv, slot, run, from, to);
  return moves ? d->t.pair->ops->move(d->t.cache, seq, from, to, moves, err) : DT_OK;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void draft_close(drafter *base) {
  draft_model *d = (draft_model *)base;
  for (int i = 0; d->tree && i < d->t.sequences; i++) free(d->tree[i].slot);
  text_rows_close(&d->t);
  draft_results_close(&d->results);
  free(d->tree), free(d->owner), free(d->wanted);
  free(d);
}

static const draft_ops model_ops = {.close = draft_close,
                                    .start = text_rows_start,
                                    .prompt = text_rows_prompt,
                                    .rows = text_rows_rows,
                                    .blank = text_rows_blank,
                                    .save = text_rows_save,
                                    .restore = text_rows_restore,
                                    .forget = text_rows_forget,
                                    .begin = draft_begin,
                                    .step = draft_step,
                                    .keep = draft_keep};

static dt_status open_trees(draft_model *d, dt_error *err) {
  d->tree = calloc((size_t)d->t.sequences, sizeof *d->tree);
  bool room = d->tree;
  for (int i = 0; i < d->t.sequences && room; i++) {
    d->tree[i].slot = malloc(NODES * sizeof *d->tree[i].slot);
    room = d->tree[i].slot;
    if (room) memset(d->tree[i].slot, 0xff, NODES * sizeof *d->tree[i].slot);
  }
  return room ? DT_OK : dt_fail_memory(err, "a draft model's sequences", NODES * sizeof *d->tree->slot);
}

/* Opens room for the rows of a whole text, or of some sequences that draft. */
static dt_status open_rows(draft_model *d, dt_error *err) {
  d->most = dt_min(d->t.sequences, PASS_SEQUENCES) * SEQUENCE_ROWS;
  int rows = dt_max(d->most, d->t.context);
  dt_status status = pass_open(&d->t.rows, rows, (size_t)dt_max(rows, SEQUENCE_ROWS * DT_TREE_DRAFTS), err);
  if (status) return status;
  size_t n = (size_t)d->most;
  d->owner = malloc(n * sizeof *d->owner);
  d->wanted = malloc(n * sizeof *d->wanted);
  if (!d->owner || !d->wanted) return dt_fail_memory(err, "the rows of a draft step", n * sizeof *d->owner);
  return draft_results_open(&d->results, d->most, DT_CANDIDATES, d->t.rows.path_capacity, err);
}

dt_status draft_model_open(const dt_pair *pair, int sequences, int context, const dt_sampling *sampling,
                           const dt_cache *target, drafter **out, dt_error *err) {
  draft_model *d = calloc(1, sizeof *d);
  if (!d) return dt_fail_memory(err, "a drafter", sizeof *d);
  d->t.base.ops = &model_ops;
  dt_status status = text_rows_open(&d->t, pair, sequences, context, sampling, target, err);
  if (!status) status = open_trees(d, err);
  if (!status) status = open_rows(d, err);
  if (!status) status = text_rows_open_cache(&d->t, err);
  if (status)
    draft_close(&d->t.base);
  else
    *out = &d->t.base;
  return status;
}
