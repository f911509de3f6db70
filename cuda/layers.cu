/* The layers of a model as they are loaded: their sizes, and which parts share a matrix. */
#include "attention.cuh"
#include "builder.cuh"
#include "cache_format.cuh"
#include "delta.cuh"
#include "supported.cuh"

#include <new>

/* Returns the number of parts in the first of two matrices: if the last parts are all packed in the same way, which
 * differs from the first ones, and begin with a tile, they go to the second matrix. Otherwise all parts are in the
 * first. */
static int parts_before(const builder *b, const part *parts, int count) {
  int n = 1;
  while (n < count && alike(b, parts[n], parts[0])) n++;
  if (n == count || parts[n].map.first % 8 || parts[n].map.first == parts[n - 1].map.first) return count;
  for (int i = n; i < count; i++)
    if (!alike(b, parts[i], parts[n])) return count;
  return n;
}

static void build_in(builder *b, layer *built, int pairs, int k, const part *parts, int count) {
  int before = parts_before(b, parts, count), middle = before < count ? parts[before].map.first : pairs;
  built->in = build(b, 0, middle, k, false, parts, before);
  if (before < count) built->in_tail = build(b, middle / 8, pairs, k, false, parts + before, count - before);
}

keys_of_layer cuda_keys_of(const dt_weights *w, int i) {
  const layer &l = w->layers_of[i];
  return {l.has_keys, l.window > 0, l.kv_heads, l.head_dim};
}

/* The narrowest width at least head_dim that attention is compiled for. */
static int padded_head(int head_dim) {
  const int widths[] = {32, 64, 80, 96, 128, 256, MAX_HEAD};
  for (int width : widths)
    if (head_dim <= width) return width;
  return 0;
}

/* The sizes of a layer, and where the keys are that it reads. */
static layer size_layer(dt_weights *w, const dt_layer *l) {
  const dt_shape s = dt_shape_of(&w->shape, l);
  layer built = {};
  built.kv_heads = s.kv_heads, built.head_dim = s.head_dim, built.inter = s.inter;
  built.dim = padded_head(s.head_dim);
  built.score_scale = s.attention_scale != 0 ? s.attention_scale : (float)(1.0 / sqrt((double)s.head_dim));
  const dt_weights *target = w->head.target;
  built.has_keys = !l->keys_of && !l->delta && !reads_keys(*w);
  if (l->delta) {
    built.delta.at = w->delta.all;
    w->delta.all += w->delta.store;
    return built;
  }
  if (!built.has_keys) {
    built.keys_at = reads_keys(*w)
                        ? target->layers_of[layer_read(target, target->shape.layers, l->window, cuda_keys_of)].keys_at
                        : w->layers_of[l->keys_of - 1].keys_at;
    return built;
  }
  built.keys_at = w->slot_bytes;
  w->slot_bytes += 2 * (size_t)s.kv_heads * row_bytes(w->backend->caches, built.dim);
  return built;
}

void size_layers(dt_weights *w, const dt_layer *l) {
  w->delta = size_deltas(w->shape);
  int common = 0; /* the greatest common divisor of the numbers of heads that share keys */
  w->last_keys = -1;
  for (int i = 0; i < w->shape.layers; i++) {
    w->layers_of[i] = size_layer(w, &l[i]);
    if (w->layers_of[i].dim > w->dim) w->dim = w->layers_of[i].dim;
    if (w->layers_of[i].has_keys || l[i].delta) w->last_keys = i;
    int group = w->shape.heads / w->layers_of[i].kv_heads;
    while (group) {
      int left = common % group;
      common = group, group = left;
    }
  }
  w->joined = common ? heads_together(common) : 1;
}

/* Builds one matrix of a matrix of every expert, or of two whose outputs are pairs: `count` parts for each expert,
 * whose outputs begin at pair 0. */
static matrix build_all_experts(builder *b, part *parts, int count, int pairs, int k) {
  const int experts = b->w->shape.experts, each = round_up(pairs, 8);
  for (int i = 0; i < experts * count; i++) parts[i].map.first = i / count * each;
  return build(b, 0, experts * each, k, false, parts, experts * count);
}

static expert_parts build_experts(builder *b, const dt_layer *l) {
  const dt_shape &s = b->w->shape;
  const dt_matrix *routers[] = {&l->router, &l->mlp_gate};
  expert_parts e = {};
  e.outputs = s.experts + (l->mlp_gate.source ? 1 : 0);
  e.router = take_floats(b, routers, 2, s.hidden);
  e.router_bias = take_vector(b, &l->router_bias);
  e.correction = take_vector(b, &l->router_correction), e.scale = take_vector(b, &l->expert_scale);
  e.router_norm = take_vector(b, &l->router_norm), e.expert_norm = take_vector(b, &l->expert_norm);
  e.experts_norm = take_vector(b, &l->experts_norm), e.mlp_norm = take_vector(b, &l->mlp_norm);
  part *parts = new (std::nothrow) part[2 * (size_t)s.experts];
  if (!parts) return must(b, cudaErrorMemoryAllocation), e;
  for (int i = 0; i < s.experts; i++) {
    const dt_expert *from = &l->expert[i];
    parts[2 * i] = {&from->gate, &from->gate_bias, {0, s.expert_inter, 0, 0}, 0, nullptr, 0};
    parts[2 * i + 1] = {&from->up, &from->up_bias, {0, s.expert_inter, 0, 1}, 0, nullptr, 0};
  }
  e.up = build_all_experts(b, parts, 2, s.expert_inter, s.hidden);
  for (int i = 0; i < s.experts; i++)
    parts[i] = {&l->expert[i].down, &l->expert[i].down_bias, {0, s.hidden, 0, -1}, 0, nullptr, 0};
  e.down = build_all_experts(b, parts, 1, blocks_of(s.hidden, 2), s.expert_inter);
  delete[] parts;
  return e;
}

/* Builds the products of a delta layer as one matrix, or as one for each kind of weights. */
static void build_delta_in(builder *b, const dt_layer *l, delta_parts *d) {
  const delta_sizes &size = b->w->delta;
  const dt_matrix *source[] = {&l->delta_in, &l->delta_z, &l->delta_a, &l->delta_b};
  const int at[] = {0, size.z_at, size.a_at, size.b_at, size.outputs};
  part parts[4];
  for (int i = 0; i < 4; i++) parts[i] = {source[i], &NONE, {at[i] / 2, source[i]->rows, 0, -1}, 0, nullptr, 0};
  d->products = 0;
  for (int i = 0, end; i < 4; i = end) {
    for (end = i + 1; end < 4 && alike(b, parts[end], parts[i]);) end++;
    d->in[d->products++] = build(b, at[i] / 16, at[end] / 2, b->w->shape.hidden, false, parts + i, end - i);
  }
}

/* Reads a vector, changes it, and copies it to the device. */
template <class F> static float *take_changed(builder *b, const dt_matrix &source, F change) {
  const size_t n = (size_t)source.rows;
  float *v = take<float>(&b->w->weights_arena, n), *wide = b->filling ? read_vector(b, &source) : nullptr;
  float *changed = wide ? new (std::nothrow) float[n] : nullptr;
  if (wide && !changed) must(b, cudaErrorMemoryAllocation);
  for (size_t i = 0; changed && i < n; i++) change(wide, changed, i);
  if (changed) copy_up(b, v, changed, n * sizeof *v);
  delete[] wide;
  delete[] changed;
  return v;
}

static delta_parts build_delta(builder *b, const dt_layer *l, delta_parts d) {
  const size_t mixed = (size_t)b->w->delta.mixed;
  const bool log = b->w->shape.delta_log;
  dt_matrix taps = l->delta_conv; /* as a vector */
  taps.rows *= DT_DELTA_TAPS, taps.group *= DT_DELTA_TAPS, taps.stride *= DT_DELTA_TAPS, taps.cols = 1;
  build_delta_in(b, l, &d);
  d.conv = take_changed(b, taps, [=](const float *from, float *to, size_t i) {
    to[i % DT_DELTA_TAPS * mixed + i / DT_DELTA_TAPS] = from[i];
  });
  d.decay = take_changed(b, l->delta_decay,
                         [=](const float *from, float *to, size_t i) { to[i] = log ? -expf(from[i]) : from[i]; });
  d.shift = take_vector(b, &l->delta_shift), d.norm = take_vector(b, &l->delta_norm);
  return d;
}

layer build_layer(builder *b, const dt_layer *given, layer built) {
  const dt_weights *w = b->w;
  const dt_layer here = given->apart ? dt_first_half(given) : *given, *l = &here;
  const bool local = l->window && w->rotations[1].pairs;
  const int head_dim = built.head_dim, inter = built.inter, key_heads = built.has_keys ? built.kv_heads : 0;
  int half = head_dim / 2, rotary = 2 * w->rotations[local].pairs, keys = w->shape.heads * half,
      values = keys + key_heads * half;
  int up_at = w->shape.parallel_residual ? round_up(values + key_heads * half, 8) : 0,
      pairs = w->shape.gated ? inter : blocks_of(inter, 2);
  int ins = built.has_keys ? 3 : 1, ups = w->shape.gated ? 2 : 1, hidden = blocks_of(w->shape.hidden, 2);
  part in[5] = {{&l->q, &l->q_bias, {0, head_dim, rotary, -1}, 0, nullptr, 0},
                {&l->k, &l->k_bias, {keys, head_dim, rotary, -1}, 0, nullptr, 0},
                {&l->v, &l->v_bias, {values, head_dim, rotary, -1}, 0, nullptr, 0}};
  part up[2] = {{&l->up, &l->up_bias, {up_at, inter, 0, -1}, 0, nullptr, 0}};
  if (w->shape.gated) {
    up[0] = {&l->gate, &l->gate_bias, {up_at, inter, 0, 0}, 0, nullptr, 0};
    up[1] = {&l->up, &l->up_bias, {up_at, inter, 0, 1}, 0, nullptr, 0};
  }
  part out[2] = {{&l->o, &l->o_bias, {0, w->shape.hidden, 0, -1}, 0, nullptr, 0},
                 {&l->down, &l->down_bias, {0, w->shape.hidden, 0, -1}, 0, nullptr, 0}};

  built.scale = 1.0f, built.apart = l->apart;
  if (l->scale.source && b->filling) {
    float *scale = read_vector(b, &l->scale);
    if (scale) built.scale = *scale;
    delete[] scale;
  }
  if (w->shape.inputs) {
    built.input_gate = build_whole(b, &l->input_gate, &NONE, false);
    built.input_out = build_whole(b, &l->input_out, &NONE, true);
    built.input_norm = take_vector(b, &l->input_norm);
  }
  built.sinks = take_vector(b, &l->sinks), built.window = l->window;
  built.still = l->still, built.local = local;
  built.norm1 = take_vector(b, &l->norm1), built.norm1_bias = take_vector(b, &l->norm1_bias);
  built.norm2 = take_vector(b, &l->norm2), built.norm2_bias = take_vector(b, &l->norm2_bias);
  built.o_norm = take_vector(b, &l->o_norm), built.down_norm = take_vector(b, &l->down_norm);
  built.q_norm = take_head_norm(b, &l->q_norm, head_dim, rotary);
  built.k_norm = take_head_norm(b, &l->k_norm, head_dim, rotary);
  if (w->shape.parallel_residual) {
    for (int i = 0; i < ups; i++) in[ins + i] = up[i];
    out[1].k0 = w->inner_at;
    build_in(b, &built, up_at + pairs, w->shape.hidden, in, ins + ups);
    built.out = build(b, 0, hidden, w->inner_at + inter, true, out, 2);
  } else {
    if (l->delta)
      built.delta = build_delta(b, l, built.delta);
    else
      build_in(b, &built, values + key_heads * half, l->q.cols, in, ins);
    if (l->q_gate.source) built.q_gate = build_whole(b, &l->q_gate, &NONE, false);
    if (l->up.source) built.up = build(b, 0, pairs, w->shape.hidden, false, up, ups);
    built.out = build(b, 0, hidden, l->o.cols, true, out, 1);
    if (l->up.source) built.down = build(b, 0, hidden, inter, true, out + 1, 1);
    if (l->expert) built.experts = build_experts(b, l);
  }
  return built;
}
