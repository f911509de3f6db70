/* Reduces logits, block by block of ids, to the largest scores and to parts of the softmax sums. The logits of a large
 * vocabulary therefore need not all be in memory. */
#include "variant.h"

#include "vmath.h"

#include <float.h>

/* Fills up the last vector of sixteen with numbers that never win. */
static void pad(float *x, int count) {
  for (int i = count; i & 15; i++) x[i] = -INFINITY;
}

/* The largest scores of 32 disjoint sets of a block's ids, and whether a score is NaN. */
typedef struct {
  v16 even, odd;
  unsigned nan;
} maxima;

VI maxima find_maxima(const float *scores, int count) {
  maxima m = {v_set1(-INFINITY), v_set1(-INFINITY), 0};
  for (int i = 0; i < count; i += 16) {
    v16 l = v_load(scores + i);
    m.nan |= v_nan_mask(l);
    if (i & 16)
      m.odd = v_max(l, m.odd);
    else
      m.even = v_max(l, m.even);
  }
  return m;
}

float V(cpu_largest)(float *logits, int count) {
  pad(logits, count);
  maxima m = find_maxima(logits, count);
  return v_hmax(v_max(m.even, m.odd));
}

/* Adds exp(logit - base) of the first n of sixteen logits, and its product with logit - base, to the sums, lane by
 * lane. The result for NaN is undefined; rank reports NaN. */
VI void add_exps(v16 logits, int n, float base, const bool weighs, v16 *sum, v16 *weighted) {
  v16 d = v_max(v_set1(VMATH_EXP_MIN), v_sub(logits, v_set1(base)));
  v16 e = v_exp_within(d);
  if (n < 16) e = v_first(e, n);
  *sum = v_add(*sum, e);
  if (weighs) *weighted = v_fma(e, d, *weighted);
}

VI void softmax_part(float *logits, int count, float largest, const bool weighs, cpu_softmax_part *part) {
  pad(logits, count);
  float base = largest > -FLT_MAX ? largest : -FLT_MAX;
  v16 sum = v_set1(0.0f), weighted = sum;
  int whole = count & ~15;
#pragma GCC unroll 4
  for (int i = 0; i < whole; i += 16) add_exps(v_load(logits + i), 16, base, weighs, &sum, &weighted);
  if (whole < count) add_exps(v_load(logits + whole), count - whole, base, weighs, &sum, &weighted);
  *part = (cpu_softmax_part){base, v_sum(sum), v_sum(weighted)};
}

void V(cpu_softmax_part)(float *logits, int count, float largest, cpu_softmax_part *part) {
  softmax_part(logits, count, largest, true, part);
}

void V(cpu_softmax_sum)(float *logits, int count, float largest, cpu_softmax_part *part) {
  softmax_part(logits, count, largest, false, part);
}

/* Among equal scores the first one inserted stays first; ids come in rising order. */
static void insert(cpu_top *top, int k, float score, float logit, int32_t id) {
  int at = top->count < k ? top->count++ : k - 1;
  for (; at > 0 && top->score[at - 1] < score; at--) {
    top->score[at] = top->score[at - 1];
    top->logit[at] = top->logit[at - 1];
    top->id[at] = top->id[at - 1];
  }
  top->score[at] = score;
  top->logit[at] = logit;
  top->id[at] = id;
}

/* A lower bound of a block's k-th largest score: the smallest of the maxima of k or more disjoint sets of ids. It
 * begins with 32 sets and merges them; the fewer sets, the tighter the bound. More sets would be needed for a larger
 * k. */
VI float floor_of(v16 even, v16 odd, int k) {
  if (k > 32) return -INFINITY;
  if (k > 16) return -v_hmax(v_sub(v_set1(0.0f), v_min(even, odd)));
  float most[16];
  v_store(most, v_max(even, odd));
  int sets = 16;
  for (; sets / 2 >= k; sets /= 2)
    for (int i = 0; i < sets / 2; i++) most[i] = most[i] > most[i + sets / 2] ? most[i] : most[i + sets / 2];
  float least = most[0];
  for (int i = 1; i < sets; i++) least = most[i] < least ? most[i] : least;
  return least;
}

float V(cpu_rank)(float *scores, const float *logits, int first, int count, int k, cpu_top *top) {
  pad(scores, count);
  maxima m = find_maxima(scores, count);
  if (m.nan) top->nan = true;
  float largest = v_hmax(v_max(m.even, m.odd));

  float least = top->count == k ? top->score[k - 1] : -INFINITY; /* only larger scores enter */
  if (!(largest > least)) return largest;
  float floor = k == 1 ? largest : floor_of(m.even, m.odd, k); /* smaller scores cannot enter */
  for (int i = 0; i < count; i += 16) {
    v16 l = v_load(scores + i);
    unsigned mask = v_gt_mask(l, v_set1(least)) & ~v_gt_mask(v_set1(floor), l);
    for (; mask; mask &= mask - 1) {
      int at = i + __builtin_ctz(mask);
      if (!(scores[at] > least)) continue;
      insert(top, k, scores[at], logits[at], first + at);
      if (top->count == k) least = top->score[k - 1];
    }
  }
  return largest;
}

cpu_softmax_part V(cpu_combine_parts)(const cpu_softmax_part *parts, size_t step, int blocks) {
  float largest = parts->max;
  for (int b = 1; b < blocks; b++)
    largest = parts[(size_t)b * step].max > largest ? parts[(size_t)b * step].max : largest;
  v16 s = v_set1(0.0f), w = s;
  for (int b = 0; b < blocks; b += 16) {
    float max[16], sum[16] = {0}, weighted[16] = {0};
    for (int i = 0; i < 16; i++) max[i] = largest;
    for (int i = 0; i < 16 && b + i < blocks; i++) {
      const cpu_softmax_part *part = &parts[(size_t)(b + i) * step];
      max[i] = part->max, sum[i] = part->sum, weighted[i] = part->weighted;
    }
    v16 d = v_max(v_set1(VMATH_EXP_MIN), v_sub(v_load(max), v_set1(largest)));
    v16 e = v_exp(d), part = v_load(sum);
    s = v_add(s, v_mul(e, part));
    w = v_add(w, v_mul(e, v_fma(d, part, v_load(weighted))));
  }
  return (cpu_softmax_part){largest, v_sum(s), v_sum(w)};
}
