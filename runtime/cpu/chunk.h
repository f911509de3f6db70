/* One pass: the state that its threads share, and its steps. */
#ifndef DT_CPU_CHUNK_H
#define DT_CPU_CHUNK_H

#include "internal.h"

/* State that all threads of a pass share. */
typedef struct {
  dt_weights *w;
  dt_cache *cache;
  const dt_rows *rows;
  const dt_out *out;
  const cpu_matrix *unembed; /* that of w or, in a Medusa head, of the pass's distance */
} cpu_pass;

/* At most CPU_ROWS rows of a pass, as one thread sees them. */
struct cpu_chunk {
  const cpu_pass *p;
  const cpu_member *me;
  int first, n;           /* rows first..first+n-1 of the pass */
  int wanted, wanted_n;   /* results wanted..wanted+wanted_n-1 are of these rows */
  const cpu_layer *layer; /* that runs; NULL: none yet */
  float *sums;            /* [CPU_ROWS][CPU_LOGIT_BLOCK] of this thread */
};

/* ---- embed.c ----------------------------------------------------------------------------------------------------- */

/* Writes a token's row of the embedding to x; this rank must have the row (cpu_has_id). */
void cpu_embed(const dt_weights *w, int token, float *x);
/* Computes what the layers read of each token beside x; x must be complete. */
void cpu_find_inputs(const cpu_chunk *c);

/* ---- draft_head.c ------------------------------------------------------------------------------------------------ */

/* Fills x with the rows that enter a draft head's layer, and fills the input of its attention heads. All threads leave
 * with x complete. */
void cpu_begin_head(const cpu_chunk *c);
/* Keeps the features that a cross-attention head makes of its rows. */
void cpu_end_head(const cpu_chunk *c);
/* Copies this thread's share of the rows of x to the cache's features, if these keep the stream that enters this
 * layer. */
void cpu_tap(const cpu_chunk *c, int layer);

/* ---- gather.c ---------------------------------------------------------------------------------------------------- */

/* Buffers of a chunk's rows that ranks fill together, each rank a part. */
typedef enum {
  CPU_EMBEDDED, /* x: a rank has whole rows, those of the tokens of which it has the embedding */
  CPU_ATTENDED, /* cat: attention output, by heads */
  CPU_INNER,    /* cat, after the attention output: the MLP's inner row */
  CPU_STREAM,   /* x */
  CPU_ADDED,    /* normed: what a norm precedes that is added to x */
  CPU_QUERIES,  /* wide */
  CPU_KEYS,     /* wide, after the queries */
  CPU_LOGITS    /* logits of the wanted rows */
} cpu_gathered;

/* Waits for all threads. If ranks share the model, also exchanges their parts of this buffer. */
void cpu_gather(const cpu_chunk *c, cpu_gathered what);

/* Whether a rank with this part of the model has the token's embedding. */
static inline bool cpu_has_id(const cpu_mine *its, int token) {
  return token >= its->ids.first && token < its->ids.first + its->ids.count;
}

/* The MLP's inner row lies right after the attention output, so that one product can take both. */
static inline float *cpu_inner_of(const dt_weights *w) {
  return w->scratch.cat + (size_t)w->shape.heads * (size_t)w->shape.head_dim;
}

/* ---- layer.c: called when no thread uses x any more; threads leave with x complete ------------------------------- */

void cpu_parallel_layer(const cpu_chunk *c, int layer);
void cpu_sequential_layer(const cpu_chunk *c, int layer);
/* For a last layer whose output is not needed: writes its keys and values only. */
void cpu_keys_and_values(const cpu_chunk *c, int layer);

/* ---- expert_layer.c ---------------------------------------------------------------------------------------------- */

/* Adds a layer's experts of the rows x, w->ldx apart, to the residual stream or, if a norm or an MLP stands between,
 * writes their sums to normed. The router reads the rows `by`. The caller waits for the other threads. */
void cpu_run_experts(const cpu_chunk *c, int layer, const float *x, const float *by);

/* ---- heads.c ----------------------------------------------------------------------------------------------------- */

/* Computes cosines and sines for the positions of rows first..last-1; all heads and layers share them. */
void cpu_find_angles(const cpu_chunk *c, int first, int last);

/* Rotates queries and keys, writes keys and values to the cache and, unless write_only, the attention output to cat. */
void cpu_attend(const cpu_chunk *c, int layer, bool write_only);

/* ---- delta_layer.c: see delta_layer.h ---------------------------------------------------------------------------- */

/* Computes a delta layer of the rows that norm1 left in x: writes what enters o to cat. */
void cpu_run_delta(const cpu_chunk *c, int layer, const float *x);

/* ---- multiply.c -------------------------------------------------------------------------------------------------- */

/* A product with `matrix`: rows of x in, rows of out out. */
typedef struct {
  const cpu_matrix *matrix;
  const float *x;
  size_t ldx;
  cpu_finish how;
  float *out;
  size_t ldo;
} cpu_product;

/* Computes `count` products, at most CPU_PRODUCTS, in one phase: all their panels are shared out among the threads. */
void cpu_multiply(const cpu_chunk *c, const cpu_product *products, int count);

/* Prepared rows. */
typedef struct {
  const char *at;
  size_t step; /* bytes */
  int n;
} cpu_input;

/* Any number of products with these rows in the place of their x. */
void cpu_multiply_prepared(const cpu_chunk *c, const cpu_product *products, const cpu_input *in, int count);

/* The place in w->prepared of a row that all threads use, prepared for a product's format. */
char *cpu_prepared_row(const dt_weights *w, int product, int row);

/* ---- adjust.c ---------------------------------------------------------------------------------------------------- */

/* Whether any of ids from..from+count-1 is adjusted; and adjusting the logits of these ids. With `ids`, a
 * list of rising ids, these are its elements from..from+count-1. */
bool cpu_is_adjusted(const dt_row_adjustments *s, const int32_t *ids, int from, int count);
void cpu_adjust(const dt_row_adjustments *s, const int32_t *ids, int from, int count, float *logits);

/* ---- pass_results.c ---------------------------------------------------------------------------------------------- */

/* Computes the final norm of the wanted rows, their logits of ids 0..ids-1, and the results that the caller wants. */
void cpu_write_results(const cpu_chunk *c, int ids);

#endif
