/* The structures that the files of the CPU backend share. */
#ifndef DT_CPU_INTERNAL_H
#define DT_CPU_INTERNAL_H

#include "check.h"
#include "kernels.h"
#include "team.h"

struct dt_backend {
  const cpu_kernels *kernels;
  int threads;
  bool caches_f16; /* else f32 */
  char description[32];
  dt_memory memory;
};

/* Memory that is laid out twice by the same code: first with base NULL, to measure it, then for good. */
typedef struct {
  char *base;
  size_t size, used;
} cpu_arena;

void *cpu_take(cpu_arena *arena, size_t bytes); /* aligned to 64; NULL while measuring */
/* Zeroed pages for arena->used bytes (huge ones if that is worth it), counted in *account; starts the layout anew. */
dt_status cpu_arena_open(cpu_arena *arena, const char *what, int threads, size_t *account, dt_error *err);
void cpu_arena_close(cpu_arena *arena, size_t *account);

typedef struct {
  float *norm1, *norm1_bias, *norm2, *norm2_bias; /* [H], the biases may be NULL */
  cpu_matrix qkv;  /* outputs: the query heads, the key heads, the value heads, each padded to `dim` */
  cpu_matrix up;   /* with a gate: panels of 16 gates and the 16 outputs they gate */
  cpu_matrix o;    /* parallel residual: the attention output and the MLP's inner row, side by side, are its input */
  cpu_matrix down; /* sequential residual only */
} cpu_layer;

struct dt_weights {
  dt_backend *backend;
  int vocab, hidden, layers, heads, kv_heads, context, rotary_dims;
  int dim;     /* head_dim rounded up to 16: the width of a head in q, k, v and the cache */
  float scale; /* head_dim^-0.5 */
  float norm_eps;
  dt_norm_kind norm;
  dt_act_kind act;
  bool parallel, gated;
  cpu_layer *layer; /* [layers] */
  float *final_norm, *final_norm_bias;
  void *embed; /* [vocab][hidden] as in the file */
  dt_dtype embed_dtype;
  cpu_matrix unembed;
  float *cosine, *sine; /* [context][rotary_dims / 2] */

  /* Scratch of a chunk of at most CPU_ROWS rows; leading dimensions in numbers. */
  size_t ldx, ldqkv, ldcat;
  float *x;      /* [CPU_ROWS][ldx] the residual stream */
  float *normed; /* [2][CPU_ROWS][ldx] */
  float *own;    /* [threads][2][CPU_OWN_NORMS][ldx] norms a thread computes for itself */
  float *qkv;    /* [CPU_ROWS][ldqkv] */
  float *cat;    /* [CPU_ROWS][ldcat] attention output, then the MLP's inner row */
  float *sums;   /* [threads][CPU_ROWS][CPU_LOGIT_BLOCK] */
  cpu_top *top;  /* [threads][CPU_ROWS] */
  float *parts;  /* [CPU_ROWS][3][ldparts] */
  size_t ldparts;
  cpu_rows8 rounded; /* [threads][blocks] rows for int8 weights; without those no blocks */
  size_t blocks;
  float *logits;    /* [CPU_ROWS][ldlogits] where all of a row's are needed to draw from it */
  uint32_t *weight; /* [threads][ldlogits] */
  size_t ldlogits;
  cpu_arena weights_arena, scratch_arena;
};

enum { CPU_OWN_NORMS = 4 }; /* so few rows every thread normalizes for itself, which is cheaper than a barrier */

/* A head's keys, or values, of one layer and sequence: [slot][dim], in f32 or f16, at cpu_rows_of(). */
struct dt_cache {
  dt_weights *weights;
  int sequences, slots;
  char *data;    /* [sequences][layers][2][kv_heads][slots][dim] */
  float *scores; /* [threads][CPU_ATTENTION_ROWS][ldscores] */
  size_t ldscores;
  cpu_arena cache_arena, scratch_arena;
};

static inline dt_limits cpu_limits(const dt_cache *c) {
  return (dt_limits){c->weights->vocab, c->weights->context, c->sequences, c->slots};
}

/* Bytes of a head's keys, or values, in one slot. */
static inline size_t cpu_row_bytes(const dt_weights *w) {
  return (size_t)w->dim * (w->backend->caches_f16 ? sizeof(uint16_t) : sizeof(float));
}

/* Part 0: keys, part 1: values. */
static inline char *cpu_rows_of(const dt_cache *c, int sequence, int layer, int part, int head) {
  const dt_weights *w = c->weights;
  size_t index =
      (((size_t)sequence * (size_t)w->layers + (size_t)layer) * 2 + (size_t)part) * (size_t)w->kv_heads + (size_t)head;
  return c->data + index * (size_t)c->slots * cpu_row_bytes(w);
}

/* Columns col..col+count-1 of a source's rows become k0.. of outputs; that of row r is
 * output + r / height * stride + r % height. */
typedef struct {
  const dt_matrix *source;
  int col, count, k0, output, height, stride;
} cpu_piece;

size_t cpu_bytes_of(dt_dtype);
const char *cpu_source_row(const dt_matrix *, int row);
void cpu_pack(const dt_backend *, const cpu_matrix *, const cpu_piece *);
void cpu_round(const dt_backend *, const cpu_matrix *from, const cpu_matrix *to); /* panels to int8 */

dt_status cpu_upload(dt_backend *, const dt_model_desc *, dt_weights **, dt_error *);
void cpu_free_weights(dt_weights *);

size_t cpu_cache_bytes(const dt_weights *, int slots);
size_t cpu_bytes_free(const dt_backend *);
dt_status cpu_create_cache(dt_weights *, int sequences, int slots, dt_cache **, dt_error *);
void cpu_free_cache(dt_cache *);
dt_status cpu_move(dt_cache *, int sequence, const int32_t *from, const int32_t *to, int n, dt_error *);
dt_status cpu_snapshot(const dt_cache *, int sequence, int n, dt_snapshot **, dt_error *);
dt_status cpu_restore(dt_cache *, int sequence, const dt_snapshot *, dt_error *);
void cpu_free_snapshot(dt_snapshot *);
dt_status cpu_read_slot(const dt_cache *, int sequence, int slot, void **bytes, size_t *len, dt_error *);

dt_status cpu_forward(dt_weights *, dt_cache *, const dt_rows *, const dt_out *, dt_error *);

#endif
