/* Iterations as policies make them, timed: what passes cost is measured with these. A session of its own, whose sequences
 * all have trees of one size. */
#ifndef DTL_BENCH_H
#define DTL_BENCH_H

#include "files/fail.h"

#define BENCH_PLAIN 0 /* instead of a number of rows: plain decoding's pass */

typedef struct {
  dt_session *session;
  bool draft;
  int vocab, batch;
  dt_node_ref *nodes;                   /* [batch * (DT_TREE_VERIFY + 1)] */
  double target_ms, first_ms, draft_ms; /* of the last sample */
} bench;

/* The pair's passes over `batch` sequences, with a draft where it has one. After a failure nothing is left. */
dt_status bench_open(bench *b, dt_pair *pair, int context, int batch, dt_error *err);
void bench_close(bench *b);

/* The longest text, up to `context` tokens with what follows, behind which trees of n nodes have room; below 1: none. */
int bench_longest(const bench *b, int context, int n);

/* All sequences after so many tokens. sampling: how tokens are drawn; NULL: they are not. */
dt_status bench_start(const bench *b, int context, const dt_sampling *sampling, dt_error *err);

/* One iteration: a draft step of the roots, one of n nodes of each tree, a pass over n rows of each. Of BENCH_PLAIN: a pass
 * over the roots alone. */
dt_status bench_sample(bench *b, int n, dt_error *err);

#endif
