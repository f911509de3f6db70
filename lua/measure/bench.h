/* Times passes in iterations like those of policies. It has its own session, whose sequences all have trees of one
 * size. */
#ifndef DTL_BENCH_H
#define DTL_BENCH_H

#include "files/fail.h"

#define BENCH_VARIED 32
#define BENCH_PLAIN 0 /* instead of a number of rows: plain decoding's pass */

typedef struct {
  dt_session *session;
  int drafts, vocab, batch;
  dt_node_ref *nodes; /* [batch * (DT_TREE_VERIFY + 1)] */
  bool alike;         /* trees are chains of the text's last token, whose rows take nearly the same experts */
  double target_ms, first_ms[DT_DRAFTS], draft_ms[DT_DRAFTS]; /* of the last sample */
  int experts;                                                /* that its target pass read; 0: the target has none */
} bench;

/* Opens a bench of the pair's passes over `batch` sequences, with its drafts if it has any. A failure leaves nothing to
 * close. */
dt_status bench_open(bench *b, dt_pair *pair, int context, int batch, dt_error *err);
void bench_close(bench *b);

/* The longest context, at most `most`, in which all the pair's models have passes. */
int bench_context(const dt_pair_info *info, int most);

/* The most tokens after which trees of n nodes still fit into `context` tokens; below 1: none. */
int bench_longest(const bench *b, int context, int n);

/* Starts all sequences after `context` tokens. sampling: NULL takes the likeliest tokens. */
dt_status bench_start(const bench *b, int context, const dt_sampling *sampling, dt_error *err);

/* Starts all sequences after BENCH_VARIED tokens of all kinds, or `most`: after blank ones, which are all of one token,
 * the rows of different tokens take nearly the same experts. */
dt_status bench_start_varied(const bench *b, int most, dt_error *err);

/* One iteration: of each draft a step of the roots and one of n nodes of each tree; a target pass over n rows of each.
 * With BENCH_PLAIN: a target pass over the roots alone. */
dt_status bench_sample(bench *b, int n, dt_error *err);

#endif
