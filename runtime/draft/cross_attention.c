/* A cross-attention head as a drafter: see draft.h and dt_head_kind. It stores no rows of the text, since its rows see
 * those of the target. For a tree it stores the features of the nodes that it has drafted from. The row of a node reads
 * the feature of its parent, so each level of the tree needs a separate pass; the root's row reads the feature of the
 * target's last row. */
#include "backend/pass.h"
#include "draft/draft.h"
#include "draft/results.h"
#include "draft/rowless.h"

#include <stdlib.h>
#include <string.h>

#define NODES (1 + DT_TREE_ENTRIES)
#define PASS_SEQUENCES 8 /* a pass has room for this many sequences that draft from the maximum number of nodes */

typedef struct {
  int32_t *slot; /* [NODES] slot of each node's feature; -1: none */
  int nodes;     /* no node from here on has one */
  int used;      /* slots */
} features_of;

typedef struct {
  drafter base;
  const dt_pair *pair;
  const pair_draft *draft; /* the pair's draft */
  dt_cache *cache;         /* features only */
  int sequences, context, vocab;
  const dt_cache *target;      /* the target's */
  const dt_sampling *sampling; /* [sequences] */
  features_of *seq;            /* [sequences] */
  pass rows;
  int most;        /* maximum number of rows of a pass */
  int32_t *node;   /* [most] the node of each row */
  int32_t *wanted; /* [most] rows, in this order */
  draft_results results;
} draft_cross_attention;

/* ---- a tree ------------------------------------------------------------------------------------------------------ */

static void cross_attention_begin(drafter *base, int seq, int length) {
  (void)length;
  features_of *q = &((draft_cross_attention *)base)->seq[seq];
  memset(q->slot, 0xff, (size_t)q->nodes * sizeof *q->slot);
  q->nodes = q->used = 0;
}

/* The node at this level on the path to u; -1: none. */
static int node_at(const dt_tree *t, int u, int level) {
  if (t->depth[u] < level) return -1;
  while (t->depth[u] > level) u = t->parent[u];
  return u;
}

/* Whether a row for node u can be computed now: the text has a row before its last, the guess a position in the
 * context, and the parent a feature. `room`: how many more nodes of the tree may be drafted from. */
static bool can_guess(const draft_cross_attention *d, int seq, const draft_text *text, int u, int room) {
  const dt_tree *t = text->tree;
  const features_of *q = &d->seq[seq];
  return !dt_tree_draft_of(t, u) && q->slot[u] < 0 && room > 0 && text->length >= 2 &&
         text->length + t->depth[u] <= d->context && (u == 0 || q->slot[t->parent[u]] >= 0);
}

/* Slots from the root's position on hold features of its tree. */
static void add_node(draft_cross_attention *d, int seq, const draft_text *text, int u) {
  features_of *q = &d->seq[seq];
  int position = text->length - 1, parent = u ? q->slot[text->tree->parent[u]] : -1;
  q->slot[u] = position + q->used++;
  if (u >= q->nodes) q->nodes = u + 1;
  d->node[d->rows.n] = u;
  int32_t *path = pass_row(&d->rows, seq, text->tokens[position], q->slot[u], u ? position - 1 : position, u ? 2 : 1);
  if (u) d->rows.token[d->rows.n - 1] = text->tree->token[u], *path++ = parent;
  *path = q->slot[u];
}

static void take_result(const draft_cross_attention *d, dt_tree *t, int u, int result) {
  dt_tree_draft *to = dt_tree_new_draft(t, u);
  if (!to) return;
  draft_results_read(&d->results, result, to);
  dt_tree_calibrate_draft(t, to);
}

/* Runs the collected rows, all of one level, and counts the time since *start for their sequences. */
static dt_status run(draft_cross_attention *d, const draft_text *texts, int level, double *start, dt_error *err) {
  if (d->rows.n == 0) return DT_OK;
  dt_rows rows = pass_rows(&d->rows);
  rows.features = d->target;
  rows.distance = level;
  dt_out out = draft_results_out(&d->results, d->wanted, d->sampling, d->vocab);
  for (int i = 0; i < rows.n; i++) {
    const draft_text *text = &texts[rows.sequence[i]];
    draft_results_want(&d->results, &out, text->adjustments, text->tree, d->node[i]);
  }
  dt_status status = d->pair->ops->forward(d->draft->weights, d->cache, &rows, &out, err);
  double now = dt_clock_ms();
  for (int i = 0; i < rows.n; i++) { /* rows of a sequence are adjacent */
    int seq = rows.sequence[i];
    dt_stats *stats = texts[seq].stats;
    if (status) {
      d->seq[seq].slot[d->node[i]] = -1, d->seq[seq].used--;
      continue;
    }
    take_result(d, texts[seq].tree, d->node[i], i);
    stats->draft_rows++;
    if (i > 0 && rows.sequence[i - 1] == seq) continue;
    stats->draft_passes++;
    stats->draft_ms += now - *start;
  }
  *start = now;
  pass_begin(&d->rows, 2);
  return status;
}

/* Runs passes for nodes at one level of the trees. */
static dt_status step_level(draft_cross_attention *d, const draft_text *texts, const dt_node_ref *nodes, int n,
                            int level, double *start, dt_error *err) {
  dt_status status = DT_OK;
  pass_begin(&d->rows, 2);
  for (int seq = 0; seq < d->sequences && !status; seq++) {
    if (d->rows.n + DT_TREE_DRAFTS > d->most) status = run(d, texts, level, start, err);
    int before = d->rows.n;
    for (int i = 0; i < n && !status; i++) {
      if (nodes[i].seq != seq) continue;
      const draft_text *text = &texts[seq];
      int u = node_at(text->tree, nodes[i].node, level);
      int room = dt_tree_draft_room(text->tree) - (d->rows.n - before);
      if (u >= 0 && can_guess(d, seq, text, u, room)) add_node(d, seq, text, u);
    }
  }
  return status ? status : run(d, texts, level, start, err);
}

static dt_status cross_attention_step(drafter *base, const draft_text *texts, const dt_node_ref *nodes, int n,
                                      dt_error *err) {
  draft_cross_attention *d = (draft_cross_attention *)base;
  double start = dt_clock_ms();
  int deepest = 0;
  dt_status status = DT_OK;
  for (int i = 0; i < n; i++) {
    int depth = texts[nodes[i].seq].tree->depth[nodes[i].node];
    if (depth > deepest) deepest = depth;
  }
  for (int level = 0; level <= deepest && !status; level++) status = step_level(d, texts, nodes, n, level, &start, err);
  for (int i = 0; i < n && !status; i++) dt_tree_no_draft(texts[nodes[i].seq].tree, nodes[i].node);
  return status;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void cross_attention_close(drafter *base) {
  draft_cross_attention *d = (draft_cross_attention *)base;
  for (int i = 0; d->seq && i < d->sequences; i++) free(d->seq[i].slot);
  if (d->cache) d->pair->ops->free_cache(d->cache);
  pass_close(&d->rows);
  draft_results_close(&d->results);
  free(d->seq), free(d->node), free(d->wanted);
  free(d);
}

static const draft_ops cross_attention_ops = {.close = cross_attention_close,
                                              .start = rowless_start,
                                              .prompt = rowless_prompt,
                                              .rows = rowless_rows,
                                              .blank = rowless_blank,
                                              .save = rowless_save,
                                              .restore = rowless_restore,
                                              .forget = rowless_forget,
                                              .begin = cross_attention_begin,
                                              .step = cross_attention_step,
                                              .keep = rowless_keep};

/* A row at level L has L guesses on its path, all of them drafted from, so there are at most DT_TREE_DRAFTS - L such
 * rows. The paths of a tree therefore have at most DT_TREE_DRAFTS^2 / 4 guesses. */
static dt_status open_rows(draft_cross_attention *d, dt_error *err) {
  size_t most = (size_t)d->most;
  d->seq = calloc((size_t)d->sequences, sizeof *d->seq);
  d->node = malloc(most * sizeof *d->node);
  d->wanted = malloc(most * sizeof *d->wanted);
  bool room = d->seq && d->node && d->wanted;
  for (int i = 0; room && i < d->sequences; i++) {
    d->seq[i].slot = malloc(NODES * sizeof *d->seq[i].slot);
    room = d->seq[i].slot;
    if (room) memset(d->seq[i].slot, 0xff, NODES * sizeof *d->seq[i].slot);
  }
  if (!room) return dt_fail_memory(err, "a head's rows", most * sizeof *d->node);
  for (int i = 0; i < d->most; i++) d->wanted[i] = i;
  dt_status status = pass_open(&d->rows, d->most, 2 * most, err);
  d->rows.window = d->draft->window;
  return status ? status : draft_results_open(&d->results, d->most, DT_CANDIDATES, most * DT_TREE_DRAFTS / 4, err);
}

dt_status draft_cross_attention_open(const dt_pair *pair, int sequences, int context, const dt_sampling *sampling,
                                     const dt_cache *target, drafter **out, dt_error *err) {
  draft_cross_attention *d = calloc(1, sizeof *d);
  if (!d) return dt_fail_memory(err, "a drafter", sizeof *d);
  const pair_draft *draft = &pair->draft;
  *d = (draft_cross_attention){.base.ops = &cross_attention_ops,
                               .pair = pair,
                               .draft = draft,
                               .sequences = sequences,
                               .context = context < draft->info.context ? context : draft->info.context,
                               .vocab = pair->target_info.vocab,
                               .target = target,
                               .sampling = sampling,
                               .most = (sequences < PASS_SEQUENCES ? sequences : PASS_SEQUENCES) * DT_TREE_DRAFTS};
  dt_status status = open_rows(d, err);
  if (!status) status = pair->ops->create_cache(draft->weights, sequences, d->context + DT_TREE_DRAFTS, &d->cache, err);
  if (status)
    cross_attention_close(&d->base);
  else
    *out = &d->base;
  return status;
}
