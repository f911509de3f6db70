/* The steps of a layer: see steps.cuh. */
#include "attention.cuh"
#include "cache_format.cuh"
#include "chunk.cuh"
#include "heads.cuh"
#include "steps.cuh"

product step_product(const enqueuer *q, const matrix &m, const operand &input) {
  return {m, m.first, m.tiles, m.tiles, input, {}, &q->c->rows[0].header->n};
}

entry step_store(enqueuer *q, const matrix &m, const operand &input) {
  const dt_weights *w = q->w;
  if (q->chunk) return must(q, chunk_store(q, m, input)), entry{SUM, 1, m.bias, false, false};
  plain_epilogue to = {w->partial, (size_t)ROWS * w->shape.hidden, w->shape.hidden};
  must(q, multiply_plain(q->stream, step_product(q, m, input), to, q->shape.rows));
  return {SUM, m.splits, m.bias, false, false};
}

norm_job step_job(const enqueuer *q, int group, const entry &enters, bool wanted) {
  const dt_weights *w = q->w;
  size_t row = (size_t)group * CHUNK_GROUP;
  norm_job a = {};
  a.rows = q->c->rows[group];
  a.n = wanted ? &a.rows.header->wanted : &a.rows.header->n;
  a.wanted = wanted ? a.rows.wanted : nullptr;
  a.hidden = w->shape.hidden, a.embedding = w->embedding, a.x = w->x + row * w->shape.hidden;
  a.kind = enters.kind;
  a.embed_scale = w->embed_scale, a.residual_scale = w->residual_scale;
  a.from = enters.kind == GIVEN ? q->shape.given : q->c->kept;
  a.parts = w->partial + row * w->shape.hidden, a.count = enters.parts, a.part_stride = (size_t)ROWS * w->shape.hidden;
  a.bias = reinterpret_cast<const float *>(enters.bias);
  a.fresh = enters.fresh, a.activates = enters.activates, a.act = w->shape.act;
  a.norm_after = enters.norm_after, a.scale = enters.scale;
  a.norm = w->shape.norm, a.eps = w->shape.norm_eps;
  a.kept = q->c->kept;
  return a;
}

/* Bits of the taps that are this layer. */
static unsigned taps_of(const enqueuer *q, int layer) {
  const dt_weights *w = q->w;
  unsigned taps = 0;
  for (int t = 0; t < w->taps && q->c->kept.width; t++)
    if (w->tap[t] == layer) taps |= 1u << t;
  return taps;
}

void step_norms(enqueuer *q, int layer, const entry &enters, bool wanted, const float *weight1, const float *bias1,
                const operand &y1, const float *weight2, const float *bias2) {
  const dt_weights *w = q->w;
  for (int group = 0; group < groups(q); group++) {
    int row = group * CHUNK_GROUP;
    norm_job a = step_job(q, group, enters, wanted);
    a.weight1 = weight1, a.bias1 = bias1, a.weight2 = weight2, a.bias2 = bias2;
    a.y1 = y1.after(row, 0), a.y2 = operands_of(q).normed2.after(row, 0);
    a.taps = taps_of(q, layer), a.norm_taps = layer == w->shape.layers ? taps_of(q, layer + 1) : 0;
    must(q, normalize(q->stream, w->activations, a, wanted ? q->shape.wanted : q->shape.rows, 1));
  }
}

/* The keys that a layer reads, and the values after them; the distance between sequences, in elements. */
static unsigned char *keys_of(const key_rows &from, const layer &l) {
  return from.data + (size_t)from.slots * l.keys_at;
}
static unsigned char *values_of(const key_rows &from, const layer &l, cache_format format) {
  return keys_of(from, l) + (size_t)l.kv_heads * (size_t)from.slots * row_bytes(format, l.dim);
}
static size_t stride_of(const key_rows &from, cache_format format) {
  size_t element = format == CACHE_Q8 ? sizeof(stored<CACHE_Q8>) : sizeof(stored<CACHE_16>);
  return (size_t)from.slots * from.slot_bytes / element;
}

/* A layer's keys and values of a group of rows that are not rounded yet. */
static uint16_t *fresh_of(const dt_weights *w, const layer &l, int group) {
  return w->fresh + (size_t)group * CHUNK_GROUP * (size_t)l.dim;
}

/* Where the keys and values of rows are written: to the cache, or to the buffer where they are rounded, which is
 * treated as a cache of one layer in which row i has slot i. */
static void place_rows(const enqueuer *q, int group, const layer &l, layer_epilogue *s) {
  const dt_weights *w = q->w;
  const key_rows to = keys_in(*q->c);
  if (w->backend->caches == CACHE_Q8) {
    s->keys = fresh_of(w, l, group), s->values = s->keys + (size_t)l.kv_heads * w->fresh_rows * l.dim;
    s->slot = w->order, s->sequence_stride = 0, s->slots = w->fresh_rows;
  } else {
    s->keys = reinterpret_cast<uint16_t *>(keys_of(to, l));
    s->values = reinterpret_cast<uint16_t *>(values_of(to, l, CACHE_16));
    s->slot = q->c->rows[group].slot, s->sequence_stride = stride_of(to, CACHE_16), s->slots = to.slots;
  }
}

layer_epilogue step_epilogue(const enqueuer *q, int group, int index, const matrix &m, int inner_from) {
  const dt_weights *w = q->w;
  const layer &l = w->layers_of[index];
  const pass_rows &rows = q->c->rows[group];
  size_t row = (size_t)group * CHUNK_GROUP;
  layer_epilogue s = {};
  s.bias = m.bias, s.inner_from = inner_from;
  s.heads = w->shape.heads, s.kv_heads = l.has_keys ? l.kv_heads : 0, s.head_dim = l.head_dim, s.dim = l.dim;
  s.rotary = 2 * w->rotations[l.local].pairs;
  s.rotates = !l.q_norm && !l.still;
  s.cosine = q->c->angles[l.local].cosine, s.sine = q->c->angles[l.local].sine;
  s.position = rows.position, s.sequence = rows.sequence;
  s.q = w->q + row * w->shape.heads * l.dim;
  place_rows(q, group, l, &s);
  s.inner = operands_of(q).cat.after((int)row, w->inner_at), s.inter = l.inter;
  s.act = w->shape.act, s.gated = w->shape.gated;
  return s;
}

void step_heads(enqueuer *q, int index, const matrix &m, int inner_from) {
  const layer &l = q->w->layers_of[index];
  for (int group = 0; l.q_norm && group < groups(q); group++) {
    const dt_shape &shape = q->w->shape;
    head_norms norms = {&q->c->rows[group].header->n, l.q_norm,       l.k_norm, shape.wide_norms,
                        shape.normed_values,          shape.norm_eps, !l.still};
    must(q, normalize_heads(q->stream, q->w->activations, step_epilogue(q, group, index, m, inner_from), norms,
                            q->shape.rows));
  }
}

void step_hold(enqueuer *q, int index) {
  const dt_weights *w = q->w;
  const layer &l = w->layers_of[index];
  const key_rows to = keys_in(*q->c);
  if (w->backend->caches != CACHE_Q8 || !l.has_keys) return;
  for (int group = 0; group < groups(q); group++) {
    const pass_rows &rows = q->c->rows[group];
    quantize_job a = {};
    a.n = &rows.header->n;
    a.fresh = fresh_of(w, l, group), a.fresh_rows = w->fresh_rows, a.lists = 2 * l.kv_heads, a.dim = l.dim;
    a.to = keys_of(to, l);
    a.sequence = rows.sequence, a.slot = rows.slot;
    a.sequence_stride = stride_of(to, CACHE_Q8), a.slots = to.slots;
    must(q, quantize_rows(q->stream, w->activations, a, q->shape.rows));
  }
}

void step_attention(enqueuer *q, int index) {
  const dt_weights *w = q->w;
  const dt_cache *c = q->c;
  const layer &l = w->layers_of[index];
  const cache_format format = w->backend->caches;
  const key_rows from = reads_keys(*w) ? q->shape.keys : keys_in(*c);
  attention a = {};
  a.heads = w->shape.heads, a.kv_heads = l.kv_heads, a.head_dim = l.head_dim;
  a.scale = l.score_scale, a.cap = w->shape.score_cap;
  a.window = l.window, a.sinks = l.sinks;
  a.joined = w->joined, a.inverse = blocks_of(256, w->joined);
  a.keys = keys_of(from, l), a.values = values_of(from, l, format);
  a.sequence_stride = stride_of(from, format), a.slots = from.slots, a.splits = c->splits;
  a.part = c->part, a.weight = c->weight, a.done = c->done;
  for (int group = 0; group < groups(q); group++) {
    int units = q->chunk ? c->staged[group].header->units : q->shape.units;
    int batches = q->chunk ? c->staged[group].header->batches : q->shape.batches;
    for (int batch = 0; batch < batches; batch++) {
      int before = batch * c->batch, row = group * CHUNK_GROUP + before;
      a.rows = c->rows[group].after(before, batch * units);
      a.q = w->q + (size_t)row * w->shape.heads * l.dim;
      a.out = operands_of(q).cat.after(row, 0);
      must(q, attend(q->stream, w->activations, format, l.dim, a, units));
    }
  }
}

void step_gates(enqueuer *q, int index, const operand &input) {
  const dt_weights *w = q->w;
  const layer &l = w->layers_of[index];
  if (!l.q_gate.tiles) return;
  const int numbers = w->shape.heads * l.head_dim;
  must(q, multiply_plain(q->stream, step_product(q, l.q_gate, input), plain_epilogue{w->gates, 0, numbers},
                         q->shape.rows));
  const head_gates a = {&q->c->rows[0].header->n, numbers, w->gates, w->pass.cat};
  must(q, gate_heads(q->stream, w->activations, a, q->shape.rows));
}
