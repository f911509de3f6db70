/* One forward pass: the state that its threads share, and its steps. */
#ifndef DT_CPU_CHUNK_H
#define DT_CPU_CHUNK_H

#include "internal.h"

/* State that all threads of a pass share. */
typedef struct {
  dt_weights *w;
  dt_cache *cache;
  const dt_rows *rows;
  const dt_out *out;
  const cpu_matrix *unembed; /* that of w or, in a Medusa head, the one for the pass's distance */
} cpu_pass;

/* A chunk: at most CPU_ROWS rows of a pass, as one thread sees them. */
struct cpu_chunk {
  const cpu_pass *p;
  const cpu_member *me;
  int first, n;           /* the chunk is rows first..first+n-1 of the pass */
  int wanted, wanted_n;   /* results wanted..wanted+wanted_n-1 belong to these rows */
  const cpu_layer *layer; /* the current layer; NULL: none yet */
  float *sums;            /* [CPU_ROWS][CPU_LOGIT_BLOCK] for this thread only */
};

/* ---- embed.c ----------------------------------------------------------------------------------------------------- */

/* Writes a token's embedding to x. This rank must have that row of the matrix (cpu_has_id). */
void cpu_embed(const dt_weights *w, int token, float *x);
/* Computes each token's per-layer inputs from x, which must be complete. */
void cpu_find_inputs(const cpu_chunk *c);

/* ---- draft_head.c ------------------------------------------------------------------------------------------------ */

/* Fills x with the rows that enter a draft head's layer, and fills the input of its attention heads. x is complete when
 * it returns. */
void cpu_begin_head(const cpu_chunk *c);
/* Whether these rows only have keys and values, as committed rows of a block head do. */
static inline bool cpu_keys_only(const cpu_chunk *c) {
  const cpu_head *h = &c->p->w->head;
  return h->target && h->kind == DT_HEAD_BLOCK && c->p->rows->features;
}
/* Computes post: the features that a cross-attention head stores for its rows, or a result of a block head. */
void cpu_end_head(const cpu_chunk *c);
/* Copies this thread's share of the rows of x to the cache's features, if the cache keeps the stream before this
 * layer. */
void cpu_tap(const cpu_chunk *c, int layer);

/* ---- gather.c ---------------------------------------------------------------------------------------------------- */

/* The buffers of a chunk's rows that ranks fill together, each rank a part of them. */
typedef enum {
  CPU_EMBEDDED, /* x: a rank has whole rows, for the tokens whose embedding it has */
  CPU_ATTENDED, /* cat: attention output, by heads */
  CPU_INNER,    /* cat, after the attention output: the MLP's inner row */
  CPU_STREAM,   /* x */
  CPU_ADDED,    /* normed: what is normalized before it is added to x */
  CPU_QUERIES,  /* wide */
  CPU_KEYS,     /* wide, after the queries */
  CPU_LOGITS    /* logits of the rows that the caller wants results of */
} cpu_gathered;

/* A barrier for all threads. If ranks share the model, they also exchange their parts of this buffer. */
void cpu_gather(const cpu_chunk *c, cpu_gathered what);

/* Whether a rank with this part of the model has the token's embedding. */
static inline bool cpu_has_id(const cpu_mine *its, int token) {
  return token >= its->ids.first && token < its->ids.first + its->ids.count;
}

/* The MLP's inner row. It comes right after the attention output, so that one product can take both as its input. */
static inline float *cpu_inner_of(const dt_weights *w) {
  return w->scratch.cat + (size_t)w->shape.heads * (size_t)w->shape.head_dim;
}

/* ---- layer.c: called when no thread uses x any more; threads leave with x complete ------------------------------- */

void cpu_parallel_layer(const cpu_chunk *c, int layer);
void cpu_sequential_layer(const cpu_chunk *c, int layer);
void cpu_second_half(const cpu_chunk *c, int layer); /* see dt_layer.apart */
/* Writes only the keys and values of a layer. This is enough for the last layer if nobody needs its output. */
void cpu_keys_and_values(const cpu_chunk *c, int layer);

/* ---- expert_layer.c ---------------------------------------------------------------------------------------------- */

/* Runs a layer's experts on the rows x, which are scratch.ldx floats apart. The router reads the rows `by`. The sum of
 * the experts is added to the residual stream or, if it is normalized or joined with an MLP first, written to normed.
 * The caller waits for the other threads. */
void cpu_run_experts(const cpu_chunk *c, int layer, const float *x, const float *by);

/* ---- mix.c: rows of a block head's blocks, each block within a chunk --------------------------------------------- */

/* Computes the weights of a mix from the normalized rows x, and returns mix(0, x), rows scratch.ldx apart. mlp: the mix
 * around the MLP, not the one around attention. */
const float *cpu_mix(const cpu_chunk *c, const cpu_layer *l, bool mlp, const float *x);
/* Adds mix(1, y) to the stream with the weights of the last cpu_mix; y: the rows of scratch.normed. */
void cpu_add_mixed(const cpu_chunk *c, const cpu_layer *l, bool mlp);

/* ---- heads.c ----------------------------------------------------------------------------------------------------- */

/* Computes the cosines and sines for the positions of rows first..last-1. All heads and layers share them. */
void cpu_find_angles(const cpu_chunk *c, int first, int last);

/* Rotates queries and keys, writes keys and values to the cache and, unless write_only, the attention output to cat. */
void cpu_attend(const cpu_chunk *c, int layer, bool write_only);

/* ---- delta_layer.c: see delta_layer.h ---------------------------------------------------------------------------- */

/* Runs a delta layer on the rows x, the output of norm1. Writes the input of o to cat. */
void cpu_run_delta(const cpu_chunk *c, int layer, const float *x);

/* ---- multiply.c -------------------------------------------------------------------------------------------------- */

/* A product: rows of x times `matrix` give rows of out. */
typedef struct {
  const cpu_matrix *matrix;
  const float *x;
  size_t ldx;
  cpu_finish how;
  float *out;
  size_t ldo;
} cpu_product;

/* Computes `count` products (at most CPU_PRODUCTS) in one phase: the panels of all of them are shared out among the
 * threads. */
void cpu_multiply(const cpu_chunk *c, const cpu_product *products, int count);

/* Rows that are prepared for a product's format. */
typedef struct {
  const char *at;
  size_t step; /* bytes */
  int n;
} cpu_input;

/* Computes any number of products, with the prepared rows in[i] instead of products[i].x. */
void cpu_multiply_prepared(const cpu_chunk *c, const cpu_product *products, const cpu_input *in, int count);

/* Where a row that all threads use is stored in w->prepared, prepared for the format of this product. */
char *cpu_prepared_row(const dt_weights *w, int product, int row);

/* ---- adjust.c ---------------------------------------------------------------------------------------------------- */

/* cpu_is_adjusted says whether any of the ids from..from+count-1 is adjusted; cpu_adjust adjusts their logits. If `ids`
 * is given, a list of rising ids, the elements from..from+count-1 of that list are meant. */
bool cpu_is_adjusted(const dt_row_adjustments *s, const int32_t *ids, int from, int count);
void cpu_adjust(const dt_row_adjustments *s, const int32_t *ids, int from, int count, float *logits);

/* ---- pass_results.c ---------------------------------------------------------------------------------------------- */

/* Computes the final norm of the wanted rows, their logits for ids 0..ids-1, and the results that the caller wants. */
void cpu_write_results(const cpu_chunk *c, int ids);

#endif
