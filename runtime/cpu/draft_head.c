/* Draft heads: the features of a model's rows that caches store, and the steps of a head before its layer. */
#include "chunk.h"

#include <string.h>

static float *row(float *rows, size_t ld, int r) { return rows + (size_t)r * ld; }

/* A scratch row of this thread, as long as a row of x. */
static float *spare_row(const cpu_chunk *c) {
  const dt_weights *w = c->p->w;
  return w->scratch.own + (size_t)c->me->thread * 2 * CPU_OWN_ROWS * w->scratch.ldx;
}

/* y = norm(x) * weight. May read up to 15 numbers past the end of x and weight, and write up to 15 past the end of
 * y. */
static void normalize(const dt_weights *w, const float *x, const float *weight, int n, float *y) {
  w->backend->kernels->norm(w->shape.norm, x, weight, NULL, n, w->shape.norm_eps, y);
}

/* ---- taps -------------------------------------------------------------------------------------------------------- */

void cpu_tap(const cpu_chunk *c, int layer) {
  const dt_weights *w = c->p->w;
  const dt_rows *rows = c->p->rows;
  size_t hidden = (size_t)w->shape.hidden;
  for (int t = 0; t < w->taps; t++) {
    if (w->tap[t] != layer) continue;
    int first, last;
    cpu_share(c->me, c->n, &first, &last);
    for (int r = first; r < last; r++) {
      int i = c->first + r;
      const float *x = row(w->scratch.x, w->scratch.ldx, r);
      if (layer > w->shape.layers && w->final_norm) {
        float *normed = spare_row(c);
        w->backend->kernels->norm(w->shape.norm, x, w->final_norm, w->final_norm_bias, w->shape.hidden,
                                  w->shape.norm_eps, normed);
        x = normed;
      }
      memcpy(cpu_feature_of(c->p->cache, rows->sequence[i], rows->slot[i]) + (size_t)t * hidden, x, hidden * sizeof *x);
    }
  }
}

/* ---- a head ------------------------------------------------------------------------------------------------------ */

/* The feature that the head itself computed for the row before row i. */
static const float *own_feature(const cpu_pass *p, int i) {
  const dt_rows *rows = p->rows;
  int n = rows->path_len[i];
  const int32_t *path = rows->path + (size_t)i * (size_t)rows->path_stride;
  return cpu_feature_of(p->cache, rows->sequence[i], n > 1 ? path[n - 2] : rows->prefix[i] - 1);
}

static const float *given_feature(const cpu_pass *p, int i) {
  return cpu_feature_of(p->rows->features, p->rows->sequence[i], p->rows->slot[i]);
}

/* Writes a feature in the form that fc reads. The norm of a stream writes whole vectors of sixteen; the next stream
 * overwrites the excess. */
static void normalize_given(const dt_weights *w, const float *feature, float *to) {
  const cpu_head *h = &w->head;
  int width = h->target->shape.hidden;
  if (h->all_norm)
    normalize(w, feature, h->all_norm, h->given, to);
  else if (!h->stream_norm[0])
    memcpy(to, feature, (size_t)h->given * sizeof *to);
  else
    for (int s = 0; s < h->given / width; s++)
      normalize(w, feature + (size_t)s * (size_t)width, h->stream_norm[s], width, to + (size_t)s * (size_t)width);
}

static void embed(const cpu_chunk *c, int i, float *x) {
  const dt_weights *w = c->p->w;
  cpu_embed(w->embed ? w : w->head.target, c->p->rows->token[i], x);
}

static void multiply(const cpu_chunk *c, const float *x, size_t ldx) {
  const dt_weights *w = c->p->w;
  const cpu_product fc = {&w->head.fc, x, ldx, CPU_STORE, w->scratch.x, w->scratch.ldx};
  cpu_wait(c->me);
  cpu_multiply(c, &fc, 1);
  cpu_wait(c->me);
}

/* x = fc([embedding, feature]) */
static void begin_eagle(const cpu_chunk *c, int first, int last) {
  const dt_weights *w = c->p->w;
  const cpu_head *h = &w->head;
  size_t hidden = (size_t)w->shape.hidden;
  for (int r = first; r < last; r++) {
    int i = c->first + r;
    float *pair = row(w->scratch.pair, w->scratch.ldpair, r), *spare = spare_row(c);
    const float *feature = c->p->rows->features ? given_feature(c->p, i) : own_feature(c->p, i);
    embed(c, i, spare);
    if (h->token_norm) normalize(w, spare, h->token_norm, w->shape.hidden, spare);
    memcpy(pair, spare, hidden * sizeof *pair);
    if (h->feature_norm) normalize(w, feature, h->feature_norm, w->shape.hidden, spare);
    memcpy(pair + hidden, h->feature_norm ? spare : feature, hidden * sizeof *pair);
  }
  multiply(c, w->scratch.pair, w->scratch.ldpair);
}

/* x = fc([the target's embedding, feature]) */
static void begin_cross_attention(const cpu_chunk *c, int first, int last) {
  const dt_weights *w = c->p->w;
  const cpu_head *h = &w->head;
  const dt_rows *rows = c->p->rows;
  size_t width = (size_t)h->given;
  for (int r = first; r < last; r++) {
    int i = c->first + r;
    float *pair = row(w->scratch.pair, w->scratch.ldpair, r);
    const float *feature = rows->distance ? own_feature(c->p, i)
                                          : cpu_feature_of(rows->features, rows->sequence[i], rows->position[i] - 1);
    embed(c, i, pair);
    memcpy(pair + width, feature, width * sizeof *pair);
  }
  multiply(c, w->scratch.pair, w->scratch.ldpair);
}

/* x = the feature. The layer's heads read the normalized embedding, followed by the normalized feature. */
static void begin_eagle3(const cpu_chunk *c, int first, int last) {
  const dt_weights *w = c->p->w;
  const cpu_head *h = &w->head;
  size_t hidden = (size_t)w->shape.hidden;
  for (int r = first; r < last; r++) {
    if (c->p->rows->features)
      normalize_given(w, given_feature(c->p, c->first + r), row(w->scratch.features, w->scratch.ldgiven, r));
    else
      memcpy(row(w->scratch.x, w->scratch.ldx, r), own_feature(c->p, c->first + r), hidden * sizeof *w->scratch.x);
  }
  if (c->p->rows->features) multiply(c, w->scratch.features, w->scratch.ldgiven);
  for (int r = first; r < last; r++) {
    float *pair = row(w->scratch.pair, w->scratch.ldpair, r), *spare = spare_row(c),
          *x = row(w->scratch.x, w->scratch.ldx, r);
    embed(c, c->first + r, spare);
    normalize(w, spare, h->token_norm, w->shape.hidden, spare);
    memcpy(pair, spare, hidden * sizeof *pair);
    normalize(w, x, h->feature_norm, w->shape.hidden, spare);
    memcpy(pair + hidden, spare, hidden * sizeof *pair);
    if (h->norm_residual) memcpy(x, spare, hidden * sizeof *x);
  }
  cpu_wait(c->me);
}

/* x = the feature after the blocks for the pass's distance. */
static void run_medusa(const cpu_chunk *c, int first, int last) {
  const dt_weights *w = c->p->w;
  const cpu_head *h = &w->head;
  for (int r = first; r < last; r++)
    memcpy(row(w->scratch.x, w->scratch.ldx, r), given_feature(c->p, c->first + r),
           (size_t)h->given * sizeof *w->scratch.x);
  cpu_wait(c->me);
  for (int b = 0; b < h->blocks; b++) {
    const cpu_product block = {&h->block[c->p->rows->distance][b],
                               w->scratch.x,
                               w->scratch.ldx,
                               CPU_ACTIVATE,
                               w->scratch.cat,
                               w->scratch.ldcat};
    cpu_multiply(c, &block, 1);
    cpu_wait(c->me);
    for (int r = first; r < last; r++)
      for (int i = 0; i < h->given; i++)
        row(w->scratch.x, w->scratch.ldx, r)[i] += row(w->scratch.cat, w->scratch.ldcat, r)[i];
    cpu_wait(c->me);
  }
}

/* x = norm(fc(feature)) in committed rows; x = the target's embedding in the rows of a block. */
static void begin_block(const cpu_chunk *c, int first, int last) {
  const dt_weights *w = c->p->w;
  const bool given = cpu_keys_only(c);
  for (int r = first; r < last; r++) {
    if (given)
      memcpy(row(w->scratch.features, w->scratch.ldgiven, r), given_feature(c->p, c->first + r),
             (size_t)w->head.given * sizeof *w->scratch.features);
    else
      embed(c, c->first + r, row(w->scratch.x, w->scratch.ldx, r));
  }
  if (given) multiply(c, w->scratch.features, w->scratch.ldgiven);
  for (int r = first; given && r < last; r++) {
    float *x = row(w->scratch.x, w->scratch.ldx, r);
    normalize(w, x, w->head.feature_norm, w->shape.hidden, x);
  }
  cpu_wait(c->me);
}

void cpu_begin_head(const cpu_chunk *c) {
  int first, last;
  cpu_share(c->me, c->n, &first, &last);
  cpu_find_angles(c, first, last);
  switch (c->p->w->head.kind) {
  case DT_HEAD_EAGLE: begin_eagle(c, first, last); break;
  case DT_HEAD_EAGLE3: begin_eagle3(c, first, last); break;
  case DT_HEAD_MEDUSA: run_medusa(c, first, last); break;
  case DT_HEAD_BLOCK: begin_block(c, first, last); break;
  case DT_HEAD_CROSS_ATTENTION: begin_cross_attention(c, first, last); break;
  }
}

/* Copies this thread's share of what post computed for the wanted rows. */
static void write_post(const cpu_chunk *c) {
  const dt_weights *w = c->p->w;
  const dt_out *out = c->p->out;
  const size_t n = (size_t)w->head.post_rows;
  int first, last;
  cpu_share(c->me, c->wanted_n, &first, &last);
  for (int j = c->wanted + first; out->post && j < c->wanted + last; j++)
    memcpy(out->post + (size_t)j * n, row(w->scratch.features, w->scratch.ldgiven, out->row[j] - c->first),
           n * sizeof *out->post);
}

void cpu_end_head(const cpu_chunk *c) {
  const dt_weights *w = c->p->w;
  const cpu_head *h = &w->head;
  const dt_rows *rows = c->p->rows;
  const cpu_product post = {&h->post,  w->scratch.normed,   w->scratch.ldx,
                            CPU_STORE, w->scratch.features, w->scratch.ldgiven};
  int first, last;
  cpu_share(c->me, c->n, &first, &last);
  for (int r = first; r < last; r++)
    normalize(w, row(w->scratch.x, w->scratch.ldx, r), w->final_norm, w->shape.hidden,
              row(w->scratch.normed, w->scratch.ldx, r));
  cpu_wait(c->me);
  cpu_multiply(c, &post, 1);
  cpu_wait(c->me);
  if (h->kind == DT_HEAD_BLOCK) {
    write_post(c);
    return;
  }
  for (int r = first; r < last; r++)
    memcpy(cpu_feature_of(c->p->cache, rows->sequence[c->first + r], rows->slot[c->first + r]),
           row(w->scratch.features, w->scratch.ldgiven, r), (size_t)h->given * sizeof *w->scratch.features);
}
