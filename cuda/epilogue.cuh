/* What products do with their sums: plain_epilogue stores them, layer_epilogue writes q, k, v and the MLP's inner row
 * to the places where a layer's attention and MLP read them. */
#ifndef DT_CUDA_EPILOGUE_CUH
#define DT_CUDA_EPILOGUE_CUH

#include "matmul.cuh"

static __device__ __forceinline__ float activate(dt_act_kind act, float x) {
  switch (act) {
  case DT_ACT_GELU_ERF: return x * 0.5f * (1.0f + erff(x * 0.70710678f));
  case DT_ACT_GELU_TANH: return x / (1.0f + expf(x * fmaf(x * x, -0.0713548163f, -1.59576912f)));
  case DT_ACT_SILU: return x / (1.0f + expf(-x));
  case DT_ACT_CLAMPED: break; /* it has a gate: see gated() */
  }
  return x;
}

/* What an MLP makes of the gate's output and the up projection: see dt_act_kind. */
static __device__ __forceinline__ float gated(dt_act_kind act, float gate, float up) {
  if (act != DT_ACT_CLAMPED) return activate(act, gate) * up;
  float g = gate > 7.0f ? 7.0f : gate, u = up > 7.0f ? 7.0f : up < -7.0f ? -7.0f : up; /* NaN stays NaN */
  return (u + 1.0f) * (g / (1.0f + expf(-1.702f * g)));
}

/* The place of a pair of outputs, and the numbers that change its sums. No kernel of the pass writes these numbers, so
 * a kernel may load them before it waits. */
struct plain_target {
  float *to;
  int count; /* number of outputs, 0 to 2 */
};
struct layer_target {
  float2 bias;
  bool rotates;
  float cosine, sine;
  uint16_t *first, *second; /* null: padding */
};

template <number TYPE>
static __device__ __forceinline__ plain_target target_of(const plain_epilogue &s, int pair, int part, int row) {
  int left = s.outputs - 2 * pair;
  return {s.out + part * s.part_stride + (size_t)row * s.outputs + 2 * pair, left < 2 ? left : 2};
}

template <number TYPE>
static __device__ __forceinline__ layer_target target_of(const layer_epilogue &s, int pair, int, int row) {
  layer_target p = {s.bias[pair], false, 0.0f, 0.0f, nullptr, nullptr};
  if (pair >= s.inner_from) {
    int i = (s.gated ? 1 : 2) * (pair - s.inner_from);
    if (i < s.inter) p.first = s.inner.at + s.inner.place(row, i);
    if (i + 1 < s.inter && !s.gated) p.second = s.inner.at + s.inner.place(row, i + 1);
    return p;
  }
  int pairs = s.head_dim / 2, rotating = s.rotary / 2, head = pair / pairs, j = pair % pairs;
  if (head >= s.heads + 2 * s.kv_heads) return p;
  int d0 = j < rotating ? j : s.rotary + 2 * (j - rotating), d1 = j < rotating ? j + rotating : d0 + 1;
  if (s.rotates && j < rotating && head < s.heads + s.kv_heads) {
    size_t angle = (size_t)s.position[row] * rotating + j;
    p.rotates = true, p.cosine = s.cosine[angle], p.sine = s.sine[angle];
  }
  uint16_t *to;
  if (head < s.heads) {
    to = s.q + ((size_t)row * s.heads + head) * s.dim;
  } else {
    bool value = head >= s.heads + s.kv_heads;
    int g = head - s.heads - (value ? s.kv_heads : 0);
    to =
        (value ? s.values : s.keys) + s.sequence[row] * s.sequence_stride + ((size_t)g * s.slots + s.slot[row]) * s.dim;
  }
  p.first = to + d0, p.second = to + d1;
  return p;
}

template <number TYPE>
static __device__ __forceinline__ void finish(const plain_epilogue &, int, const plain_target &p, float a, float b) {
  if (p.count > 0) p.to[0] = a;
  if (p.count > 1) p.to[1] = b;
}

template <number TYPE>
static __device__ __forceinline__ void finish(const layer_epilogue &s, int pair, const layer_target &p, float a,
                                              float b) {
  a += p.bias.x, b += p.bias.y;
  if (pair >= s.inner_from) {
    if (p.first) *p.first = narrow<TYPE>(s.gated ? gated(s.act, a, b) : activate(s.act, a));
    if (p.second) *p.second = narrow<TYPE>(activate(s.act, b));
  } else if (p.first) {
    *p.first = narrow<TYPE>(p.rotates ? fmaf(a, p.cosine, -(b * p.sine)) : a);
    *p.second = narrow<TYPE>(p.rotates ? fmaf(b, p.cosine, a * p.sine) : b);
  }
}

#endif
