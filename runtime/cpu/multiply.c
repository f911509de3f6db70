/* Products of rows and matrices: prepares the rows for the formats, and shares out the panels among the threads. */
#include "chunk.h"

char *cpu_prepared_row(const dt_weights *w, int product, int row) {
  return w->scratch.prepared + ((size_t)product * CPU_ROWS + (size_t)row) * w->scratch.prepared_bytes;
}

/* Prepares the rows of a product. If there are few, each thread prepares all of them for itself. Otherwise they are
 * shared out and *shared becomes true: the caller must then wait for the other threads. */
static cpu_input prepare(const cpu_chunk *c, int index, const cpu_product *p, bool *shared) {
  const dt_weights *w = c->p->w;
  const cpu_format *f = p->matrix->format;
  if (!f->prepare) return (cpu_input){(const char *)p->x, p->ldx * sizeof(float), c->n};
  bool own = c->n <= CPU_OWN_ROWS;
  size_t mine = ((size_t)c->me->thread * CPU_PRODUCTS + (size_t)index) * CPU_OWN_ROWS * w->scratch.prepared_bytes;
  char *to = own ? w->scratch.own_prepared + mine : cpu_prepared_row(w, index, 0);
  int first = 0, last = c->n;
  if (!own) cpu_share(c->me, c->n, &first, &last), *shared = true;
  for (int r = first; r < last; r++)
    f->prepare(p->x + (size_t)r * p->ldx, p->matrix->k, to + (size_t)r * w->scratch.prepared_bytes);
  return (cpu_input){to, w->scratch.prepared_bytes, c->n};
}

/* Prepares the rows of all products. Products with the same rows and the same preparation share the result. */
static void prepare_all(const cpu_chunk *c, const cpu_product *products, int count, cpu_input *in) {
  bool shared = false;
  for (int i = 0; i < count; i++) {
    int same = 0;
    while (same < i && (products[same].x != products[i].x ||
                        products[same].matrix->format->prepare != products[i].matrix->format->prepare))
      same++;
    in[i] = same < i ? in[same] : prepare(c, i, &products[i], &shared);
  }
  if (shared) cpu_wait(c->me);
}

void cpu_multiply(const cpu_chunk *c, const cpu_product *products, int count) {
  cpu_input in[CPU_PRODUCTS];
  prepare_all(c, products, count, in);
  cpu_multiply_prepared(c, products, in, count);
}

void cpu_multiply_prepared(const cpu_chunk *c, const cpu_product *products, const cpu_input *in, int count) {
  const dt_weights *w = c->p->w;
  int total = 0, first, last, base = 0;
  const int64_t began = cpu_work_begins(c->me);
  double work = 0;
  for (int i = 0; i < count; i++) total += products[i].matrix->panels;
  cpu_share(c->me, total, &first, &last);
  for (int i = 0; i < count; base += products[i++].matrix->panels) {
    const cpu_product *p = &products[i];
    int from = first > base ? first - base : 0;
    int to = last - base < p->matrix->panels ? last - base : p->matrix->panels;
    if (from < to) work += (double)(to - from) * (double)p->matrix->format->panel_bytes(p->matrix->k) * in[i].n;
    for (int panel = from; panel < to; panel += CPU_GROUP) {
      int group = to - panel < CPU_GROUP ? to - panel : CPU_GROUP;
      size_t ld = CPU_GROUP * CPU_PANEL;
      p->matrix->format->multiply(p->matrix, panel, group, in[i].at, in[i].step, in[i].n, c->sums, ld);
      w->backend->kernels->finish(p->how, w->shape.act, w->residual_scale, p->matrix, panel, group, c->sums, ld,
                                  in[i].n, p->out, p->ldo);
    }
  }
  cpu_work_ends(c->me, began, work);
}
