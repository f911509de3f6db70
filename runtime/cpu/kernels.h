/* The interface of a variant: a table of kernels, and the shapes they work on. */
#ifndef DT_CPU_KERNELS_H
#define DT_CPU_KERNELS_H

#include "backend/backend.h"
#include "format.h"

enum {
  CPU_ROWS = 64,         /* rows of one chunk: a larger pass runs in chunks, through all layers, in order */
  CPU_TOP = 32,          /* most candidates per row */
  CPU_LOGIT_BLOCK = 256, /* ids whose logits are reduced together: a constant, so that no sum depends on the threads */
  CPU_ATTENTION_ROWS =
      32 /* rows whose attention is computed side by side, so that prefix keys are read once for them */
};

/* The destination of a panel's sums, with the bias added. */
typedef enum {
  CPU_STORE,    /* out[row][32 p + j] = sum */
  CPU_ADD,      /* out[row][32 p + j] += sum: the residual stream */
  CPU_ACTIVATE, /* out[row][32 p + j] = act(sum) */
  CPU_GATE      /* outputs 0..15 of a panel are gates, 16..31 what they gate: out[row][16 p + j] = act(gate) * up */
} cpu_finish;

/* The keys of one head in a sequence, for one row: positions 0..prefix-1 lie in slots of the same number. */
typedef struct {
  const float *q;      /* [dim], scaled by head_dim^-0.5 */
  float *out;          /* [dim] */
  const int32_t *path; /* [path_len] slots of positions prefix.. */
  int prefix, path_len;
  int hidden, seen; /* positions hidden..seen-1 do not count */
} cpu_attention_row;

/* The types of caches: how dim numbers (a multiple of 16) of a head's keys, or values, lie in a slot. Each is an attention_*.c, which
 * is compiled once per variant; a new one is such a file and a name in this list. The first is taken unless another is asked for. */
#define CPU_CACHE_LIST(C) C(f16) C(f32) C(q8)

enum {
#define CPU_COUNT_CACHE(name) +1
  CPU_CACHES = CPU_CACHE_LIST(CPU_COUNT_CACHE)
#undef CPU_COUNT_CACHE
};

typedef struct {
  const char *name;
  size_t (*row_bytes)(int dim);
  /* The numbers, rounded. What the type cannot hold becomes NaN, so that each row that looks at it is NaN. */
  void (*write)(const float *numbers, int dim, char *row);
  /* Rows share keys and values, [slot] rows; scores: [n][ld] scratch, ld a multiple of 16. */
  void (*attend)(const char *keys, const char *values, int dim, const cpu_attention_row *rows, int n, float *scores,
                 size_t ld);
} cpu_cache_type;

/* The ids of the largest scores so far, falling, ties by lower id. */
typedef struct {
  float score[CPU_TOP], logit[CPU_TOP];
  int32_t id[CPU_TOP];
  int count;
  bool nan; /* some score was NaN */
} cpu_top;

/* One block's part of the softmax sums: sum = sum of exp(logit - max), weighted = sum of exp(logit - max) (logit - max). */
typedef struct {
  float max, sum, weighted;
} cpu_softmax_part;

typedef struct {
  const char *name;
  const cpu_format *format[CPU_FORMATS]; /* in the order of format.h's list */
  void (*finish)(cpu_finish how, dt_act_kind act, const cpu_matrix *m, int first, int count, const float *sums,
                 size_t ld, int n, float *out, size_t ldo);
  /* y = norm(x) * weight + bias (bias may be NULL), over `hidden` numbers; y may be x */
  void (*norm)(dt_norm_kind kind, const float *x, const float *weight, const float *bias, int hidden, float eps,
               float *y);
  const cpu_cache_type *cache[CPU_CACHES]; /* in the order of the list */
  /* In these, logits and scores [0..count-1] are those of ids first.. ; up to 15 numbers behind them may be read and
   * written. largest is the largest of them, NaN apart, which softmax_part and softmax_sum are told; the latter leaves out the
   * weighted sum. rank updates top, at most k, and returns the largest too; add_noise makes scores of logits (draw.h), for a
   * `first` that is a multiple of 64. */
  float (*largest)(float *logits, int count);
  void (*softmax_part)(float *logits, int count, float largest, cpu_softmax_part *part);
  void (*softmax_sum)(float *logits, int count, float largest, cpu_softmax_part *part);
  float (*rank)(float *scores, const float *logits, int first, int count, int k, cpu_top *top);
  void (*add_noise)(const dt_sampling *s, int32_t position, int first, int count, const float *logits, float *scores);
  /* rank of the scores that add_noise would make of `logits`, for the best one only; `own`: the logits that top tells. */
  void (*draw_among)(const dt_sampling *s, int32_t position, int first, int count, const float *logits,
                     const float *own, cpu_top *top);
  /* The token drawn among the allowed ids (draw.h) of n; -1 if a logit is NaN. May write up to 15 numbers behind the logits.
   * weight: [n] scratch */
  int32_t (*draw)(const dt_sampling *s, int32_t position, float *logits, int n, uint32_t *weight);
  /* Of all blocks, each one's part `step` parts behind the last's. */
  cpu_softmax_part (*combine_parts)(const cpu_softmax_part *parts, size_t step, int blocks);
  float (*stream)(const float *p, size_t n); /* a sum, as fast as reading goes */
  /* y[i] = f(x[i]); for tests of the polynomials. n a multiple of 16 */
  void (*exp)(const float *x, size_t n, float *y);
  void (*log)(const float *x, size_t n, float *y);
  void (*erf)(const float *x, size_t n, float *y);
  void (*activate)(dt_act_kind act, const float *x, size_t n, float *y);
} cpu_kernels;

/* The best variant, or the named one; NULL with a message if it is unknown or this machine lacks the instructions. */
const cpu_kernels *cpu_find_kernels(const char *variant, dt_error *err);
/* Variant i of those this machine can run, slowest first; NULL behind the last. */
const cpu_kernels *cpu_variant(int i);

#endif
