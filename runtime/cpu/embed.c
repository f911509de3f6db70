/* Rows of the embedding matrix, and per-layer inputs. */
#include "chunk.h"

#include <math.h>

void cpu_embed(const dt_weights *w, int token, float *x) {
  const cpu_matrix *m = w->tied;
  int row = token - w->mine.ids.first;
  size_t hidden = (size_t)w->shape.hidden;
  if (w->embed)
    dt_type_of(w->embed_dtype)
        ->decode((const char *)w->embed + (size_t)row * dt_row_bytes(w->embed_dtype, hidden), hidden, x);
  else
    m->format->unpack(m->data + (size_t)(row / CPU_PANEL) * m->format->panel_bytes(m->k), m->k, row % CPU_PANEL, x);
  for (size_t i = 0; w->shape.embed_scale != 0 && i < hidden; i++) x[i] *= w->shape.embed_scale;
}

/* Turns a token's projections into the per-layer inputs, layer by layer: see dt_model_desc. `own` is scratch memory. */
static void blend(const dt_weights *w, int token, float *own, float *inputs) {
  int n = w->shape.inputs;
  size_t all = (size_t)w->shape.layers * (size_t)n;
  float part = 1.0f / sqrtf((float)w->shape.hidden), root = sqrtf((float)n), half = sqrtf(0.5f);
  const char *row = (const char *)w->inputs_embed + (size_t)token * dt_row_bytes(w->inputs_dtype, all);
  dt_type_of(w->inputs_dtype)->decode(row, all, own);
  for (int layer = 0; layer < w->shape.layers; layer++, own += n, inputs += w->inputs_dim) {
    for (int i = 0; i < n; i++) inputs[i] *= part;
    w->backend->kernels->norm(DT_NORM_RMS, inputs, w->inputs_norm, NULL, n, w->shape.norm_eps, inputs);
    for (int i = 0; i < n; i++) inputs[i] = (inputs[i] + root * own[i]) * half;
  }
}

void cpu_find_inputs(const cpu_chunk *c) {
  const dt_weights *w = c->p->w;
  const cpu_product projection = {&w->inputs_proj, w->scratch.x,      w->scratch.ldx,
                                  CPU_STORE,       w->scratch.inputs, w->scratch.ldinputs};
  float *own = w->scratch.own_inputs + (size_t)c->me->thread * (size_t)w->shape.layers * (size_t)w->shape.inputs;
  int first, last;
  cpu_multiply(c, &projection, 1);
  cpu_wait(c->me);
  cpu_share(c->me, c->n, &first, &last);
  for (int r = first; r < last; r++)
    blend(w, c->p->rows->token[c->first + r], own, w->scratch.inputs + (size_t)r * w->scratch.ldinputs);
}
