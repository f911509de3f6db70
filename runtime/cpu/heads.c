/* The heads of a layer: rotation, writing keys and values to the cache, attention. */
#include "chunk.h"

#include <math.h>
#include <string.h>

/* The cosines for the chunk's row r, by inv_freq or local_freq, followed by the sines. Two buffers alternate, since a
 * thread may still rotate rows of one chunk when another thread begins the next chunk. */
static float *angles(const cpu_chunk *c, bool local, int r) {
  const dt_weights *w = c->p->w;
  int turn = c->first / CPU_ROWS % 2;
  return w->scratch.angles + (size_t)((turn * CPU_ROWS + r) * 2 + local) * w->scratch.ldangles;
}

static void find_angles(const cpu_chunk *c, bool local, int r) {
  const dt_weights *w = c->p->w;
  int pairs = (local && w->shape.local_dims ? w->shape.local_dims : w->shape.rotary_dims) / 2;
  const float *freq = local ? w->local_freq : w->inv_freq;
  double scale = local || w->shape.turn_scale == 0 ? 1.0 : (double)w->shape.turn_scale;
  float *cosine = angles(c, local, r), *sine = cosine + pairs;
  for (int j = 0; j < pairs; j++) {
    double angle = (double)c->p->rows->position[c->first + r] * (double)freq[j];
    cosine[j] = (float)(cos(angle) * scale), sine[j] = (float)(sin(angle) * scale);
  }
}

void cpu_find_angles(const cpu_chunk *c, int first, int last) {
  for (int r = first; r < last; r++) {
    find_angles(c, false, r);
    if (c->p->w->local_freq) find_angles(c, true, r);
  }
}

/* Rotates the first rotary_dims numbers of a head of row r. A pair is two numbers half of these dimensions apart:
 * number j and number j + rotary_dims / 2. */
static void rotate(const cpu_chunk *c, const cpu_layer *l, int r, float *head) {
  bool local = l->window > 0 && c->p->w->local_freq;
  int pairs = l->shape.rotary_dims / 2;
  const float *cosine = angles(c, local, r), *sine = cosine + pairs;
  for (int j = 0; j < pairs; j++) {
    float a = head[j], b = head[j + pairs];
    head[j] = a * cosine[j] - b * sine[j];
    head[j + pairs] = b * cosine[j] + a * sine[j];
  }
}

static void normalize(const cpu_chunk *c, const cpu_layer *l, const float *norm, float *head) {
  const cpu_kernels *k = c->p->w->backend->kernels;
  if (norm) k->norm(DT_NORM_RMS, head, norm, NULL, l->shape.head_dim, l->shape.norm_eps, head);
}

/* Prepares a query or a key for attention: applies the norm, if the model has one, then the rotation. */
static void turn(const cpu_chunk *c, const cpu_layer *l, const float *norm, int r, float *head) {
  if (!l->shape.wide_norms) normalize(c, l, norm, head);
  if (!l->still) rotate(c, l, r, head);
}

static void write_cache(const cpu_chunk *c, int layer, int r, int head) {
  const dt_weights *w = c->p->w;
  const dt_rows *rows = c->p->rows;
  const cpu_layer *l = &w->layer[layer];
  int row = c->first + r;
  size_t dim = (size_t)l->dim, at = (size_t)rows->slot[row] * cpu_row_bytes(w, layer);
  float *in = w->scratch.qkv + (size_t)r * w->scratch.ldqkv + (size_t)head * dim;
  turn(c, l, l->k_norm, r, in + w->scratch.keys_at);
  normalize(c, l, l->v_norm, in + w->scratch.values_at);
  for (int part = 0; part < 2; part++) {
    const float *from = in + (part ? w->scratch.values_at : w->scratch.keys_at);
    char *to = cpu_rows_of(c->p->cache, rows->sequence[row], layer, part, head) + at;
    w->backend->cache_type->write(from, l->dim, to);
  }
}

/* The (row, head) pairs of this rank's heads that share one key head, for a chunk's rows. Pair i is row i / heads with
 * head i % heads, so that the pairs of one sequence are consecutive. */
typedef struct {
  int layer, kv_head, first, heads;
} pairs_of;

/* Computes attention for pairs from i on, up to `last` (exclusive): as many pairs of one sequence as the kernel takes
 * at once. Returns their number. */
static int attend_some(const cpu_chunk *c, pairs_of a, int i, int last) {
  const dt_weights *w = c->p->w;
  const dt_rows *rows = c->p->rows;
  const cpu_layer *l = &w->layer[a.layer];
  bool cross_attention =
      w->head.target && w->head.kind == DT_HEAD_CROSS_ATTENTION; /* it sees rows of the target only */
  const dt_cache *cache = c->p->cache, *seen = cross_attention ? rows->features : cache;
  cpu_attention_row row[CPU_ATTENTION_ROWS];
  float *result[CPU_ATTENTION_ROWS];
  size_t dim = (size_t)l->dim, head_dim = (size_t)l->shape.head_dim;
  float *padded = w->scratch.heads + (size_t)c->me->thread * CPU_ATTENTION_ROWS * dim;
  int sequence = rows->sequence[c->first + i / a.heads], n = 0;
  for (; n < CPU_ATTENTION_ROWS && i + n < last; n++) {
    int r = (i + n) / a.heads, head = a.first + (i + n) % a.heads, at = c->first + r;
    int keys = l->backward && rows->blocks ? rows->position[at] - rows->prefix[at] + 1 : rows->path_len[at];
    if (rows->sequence[at] != sequence) break;
    float *q = w->scratch.qkv + (size_t)r * w->scratch.ldqkv + (size_t)head * dim;
    turn(c, l, l->q_norm, r, q);
    for (size_t d = 0; d < dim; d++) q[d] *= w->scale;
    result[n] = w->scratch.cat + (size_t)r * w->scratch.ldcat + (size_t)(l->mine.heads.first + head) * head_dim;
    row[n] = (cpu_attention_row){q,
                                 dim == head_dim ? result[n] : padded + (size_t)n * dim,
                                 rows->path + (size_t)at * (size_t)rows->path_stride,
                                 cross_attention ? rows->position[at] : rows->prefix[at],
                                 cross_attention ? 0 : keys,
                                 rows->window.sinks,
                                 dt_window_begin(rows->window, rows->position[at]),
                                 l->window ? dt_window_begin((dt_window){l->window, 0}, rows->position[at]) : 0,
                                 w->shape.score_cap,
                                 l->sinks ? l->sinks + l->mine.heads.first + head : NULL};
  }
  w->backend->cache_type->attend(
      cpu_rows_of(seen, sequence, l->keys_of, 0, a.kv_head), cpu_rows_of(seen, sequence, l->keys_of, 1, a.kv_head),
      l->dim, row, n, cache->scores + (size_t)c->me->thread * CPU_ATTENTION_ROWS * cache->ldscores, cache->ldscores);
  for (int j = 0; l->q_gate.data && j < n; j++) {
    int r = (i + j) / a.heads, head = a.first + (i + j) % a.heads;
    w->backend->kernels->gate(w->scratch.gates + (size_t)r * w->scratch.ldgates + (size_t)head * dim, l->dim,
                              row[j].out);
  }
  for (int j = 0; dim > head_dim && j < n; j++) /* heads are not padded in cat, as the columns of o are not */
    memcpy(result[j], row[j].out, head_dim * sizeof *result[j]);
  return n;
}

/* Computes pairs first..last-1. All pairs of one key head come before those of the next. */
static void attend(const cpu_chunk *c, int layer, int first, int last) {
  const cpu_layer *l = &c->p->w->layer[layer];
  int group = l->shape.heads / l->shape.kv_heads, end = l->mine.heads.first + l->mine.heads.count;
  for (int head = l->mine.heads.first; head < end;) {
    int kv_head = head / group, next = (kv_head + 1) * group < end ? (kv_head + 1) * group : end;
    pairs_of a = {layer, kv_head - l->mine.kv_heads.first, head - l->mine.heads.first, next - head};
    int before = a.first * c->n, to = (last < before + a.heads * c->n ? last : before + a.heads * c->n) - before;
    for (int i = first > before ? first - before : 0; i < to;) i += attend_some(c, a, i, to);
    head = next;
  }
}

/* Writes the layer's own keys and values, then computes attention. If the key heads can be divided evenly, each thread
 * takes whole key heads with all heads that share them; then it reads only what it wrote itself. Otherwise (row, head)
 * pairs are divided among the threads, after a barrier. */
void cpu_attend(const cpu_chunk *c, int layer, bool write_only) {
  const cpu_layer *l = &c->p->w->layer[layer];
  int first, last, rows = l->k.data ? c->n : 0; /* rows to write */
  int heads = l->mine.heads.count, kv_heads = l->mine.kv_heads.count, group = l->shape.heads / l->shape.kv_heads;
  if (kv_heads % c->me->threads == 0 && heads == kv_heads * group) {
    cpu_share(c->me, kv_heads, &first, &last);
    for (int h = first; h < last; h++)
      for (int r = 0; r < rows; r++) write_cache(c, layer, r, h);
    first *= group * c->n, last *= group * c->n;
  } else {
    cpu_share(c->me, rows * kv_heads, &first, &last);
    for (int i = first; i < last; i++) write_cache(c, layer, i / kv_heads, i % kv_heads);
    if (!write_only) cpu_wait(c->me);
    cpu_share(c->me, heads * c->n, &first, &last);
  }
  if (!write_only) attend(c, layer, first, last);
}
