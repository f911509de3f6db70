/* Rows of the embedding matrix. */
#include "chunk.h"

void cpu_embed(const dt_weights *w, int token, float *x) {
  const cpu_matrix *m = &w->unembed;
  int row = token - w->mine.ids.first;
  size_t hidden = (size_t)w->shape.hidden;
  if (w->embed)
    dt_type_of(w->embed_dtype)
        ->decode((const char *)w->embed + (size_t)row * dt_row_bytes(w->embed_dtype, hidden), hidden, x);
  else
    m->format->unpack(m->data + (size_t)(row / CPU_PANEL) * m->format->panel_bytes(m->k), m->k, row % CPU_PANEL, x);
  for (size_t i = 0; w->shape.embed_scale != 0 && i < hidden; i++) x[i] *= w->shape.embed_scale;
}
