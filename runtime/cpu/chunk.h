/* One pass at work: what its threads share, and the parts that it is made of. */
#ifndef DT_CPU_CHUNK_H
#define DT_CPU_CHUNK_H

#include "internal.h"

/* State that all threads of a pass share. */
typedef struct {
  dt_weights *w;
  dt_cache *cache;
  const dt_rows *rows;
  const dt_out *out;
  const cpu_matrix *unembed; /* w's, or that of the pass's distance */
} cpu_pass;

/* At most CPU_ROWS rows of it, and one thread's view of them. */
struct cpu_chunk {
  const cpu_pass *p;
  const cpu_member *me;
  int first, n;         /* rows first..first+n-1 of the pass */
  int wanted, wanted_n; /* results wanted..wanted+wanted_n-1 are of these rows */
  float *sums;          /* this thread's */
};

/* ---- embed.c --------------------------------------------------------------------------------------------------------- */

/* A token's row of the embedding, which this rank has. */
void cpu_embed(const dt_weights *w, int token, float *x);

/* ---- draft_head.c ---------------------------------------------------------------------------------------------------------- */

/* The rows of x at the beginning of a draft head's layer; its heads' input. All threads leave with x complete. */
void cpu_begin_head(const cpu_chunk *c);
/* Keeps, of this thread's share of rows of x, what the caches keep of the stream that enters this layer. */
void cpu_tap(const cpu_chunk *c, int layer);

/* ---- gather.c -------------------------------------------------------------------------------------------------------- */

/* Buffers of a chunk's rows of which each rank computes a part. */
typedef enum {
  CPU_EMBEDDED, /* x: whole rows, of the tokens whose embeddings a rank has */
  CPU_ATTENDED, /* cat: attention output, by heads */
  CPU_INNER,    /* cat, behind that */
  CPU_STREAM,   /* x */
  CPU_LOGITS    /* w->logits, of the wanted rows */
} cpu_gathered;

/* Waits for all threads and, where ranks share the model, for what the others have of this. */
void cpu_gather(const cpu_chunk *c, cpu_gathered what);

/* Whether a rank that has these has the token's embedding. */
static inline bool cpu_has_id(const cpu_mine *its, int token) {
  return token >= its->ids.first && token < its->ids.first + its->ids.count;
}

/* The MLP's inner row lies right behind the attention output, so that one product can take both. */
static inline float *cpu_inner_of(const dt_weights *w) {
  return w->cat + (size_t)w->shape.heads * (size_t)w->shape.head_dim;
}

/* ---- layer.c: entered when all threads have left x alone; they leave with x complete --------------------------------- */

void cpu_parallel_layer(const cpu_chunk *c, int layer);
void cpu_sequential_layer(const cpu_chunk *c, int layer);
/* Of a last layer whose output nobody asks for: its keys and values. */
void cpu_keys_and_values(const cpu_chunk *c, int layer);

/* ---- heads.c --------------------------------------------------------------------------------------------------------- */

/* Of the positions of rows first..last-1, for all heads of all layers. */
void cpu_find_angles(const cpu_chunk *c, int first, int last);

/* Keys and values of q, k and v go to the cache, rotated; and attention to cat, unless that is not wanted. */
void cpu_attend(const cpu_chunk *c, int layer, bool write_only);

/* ---- multiply.c ------------------------------------------------------------------------------------------------------ */

/* A product with `matrix`: from rows of x to rows of out. */
typedef struct {
  const cpu_matrix *matrix;
  const float *x;
  size_t ldx;
  cpu_finish how;
  float *out;
  size_t ldo;
} cpu_product;

/* At most CPU_PRODUCTS products that run side by side, shared out by panels. */
void cpu_multiply(const cpu_chunk *c, const cpu_product *products, int count);

/* Where a row of x that all threads use, prepared for a format, is put. */
char *cpu_prepared_row(const dt_weights *w, int product, int row);

/* ---- shift.c --------------------------------------------------------------------------------------------------------- */

/* Whether there is one among ids from .. from + count - 1, and all of them, to the logits of these ids. */
bool cpu_is_shifted(const dt_row_shifts *s, int32_t from, int count);
void cpu_shift(const dt_row_shifts *s, int32_t from, int count, float *logits);

/* ---- results.c ------------------------------------------------------------------------------------------------------- */

/* The final norm of the wanted rows, their logits of ids 0..ids-1 and what is asked of them. */
void cpu_write_results(const cpu_chunk *c, int ids);

#endif
