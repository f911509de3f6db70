/* The interface of a variant: its table of kernels, and the data that kernels work on. */
#ifndef DT_CPU_KERNELS_H
#define DT_CPU_KERNELS_H

#include "backend/delta_rows.h"
#include "format.h"

enum {
  CPU_ROWS = 64,          /* rows of a chunk: a larger pass runs chunk by chunk, each through all layers */
  CPU_TOP = DT_LISTED,    /* maximum number of candidates of a row */
  CPU_LOGIT_BLOCK = 256,  /* ids whose logits are reduced together; constant, so no sum depends on the threads */
  CPU_ATTENTION_ROWS = 32 /* rows whose attention is computed together: their common prefix is read once */
};

/* The last step of a product, computed by `finish`: where a panel's sums go after the bias has been added. */
typedef enum {
  CPU_STORE,    /* out[row][32 p + j] = sum */
  CPU_ADD,      /* out[row][32 p + j] += scale * sum: the residual stream */
  CPU_ACTIVATE, /* out[row][32 p + j] = act(sum) */
  /* A panel is 16 gates and the 16 outputs that they multiply: out[row][16 p + j] = act(gate) * up (or see
   * DT_ACT_CLAMPED). */
  CPU_GATE
} cpu_finish;

/* The attention of one row and one head: a query, and the slots of the keys that it sees. Positions 0..prefix-1 are in
 * the slots with the same numbers. */
typedef struct {
  const float *q;      /* [dim], already scaled: a score is the product of q with a key */
  float *out;          /* [dim] the attention output */
  const int32_t *path; /* [path_len] the slots of positions prefix, prefix + 1, .. */
  int prefix, path_len;
  int hidden, seen;  /* the window hides positions hidden..seen-1 */
  int begin;         /* lower positions are not read */
  float cap;         /* a score x becomes cap * tanh(x / cap); 0: it stays x */
  const float *sink; /* a score that counts only in the softmax's sum; NULL: none */
} cpu_attention_row;

/* The sizes of a delta layer's head, and where a ring's row has this head's key, delta and rate: see delta_layer.h. */
typedef struct {
  int key_dim, value_dim; /* multiples of 16 */
  size_t key_at, delta_at, rate_at;
} cpu_delta_head;

/* One row and one value head of a delta layer: the inputs, and where the results go. */
typedef struct {
  const float *q, *k, *v;  /* [key_dim] normalized to length 1, q also scaled; [value_dim] */
  float strength;          /* beta */
  const float *const *row; /* [n] rows of the ring, from the base to the row before this one */
  int n;                   /* at most DT_DELTA_ROWS */
  float *own;              /* this row in the ring: it has its rate already, its delta is written there */
  float *y;                /* [value_dim] */
} cpu_delta_row;

enum { CPU_DELTA_TOGETHER = 4 }; /* maximum number of rows in a call of delta_rows */

/* The types of caches. A type defines how a slot stores the keys or values of one head: dim numbers, a multiple of 16.
 * Each is an attention_*.c, compiled once per variant. To add one, write such a file and add its name to this list. The
 * first one is the default. */
#define CPU_CACHE_LIST(C) C(f16) C(f32) C(q8)

enum {
#define CPU_COUNT_CACHE(name) +1
  CPU_CACHES = CPU_CACHE_LIST(CPU_COUNT_CACHE)
#undef CPU_COUNT_CACHE
};

typedef struct {
  const char *name;
  size_t (*row_bytes)(int dim);
  /* Rounds and stores the numbers. A number that the type cannot represent becomes NaN, and so does every row that
   * reads it. */
  void (*write)(const float *numbers, int dim, char *row);
  /* Computes attention for n rows that share keys and values, which are [slot] rows of this type. scores: [n][ld]
   * scratch memory; ld is a multiple of 16. */
  void (*attend)(const char *keys, const char *values, int dim, const cpu_attention_row *rows, int n, float *scores,
                 size_t ld);
} cpu_cache_type;

/* The largest scores so far and their ids, falling; ties by lower id. */
typedef struct {
  float score[CPU_TOP], logit[CPU_TOP];
  int32_t id[CPU_TOP];
  int count;
  bool nan; /* a score was NaN */
} cpu_top;

/* A block's part of the softmax sums: sum = the sum of exp(logit - max); weighted = the sum of exp(logit - max) *
 * (logit - max). */
typedef struct {
  float max, sum, weighted;
} cpu_softmax_part;

typedef struct {
  const char *name;
  const cpu_format *format[CPU_FORMATS]; /* in the order of CPU_FORMAT_LIST */
  void (*finish)(cpu_finish how, dt_act_kind act, float scale, const cpu_matrix *m, int first, int count,
                 const float *sums, size_t ld, int n, float *out, size_t ldo);
  /* x = cap * tanh(scale * x / cap), or scale * x if cap is 0. May write up to 15 numbers past the end. */
  void (*bound)(float scale, float cap, float *x, int count);
  /* y = norm(x) * weight + bias over `hidden` numbers. bias may be NULL; y may be x. */
  void (*norm)(dt_norm_kind kind, const float *x, const float *weight, const float *bias, int hidden, float eps,
               float *y);
  /* These take n numbers, a multiple of 16. gate: y *= sigmoid(x). gate_silu: y *= silu(x). unit: x *= scale /
   * sqrt(|x|^2 + 1e-6). */
  void (*gate)(const float *x, int n, float *y);
  void (*gate_silu)(const float *x, int n, float *y);
  void (*unit)(float *x, int n, float scale);
  /* The steps of a delta layer: see delta_layer.h. delta_mix: the convolution. tap[t] is the row 3 - t rows earlier
   * ([n]; NULL: there is none); weight: [taps][ld]. */
  void (*delta_mix)(const float *const tap[DT_DELTA_TAPS], const float *weight, size_t ld, int n, float *out);
  /* rate = decay * softplus(a + shift); b = sigmoid(b) */
  void (*delta_rates)(const float *a, const float *shift, const float *decay, int n, float *rate, float *b);
  /* Computes n rows that have the same base, [key_dim][value_dim] (NULL: the zero state at the beginning of the text).
   * An ancestor comes before its descendants. */
  void (*delta_rows)(const cpu_delta_head *h, const float *base, const cpu_delta_row *rows, int n);
  void (*delta_base)(const cpu_delta_head *h, const float *before, const float *const row[DT_DELTA_STEP], float *base);
  const cpu_cache_type *cache[CPU_CACHES]; /* in the order of CPU_CACHE_LIST */
  /* In the next five kernels, logits and scores [0..count-1] belong to the ids first, first + 1, ..; the kernels may
   * read and write up to 15 numbers past their end. `largest` returns the largest logit, ignoring NaN; softmax_part
   * and softmax_sum take it as an argument. softmax_sum leaves out the weighted sum. rank adds to top, which holds
   * at most k, and returns the largest logit, too. add_noise turns logits into scores (sample.h); `first` is a
   * multiple of 64. */
  float (*largest)(float *logits, int count);
  void (*softmax_part)(float *logits, int count, float largest, cpu_softmax_part *part);
  void (*softmax_sum)(float *logits, int count, float largest, cpu_softmax_part *part);
  float (*rank)(float *scores, const float *logits, int first, int count, int k, cpu_top *top);
  void (*add_noise)(const dt_sampling *s, int32_t position, int first, int count, const float *logits, float *scores);
  /* Adds the best of the scores that add_noise would compute from `logits` to top. `own` are the logits that top
   * reports. */
  void (*sample_among)(const dt_sampling *s, int32_t position, int first, int count, const float *logits,
                       const float *own, cpu_top *top);
  /* Samples a token among the allowed ones of n ids (sample.h); returns -1 if a logit is NaN. May write up to 15
   * numbers past the end of the logits. weight: [n] scratch memory. */
  int32_t (*sample)(const dt_sampling *s, int32_t position, float *logits, int n, uint32_t *weight);
  /* Combines the parts of all blocks; the parts of two consecutive blocks are `step` elements apart. */
  cpu_softmax_part (*combine_parts)(const cpu_softmax_part *parts, size_t step, int blocks);
  float (*stream)(const float *p, size_t n); /* a memory-bound sum, to measure the read bandwidth */
  /* y[i] = f(x[i]), n a multiple of 16. Tests of the polynomials use these. */
  void (*exp)(const float *x, size_t n, float *y);
  void (*log)(const float *x, size_t n, float *y);
  void (*erf)(const float *x, size_t n, float *y);
  void (*activate)(dt_act_kind act, const float *x, size_t n, float *y);
} cpu_kernels;

/* Finds the variant with this name or, if variant is NULL, the best one. Returns NULL and fills err if the name is
 * unknown or the machine lacks the instructions. */
const cpu_kernels *cpu_find_kernels(const char *variant, dt_error *err);
/* Variant i of those that this machine can run, slowest first; NULL past the last one. */
const cpu_kernels *cpu_variant(int i);

/* What processors may have, as far as variants need it. AVX2 is with FMA and F16C; AVX512 is F, BW, DQ and VL. */
enum {
  CPU_HAS_AVX2 = 1,
  CPU_HAS_AVX512 = 2,
  CPU_HAS_AVX512_VNNI = 4,
  CPU_HAS_AMX = 8,
  CPU_HAS_AVX_VNNI = 16,
  CPU_HAS_DOTPROD = 32,
  CPU_HAS_I8MM = 64
};
/* Variant i of those that a processor with these features can run. */
const cpu_kernels *cpu_variant_with(unsigned features, int i);

#endif
