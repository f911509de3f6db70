/* A forward pass. Every thread runs the same phases. Between phases the team waits at a barrier; in a phase each thread
 * takes a share of the outputs, heads or rows. A sum is never split between threads, so the number of threads cannot
 * change a bit. */
#include "chunk.h"
#include "delta_layer.h"

#include <string.h>

/* The place of a chunk's row in `entering` or `leaving`. */
static float *stream_of(const cpu_chunk *c, const float *streams, int r) {
  return (float *)streams + (size_t)(c->first + r) * (size_t)c->p->w->shape.hidden;
}

static void begin(const cpu_chunk *c) {
  const dt_weights *w = c->p->w;
  int first, last;
  cpu_share(c->me, c->n, &first, &last);
  for (int r = first; r < last; r++) {
    int token = c->p->rows->token[c->first + r];
    float *x = w->scratch.x + (size_t)r * w->scratch.ldx;
    if (c->p->rows->entering)
      memcpy(x, stream_of(c, c->p->rows->entering, r), (size_t)w->shape.hidden * sizeof *x);
    else if (cpu_has_id(&w->mine, token))
      cpu_embed(w, token, x);
  }
  cpu_find_angles(c, first, last);
  cpu_gather(c, CPU_EMBEDDED);
  if (w->shape.inputs) cpu_find_inputs(c);
}

/* Whether the cache keeps streams after the last layer that has keys, even for rows whose results nobody wants. The
 * streams of a head are not needed for such rows. */
static bool keeps_ends(const dt_weights *w) {
  bool any = false;
  for (int t = 0; t < w->taps; t++) any |= w->tap[t] >= w->writing;
  return any && !w->head.target;
}

/* Writes the stream after the last layer, for the backend that has the next ones. */
static void leave(const cpu_chunk *c) {
  const dt_weights *w = c->p->w;
  int first, last;
  cpu_share(c->me, c->n, &first, &last);
  for (int r = first; r < last; r++)
    memcpy(stream_of(c, c->p->rows->leaving, r), w->scratch.x + (size_t)r * w->scratch.ldx,
           (size_t)w->shape.hidden * sizeof(float));
}

/* Computes only what committed rows of a block head have: keys and values of the same x in all layers. */
static void write_keys(const cpu_chunk *c) {
  for (int layer = 0; layer < c->p->w->shape.layers; layer++) {
    cpu_keys_and_values(c, layer);
    cpu_wait(c->me); /* after this, the products belong to the next layer */
  }
}

/* Runs all layers. If only the cache must be filled, it stops at the last layer with keys, and computes only the keys
 * and values of that layer. */
static void run_layers(cpu_chunk *c) {
  const dt_weights *w = c->p->w;
  bool ends = keeps_ends(w) || c->p->rows->leaving, whole = c->wanted_n > 0 || ends;
  int layers = whole ? w->shape.layers : w->writing;
  for (int layer = 0; layer < layers; layer++) {
    c->layer = &w->layer[layer];
    cpu_tap(c, layer);
    if (whole || layer < layers - 1)
      w->run_layer(c, layer);
    else
      cpu_keys_and_values(c, layer);
  }
  if (whole) cpu_tap(c, layers), cpu_tap(c, layers + 1);
  if (c->p->rows->leaving) leave(c);
  if (whole && w->head.post.data) cpu_end_head(c);
  if (c->wanted_n == 0 && ends) cpu_wait(c->me); /* after this, x belongs to the next chunk */
}

static void run_second_half(cpu_chunk *c) {
  c->layer = &c->p->w->layer[c->p->rows->layer];
  cpu_second_half(c, c->p->rows->layer);
  leave(c);
  cpu_wait(c->me); /* after this, x belongs to the next chunk */
}

/* The number of rows, at most n, before the first one of a block that does not fit among them. */
static int blocks_together(const dt_rows *rows, int first, int n) {
  while (first + n < rows->n && rows->position[first + n] > rows->prefix[first + n]) n--;
  return n;
}

static void run_pass(const cpu_member *me, void *context) {
  const cpu_pass *p = context;
  const dt_weights *w = p->w;
  cpu_chunk c = {.p = p, .me = me, .sums = w->scratch.sums + (size_t)me->thread * CPU_ROWS * CPU_LOGIT_BLOCK};
  int ids = p->out && p->out->want == DT_WANT_TOPK ? p->out->vocab : w->shape.vocab;
  if (w->ids) {
    int below = ids;
    for (ids = w->n_ids; ids > 0 && w->ids[ids - 1] >= below;) ids--;
  }
  for (; c.first < p->rows->n; c.first += c.n) {
    int left = p->rows->n - c.first;
    c.n = left < CPU_ROWS ? left : CPU_ROWS;
    if (w->delta.all) c.n = delta_rows_together(p->rows, c.first, c.n);
    if (p->rows->blocks) c.n = blocks_together(p->rows, c.first, c.n);
    c.wanted += c.wanted_n, c.wanted_n = 0;
    while (p->out && c.wanted + c.wanted_n < p->out->n && p->out->row[c.wanted + c.wanted_n] < c.first + c.n)
      c.wanted_n++;
    if (w->head.target)
      cpu_begin_head(&c);
    else
      begin(&c);
    if (w->part.halves)
      run_second_half(&c);
    else if (cpu_keys_only(&c))
      write_keys(&c);
    else
      run_layers(&c);
    if (c.wanted_n > 0 && !w->part.leaves) cpu_write_results(&c, ids);
  }
}

static dt_status check_given(const dt_weights *w, const dt_rows *rows, dt_error *err) {
  const dt_cache *from = rows->features;
  if (from && from->weights != w->head.target)
    return dt_fail(err, DT_EINPUT, "forward: the features belong to a model other than the head's target");
  dt_limits given = from ? cpu_limits(from) : (dt_limits){0};
  if (w->head.kind == DT_HEAD_CROSS_ATTENTION) return check_reading(rows, from ? &given : NULL, err);
  if (w->head.kind == DT_HEAD_BLOCK && !from) return DT_OK;
  return check_features(rows, w->head.distances, from ? &given : NULL, err);
}

dt_status cpu_forward(dt_weights *w, dt_cache *cache, const dt_rows *rows, const dt_out *out, dt_error *err) {
  const bool tells = w->part.leaves && out && out->n && (out->experts || out->experts_read);
  if (out && (out->want == DT_WANT_NOTHING || out->n == 0) && !tells) out = NULL;
  dt_status status =
      cache->weights == w ? DT_OK : dt_fail(err, DT_EINPUT, "forward: the cache belongs to another model");
  if (status == DT_OK) status = check_pass(rows, out, cpu_limits(cache), err);
  if (status == DT_OK) status = check_streams(w->part, rows, err);
  if (status == DT_OK && out && out->want != DT_WANT_NOTHING && w->part.leaves)
    status = dt_fail(err, DT_EINPUT, "forward: a part of a model without its last layers has no results");
  if (status == DT_OK && w->part.halves && (rows->layer < 0 || rows->layer >= w->shape.layers))
    status = dt_fail(err, DT_EINPUT, "forward: the second half of layer %d of %d", rows->layer, w->shape.layers);
  if (status == DT_OK && out && w->ids && out->want != DT_WANT_TOPK)
    status = dt_fail(err, DT_EINPUT,
                     "forward: a model loaded with only %d of its output rows can return candidates only", w->n_ids);
  if (status == DT_OK && w->delta.all) status = delta_check(rows, err);
  if (status == DT_OK && w->head.target) status = check_given(w, rows, err);
  if (status != DT_OK) return status;
  if (out && out->experts && !w->part.halves)
    memset(out->experts, -1, (size_t)out->n * (size_t)w->shape.layers * (size_t)w->shape.chosen * sizeof *out->experts);
  cpu_pass p = {w, cache, rows, out, w->head.distances ? &w->head.output[rows->distance] : &w->unembed};
  cpu_team_run_pass(w->backend->team, rows->n, run_pass, &p);
  if (w->delta.all) delta_passed(cache, rows);
  return DT_OK;
}
