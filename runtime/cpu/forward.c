/* One pass. Every thread runs the same phases; between phases the team waits, and within one each thread takes its share
 * of the outputs, heads or rows. A share never cuts a sum, so the number of threads cannot change a bit. */
#include "chunk.h"

static void embed(const cpu_chunk *c) {
  const dt_weights *w = c->p->w;
  const cpu_matrix *m = &w->unembed;
  int first, last, hidden = w->shape.hidden;
  cpu_share(c->me, c->n, &first, &last);
  for (int r = first; r < last; r++) {
    int token = c->p->rows->token[c->first + r];
    float *x = w->x + (size_t)r * w->ldx;
    if (w->embed)
      dt_type_of(w->embed_dtype)
          ->decode((const char *)w->embed + (size_t)token * dt_row_bytes(w->embed_dtype, (size_t)hidden),
                   (size_t)hidden, x);
    else
      m->format->unpack(m->data + (size_t)(token / CPU_PANEL) * m->format->panel_bytes(m->k), m->k, token % CPU_PANEL,
                        x);
  }
  cpu_find_angles(c, first, last);
}

static void run_pass(const cpu_member *me, void *context) {
  const cpu_pass *p = context;
  const dt_weights *w = p->w;
  cpu_chunk c = {.p = p, .me = me, .sums = w->sums + (size_t)me->thread * CPU_ROWS * CPU_LOGIT_BLOCK};
  int ids = p->out && p->out->want == DT_WANT_TOPK ? p->out->vocab : w->shape.vocab;
  if (w->ids) {
    int below = ids;
    for (ids = w->n_ids; ids > 0 && w->ids[ids - 1] >= below;) ids--;
  }
  for (; c.first < p->rows->n; c.first += c.n) {
    int left = p->rows->n - c.first;
    c.n = left < CPU_ROWS ? left : CPU_ROWS;
    c.wanted += c.wanted_n, c.wanted_n = 0;
    while (p->out && c.wanted + c.wanted_n < p->out->n && p->out->row[c.wanted + c.wanted_n] < c.first + c.n)
      c.wanted_n++;
    embed(&c);
    cpu_wait(me);
    for (int layer = 0; layer < w->shape.layers; layer++)
      if (layer < w->shape.layers - 1 || c.wanted_n > 0)
        w->run_layer(&c, layer);
      else
        cpu_keys_and_values(&c, layer);
    if (c.wanted_n > 0) cpu_write_results(&c, ids);
  }
}

dt_status cpu_forward(dt_weights *w, dt_cache *cache, const dt_rows *rows, const dt_out *out, dt_error *err) {
  if (out && (out->want == DT_WANT_NOTHING || out->n == 0)) out = NULL;
  dt_status status = cache->weights == w ? DT_OK : dt_fail(err, DT_EINPUT, "forward: the cache is of another model");
  if (status == DT_OK) status = check_pass(rows, out, cpu_limits(cache), err);
  if (status == DT_OK && out && w->ids && out->want != DT_WANT_TOPK)
    status = dt_fail(err, DT_EINPUT, "forward: a model with %d of its output rows has candidates only", w->n_ids);
  if (status != DT_OK) return status;
  cpu_pass p = {w, cache, rows, out};
  cpu_team_run(w->backend->team, run_pass, &p);
  return DT_OK;
}
