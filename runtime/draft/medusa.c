/* A Medusa head as a drafter: see draft.h. It stores no rows of the text. All its guesses come from one feature of the
 * target, that of the row before the last token, and a guess after a node depends on the node's depth only. A guess is
 * computed when the first node of its depth is drafted, with the adjustments of the text alone, and serves until the
 * tree is committed. A grammar bans ids from the root's guess; after another node, the ids that are forbidden there are
 * removed from the node's list. */
#include "backend/pass.h"
#include "draft/distances.h"
#include "draft/rowless.h"

#include <stdlib.h>

typedef struct {
  drafter base;
  const dt_pair *pair;
  const pair_draft *draft; /* the pair's draft */
  dt_cache *cache;         /* it has no layers, but the backend needs it to find rows */
  int sequences, context, vocab;
  const dt_cache *features;    /* the target's cache */
  const dt_sampling *sampling; /* [sequences] */
  distances *seq;              /* [sequences] */
  pass rows;                   /* one row per sequence */
  int32_t *wanted;             /* [sequences] rows, in this order */
  draft_results results;
} draft_medusa;

/* ---- a tree ------------------------------------------------------------------------------------------------------ */

static void medusa_begin(drafter *base, int seq, int length) {
  (void)length;
  draft_medusa *d = (draft_medusa *)base;
  distances_forget(&d->seq[seq]);
}

/* Whether the token before the last has a feature, and the guess a position in the target's context. */
static bool can_guess(const draft_medusa *d, const draft_text *text, int distance) {
  return text->length >= 2 && text->length + distance <= d->context;
}

/* Computes, in one pass, the missing guesses at a distance for the nodes' sequences. */
static dt_status guess(draft_medusa *d, const draft_text *texts, const dt_node_ref *nodes, int n, int distance,
                       dt_error *err) {
  double start = dt_clock_ms();
  pass_begin(&d->rows, 1);
  for (int i = 0; i < n; i++) {
    int seq = nodes[i].seq;
    const draft_text *text = &texts[seq];
    bool asked = text->tree->depth[nodes[i].node] == distance && can_guess(d, text, distance);
    for (int r = 0; r < d->rows.n; r++) asked &= d->rows.sequence[r] != seq;
    int slot = text->length - 2;
    if (asked && !d->seq[seq].known[distance]) *pass_row(&d->rows, seq, 0, slot, slot, 1) = slot;
  }
  if (d->rows.n == 0) return DT_OK;
  dt_rows rows = pass_rows(&d->rows);
  rows.features = d->features;
  rows.distance = distance;
  dt_out out = draft_results_out(&d->results, d->wanted, d->sampling, d->vocab);
  for (int i = 0; i < rows.n; i++) distances_want(&d->results, &out, &texts[rows.sequence[i]], distance);
  dt_status status = d->pair->ops->forward(d->draft->weights, d->cache, &rows, &out, err);
  double spent = dt_clock_ms() - start;
  for (int i = 0; i < rows.n && !status; i++) {
    int seq = rows.sequence[i];
    draft_results_read(&d->results, i, &d->seq[seq].at[distance]);
    d->seq[seq].known[distance] = true;
    texts[seq].stats->draft_passes++;
    texts[seq].stats->draft_rows++;
    texts[seq].stats->draft_ms += spent;
  }
  return status;
}

static dt_status medusa_step(drafter *base, const draft_text *texts, const dt_node_ref *nodes, int n, dt_error *err) {
  draft_medusa *d = (draft_medusa *)base;
  for (int distance = 0; distance < d->draft->distances; distance++) {
    dt_status status = guess(d, texts, nodes, n, distance, err);
    if (status) return status;
  }
  for (int i = 0; i < n; i++) distances_take(&d->seq[nodes[i].seq], &texts[nodes[i].seq], nodes[i].node);
  return DT_OK;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void medusa_close(drafter *base) {
  draft_medusa *d = (draft_medusa *)base;
  if (d->cache) d->pair->ops->free_cache(d->cache);
  pass_close(&d->rows);
  draft_results_close(&d->results);
  free(d->seq), free(d->wanted);
  free(d);
}

static const draft_ops medusa_ops = {.close = medusa_close,
                                     .start = rowless_start,
                                     .prompt = rowless_prompt,
                                     .rows = rowless_rows,
                                     .blank = rowless_blank,
                                     .save = rowless_save,
                                     .restore = rowless_restore,
                                     .forget = rowless_forget,
                                     .begin = medusa_begin,
                                     .step = medusa_step,
                                     .keep = rowless_keep};

dt_status draft_medusa_open(const dt_pair *pair, int sequences, int context, const dt_sampling *sampling,
                            const dt_cache *target, drafter **out, dt_error *err) {
  draft_medusa *d = calloc(1, sizeof *d);
  if (!d) return dt_fail_memory(err, "a drafter", sizeof *d);
  *d = (draft_medusa){.base.ops = &medusa_ops,
                      .pair = pair,
                      .draft = &pair->draft,
                      .sequences = sequences,
                      .context = context,
                      .vocab = pair->target_info.vocab,
                      .features = target,
                      .sampling = sampling};
  d->seq = calloc((size_t)sequences, sizeof *d->seq);
  d->wanted = malloc((size_t)sequences * sizeof *d->wanted);
  dt_status status = d->seq && d->wanted ? DT_OK : dt_fail_memory(err, "a head's guesses", sizeof *d->seq);
  for (int i = 0; i < sequences && !status; i++) d->wanted[i] = i;
  if (!status) status = pass_open(&d->rows, sequences, (size_t)sequences, err);
  if (!status) status = draft_results_open(&d->results, sequences, DT_CANDIDATES, 0, err);
  if (!status) status = pair->ops->create_cache(d->draft->weights, sequences, context, &d->cache, err);
  if (status)
    medusa_close(&d->base);
  else
    *out = &d->base;
  return status;
}
