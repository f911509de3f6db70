/* The experts of a layer, from the rows after norm2 to what enters x: routes, products, and the sum of each row's
 * pairs, to which the layer's MLP is added if it has one. */
#include "experts.cuh"
#include "launch.cuh"

constexpr int THREADS = 512, WARPS = THREADS / WARP;

struct sum_job {
  const int *n; /* on the device */
  int hidden, chosen, outputs;
  const float *out, *weight, *logits; /* of route_scratch */
  const float *experts_norm;          /* null: none */
  float eps;
  bool has_mlp, gated_mlp; /* gated: the last of `outputs` is the logit of its gate */
  const float *parts;      /* of the MLP's product, as in norm_job */
  int count;
  size_t part_stride;
  const float *bias, *mlp_norm;
  float *to; /* [rows][hidden]; may be the first part */
};

/* The number in column c of what the MLP adds, before its norm. */
static __device__ __forceinline__ float mlp_number(const sum_job &a, int row, int c, float gate) {
  float sum = 0.0f;
  for (int s = 0; s < a.count; s++) sum += a.parts[s * a.part_stride + (size_t)row * a.hidden + c];
  return (sum + a.bias[c]) * gate;
}

/* A block for each row. */
static __global__ __launch_bounds__(THREADS) void k_sum_experts(sum_job a) {
  DYNAMIC_SHARED(float, shared);
  float *sum = shared + WARPS;
  dependency_release();
  int row = (int)blockIdx.x;
  bool there = row < *a.n;
  dependency_wait();
  if (!there) return;
  const float *weight = a.weight + (size_t)row * a.chosen;
  float gate = a.gated_mlp ? 1.0f / (1.0f + expf(-a.logits[(size_t)row * a.outputs + a.outputs - 1])) : 1.0f;
  float squares = 0.0f, mlp_squares = 0.0f;
  for (int c = (int)threadIdx.x; c < a.hidden; c += THREADS) {
    const float *out = a.out + (size_t)row * a.chosen * a.hidden + c;
    float v = out[0] * weight[0];
    for (int j = 1; j < a.chosen; j++) v = fmaf(weight[j], out[(size_t)j * a.hidden], v);
    sum[c] = v, squares = fmaf(v, v, squares);
    float mlp = a.has_mlp && a.mlp_norm ? mlp_number(a, row, c, gate) : 0.0f;
    mlp_squares = fmaf(mlp, mlp, mlp_squares);
  }
  float scale = a.experts_norm ? 1.0f / sqrtf(block_sum<WARPS>(squares, shared) / (float)a.hidden + a.eps) : 1.0f;
  float mlp_scale = a.mlp_norm ? 1.0f / sqrtf(block_sum<WARPS>(mlp_squares, shared) / (float)a.hidden + a.eps) : 1.0f;
  for (int c = (int)threadIdx.x; c < a.hidden; c += THREADS) { /* each thread reads what it wrote */
    float v = a.experts_norm ? sum[c] * scale * a.experts_norm[c] : sum[c];
    float mlp = a.has_mlp ? mlp_number(a, row, c, gate) : 0.0f;
    if (a.mlp_norm) mlp = mlp * mlp_scale * a.mlp_norm[c];
    a.to[(size_t)row * a.hidden + c] = v + mlp;
  }
}

entry step_experts(enqueuer *q, int layer, const entry *mlp) {
  const dt_weights *w = q->w;
  const dt_shape &s = w->shape;
  const expert_parts &by = w->layers_of[layer].experts;
  operand input = w->pass.normed2;
  if (by.expert_norm) { /* x is complete */
    step_norms(q, UNKEPT, {SUM, 0, nullptr, false, false}, false, by.expert_norm, nullptr, w->pass.normed1, nullptr,
               nullptr);
    input = w->pass.normed1;
  }
  step_routes(q, layer);
  const expert_inner inner = {by.up.bias, w->routes.inner, s.expert_inter, s.act};
  must(q, multiply_inner(q->stream, w, by.up, input, inner, q->shape.rows));
  const expert_outer outer = {by.down.bias, w->routes.out, s.hidden};
  must(q, multiply_outer(q->stream, w, by.down, w->routes.inner, outer, q->shape.rows));
  sum_job a = {};
  a.n = &q->c->rows[0].header->n, a.hidden = s.hidden, a.chosen = s.chosen, a.outputs = by.outputs;
  a.out = w->routes.out, a.weight = w->routes.weight, a.logits = w->routes.logits;
  a.experts_norm = by.experts_norm, a.mlp_norm = by.mlp_norm, a.eps = s.norm_eps;
  a.has_mlp = mlp, a.gated_mlp = by.outputs > s.experts;
  a.parts = w->partial, a.part_stride = (size_t)ROWS * s.hidden;
  if (mlp) a.count = mlp->parts, a.bias = reinterpret_cast<const float *>(mlp->bias);
  a.to = w->partial;
  must(q, launch(q->stream, dim3((unsigned)q->shape.rows), THREADS, sizeof(float) * (size_t)(WARPS + s.hidden),
                 k_sum_experts, a));
  return {SUM, 1, nullptr, false, false};
}

void take_routes(arena *a, dt_weights *w) {
  const dt_shape &s = w->shape;
  if (!s.experts) return;
  const size_t pairs = ROWS * (size_t)s.chosen;
  route_scratch *to = &w->routes;
  to->logits = take<float>(a, ROWS * (size_t)(s.experts + 1));
  to->id = take<int32_t>(a, pairs), to->weight = take<float>(a, pairs);
  to->order = take<int32_t>(a, pairs), to->group = take<int4>(a, pairs), to->groups = take<int>(a, 1);
  const int ld = round_up(s.expert_inter, 32);
  to->inner = {take<uint16_t>(a, (size_t)round_up((int)pairs, 8) * (size_t)ld), ld, true};
  to->out = take<float>(a, pairs * (size_t)s.hidden);
}
