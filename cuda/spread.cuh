/* What becomes of the sums of a product: stored as they are, or spread to where a layer's attention and MLP read them. */
#ifndef DT_CUDA_SPREAD_CUH
#define DT_CUDA_SPREAD_CUH

#include "matmul.cuh"

static __device__ __forceinline__ float activate(dt_act_kind act, float x) {
  switch (act) {
  case DT_ACT_GELU_ERF: return x * 0.5f * (1.0f + erff(x * 0.70710678f));
  case DT_ACT_GELU_TANH: return x / (1.0f + expf(x * fmaf(x * x, -0.0713548163f, -1.59576912f)));
  case DT_ACT_SILU: return x / (1.0f + expf(-x));
  }
  return x;
}

/* Sums a and b of the outputs of a pair, of a row of the pass. */
template <number TYPE> static __device__ __forceinline__ void finish(const store &s, int pair, int part, int row, float a, float b) {
  float *out = s.out + part * s.part_stride + (size_t)row * s.outputs;
  if (2 * pair < s.outputs) out[2 * pair] = a;
  if (2 * pair + 1 < s.outputs) out[2 * pair + 1] = b;
}

template <number TYPE> static __device__ __forceinline__ void finish(const spread &s, int pair, int, int row, float a, float b) {
  float2 bias = s.bias[pair];
  a += bias.x, b += bias.y;
  if (pair >= s.inner_from) {
    uint16_t *inner = s.inner + (size_t)row * s.inner_ld;
    int i = pair - s.inner_from;
    if (s.gated) {
      if (i < s.inter) inner[i] = narrow<TYPE>(activate(s.act, a) * b);
    } else {
      if (2 * i < s.inter) inner[2 * i] = narrow<TYPE>(activate(s.act, a));
      if (2 * i + 1 < s.inter) inner[2 * i + 1] = narrow<TYPE>(activate(s.act, b));
    }
    return;
  }
  int pairs = s.head_dim / 2, rotating = s.rotary / 2, head = pair / pairs, j = pair % pairs;
  if (head >= s.heads + 2 * s.kv_heads) return; /* padding */
  int d0 = j < rotating ? j : s.rotary + 2 * (j - rotating), d1 = j < rotating ? j + rotating : d0 + 1;
  if (j < rotating && head < s.heads + s.kv_heads) {
    size_t angle = (size_t)s.position[row] * rotating + j;
    float c = s.cosine[angle], i = s.sine[angle], x = a;
    a = fmaf(x, c, -(b * i));
    b = fmaf(b, c, x * i);
  }
  uint16_t *to;
  if (head < s.heads) {
    to = s.q + ((size_t)row * s.heads + head) * s.dim;
  } else {
    bool value = head >= s.heads + s.kv_heads;
    int g = head - s.heads - (value ? s.kv_heads : 0);
    to = (value ? s.values : s.keys) + ((s.sequence[row] * s.sequence_stride + g) * s.slots + s.slot[row]) * s.dim;
  }
  to[d0] = narrow<TYPE>(a), to[d1] = narrow<TYPE>(b);
}

#endif
