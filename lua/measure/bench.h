/* A bench times passes, in iterations like those of policies. It has its own session, whose sequences all have trees of
 * the same size. */
#ifndef DTL_BENCH_H
#define DTL_BENCH_H

#include "files/fail.h"

#define BENCH_VARIED 32 /* maximum number of tokens that bench_start_varied starts after */
#define BENCH_READ 128  /* maximum number of tokens of bench_read */
#define BENCH_PLAIN 0   /* instead of a number of rows: the pass of plain decoding */

typedef struct {
  dt_session *session;
  bool drafts; /* the pair has a draft */
  int vocab, batch;
  int block;          /* as in dtl_costs */
  dt_node_ref *nodes; /* [batch * (DT_TREE_VERIFY + 1)] */
  bool alike; /* trees are chains that repeat the text's last token, whose rows select nearly the same experts */
  double target_ms, first_ms, draft_ms; /* times of the last sample */
  int experts; /* number of experts that the target pass of the last sample read; 0: the target has none */
} bench;

/* Opens a bench for the pair's passes over `batch` sequences, with the draft if the pair has one. A failure leaves
 * nothing to close. */
dt_status bench_open(bench *b, dt_pair *pair, int context, int batch, dt_error *err);
void bench_close(bench *b);

/* The longest context, at most `most` tokens, that both of the pair's models support. */
int bench_context(const dt_pair_info *info, int most);

/* The maximum number of tokens after which trees of n nodes still fit into `context` tokens; below 1: they never fit.
 */
int bench_longest(const bench *b, int context, int n);

/* Starts all sequences after `context` tokens. sampling: NULL selects the likeliest tokens. */
dt_status bench_start(const bench *b, int context, const dt_sampling *sampling, dt_error *err);

/* Starts all sequences after BENCH_VARIED different tokens, or `most` if that is less. After a text that repeats one
 * token, as bench_start uses it, even rows of different tokens select nearly the same experts. */
dt_status bench_start_varied(const bench *b, int most, dt_error *err);

/* Runs and times one iteration: a draft step over the roots and one over n nodes of each tree (for a block head one
 * step, with blocks of n rows, or as many as it can have), and then a target pass over n rows of each tree.
 * With BENCH_PLAIN: a target pass over the roots alone. */
dt_status bench_sample(bench *b, int n, dt_error *err);

/* Times how the draft processes a text of up to BENCH_READ tokens, in ms for each token; 0: it has nothing to process.
 * The target processes the text before, which takes much longer. Only sequence 0 is used. */
dt_status bench_read(const bench *b, int most, double *ms, dt_error *err);

#endif
