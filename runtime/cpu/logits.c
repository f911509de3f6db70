/* What is kept of the logits: the ids of the largest scores and the parts of the softmax sums, block by block of ids, so that
 * the logits of a large vocabulary need not all be in memory. */
#include "variant.h"

#include "vmath.h"

#include <float.h>

/* Whole vectors: nothing wins against what stands behind the last number. */
static void pad(float *x, int count) {
  for (int i = count; i & 15; i++) x[i] = -INFINITY;
}

void V(cpu_softmax_part)(float *logits, int count, const cpu_softmax_parts *parts, int block) {
  pad(logits, count);
  v16 most = v_set1(-FLT_MAX);
  for (int i = 0; i < count; i += 16) most = v_max(v_load(logits + i), most);
  float base = v_hmax(most);
  v16 sum = v_set1(0.0f), weighted = sum;
  for (int i = 0; i < count; i += 16) {
    v16 d = v_max(v_set1(VMATH_EXP_MIN), v_sub(v_load(logits + i), v_set1(base)));
    v16 e = v_exp(d);
    if (i + 16 > count) e = v_first(e, count - i);
    sum = v_add(sum, e);
    weighted = v_fma(e, d, weighted);
  }
  parts->max[block] = base;
  parts->sum[block] = v_sum(sum);
  parts->weighted[block] = v_sum(weighted);
}

/* Keeps ids of equal score in the order they come, which is that of the ids. */
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

/* What the k-th of a block is at least: the smallest of the maxima of k or more disjoint sets of ids, of which there are 32 at
 * first; the fewer, the nearer. */
VI float floor_of(v16 even, v16 odd, int k) {
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

void V(cpu_rank)(float *scores, const float *logits, int first, int count, int k, cpu_top *top) {
  pad(scores, count);
  v16 even = v_set1(-INFINITY), odd = even; /* the largest of each of 32 disjoint sets of ids */
  unsigned nan = 0;
  for (int i = 0; i < count; i += 16) {
    v16 l = v_load(scores + i);
    nan |= v_nan_mask(l);
    if (i & 16)
      odd = v_max(l, odd);
    else
      even = v_max(l, even);
  }
  if (nan) top->nan = true;
  float largest = v_hmax(v_max(even, odd));

  float least = top->count == k ? top->score[k - 1] : -INFINITY; /* only larger ones get in */
  if (!(largest > least)) return;
  float floor = k == 1 ? largest : floor_of(even, odd, k); /* lower ids need no look */
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
}

void V(cpu_combine_parts)(const cpu_softmax_parts *parts, int blocks, float *max, float *sum, float *weighted) {
  float largest = parts->max[0];
  for (int b = 1; b < blocks; b++) largest = parts->max[b] > largest ? parts->max[b] : largest;
  v16 s = v_set1(0.0f), w = s;
  for (int b = 0; b < blocks; b += 16) {
    v16 d = v_max(v_set1(VMATH_EXP_MIN), v_sub(v_load(parts->max + b), v_set1(largest)));
    v16 e = v_exp(d), part = v_load(parts->sum + b);
    v16 of_sum = v_mul(e, part), of_weighted = v_mul(e, v_fma(d, part, v_load(parts->weighted + b)));
    if (b + 16 > blocks) { /* behind the last block lies whatever was there, NaN perhaps */
      of_sum = v_first(of_sum, blocks - b);
      of_weighted = v_first(of_weighted, blocks - b);
    }
    s = v_add(s, of_sum);
    w = v_add(w, of_weighted);
  }
  *max = largest;
  *sum = v_sum(s);
  *weighted = v_sum(w);
}
