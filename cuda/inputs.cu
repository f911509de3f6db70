/* Inputs of layers (Gemma 3n and 4), for the rows of a pass. They are computed once, before the first layer: a product
 * of the embeddings, a norm for each layer, and the token's own numbers, which come with its embedding. After its
 * blocks, each layer multiplies the activated output of a small matrix with its part, and a second matrix turns the
 * result into what x gets. Their products lie where the logits of the pass will. */
#include "epilogue.cuh"
#include "inputs.cuh"
#include "launch.cuh"

constexpr int THREADS = 128;

struct blend_job {
  const int *n; /* on the device */
  pass_rows rows;
  int hidden, embedding;         /* `embedding`: see embedding_of */
  int layers, each;              /* numbers of a layer */
  const float *projected, *norm; /* [rows][layers * each] [each] */
  float part, root, eps;         /* factors of what was projected, and of the token's own numbers */
  float *inputs;                 /* [rows][layers * each] */
};

/* A block for each row and layer. */
template <number TYPE> static __global__ __launch_bounds__(THREADS) void k_blend(blend_job a) {
  DYNAMIC_SHARED_OF(float, sums, (int)sizeof(float) * (THREADS / WARP));
  dependency_release();
  int row = (int)blockIdx.x, layer = (int)blockIdx.y;
  bool there = row < *a.n;
  dependency_wait();
  if (!there) return;
  size_t at = ((size_t)row * a.layers + layer) * a.each;
  const uint16_t *own = embedding_of(a.rows, row, a.embedding) + a.hidden + (size_t)layer * a.each;
  float squares = 0.0f;
  for (int i = (int)threadIdx.x; i < a.each; i += THREADS) {
    float x = a.projected[at + i] * a.part;
    squares = fmaf(x, x, squares);
  }
  float scale = 1.0f / sqrtf(block_sum<THREADS / WARP>(squares, sums) / (float)a.each + a.eps);
  for (int i = (int)threadIdx.x; i < a.each; i += THREADS) {
    float x = a.projected[at + i] * a.part * scale * a.norm[i];
    a.inputs[at + i] = fmaf(a.root, widen<TYPE>(own[i]), x) * 0.70710678f;
  }
}

struct gate_job {
  const int *n; /* on the device */
  int each, stride;
  const float *gate, *inputs; /* [rows][each]; of the layer, rows `stride` apart */
  dt_act_kind act;
  operand out;
};

template <number TYPE> static __global__ __launch_bounds__(THREADS) void k_gate(gate_job a) {
  dependency_release();
  int row = (int)blockIdx.x, i = (int)blockIdx.y * THREADS + (int)threadIdx.x;
  bool there = row < *a.n && i < a.each;
  dependency_wait();
  if (!there) return;
  float x = activate(a.act, a.gate[(size_t)row * a.each + i]) * a.inputs[(size_t)row * a.stride + i];
  a.out.at[a.out.place(row, i)] = narrow<TYPE>(x);
}

entry inputs_begin(enqueuer *q) {
  const dt_weights *w = q->w;
  const dt_shape &s = w->shape;
  step_norms(q, UNKEPT, {}, false, nullptr, nullptr, w->pass.normed1, nullptr, nullptr);
  must(q, multiply_plain(q->stream, step_product(q, w->inputs_proj, w->pass.normed1),
                         plain_epilogue{w->logits, 0, s.layers * s.inputs}, q->shape.rows));
  const pass_rows &rows = q->c->rows[0];
  const blend_job a = {&rows.header->n,
                       rows,
                       s.hidden,
                       w->embedding,
                       s.layers,
                       s.inputs,
                       w->logits,
                       w->inputs_norm,
                       1.0f / sqrtf((float)s.hidden),
                       sqrtf((float)s.inputs),
                       s.norm_eps,
                       w->inputs};
  must(q, launch(q->stream, dim3((unsigned)q->shape.rows, (unsigned)s.layers), THREADS,
                 sizeof(float) * (THREADS / WARP), w->activations == F16 ? k_blend<F16> : k_blend<BF16>, a));
  return {SUM, 0, nullptr, false, false}; /* x is complete */
}

entry inputs_add(enqueuer *q, int layer, const entry &enters) {
  const dt_weights *w = q->w;
  const dt_shape &s = w->shape;
  const struct layer &l = w->layers_of[layer];
  step_norms(q, UNKEPT, enters, false, nullptr, nullptr, w->pass.normed2, nullptr, nullptr);
  must(q, multiply_plain(q->stream, step_product(q, l.input_gate, w->pass.normed2),
                         plain_epilogue{w->logits, 0, s.inputs}, q->shape.rows));
  const gate_job a = {&q->c->rows[0].header->n,
                      s.inputs,
                      s.layers * s.inputs,
                      w->logits,
                      w->inputs + (size_t)layer * s.inputs,
                      s.act,
                      w->pass.cat};
  must(q, launch(q->stream, dim3((unsigned)q->shape.rows, (unsigned)blocks_of(s.inputs, THREADS)), THREADS, 0,
                 w->activations == F16 ? k_gate<F16> : k_gate<BF16>, a));
  entry next = step_store(q, l.input_out, w->pass.cat);
  next.norm_after = l.input_norm;
  return next;
}
