/* Heads of a layer: rotation, the cache, attention. */
#include "chunk.h"

#include <math.h>
#include <string.h>

/* Where the cosines of the chunk's row r are; its sines lie behind them. A chunk may begin while some thread still rotates in
 * the one before it: they take turns. */
static float *angles(const cpu_chunk *c, int r) {
  const dt_weights *w = c->p->w;
  int turn = c->first / CPU_ROWS % 2;
  return w->angles + (size_t)(turn * CPU_ROWS + r) * (size_t)w->shape.rotary_dims;
}

void cpu_find_angles(const cpu_chunk *c, int first, int last) {
  const dt_weights *w = c->p->w;
  int pairs = w->shape.rotary_dims / 2;
  for (int r = first; r < last; r++) {
    float *cosine = angles(c, r), *sine = cosine + pairs;
    for (int j = 0; j < pairs; j++) {
      double angle = (double)c->p->rows->position[c->first + r] * (double)w->inv_freq[j];
      cosine[j] = (float)cos(angle), sine[j] = (float)sin(angle);
    }
  }
}

/* The first rotary_dims of a head of row r, as split halves. */
static void rotate(const cpu_chunk *c, int r, float *head) {
  int pairs = c->p->w->shape.rotary_dims / 2;
  const float *cosine = angles(c, r), *sine = cosine + pairs;
  for (int j = 0; j < pairs; j++) {
    float a = head[j], b = head[j + pairs];
    head[j] = a * cosine[j] - b * sine[j];
    head[j + pairs] = b * cosine[j] + a * sine[j];
  }
}

/* A query or a key as the attention takes it: normalized, if the model does so, and rotated. */
static void turn(const cpu_chunk *c, const float *norm, int r, float *head) {
  const dt_weights *w = c->p->w;
  if (norm) w->backend->kernels->norm(DT_NORM_RMS, head, norm, NULL, w->shape.head_dim, w->shape.norm_eps, head);
  rotate(c, r, head);
}

static void write_cache(const cpu_chunk *c, int layer, int r, int head) {
  const dt_weights *w = c->p->w;
  const dt_rows *rows = c->p->rows;
  int row = c->first + r;
  size_t dim = (size_t)w->dim, at = (size_t)rows->slot[row] * cpu_row_bytes(w);
  float *in = w->qkv + (size_t)r * w->ldqkv + (size_t)head * dim;
  turn(c, w->layer[layer].k_norm, r, in + w->keys_at);
  for (int part = 0; part < 2; part++) {
    const float *from = in + (part ? w->values_at : w->keys_at);
    char *to = cpu_rows_of(c->p->cache, rows->sequence[row], layer, part, head) + at;
    if (w->backend->caches_f16)
      w->backend->kernels->narrow(from, w->dim, (uint16_t *)to);
    else
      memcpy(to, from, dim * sizeof *from);
  }
}

/* Attention of one head of mine for up to CPU_ATTENTION_ROWS rows, run by run of rows of one sequence. */
static void attend(const cpu_chunk *c, int layer, int head, int first, int n) {
  const dt_weights *w = c->p->w;
  const dt_cache *cache = c->p->cache;
  const dt_rows *rows = c->p->rows;
  const cpu_kernels *k = w->backend->kernels;
  cpu_attention_kernel *kernel = w->backend->caches_f16 ? k->attention_f16 : k->attention;
  cpu_attention_row row[CPU_ATTENTION_ROWS];
  size_t dim = (size_t)w->dim, head_dim = (size_t)w->shape.head_dim;
  float *padded = w->heads + (size_t)c->me->thread * CPU_ATTENTION_ROWS * dim;
  int at = w->mine.heads.first + head, kv_head = at / (w->shape.heads / w->shape.kv_heads) - w->mine.kv_heads.first;
  for (int r = first; r < first + n;) {
    int sequence = rows->sequence[c->first + r], count = 0;
    float *out = w->cat + (size_t)r * w->ldcat + (size_t)at * head_dim;
    for (; r < first + n && rows->sequence[c->first + r] == sequence; r++, count++) {
      int i = c->first + r;
      float *q = w->qkv + (size_t)r * w->ldqkv + (size_t)head * dim;
      turn(c, w->layer[layer].q_norm, r, q);
      for (size_t d = 0; d < dim; d++) q[d] *= w->scale;
      row[count] = (cpu_attention_row){q,
                                       dim == head_dim ? out + (size_t)count * w->ldcat : padded + (size_t)count * dim,
                                       rows->path + (size_t)i * (size_t)rows->path_stride,
                                       rows->prefix[i],
                                       rows->path_len[i],
                                       rows->window.sinks,
                                       dt_window_begin(rows->window, rows->position[i])};
    }
    kernel(cpu_rows_of(cache, sequence, layer, 0, kv_head), cpu_rows_of(cache, sequence, layer, 1, kv_head), w->dim,
           row, count, cache->scores + (size_t)c->me->thread * CPU_ATTENTION_ROWS * cache->ldscores, cache->ldscores);
    for (int i = 0; dim > head_dim && i < count; i++) /* in cat the heads lie as the columns of o do */
      memcpy(out + (size_t)i * w->ldcat, padded + (size_t)i * dim, head_dim * sizeof *out);
  }
}

/* Writes the keys and values, then attends. If the key heads can be shared out evenly, each with all heads that look at it, a
 * thread needs only what it wrote itself; else rows are shared out too, with a barrier between. */
void cpu_attend(const cpu_chunk *c, int layer, bool write_only) {
  const dt_weights *w = c->p->w;
  int blocks = (c->n + CPU_ATTENTION_ROWS - 1) / CPU_ATTENTION_ROWS, first, last;
  int heads = w->mine.heads.count, kv_heads = w->mine.kv_heads.count, group = w->shape.heads / w->shape.kv_heads;
  if (kv_heads % c->me->threads == 0 && heads == kv_heads * group) {
    cpu_share(c->me, kv_heads, &first, &last);
    for (int h = first; h < last; h++)
      for (int r = 0; r < c->n; r++) write_cache(c, layer, r, h);
    first *= group * blocks, last *= group * blocks;
  } else {
    cpu_share(c->me, c->n * kv_heads, &first, &last);
    for (int i = first; i < last; i++) write_cache(c, layer, i / kv_heads, i % kv_heads);
    if (!write_only) cpu_wait(c->me);
    cpu_share(c->me, heads * blocks, &first, &last);
  }
  for (int i = first; !write_only && i < last; i++) {
    int r = i % blocks * CPU_ATTENTION_ROWS;
    attend(c, layer, i / blocks, r, c->n - r < CPU_ATTENTION_ROWS ? c->n - r : CPU_ATTENTION_ROWS);
  }
}
