/* The steps of a delta layer: see delta.cuh. */
#include "delta.cuh"

void step_delta(enqueuer *q, int layer) {
  const dt_weights *w = q->w;
  const dt_shape &s = w->shape;
  const delta_parts &by = w->layers_of[layer].delta;
  const plain_epilogue to = {w->delta_pass.in, 0, w->delta.outputs};
  for (int i = 0; i < by.products; i++)
    must(q, multiply_plain(q->stream, step_product(q, by.in[i], w->pass.normed1), to, q->shape.rows));
  delta_job a = {};
  a.rows = q->c->rows[0];
  a.size = w->delta, a.scratch = w->delta_pass;
  a.key_heads = s.delta_key_heads, a.key_dim = s.delta_key_dim, a.value_dim = s.delta_value_dim;
  a.tiled = s.delta_tiled, a.eps = s.norm_eps;
  a.store = q->c->deltas + by.at, a.stride = w->delta.all;
  a.conv = by.conv, a.decay = by.decay, a.shift = by.shift, a.norm = by.norm;
  a.out = w->pass.cat;
  must(q, delta_mix(q->stream, a, q->shape.rows));
  must(q, delta_factors(q->stream, a, q->shape.rows));
  must(q, delta_sums(q->stream, a, q->shape.runs));
  must(q, delta_out(q->stream, w->activations, a, q->shape.rows));
}

void take_deltas(arena *a, dt_weights *w) {
  const delta_sizes &d = w->delta;
  if (!d.all) return;
  const size_t values = ROWS * (size_t)d.values;
  w->delta_pass = {take<float>(a, ROWS * (size_t)d.outputs), take<float>(a, ROWS * (size_t)d.mixed),
                   take<float>(a, values), take<float2>(a, values * DELTA_FACTORS),
                   take<float>(a, values * (size_t)w->shape.delta_value_dim)};
}
