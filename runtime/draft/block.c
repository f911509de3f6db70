/* A block head as a drafter: see draft.h and dt_head_kind. It has rows of the committed text, which lag: the first step
 * after a commit computes the missing ones, in a pass of their own. The next pass is the block's, whose guesses depend
 * on a node's depth only: row i of the block guesses the token at distance i from the root, the child of a node of
 * depth i - 1, or the one after it (from_anchor). They serve until the tree is committed, and the block's rows are
 * forgotten. If the head knows what tokens add to their successors, the list of a distance is a long one, from which
 * each node gets its own. */
#include "draft/candidates.h"
#include "draft/distances.h"
#include "draft/rowless.h"
#include "draft/text_rows.h"
#include "system/min_max.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  text_rows t;
  distances *of;   /* [sequences] */
  int *width;      /* [sequences] guesses of the block that this step computes; 0: none */
  bool *tried;     /* [sequences] the block of this tree has been computed, or has no room */
  int32_t *wanted; /* [sequences * DT_DISTANCES] rows of the block pass that have a result: all, or all but each block's
                      first */
  draft_results results;
  const successors *successors; /* or NULL: what follows is only there with them */
  candidates *list;             /* [sequences][DT_DISTANCES] instead of the lists in `of` */
  float *gate, *post;           /* [sequences][DT_DISTANCES][rank] of these; of a pass's results */
  float *room;                  /* [rank] */
} draft_block;

/* The number of rows at a block's beginning that guess nothing. */
static int idle_rows(const draft_block *d) { return !d->t.draft->from_anchor; }

static void block_begin(drafter *base, int seq, int length) {
  draft_block *d = (draft_block *)base;
  kv_begin(&d->t.seq[seq].kv, text_rows_seen(&d->t, length));
  distances_forget(&d->of[seq]);
  d->tried[seq] = false;
}

/* Sets how many guesses the blocks have that this step computes: no more than the nodes ask for, the tree can use, or
 * positions that there are. */
static void find_widths(draft_block *d, const draft_text *texts, const dt_node_ref *nodes, int n) {
  for (int i = 0; i < n; i++) d->width[nodes[i].seq] = 0;
  for (int i = 0; i < n; i++) {
    const int seq = nodes[i].seq, wanted = nodes[i].width ? nodes[i].width : DT_DISTANCES;
    const draft_text *text = &texts[seq];
    int guesses = dt_min(d->t.draft->info.block, dt_min(wanted, text->tree->max_depth));
    guesses = dt_min(guesses, d->t.context - text->length);
    if (!d->tried[seq] && guesses > 0) d->width[seq] = dt_max(d->width[seq], guesses);
  }
}

/* Computes the missing rows of the texts, in one pass if they fit. They are not counted: the cost of a block includes
 * them. *start: when those after the prompt begin. */
static dt_status catch_up(draft_block *d, const draft_text *texts, const dt_node_ref *nodes, int n, double *start,
                          dt_error *err) {
  dt_status status = DT_OK;
  int left;
  for (int i = 0; i < n && !status; i++)
    if (d->width[nodes[i].seq])
      status = text_rows_prompt(&d->t.base, nodes[i].seq, &texts[nodes[i].seq], INT_MAX, &left, err);
  *start = dt_clock_ms();
  if (status) return status;
  pass_begin(&d->t.rows, 1);
  for (int i = 0; i < n && !status; i++) {
    if (!d->width[nodes[i].seq]) continue;
    const draft_text text = text_rows_view(&d->t, texts[nodes[i].seq]);
    status = text_rows_collect(&d->t, nodes[i].seq, &text, text.length, err);
  }
  if (!status) status = text_rows_run(&d->t, err);
  for (int i = 0; i < n && status; i++) d->t.seq[nodes[i].seq].kv.rows = 0;
  return status;
}

/* Adds a block's rows to the pass, and their results to the request. */
static void add_block(draft_block *d, dt_out *out, int seq, const draft_text *text) {
  const int root = text->length - 1, idle = idle_rows(d), width = d->width[seq] + idle;
  for (int i = 0; i < width; i++) {
    const int32_t token = i ? d->t.draft->mask : text_rows_token(&d->t, text->tokens[root]);
    int32_t *path = pass_row(&d->t.rows, seq, token, root + i, root, width);
    d->t.rows.position[d->t.rows.n - 1] = root + i;
    for (int j = 0; j < width; j++) path[j] = root + j;
    if (i < idle) continue;
    d->wanted[out->n] = d->t.rows.n - 1;
    distances_want(&d->results, out, text, i - idle);
  }
}

/* Keeps result j of a pass for a distance. */
static void take_result(draft_block *d, int j, int seq, int distance) {
  const successors *s = d->successors;
  const size_t at = (size_t)seq * DT_DISTANCES + (size_t)distance;
  d->of[seq].known[distance] = true;
  if (!s) {
    draft_results_read(&d->results, j, &d->of[seq].at[distance]);
    return;
  }
  candidates_read(&d->results, j, &d->list[at]);
  if (s->gated)
    memcpy(d->gate + at * (size_t)s->rank, d->post + (size_t)j * (size_t)s->factors,
           (size_t)s->factors * sizeof *d->gate);
}

/* Computes the missing blocks of the sequences in the list, in one pass, and counts the time since `start`. */
static dt_status run_blocks(draft_block *d, const draft_text *texts, const dt_node_ref *nodes, int n, double start,
                            dt_error *err) {
  pass_begin(&d->t.rows, DT_DISTANCES);
  dt_out out = draft_results_out(&d->results, d->wanted, d->t.sampling, d->t.vocab);
  out.post = d->post;
  for (int i = 0; i < n; i++) {
    const int seq = nodes[i].seq;
    if (!d->tried[seq] && d->width[seq]) add_block(d, &out, seq, &texts[seq]);
    d->tried[seq] = true;
  }
  if (d->t.rows.n == 0) return DT_OK;
  d->t.rows.features = NULL;
  dt_rows rows = pass_rows(&d->t.rows);
  rows.blocks = true;
  const dt_status status = d->t.pair->ops->forward(d->t.draft->weights, d->t.cache, &rows, &out, err);
  const double spent = dt_clock_ms() - start;
  for (int i = 0; i < rows.n; i++) {
    const int seq = rows.sequence[i];
    if (status) d->tried[seq] = false;
    if (status || rows.position[i] > rows.prefix[i]) continue;
    texts[seq].stats->draft_passes++;
    texts[seq].stats->draft_rows += d->width[seq] + 1; /* costs by width are thus the same for all kinds */
    texts[seq].stats->draft_ms += spent;
  }
  for (int j = 0; j < out.n && !status; j++) {
    const int row = d->wanted[j], seq = rows.sequence[row];
    take_result(d, j, seq, rows.position[row] - rows.prefix[row] - idle_rows(d));
  }
  return status;
}

static void follow(draft_block *d, int seq, const draft_text *text, int node) {
  const dt_tree *t = text->tree;
  const successors *s = d->successors;
  dt_tree_draft *to = distances_begin(&d->of[seq], text, node);
  if (!to) return;
  const size_t at = (size_t)seq * DT_DISTANCES + (size_t)t->depth[node];
  candidates_follow(&d->list[at], s, s->gated ? d->gate + at * (size_t)s->rank : NULL, text, node,
                    text_rows_token(&d->t, t->token[node]), d->t.sampling ? d->t.sampling[seq].temp : 0, d->room, to);
  dt_tree_calibrate_draft(t, to);
}

static dt_status block_step(drafter *base, const draft_text *texts, const dt_node_ref *nodes, int n, dt_error *err) {
  draft_block *d = (draft_block *)base;
  double start;
  find_widths(d, texts, nodes, n);
  dt_status status = catch_up(d, texts, nodes, n, &start, err);
  if (!status) status = run_blocks(d, texts, nodes, n, start, err);
  for (int i = 0; i < n && !status; i++) {
    const int seq = nodes[i].seq;
    if (d->successors)
      follow(d, seq, &texts[seq], nodes[i].node);
    else
      distances_take(&d->of[seq], &texts[seq], nodes[i].node);
  }
  return status;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void block_close(drafter *base) {
  draft_block *d = (draft_block *)base;
  text_rows_close(&d->t);
  draft_results_close(&d->results);
  free(d->of), free(d->width), free(d->tried), free(d->wanted);
  free(d->list), free(d->gate), free(d->post), free(d->room);
  free(d);
}

static const draft_ops block_ops = {.close = block_close,
                                    .start = text_rows_start,
                                    .prompt = text_rows_prompt,
                                    .rows = text_rows_rows,
                                    .blank = text_rows_blank,
                                    .save = text_rows_save,
                                    .restore = text_rows_restore,
                                    .forget = text_rows_forget,
                                    .begin = block_begin,
                                    .step = block_step,
                                    .keep = rowless_keep};

static dt_status open_rows(draft_block *d, dt_error *err) {
  const size_t sequences = (size_t)d->t.sequences, most = sequences * DT_DISTANCES;
  const size_t rows = most > (size_t)d->t.context ? most : (size_t)d->t.context;
  d->of = calloc(sequences, sizeof *d->of);
  d->width = calloc(sequences, sizeof *d->width);
  d->tried = calloc(sequences, sizeof *d->tried);
  d->wanted = malloc(most * sizeof *d->wanted);
  if (!d->of || !d->width || !d->tried || !d->wanted)
    return dt_fail_memory(err, "a head's guesses", sequences * sizeof *d->of);
  const dt_status status =
      pass_open(&d->t.rows, (int)rows, rows > most * DT_DISTANCES ? rows : most * DT_DISTANCES, err);
  return status ? status
                : draft_results_open(&d->results, (int)most,
                                     d->successors ? dt_min(DT_LISTED, d->t.pair->ops->candidates) : DT_CANDIDATES, 0,
                                     err);
}

static dt_status open_lists(draft_block *d, dt_error *err) {
  const successors *s = d->successors = d->t.draft->successors;
  if (!s) return DT_OK;
  const size_t most = (size_t)d->t.sequences * DT_DISTANCES, rank = (size_t)s->rank;
  d->list = malloc(most * sizeof *d->list);
  d->room = malloc(rank * sizeof *d->room);
  if (s->gated) {
    d->gate = calloc(most * rank, sizeof *d->gate);
    d->post = malloc(most * rank * sizeof *d->post);
  }
  return d->list && d->room && (!s->gated || (d->gate && d->post))
             ? DT_OK
             : dt_fail_memory(err, "a head's guesses", most * (sizeof *d->list + rank * sizeof *d->gate));
}

dt_status draft_block_open(const dt_pair *pair, int sequences, int context, const dt_sampling *sampling,
                           const dt_cache *target, drafter **out, dt_error *err) {
  draft_block *d = calloc(1, sizeof *d);
  if (!d) return dt_fail_memory(err, "a drafter", sizeof *d);
  d->t.base.ops = &block_ops;
  dt_status status = text_rows_open(&d->t, pair, sequences, context, sampling, target, err);
  if (!status) status = open_lists(d, err);
  if (!status) status = open_rows(d, err);
  if (!status) status = text_rows_open_cache(&d->t, err);
  if (status)
    block_close(&d->t.base);
  else
    *out = &d->t.base;
  return status;
}
