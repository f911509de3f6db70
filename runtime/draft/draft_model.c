/* A separate draft model with the target's tokenizer, or a draft head: see draft.h. Row i of the committed text is in
 * slot i of its cache; the rows of the tree follow the text.
 *
 * A head's text is shifted by one: its row i reads token i + 1 together with the target's feature of row i. The text
 * that a head sees therefore begins with the second token; its last row is the root's, as in a model. A row of a tree
 * reads the head's own output for its parent, so each level of the tree needs a separate pass. None of these rows is
 * kept after a commit, since their features were guessed. */
#include "backend/kv.h"
#include "backend/pass.h"
#include "draft/draft.h"
#include "draft/results.h"
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
  kv_slots kv;
  int prompt;    /* rows 0..prompt-1 belong to the prompt */
  int32_t *slot; /* [NODES] row of each node; -1: none */
  int nodes;     /* no node from here on has a row */
} rows_of;

typedef struct {
  drafter base;
  const dt_pair *pair;
  const pair_draft *draft; /* the pair's draft */
  int which;               /* its number */
  dt_cache *cache;
  int sequences, context;
  int vocab;                   /* ids below it are in both models */
  int lag;                     /* tokens at the text's beginning that the draft does not see: 1 for a head */
  const dt_cache *features;    /* the target's cache, which a head reads; NULL: a model */
  const dt_sampling *sampling; /* [sequences] */
  rows_of *seq;                /* [sequences] */
  pass rows;
  int most; /* maximum number of rows in the pass of a step */
  struct {
    int32_t seq, node; /* owner of a row; node -1: a committed token that joins the step */
  } * owner;           /* [most] */
  int32_t *wanted;     /* [most] */
  draft_results results;
} draft_model;

struct draft_saved {
  const dt_pair *pair;
  dt_snapshot *rows;
  int n;
};

static int context_of(const pair_draft *draft, int context) { return dt_min(context, draft->info.context); }
static int slots_of(int context) { return context + DT_TREE_DRAFTS; }

/* A draft cannot embed a token past its vocabulary (the target's padding). Another token replaces it, since a draft
 * only guesses. */
static int32_t map_token(const draft_model *d, int32_t token) { return token < d->vocab ? token : 0; }

/* The length of a text of n tokens as the draft sees it. */
static int seen(const draft_model *d, int n) { return dt_max(n - d->lag, 0); }

/* The number of rows that the visible n tokens of a prompt get: none if the draft could never draft after them. */
static int prompt_rows(const draft_model *d, int n) { return n <= d->context ? dt_max(n - 1, 0) : 0; }

static void add_text(draft_model *d, int seq, const int32_t *tokens, int first, int last) {
  for (int i = first; i < last; i++) *pass_row(&d->rows, seq, map_token(d, tokens[i]), i, i, 1) = i;
}

/* Runs the collected rows, for the cache only. */
static dt_status run_text(draft_model *d, bool prompt, dt_error *err) {
  d->rows.features = d->features;
  dt_rows rows = pass_rows(&d->rows);
  rows.prompt = prompt;
  return rows.n ? d->pair->ops->forward(d->draft->weights, d->cache, &rows, NULL, err) : DT_OK;
}

/* ---- prompts ----------------------------------------------------------------------------------------------------- */

static draft_text text_seen(const draft_model *d, draft_text text) {
  if (text.tokens) text.tokens += d->lag; /* a sequence that is not in the step may have no text */
  text.length = seen(d, text.length);
  return text;
}

/* Sets how many rows of the cache a sequence reuses: at most `rows`. */
static void keep_rows(draft_model *d, int seq, int rows) {
  d->seq[seq].kv.rows = d->pair->ops->keep ? d->pair->ops->keep(d->cache, seq, rows) : rows;
}

static void draft_start(drafter *base, int seq, int n, int same) {
  draft_model *d = (draft_model *)base;
  rows_of *q = &d->seq[seq];
  q->prompt = prompt_rows(d, seen(d, n));
  keep_rows(d, seq, dt_min(dt_min(seen(d, same), q->kv.rows), q->prompt));
}

static dt_status draft_prompt(drafter *base, int seq, const draft_text *text, int most, int *left, dt_error *err) {
  draft_model *d = (draft_model *)base;
  rows_of *q = &d->seq[seq];
  int n = dt_min(most, dt_max(q->prompt - q->kv.rows, 0));
  double start = dt_clock_ms();
  pass_begin(&d->rows, 1);
  add_text(d, seq, text->tokens + d->lag, q->kv.rows, q->kv.rows + n);
  dt_status status = n ? run_text(d, q->kv.rows == 0, err) : DT_OK;
  if (status) return status;
  q->kv.rows += n;
  *left = dt_max(q->prompt - q->kv.rows, 0);
  if (n) text->stats->prompt_ms += dt_clock_ms() - start;
  return DT_OK;
}

static int draft_rows(const drafter *base, int seq, int n, int *there) {
  const draft_model *d = (const draft_model *)base;
  int all = seen(d, n);
  *there = dt_min(d->seq[seq].kv.rows, all);
  return all;
}

static dt_status draft_blank(drafter *base, int seq, int n, dt_error *err) {
  draft_model *d = (draft_model *)base;
  n = prompt_rows(d, seen(d, n));
  d->seq[seq].prompt = 0;
  keep_rows(d, seq, 0);
  d->rows.features = d->features;
  dt_status status = n ? pass_blank(&d->rows, d->pair->ops, d->draft->weights, d->cache, seq, n, err) : DT_OK;
  if (!status) d->seq[seq].kv.rows = n;
  return status;
}

static dt_status draft_save(const drafter *base, int seq, int n, draft_saved **out, dt_error *err) {
  const draft_model *d = (const draft_model *)base;
  draft_saved *saved = calloc(1, sizeof *saved);
  if (!saved) return dt_fail_memory(err, "a prefix", sizeof *saved);
  *saved = (draft_saved){.pair = d->pair, .n = dt_min(d->seq[seq].kv.rows, prompt_rows(d, seen(d, n)))};
  dt_status status = saved->n ? d->pair->ops->snapshot(d->cache, seq, saved->n, &saved->rows, err) : DT_OK;
  if (status)
    free(saved);
  else
    *out = saved;
  return status;
}

static dt_status draft_restore(drafter *base, int seq, const draft_saved *saved, int n, dt_error *err) {
  draft_model *d = (draft_model *)base;
  draft_start(base, seq, n, 0); /* rows that are not restored are computed at the first step */
  if (!saved->rows || !d->seq[seq].prompt) return DT_OK;
  dt_status status = d->pair->ops->restore(d->cache, seq, saved->rows, err);
  if (!status) keep_rows(d, seq, dt_min(saved->n, d->seq[seq].prompt));
  return status;
}

static void draft_forget(draft_saved *saved) {
  if (saved && saved->rows) saved->pair->ops->free_snapshot(saved->rows);
  free(saved);
}

/* ---- a tree ------------------------------------------------------------------------------------------------------ */

static void draft_begin(drafter *base, int seq, int length) {
  draft_model *d = (draft_model *)base;
  rows_of *q = &d->seq[seq];
  memset(q->slot, 0xff, (size_t)q->nodes * sizeof *q->slot);
  q->nodes = 0;
  kv_begin(&q->kv, seen(d, length));
}

/* Computes the missing rows of committed tokens, all but the last RIDE_ALONG, in a separate pass. */
static dt_status catch_up(draft_model *d, int seq, const draft_text *text, dt_error *err) {
  kv_slots *kv = &d->seq[seq].kv;
  int last = text->length - RIDE_ALONG;
  if (kv->rows >= last) return DT_OK;
  pass_begin(&d->rows, 1);
  add_text(d, seq, text->tokens, kv->rows, last);
  dt_status status = run_text(d, false, err);
  if (status) return status;
  text->stats->draft_passes++;
  text->stats->draft_rows += last - kv->rows;
  kv->rows = last;
  return DT_OK;
}

static void own(draft_model *d, int seq, int node) {
  d->owner[d->rows.n - 1].seq = seq;
  d->owner[d->rows.n - 1].node = node;
}

/* Adds missing rows of the last committed tokens to the pass. The root's row belongs to the tree if it is wanted: then
 * it gets a result, and the call returns true. */
static bool add_ends(draft_model *d, int seq, const draft_text *text, bool with_root) {
  int first = d->seq[seq].kv.rows;
  if (with_root && first > text->length - 1) first = text->length - 1;
  for (int i = first; i < text->length; i++) {
    add_text(d, seq, text->tokens, i, i + 1);
    own(d, seq, i == text->length - 1 ? 0 : -1);
  }
  return first < text->length;
}

/* Adds a row for node u and, before it, rows for its ancestors that have none. Adds no row at all if it needs more than
 * `room` rows, or positions that the model does not have. Returns the number of rows. */
static int add_node(draft_model *d, int seq, const draft_text *text, int u, int room) {
  rows_of *q = &d->seq[seq];
  const dt_tree *t = text->tree;
  int missing = 0;
  for (int v = u; v > 0 && q->slot[v] < 0; v = t->parent[v]) missing++;
  if (missing > room || text->length - 1 + t->depth[u] >= d->context) return 0;
  for (int above = missing - 1; above >= 0; above--) {
    int v = u;
    for (int up = above; up > 0; up--) v = t->parent[v];
    q->slot[v] = kv_reserve(&q->kv);
    q->nodes = dt_max(q->nodes, v + 1);
    int32_t *path = pass_row(&d->rows, seq, map_token(d, t->token[v]), q->slot[v], text->length, t->depth[v]);
    for (int a = v; a > 0; a = t->parent[a]) path[t->depth[a] - 1] = q->slot[a];
    own(d, seq, v);
  }
  return missing;
}

enum { ALL_LEVELS = -1 };

/* The node at this level on the path to u that has no result yet; -1: none. */
static int wanted_node(const draft_model *d, const dt_tree *t, int u, int level) {
  if (level != ALL_LEVELS) {
    if (t->depth[u] < level) return -1;
    while (t->depth[u] > level) u = t->parent[u];
  }
  return t->draft[d->which][u] < 0 ? u : -1;
}

/* Adds a sequence's rows to the pass: for its nodes in the list, at one level of the tree or all levels. */
static void add_nodes(draft_model *d, int seq, const draft_text *text, const dt_node_ref *nodes, int n, int level) {
  bool any = false, root = false;
  for (int i = 0; i < n; i++) {
    int u = nodes[i].seq == seq ? wanted_node(d, text->tree, nodes[i].node, level) : -1;
    any |= u >= 0, root |= u == 0;
  }
  int room = any ? dt_tree_draft_room(text->tree) : 0;
  if (!room || text->length < 1 || text->length > d->context) return;
  room -= add_ends(d, seq, text, root);
  for (int i = 0; i < n; i++) {
    int u = nodes[i].seq == seq ? wanted_node(d, text->tree, nodes[i].node, level) : -1;
    if (u > 0) room -= add_node(d, seq, text, u, room);
  }
}

/* Stores the result of the pass after node u. */
static void take_result(const draft_model *d, dt_tree *t, int u, int result) {
  dt_tree_draft *to = dt_tree_new_draft(t, u, d->which);
  if (!to) return;
  draft_results_read(&d->results, result, to);
  dt_tree_calibrate_draft(t, to);
}

/* Removes the rows of nodes, as if they had never been added. */
static void take_back(draft_model *d) {
  for (int i = 0; i < d->rows.n; i++) {
    rows_of *q = &d->seq[d->owner[i].seq];
    if (d->owner[i].node <= 0) continue;
    q->slot[d->owner[i].node] = -1;
    kv_give_back(&q->kv, 1);
  }
}

/* Runs the collected rows, and counts the time since *start for their sequences. */
static dt_status run_step(draft_model *d, const draft_text *texts, double *start, dt_error *err) {
  dt_out out = draft_results_out(&d->results, d->wanted, d->sampling, d->vocab);
  if (d->rows.n == 0) return DT_OK;
  d->rows.features = d->owner[d->rows.n - 1].node <= 0 ? d->features : NULL;
  dt_rows rows = pass_rows(&d->rows);
  for (int i = 0; i < rows.n; i++)
    if (d->owner[i].node >= 0) {
      const draft_text *text = &texts[d->owner[i].seq];
      d->wanted[out.n] = i;
      draft_results_want(&d->results, &out, text->adjustments, text->tree, d->owner[i].node);
    }
  dt_status status = d->pair->ops->forward(d->draft->weights, d->cache, &rows, &out, err);
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
    d->seq[seq].kv.rows = seen(d, texts[seq].length);
    stats->draft_passes++;
    stats->draft_ms += now - *start;
  }
  *start = now;
  pass_begin(&d->rows, d->rows.path_stride);
  return DT_OK;
}

/* Runs passes for nodes at one level of the trees, or at all levels. */
static dt_status step_level(draft_model *d, const draft_text *texts, const dt_node_ref *nodes, int n, int level,
                            double *start, dt_error *err) {
  int longest = 1;
  for (int i = 0; i < n; i++) longest = dt_max(longest, texts[nodes[i].seq].tree->deepest);
  pass_begin(&d->rows, dt_min(longest, DT_TREE_DRAFTS)); /* a deeper row would need too many rows before it */
  dt_status status = DT_OK;
  for (int seq = 0; seq < d->sequences && !status; seq++) {
    bool fits = d->rows.n + SEQUENCE_ROWS <= d->most && pass_fits(&d->rows, SEQUENCE_ROWS);
    if (!fits) status = run_step(d, texts, start, err);
    if (!status) {
      draft_text text = text_seen(d, texts[seq]);
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
  return text->tree->draft[d->which][node.node] < 0 && seen(d, text->length) <= d->context;
}

static dt_status draft_step(drafter *base, const draft_text *texts, const dt_node_ref *nodes, int n, dt_error *err) {
  draft_model *d = (draft_model *)base;
  dt_status status = DT_OK;
  int left;
  for (int i = 0; i < n && !status; i++)
    if (wants_pass(d, texts, nodes[i]))
      status = draft_prompt(base, nodes[i].seq, &texts[nodes[i].seq], INT_MAX, &left, err);
  double start = dt_clock_ms();
  for (int i = 0; i < n && !status; i++) {
    draft_text text = text_seen(d, texts[nodes[i].seq]);
    if (wants_pass(d, texts, nodes[i])) status = catch_up(d, nodes[i].seq, &text, err);
  }
  if (!d->features && !status) status = step_level(d, texts, nodes, n, ALL_LEVELS, &start, err);
  int levels = d->features ? 1 + deepest_of(texts, nodes, n) : 0;
  for (int level = 0; level < levels && !status; level++) status = step_level(d, texts, nodes, n, level, &start, err);
  for (int i = 0; i < n && !status; i++) dt_tree_no_draft(texts[nodes[i].seq].tree, nodes[i].node, d->which);
  return status;
}

/* Keeps the longest run of nodes from the path's beginning that have rows, if the text before them has rows too. A head
 * keeps none. */
static dt_status draft_keep(drafter *base, int seq, int before, const int32_t *path, int n, dt_error *err) {
  draft_model *d = (draft_model *)base;
  rows_of *q = &d->seq[seq];
  int32_t slot[DT_TREE_VERIFY], from[DT_TREE_VERIFY], to[DT_TREE_VERIFY];
  int run = 0;
  if (q->kv.rows == before && !d->features)
    while (run < n && q->slot[path[run]] >= 0) slot[run] = q->slot[path[run]], run++;
  int moves = kv_keep(&q->kv, slot, run, from, to);
  return moves ? d->pair->ops->move(d->cache, seq, from, to, moves, err) : DT_OK;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void draft_close(drafter *base) {
  draft_model *d = (draft_model *)base;
  for (int i = 0; d->seq && i < d->sequences; i++) free(d->seq[i].slot);
  if (d->cache) d->pair->ops->free_cache(d->cache);
  pass_close(&d->rows);
  draft_results_close(&d->results);
  free(d->seq), free(d->owner), free(d->wanted);
  free(d);
}

static const draft_ops model_ops = {.close = draft_close,
                                    .start = draft_start,
                                    .prompt = draft_prompt,
                                    .rows = draft_rows,
                                    .blank = draft_blank,
                                    .save = draft_save,
                                    .restore = draft_restore,
                                    .forget = draft_forget,
                                    .begin = draft_begin,
                                    .step = draft_step,
                                    .keep = draft_keep};

static dt_status open_sequences(draft_model *d, dt_error *err) {
  d->seq = calloc((size_t)d->sequences, sizeof *d->seq);
  bool room = d->seq;
  for (int i = 0; i < d->sequences && room; i++) {
    d->seq[i].slot = malloc(NODES * sizeof *d->seq[i].slot);
    room = d->seq[i].slot;
    if (room) memset(d->seq[i].slot, 0xff, NODES * sizeof *d->seq[i].slot);
    kv_init(&d->seq[i].kv, slots_of(d->context));
  }
  return room ? DT_OK : dt_fail_memory(err, "a draft model's sequences", NODES * sizeof *d->seq->slot);
}

/* Opens room for the rows of a whole text, or of some sequences that draft. */
static dt_status open_rows(draft_model *d, dt_error *err) {
  d->most = dt_min(d->sequences, PASS_SEQUENCES) * SEQUENCE_ROWS;
  int rows = dt_max(d->most, d->context);
  dt_status status = pass_open(&d->rows, rows, (size_t)dt_max(rows, SEQUENCE_ROWS * DT_TREE_DRAFTS), err);
  if (status) return status;
  size_t n = (size_t)d->most;
  d->owner = malloc(n * sizeof *d->owner);
  d->wanted = malloc(n * sizeof *d->wanted);
  if (!d->owner || !d->wanted) return dt_fail_memory(err, "the rows of a draft step", n * sizeof *d->owner);
  return draft_results_open(&d->results, d->most, d->rows.path_capacity, err);
}

dt_status draft_model_open(const dt_pair *pair, int which, int sequences, int context, const dt_sampling *sampling,
                           const dt_cache *target, drafter **out, dt_error *err) {
  draft_model *d = calloc(1, sizeof *d);
  if (!d) return dt_fail_memory(err, "a drafter", sizeof *d);
  const pair_draft *draft = &pair->draft[which];
  *d = (draft_model){.base.ops = &model_ops,
                     .pair = pair,
                     .draft = draft,
                     .which = which,
                     .sequences = sequences,
                     .context = context_of(draft, context),
                     .vocab = dt_min(pair->target_info.vocab, draft->info.vocab),
                     .lag = *draft->head ? 1 : 0,
                     .features = *draft->head ? target : NULL,
                     .sampling = sampling};
  dt_status status = open_sequences(d, err);
  if (!status) status = open_rows(d, err);
  if (!status) status = pair->ops->create_cache(draft->weights, sequences, slots_of(d->context), &d->cache, err);
  if (status)
    draft_close(&d->base);
  else
    *out = &d->base;
  return status;
}

int draft_model_slots(const dt_pair *pair, int which, int context) {
  return slots_of(context_of(&pair->draft[which], context));
}
