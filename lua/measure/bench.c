/* Timed iterations: see bench.h. */
#include "measure/bench.h"

#include <stdlib.h>
#include <string.h>

dt_status bench_open(bench *b, dt_pair *pair, int context, int batch, dt_error *err) {
  dt_pair_info info;
  dt_pair_describe(pair, &info);
  *b = (bench){.drafts = info.draft.path != NULL, .batch = batch, .block = info.draft.block};
  b->vocab = b->drafts ? info.shared_vocab : info.target.vocab;
  dt_session_options options = {.sequences = batch, .context = context, .use_draft = b->drafts};
  dt_status status = dt_session_open(pair, &options, &b->session, err);
  if (status) return status;
  b->nodes = malloc(sizeof *b->nodes * (size_t)batch * (DT_TREE_VERIFY + 1));
  if (b->nodes) return DT_OK;
  bench_close(b);
  return dtl_fail_memory(err, "trees to measure");
}

void bench_close(bench *b) {
  free(b->nodes);
  dt_session_close(b->session);
}

int bench_context(const dt_pair_info *info, int most) {
  return info->draft.path && info->draft.context < most ? info->draft.context : most;
}

int bench_longest(const bench *b, int context, int n) {
  int longest = context - 1;
  for (int width = 1; width <= n; width *= b->vocab > 1 ? b->vocab : 2) longest--; /* one level of the tree */
  return longest;
}

/* Empties the tree of each sequence. */
static dt_status empty(const bench *b, dt_error *err) {
  dt_status status = DT_OK;
  for (int seq = 0; seq < b->batch && !status; seq++) {
    status = dt_rollback(b->session, seq, err);
    b->nodes[seq] = (dt_node_ref){.seq = seq};
  }
  return status;
}

/* Grows trees of n nodes, as wide as the vocabulary allows, or chains. Token 0 comes last among a node's children,
 * since the text of bench_start consists of it, and its rows would read few new experts. */
static dt_status grow(const bench *b, int n, dt_error *err) {
  dt_status status = DT_OK;
  dt_node_ref *node = b->nodes;
  for (int seq = 0; seq < b->batch && !status; seq++) {
    dt_tree *tree = dt_seq_tree(b->session, seq);
    status = dt_tree_limit(tree, DT_TREE_VERIFY + 1, err);
    for (int i = 0; i < n && !status; i++, node++) {
      *node = (dt_node_ref){.seq = seq};
      status = b->alike ? dt_tree_add(tree, i, 0, -1, &node->node, err)
                        : dt_tree_add(tree, i / b->vocab, (i + 1) % b->vocab, -1, &node->node, err);
    }
  }
  return status;
}

/* Times a step of the draft over the first n nodes of the list. */
static dt_status step(const bench *b, int n, double *ms, dt_error *err) {
  double start = dt_clock_ms();
  dt_status status = dt_draft_step(b->session, b->nodes, n, err);
  *ms = dt_clock_ms() - start;
  return status;
}

/* Grows trees of n nodes; with a draft, between a step over the roots and a step over these nodes. */
static dt_status draft(bench *b, int n, dt_error *err) {
  if (!b->drafts) return grow(b, n, err);
  for (int seq = 0; seq < b->batch; seq++) b->nodes[seq].width = b->block && n > 2 ? n - 1 : b->block > 0;
  dt_status status = step(b, b->batch, &b->first_ms, err);
  if (!status) status = grow(b, n, err);
  if (b->block)
    b->draft_ms = b->first_ms;
  else if (!status)
    status = step(b, b->batch * n, &b->draft_ms, err);
  return status;
}

/* Times a pass over n rows of each tree. */
static dt_status verify(bench *b, int n, dt_error *err) {
  dt_verdict verdicts[DTL_SLOTS];
  int seqs[DTL_SLOTS];
  dt_status status = DT_OK;
  double start = dt_clock_ms();
  for (int seq = 0; seq < b->batch && !status; seq++) {
    status = dt_tree_keep_best(dt_seq_tree(b->session, seq), n - 1, err);
    seqs[seq] = seq;
  }
  if (!status) status = dt_verify_tree(b->session, seqs, b->batch, verdicts, err);
  b->target_ms = dt_clock_ms() - start;
  b->experts = status ? 0 : verdicts[0].experts_read;
  return status;
}

/* Runs one iteration over trees of n nodes, or a plain one (BENCH_PLAIN). */
dt_status bench_sample(bench *b, int n, dt_error *err) {
  dt_status status = empty(b, err);
  b->first_ms = b->draft_ms = 0;
  if (!status && n != BENCH_PLAIN) status = draft(b, n, err);
  return status ? status : verify(b, n == BENCH_PLAIN ? 1 : n, err);
}

/* Starts all sequences after `context` tokens. */
dt_status bench_start(const bench *b, int context, const dt_sampling *sampling, dt_error *err) {
  dt_status status = DT_OK;
  for (int seq = 0; seq < b->batch && !status; seq++)
    status = dt_seq_start_blank(b->session, seq, context, sampling, err);
  return status;
}

/* Starts a sequence after n different tokens. */
static dt_status start_varied(const bench *b, int seq, int n, dt_error *err) {
  const dt_seq_options options = {.max_tokens = -1, .ignore_eos = true};
  int32_t tokens[BENCH_READ];
  for (int i = 0; i < n; i++) tokens[i] = (i * 7919 + 1) % b->vocab;
  return dt_seq_start(b->session, seq, tokens, n, &options, err);
}

dt_status bench_start_varied(const bench *b, int most, dt_error *err) {
  dt_status status = DT_OK;
  for (int seq = 0; seq < b->batch && !status; seq++)
    status = start_varied(b, seq, most < BENCH_VARIED ? most : BENCH_VARIED, err);
  return status;
}

dt_status bench_read(const bench *b, int most, double *ms, dt_error *err) {
  dt_stats before, after;
  const dt_node_ref root = {.seq = 0};
  *ms = 0;
  dt_status status = start_varied(b, 0, most < BENCH_READ ? most : BENCH_READ, err);
  if (status) return status;
  int n = dt_seq_unread(b->session, 0);
  dt_seq_stats(b->session, 0, &before);
  status = dt_draft_step(b->session, &root, 1, err);
  dt_seq_stats(b->session, 0, &after);
  if (!status && n > 0) *ms = (after.prompt_ms - before.prompt_ms) / n;
  return status;
}
