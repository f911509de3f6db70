/* The steps of a layer: see steps.cuh. */
#include "attention.cuh"
#include "chunk.cuh"
#include "heads.cuh"
#include "held.cuh"
#include "steps.cuh"

product step_product(const enqueuer *q, const matrix &m, const operand &input) {
  return {m, m.first, m.tiles, m.tiles, input, {}, &q->c->rows[0].header->n};
}

entry step_store(enqueuer *q, const matrix &m, const operand &input) {
  const dt_weights *w = q->w;
  if (q->chunk) return must(q, chunk_store(q, m, input)), entry{SUM, 1, m.bias, false, false};
  store to = {w->partial, (size_t)ROWS * w->shape.hidden, w->shape.hidden};
  must(q, multiply_store(q->stream, step_product(q, m, input), to, q->shape.rows));
  return {SUM, m.splits, m.bias, false, false};
}

norm_job step_job(const enqueuer *q, int group, const entry &enters, bool wanted) {
  const dt_weights *w = q->w;
  size_t row = (size_t)group * CHUNK_GROUP;
  norm_job a = {};
  a.rows = q->c->rows[group];
  a.n = wanted ? &a.rows.header->wanted : &a.rows.header->n;
  a.wanted = wanted ? a.rows.wanted : nullptr;
  a.hidden = w->shape.hidden, a.x = w->x + row * w->shape.hidden;
  a.kind = enters.kind;
  a.embed = w->embed;
  a.from = enters.kind == GIVEN ? q->shape.given : q->c->kept;
  a.parts = w->partial + row * w->shape.hidden, a.count = enters.parts, a.part_stride = (size_t)ROWS * w->shape.hidden;
  a.bias = reinterpret_cast<const float *>(enters.bias);
  a.fresh = enters.fresh, a.activates = enters.activates, a.act = w->shape.act;
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

static size_t values_behind(const dt_cache *c) { /* bytes of the keys of a layer; its values follow them */
  const dt_weights *w = c->weights;
  return (size_t)w->shape.kv_heads * (size_t)c->slots * row_bytes(w->backend->caches, w->dim);
}

static unsigned char *keys_of(const dt_cache *c, int index) { return c->data + (size_t)index * 2 * values_behind(c); }

/* Keys and values of a group of rows that are not rounded yet. */
static uint16_t *fresh_of(const dt_weights *w, int group) {
  return w->fresh + (size_t)group * CHUNK_GROUP * (size_t)w->dim;
}

/* Where the keys and values of rows are written: to the cache, or to the buffer where they are rounded, which is
 * treated as a cache of one layer in which row i has slot i. */
static void place_rows(const enqueuer *q, int group, int index, spread *s) {
  const dt_weights *w = q->w;
  if (w->backend->caches == HELD_Q8) {
    s->keys = fresh_of(w, group), s->values = s->keys + (size_t)w->shape.kv_heads * w->fresh_rows * w->dim;
    s->slot = w->order, s->sequence_stride = 0, s->slots = w->fresh_rows;
  } else {
    s->keys = reinterpret_cast<uint16_t *>(keys_of(q->c, index));
    s->values = reinterpret_cast<uint16_t *>(keys_of(q->c, index) + values_behind(q->c));
    s->slot = q->c->rows[group].slot, s->sequence_stride = cache_heads(*w), s->slots = q->c->slots;
  }
}

spread step_spread(const enqueuer *q, int group, int index, const matrix &m, int inner_from) {
  const dt_weights *w = q->w;
  const pass_rows &rows = q->c->rows[group];
  size_t row = (size_t)group * CHUNK_GROUP;
  spread s = {};
  s.bias = m.bias, s.inner_from = inner_from;
  s.heads = w->shape.heads, s.kv_heads = w->shape.kv_heads, s.head_dim = w->shape.head_dim, s.dim = w->dim,
  s.rotary = w->shape.rotary_dims;
  s.rotates = !w->layers_of[index].q_norm;
  s.cosine = q->c->cosine, s.sine = q->c->sine;
  s.position = rows.position, s.sequence = rows.sequence;
  s.q = w->q + row * w->shape.heads * w->dim;
  place_rows(q, group, index, &s);
  s.inner = operands_of(q).cat.after((int)row, w->inner_at), s.inter = w->shape.inter;
  s.act = w->shape.act, s.gated = w->shape.gated;
  return s;
}

void step_heads(enqueuer *q, int index, const matrix &m, int inner_from) {
  const layer &l = q->w->layers_of[index];
  for (int group = 0; l.q_norm && group < groups(q); group++) {
    head_norms norms = {&q->c->rows[group].header->n, l.q_norm, l.k_norm, q->w->shape.norm_eps};
    must(q, normalize_heads(q->stream, q->w->activations, step_spread(q, group, index, m, inner_from), norms,
                            q->shape.rows));
  }
}

void step_hold(enqueuer *q, int index) {
  const dt_weights *w = q->w;
  if (w->backend->caches != HELD_Q8) return;
  for (int group = 0; group < groups(q); group++) {
    const pass_rows &rows = q->c->rows[group];
    hold_job a = {};
    a.n = &rows.header->n;
    a.fresh = fresh_of(w, group), a.fresh_rows = w->fresh_rows, a.lists = 2 * w->shape.kv_heads, a.dim = w->dim;
    a.to = keys_of(q->c, index);
    a.sequence = rows.sequence, a.slot = rows.slot;
    a.sequence_stride = cache_heads(*w), a.slots = q->c->slots;
    must(q, hold(q->stream, w->activations, a, q->shape.rows));
  }
}

void step_attention(enqueuer *q, int index) {
  const dt_weights *w = q->w;
  const dt_cache *c = q->c;
  attention a = {};
  a.heads = w->shape.heads, a.kv_heads = w->shape.kv_heads, a.head_dim = w->shape.head_dim, a.scale = w->scale;
  a.joined = w->joined, a.inverse = blocks_of(256, w->joined);
  a.keys = keys_of(c, index);
  a.values = keys_of(c, index) + values_behind(c);
  a.sequence_stride = cache_heads(*w), a.slots = c->slots, a.splits = c->splits;
  a.part = c->part, a.weight = c->weight, a.done = c->done;
  for (int group = 0; group < groups(q); group++) {
    int units = q->chunk ? c->staged[group].header->units : q->shape.units;
    int turns = q->chunk ? c->staged[group].header->turns : q->shape.turns;
    for (int turn = 0; turn < turns; turn++) {
      int before = turn * c->turn, row = group * CHUNK_GROUP + before;
      a.rows = c->rows[group].after(before, turn * units);
      a.q = w->q + (size_t)row * w->shape.heads * w->dim;
      a.out = operands_of(q).cat.after(row, 0);
      must(q, attend(q->stream, w->activations, w->backend->caches, w->dim, a, units));
    }
  }
}
