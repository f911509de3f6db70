/* The mixes of a block head's layers (dt_head_kind): short convolutions over the rows of a block, whose weights depend
 * on the row. */
#include "chunk.h"

/* Row r of mix(side, y), added to `to` or written there. Its rows before the block's first do not exist. */
static void mix_row(const cpu_chunk *c, const cpu_layer *l, bool mlp, int side, int r, const float *y, bool adds,
                    float *to) {
  const dt_weights *w = c->p->w;
  const dt_rows *rows = c->p->rows;
  const int taps = l->shape.mix_taps, groups = l->shape.mix_groups, hidden = w->shape.hidden, size = hidden / groups;
  const int before = rows->position[c->first + r] - rows->prefix[c->first + r];
  const float *weight = w->scratch.mixes + (size_t)r * w->scratch.ldmixes + (size_t)side * (size_t)(taps * groups);
  const float *base = l->mix_base[mlp] + (size_t)side * (size_t)taps * (size_t)hidden;
  for (int g = 0; g < groups; g++)
    for (int i = g * size; i < (g + 1) * size; i++) {
      float sum = 0;
      for (int t = 0; t < taps && t <= before; t++)
        sum += (base[t * hidden + i] + weight[t * groups + g]) * y[(ptrdiff_t)(r - t) * (ptrdiff_t)w->scratch.ldx + i];
      to[i] = adds ? to[i] + sum : sum;
    }
}

static void mix(const cpu_chunk *c, const cpu_layer *l, bool mlp, int side, const float *y, float *to) {
  const dt_weights *w = c->p->w;
  int first, last;
  cpu_share(c->me, c->n, &first, &last);
  for (int r = first; r < last; r++) mix_row(c, l, mlp, side, r, y, side == 1, to + (size_t)r * w->scratch.ldx);
  cpu_wait(c->me);
}

const float *cpu_mix(const cpu_chunk *c, const cpu_layer *l, bool mlp, const float *x) {
  const dt_weights *w = c->p->w;
  const cpu_product weights = {&l->mix[mlp], x, w->scratch.ldx, CPU_STORE, w->scratch.mixes, w->scratch.ldmixes};
  cpu_multiply(c, &weights, 1);
  cpu_wait(c->me);
  mix(c, l, mlp, 0, x, w->scratch.mixed);
  return w->scratch.mixed;
}

void cpu_add_mixed(const cpu_chunk *c, const cpu_layer *l, bool mlp) {
  mix(c, l, mlp, 1, c->p->w->scratch.normed, c->p->w->scratch.x);
}
