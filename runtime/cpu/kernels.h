/* The interface of a variant: a table of kernels, and the shapes they work on. */
#ifndef DT_CPU_KERNELS_H
#define DT_CPU_KERNELS_H

#include "backend/backend.h"
#include "format.h"

enum {
  CPU_ROWS = 64,          /* rows of a chunk: a larger pass runs chunk by chunk, each through all layers */
  CPU_TOP = 32,           /* candidates of a row, at most */
  CPU_LOGIT_BLOCK = 256,  /* ids whose logits are reduced together; constant, so that no sum depends on the threads */
  CPU_ATTENTION_ROWS = 32 /* rows whose attention is computed together: their prefix is read once */
};

/* The last step of a product, by `finish`: the place of a panel's sums, after adding the bias. */
typedef enum {
  CPU_STORE,    /* out[row][32 p + j] = sum */
  CPU_ADD,      /* out[row][32 p + j] += scale * sum: the residual stream */
  CPU_ACTIVATE, /* out[row][32 p + j] = act(sum) */
  /* Panels of 16 gates and the 16 outputs they multiply: out[row][16 p + j] = act(gate) * up, or see DT_ACT_CLAMPED. */
  CPU_GATE
} cpu_finish;

/* One row and one head: a query and the slots of its keys. Positions 0..prefix-1 lie in the slots of the same
 * numbers. */
typedef struct {
  const float *q;      /* [dim], scaled: a score is its product with a key */
  float *out;          /* [dim] the attention output */
  const int32_t *path; /* [path_len] slots of positions prefix, prefix + 1, .. */
  int prefix, path_len;
  int hidden, seen;  /* the window hides positions hidden..seen-1 */
  int begin;         /* positions below are not read */
  float cap;         /* a score x becomes cap * tanh(x / cap); 0: it stays */
  const float *sink; /* a score that only the softmax's sum has; NULL: none */
} cpu_attention_row;

/* One row and one value head of a delta layer: see delta_layer.h. A ring's row has this head's key, delta and rate at
 * these places. */
typedef struct {
  int key_dim, value_dim; /* multiples of 16 */
  size_t key_at, delta_at, rate_at;
} cpu_delta_head;

typedef struct {
  const float *q, *k, *v;  /* [key_dim] of length 1, q scaled; [value_dim] */
  float strength;          /* beta */
  const float *const *row; /* [n] rows of the ring from the base to the row before this one */
  int n;                   /* at most CPU_DELTA_ROWS */
  float *own;              /* this row's of the ring, which has its rate; its delta is written there */
  float *y;                /* [value_dim] */
} cpu_delta_row;

enum {
  CPU_DELTA_STEP = 32,                                 /* positions between bases */
  CPU_DELTA_LAG = DT_DELTA_LAG,                        /* at least so many rows lie between a base and a row */
  CPU_DELTA_ROWS = CPU_DELTA_LAG + CPU_DELTA_STEP - 1, /* and at most so many */
  CPU_DELTA_TOGETHER = 4                               /* rows of a call of delta_rows, at most */
};

/* The types of caches: the layout of dim numbers (a multiple of 16), keys or values of one head, in a slot. Each is an
 * attention_*.c, compiled once per variant; a new one is such a file and a name in this list. The first is the
 * default. */
#define CPU_CACHE_LIST(C) C(f16) C(f32) C(q8)

enum {
#define CPU_COUNT_CACHE(name) +1
  CPU_CACHES = CPU_CACHE_LIST(CPU_COUNT_CACHE)
#undef CPU_COUNT_CACHE
};

typedef struct {
  const char *name;
  size_t (*row_bytes)(int dim);
  /* Rounds and writes the numbers. A number that the type cannot hold becomes NaN, so that every row that reads it
   * becomes NaN. */
  void (*write)(const float *numbers, int dim, char *row);
  /* Computes attention for n rows that share keys and values, [slot] rows of this type. scores: [n][ld] scratch, ld a
   * multiple of 16. */
  void (*attend)(const char *keys, const char *values, int dim, const cpu_attention_row *rows, int n, float *scores,
                 size_t ld);
} cpu_cache_type;

/* The largest scores so far and their ids, falling; ties by lower id. */
typedef struct {
  float score[CPU_TOP], logit[CPU_TOP];
  int32_t id[CPU_TOP];
  int count;
  bool nan; /* some score was NaN */
} cpu_top;

/* A block's part of the softmax sums: sum = sum of exp(logit - max), weighted = sum of exp(logit - max) (logit -
 * max). */
typedef struct {
  float max, sum, weighted;
} cpu_softmax_part;

typedef struct {
  const char *name;
  const cpu_format *format[CPU_FORMATS]; /* in the order of CPU_FORMAT_LIST */
  void (*finish)(cpu_finish how, dt_act_kind act, float scale, const cpu_matrix *m, int first, int count,
                 const float *sums, size_t ld, int n, float *out, size_t ldo);
  /* x = cap * tanh(scale * x / cap), or with cap 0 scale * x; may write up to 15 numbers behind the count. */
  void (*bound)(float scale, float cap, float *x, int count);
  /* y = norm(x) * weight + bias (bias may be NULL), over `hidden` numbers; y may be x. */
  void (*norm)(dt_norm_kind kind, const float *x, const float *weight, const float *bias, int hidden, float eps,
               float *y);
  /* Of n numbers, a multiple of 16: y *= sigmoid(x); y *= silu(x); x *= scale / sqrt(|x|^2 + 1e-6). */
  void (*gate)(const float *x, int n, float *y);
  void (*gate_silu)(const float *x, int n, float *y);
  void (*unit)(float *x, int n, float scale);
  /* The parts of a delta layer: see delta_layer.h. tap[t]: [n] the row t - 3 before, NULL: none; weight: [taps][ld] */
  void (*delta_mix)(const float *const tap[DT_DELTA_TAPS], const float *weight, size_t ld, int n, float *out);
  /* rate = decay * softplus(a + shift); b = sigmoid(b) */
  void (*delta_rates)(const float *a, const float *shift, const float *decay, int n, float *rate, float *b);
  /* Some rows with one base, [key_dim][value_dim], NULL: the text's beginning. Of two, the ancestor comes first. */
  void (*delta_rows)(const cpu_delta_head *h, const float *base, const cpu_delta_row *rows, int n);
  void (*delta_base)(const cpu_delta_head *h, const float *before, const float *const row[CPU_DELTA_STEP], float *base);
  const cpu_cache_type *cache[CPU_CACHES]; /* in the order of CPU_CACHE_LIST */
  /* In these five, logits and scores [0..count-1] belong to ids first, first + 1, .. ; they may read and write up to 15
   * numbers behind them. `largest` returns the largest logit, ignoring NaN; softmax_part and softmax_sum take it as an
   * argument. softmax_sum leaves out the weighted sum. rank adds to top, which holds at most k, and also returns the
   * largest. add_noise makes scores of logits (sample.h); `first` is a multiple of 64. */
  float (*largest)(float *logits, int count);
  void (*softmax_part)(float *logits, int count, float largest, cpu_softmax_part *part);
  void (*softmax_sum)(float *logits, int count, float largest, cpu_softmax_part *part);
  float (*rank)(float *scores, const float *logits, int first, int count, int k, cpu_top *top);
  void (*add_noise)(const dt_sampling *s, int32_t position, int first, int count, const float *logits, float *scores);
  /* Adds to top the best of the scores that add_noise would make of `logits`; `own` are the logits that top reports. */
  void (*sample_among)(const dt_sampling *s, int32_t position, int first, int count, const float *logits,
                       const float *own, cpu_top *top);
  /* Samples a token among the allowed of n ids (sample.h); -1 if a logit is NaN. May write up to 15 numbers behind the
   * logits. weight: [n] scratch. */
  int32_t (*sample)(const dt_sampling *s, int32_t position, float *logits, int n, uint32_t *weight);
  /* The sum over all blocks; the part of each lies `step` parts after that of the block before. */
  cpu_softmax_part (*combine_parts)(const cpu_softmax_part *parts, size_t step, int blocks);
  float (*stream)(const float *p, size_t n); /* a sum, limited by the memory's speed */
  /* y[i] = f(x[i]), n a multiple of 16: for tests of the polynomials. */
  void (*exp)(const float *x, size_t n, float *y);
  void (*log)(const float *x, size_t n, float *y);
  void (*erf)(const float *x, size_t n, float *y);
  void (*activate)(dt_act_kind act, const float *x, size_t n, float *y);
} cpu_kernels;

/* Finds the best variant (variant NULL) or the one of that name. Returns NULL and fills err if the name is unknown or
 * the machine lacks the instructions. */
const cpu_kernels *cpu_find_kernels(const char *variant, dt_error *err);
/* Variant i of those this machine can run, slowest first; NULL past the last. */
const cpu_kernels *cpu_variant(int i);

#endif
