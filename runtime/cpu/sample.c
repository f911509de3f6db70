/* Samples a token as sample.h defines it: the noise for sixteen ids at a time, and the set of allowed ids.
 * Probabilities are summed as integers, so that the order of summation does not matter. */
#include "variant.h"

#include "vmath.h"

#include <float.h>

enum {
  LANES = 16,
  WORDS = 4,
  RUN = LANES * WORDS,
  RUNS = 4
}; /* ids of a run share sixteen counters: see sample_bits */

/* The random bits of ids first..first+63: lane l of bits[w] belongs to id first + 16 w + l. This is sample_philox with
 * one counter per lane. */
VI void run_bits(uint64_t seed, int32_t position, int first, i16 bits[WORDS]) {
  static const int32_t lane[LANES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  i16 a = i_add(i_set1(first / WORDS), i_load((const uint8_t *)lane)), b = i_set1(position);
  i16 c = i_set1(0), d = c;
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  for (int round = 0; round < PHILOX_ROUNDS; round++, k0 += PHILOX_STEP_0, k1 += PHILOX_STEP_1) {
    i16 p_low, p = i_multiply(a, PHILOX_TIMES_A, &p_low), q_low, q = i_multiply(c, PHILOX_TIMES_C, &q_low);
    a = i_xor(i_xor(q, b), i_set1((int32_t)k0)), b = q_low;
    c = i_xor(i_xor(p, d), i_set1((int32_t)k1)), d = p_low;
  }
  bits[0] = a, bits[1] = b, bits[2] = c, bits[3] = d;
}

VI v16 u_of(i16 bits) {
  v16 u = v_fma(i_to_float_unsigned(bits), v_set1(0x1p-32f), v_set1(0x1p-33f));
  return v_min(u, v_set1(1.0f - 0x1p-24f));
}

/* G = -ln(-ln(1 - u)). For a small u, 1 - u loses digits of u; the expression ln(1 - u) u / (1 - (1 - u)) corrects that
 * (Kahan). */
VI v16 gumbel(v16 u) {
  v16 zero = v_set1(0.0f), one = v_set1(1.0f);
  v16 rest = v_sub(one, u), taken = v_sub(one, rest);
  v16 exact = v_div(v_mul(v_log(rest), u), v_sub(zero, v_if_gt(taken, zero, taken, one)));
  return v_sub(zero, v_log(v_if_gt(taken, zero, exact, u)));
}

/* An upper bound of G. G is at most -ln u, and the bits of a float, read as an integer, are at most 2^23 (127 + its
 * log2). 88.031 is 127 ln 2 plus 0.0013, which is more than the sum of all rounding errors. */
VI v16 gumbel_at_most(v16 u) { return v_fma(i_to_float(i_bits(u)), v_set1(-0x1p-23f * 0.693147181f), v_set1(88.031f)); }

void V(cpu_add_noise)(const dt_sampling *s, int32_t position, int first, int count, const float *logits,
                      float *scores) {
  v16 scale = v_set1(1.0f / s->temp);
  for (int i = 0; i < count; i += RUNS * RUN) { /* several runs at once, since each is a long chain of operations */
    i16 bits[RUNS * WORDS];
    for (int r = 0; r < RUNS; r++) run_bits(s->seed, position, first + i + r * RUN, bits + r * WORDS);
    for (int w = 0; w < RUNS * WORDS && i + w * LANES < count; w++)
      v_store(scores + i + w * LANES, v_fma(v_load(logits + i + w * LANES), scale, gumbel(u_of(bits[w]))));
  }
}

/* Computes the noise only where its upper bound could lift an id above the best score so far: a larger noise gives no
 * smaller result of the fma. A NaN counts as possible, since it does not compare as below. */
void V(cpu_sample_among)(const dt_sampling *s, int32_t position, int first, int count, const float *logits,
                         const float *own, cpu_top *top) {
  v16 scale = v_set1(1.0f / s->temp);
  for (int i = 0; i < count; i += RUN) {
    i16 bits[WORDS];
    run_bits(s->seed, position, first + i, bits);
    for (int w = 0; w < WORDS && i + w * LANES < count; w++) {
      int at = i + w * LANES, n = count - at < LANES ? count - at : LANES;
      v16 logit = v_load(logits + at), u = u_of(bits[w]);
      v16 best = v_set1(top->count ? top->score[0] : -INFINITY);
      unsigned below = v_gt_mask(best, v_fma(logit, scale, gumbel_at_most(u)));
      if (!(~below & ((1u << n) - 1))) continue;
      float score[LANES];
      v_store(score, v_fma(logit, scale, gumbel(u)));
      V(cpu_rank)(score, own + at, first + at, n, 1, top);
    }
  }
}

/* ---- the allowed ids --------------------------------------------------------------------------------------------- */

/* The last allowed id in the order of falling logits; ties by lower id. */
typedef struct {
  float logit;
  int32_t id;
} cut;

static bool is_allowed(cut c, float logit, int id) { return logit > c.logit || (logit == c.logit && id <= c.id); }

/* An integer that rises with the logit. Both zeros have the same key. */
static uint32_t key_of(float logit) {
  uint32_t bits;
  logit += 0.0f;
  memcpy(&bits, &logit, sizeof bits);
  return bits ^ (uint32_t)((int32_t)bits >> 31 | INT32_MIN); /* negative: invert all bits; otherwise set the sign bit */
}

static float logit_of(uint32_t key) {
  uint32_t bits = key & 0x80000000u ? key & 0x7fffffffu : ~key;
  float logit;
  memcpy(&logit, &bits, sizeof logit);
  return logit;
}

/* Goes through the ids in the order of falling logits until their weights sum up to `need` (weight NULL: each id weighs
 * 1). Returns the id reached. It finds the digits of that id's key from the highest down; each digit takes one pass
 * over the logits that share the digits before it. */
static cut reach(const float *logits, int n, const uint32_t *weight, uint64_t need) {
  enum { DIGIT = 11, VALUES = 1 << DIGIT };
  static const int shifts[] = {21, 10, 0};
  uint32_t low = 0, high = UINT32_MAX; /* the range of keys that have the digits found so far */
  uint64_t ahead = 0;                  /* the sum of the weights of larger keys */
  for (int d = 0; d < 3; d++) {
    uint64_t sum[VALUES] = {0};
    v16 least = v_set1(d ? logit_of(low) : -INFINITY), most = v_set1(d ? logit_of(high) : INFINITY);
    for (int i = 0; i < n; i += LANES) {
      v16 l = v_load(logits + i);
      unsigned inside = 0xffff & ~(v_gt_mask(least, l) | v_gt_mask(l, most));
      for (; inside; inside &= inside - 1) {
        int at = i + __builtin_ctz(inside);
        uint32_t key = key_of(logits[at]); /* the key decides: zeros of both signs and NaN bounds also pass that test */
        if (at < n && key >= low && key <= high) sum[(key - low) >> shifts[d]] += weight ? weight[at] : 1;
      }
    }
    uint32_t value = (high - low) >> shifts[d];
    for (; value > 0 && ahead + sum[value] < need; value--) ahead += sum[value];
    low += value << shifts[d];
    high = low + ((1u << shifts[d]) - 1);
  }
  cut c = {logit_of(low), -1};
  for (int i = 0; i < n && ahead < need; i++)
    if (logits[i] == c.logit) ahead += weight ? weight[i] : 1, c.id = i;
  return c;
}

/* weight[i] = p(i) / (the largest p) in units of 2^-30, or 0 if i is not allowed. Returns their sum. weight has room
 * for whole vectors of sixteen. */
static uint64_t weigh(const dt_sampling *s, const float *logits, int n, float largest, cut c, uint32_t *weight) {
  uint64_t sum = 0;
  v16 base = v_set1(largest), scale = v_set1(1.0f / s->temp), zero = v_set1(0.0f);
  for (int i = 0; i < n; i += LANES) {
    float share[LANES];
    v16 d = v_mul(v_sub(v_load(logits + i), base), scale);
    v_store(share, v_exp(v_max(v_set1(VMATH_EXP_MIN), v_min(zero, d))));
    for (int l = 0; l < LANES; l++) weight[i + l] = (uint32_t)(int32_t)(share[l] * 0x1p30f);
  }
  for (int i = 0; i < n; i++) {
    weight[i] = is_allowed(c, logits[i], i) ? weight[i] : 0;
    sum += weight[i];
  }
  return sum;
}

static cut allowed(const dt_sampling *s, const float *logits, int n, float largest, uint32_t *weight) {
  cut c = {-INFINITY, n - 1};
  if (s->top_k > 0 && s->top_k < n) c = reach(logits, n, NULL, (uint64_t)s->top_k);
  if (s->top_p > 0.0f && s->top_p < 1.0f) {
    double need = (double)s->top_p * (double)weigh(s, logits, n, largest, c, weight);
    c = reach(logits, n, weight, need > 1.0 ? (uint64_t)ceil(need) : 1);
  }
  if (s->min_p > 0.0f) { /* p >= min_p * (the largest p), in logarithms */
    float ln[LANES], scale = 1.0f / s->temp, least = largest;
    v_store(ln, v_log(v_set1(s->min_p)));
    for (int i = 0; i < n; i++)
      if ((logits[i] - largest) * scale >= ln[0] && logits[i] < least) least = logits[i];
    if (least > c.logit) c = (cut){least, n - 1};
  }
  return c;
}

int32_t V(cpu_sample)(const dt_sampling *s, int32_t position, float *logits, int n, uint32_t *weight) {
  cpu_top top = {.count = 0};
  V(cpu_rank)(logits, logits, 0, n, 1, &top);
  if (top.nan || top.count == 0) return -1;
  cut c = allowed(s, logits, n, fminf(top.logit[0], FLT_MAX), weight);
  top.count = 0;
  for (int first = 0; first < n; first += RUN) {
    float run[RUN];
    int count = n - first < RUN ? n - first : RUN;
    unsigned any = 0;
    for (int i = 0; i < count; i += LANES) any |= 0xffff & ~v_gt_mask(v_set1(c.logit), v_load(logits + first + i));
    if (!any) continue;
    for (int i = 0; i < count; i++)
      run[i] = is_allowed(c, logits[first + i], first + i) ? logits[first + i] : -INFINITY;
    V(cpu_sample_among)(s, position, first, count, run, run, &top);
  }
  return top.count ? top.id[0] : -1;
}
