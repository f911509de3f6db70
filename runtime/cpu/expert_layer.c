/* The experts of a layer. A row and an expert that it chose are a pair. Pairs are sorted by expert, so that an expert's
 * weights are read once for all rows that chose it, and not at all if no row did. A product gives a row the same bits
 * whatever other rows are in the pass. */
#include "chunk.h"

#include <string.h>

/* The pairs first..first+n-1 are those of one expert. */
typedef struct {
  int expert, first, n;
} group;

/* Finds the `chosen` largest of n numbers and writes their ids in rising order; ties go to the lower id. Returns the
 * largest number. */
static float take(const float *number, int n, int chosen, int32_t *id) {
  bool taken[DT_EXPERTS] = {false};
  float largest = 0;
  for (int j = 0; j < chosen; j++) {
    int best = -1;
    for (int e = 0; e < n; e++)
      if (!taken[e] && (best < 0 || number[e] > number[best])) best = e;
    taken[best] = true;
    if (j == 0) largest = number[best];
  }
  for (int e = 0, j = 0; e < n; e++)
    if (taken[e]) id[j++] = e;
  return largest;
}

static void exp_all(const dt_weights *w, float p[DT_EXPERTS]) {
  w->backend->kernels->exp(p, (size_t)(w->shape.experts + 15) / 16 * 16, p);
}

/* Chooses the experts with the largest router logits. p becomes their softmax without its divisor, which is
 * returned. */
static float take_by_softmax(const dt_weights *w, const float *logits, int32_t *id, float p[DT_EXPERTS]) {
  const int n = w->shape.experts;
  float largest = take(logits, n, w->shape.chosen, id), sum = 0;
  for (int e = 0; e < n; e++) p[e] = logits[e] - largest;
  exp_all(w, p);
  for (int e = 0; e < n; e++) sum += p[e];
  return sum;
}

/* The same with sigmoids, whose divisor is 1. */
static float take_by_sigmoid(const dt_weights *w, const cpu_layer *l, const float *logits, int32_t *id,
                             float p[DT_EXPERTS]) {
  const int n = w->shape.experts;
  float corrected[DT_EXPERTS];
  for (int e = 0; e < n; e++) p[e] = -logits[e];
  exp_all(w, p);
  for (int e = 0; e < n; e++) {
    p[e] = 1 / (1 + p[e]);
    corrected[e] = p[e] + (l->routing.correction ? l->routing.correction[e] : 0);
  }
  take(corrected, n, w->shape.chosen, id);
  return 1;
}

/* Chooses a row's experts and computes their weights, in the order of rising ids: see dt_layer. */
static void choose(const dt_weights *w, const cpu_layer *l, const float *logits, int32_t *id, float *weight) {
  const dt_shape *s = &w->shape;
  float p[DT_EXPERTS] = {0}, scaled[DT_EXPERTS];
  for (int e = 0; e < s->experts && s->router_scale != 0; e++) scaled[e] = logits[e] * s->router_scale;
  if (s->router_scale != 0) logits = scaled;
  float sum = s->router_sigmoid ? take_by_sigmoid(w, l, logits, id, p) : take_by_softmax(w, logits, id, p);
  if (s->chosen_only) {
    sum = 0;
    for (int j = 0; j < s->chosen; j++) sum += p[id[j]];
    if (s->router_sigmoid) sum += 1e-20f;
  }
  for (int j = 0; j < s->chosen; j++) {
    weight[j] = p[id[j]] / sum;
    if (l->routing.scale) weight[j] *= l->routing.scale[id[j]];
    if (s->experts_scale != 0) weight[j] *= s->experts_scale;
  }
}

/* Sorts the pairs by expert: place[i] is where pair i goes (pairs are numbered row by row). Returns the number of
 * groups. */
static int group_pairs(const cpu_chunk *c, group groups[DT_EXPERTS], int *place) {
  const dt_weights *w = c->p->w;
  int next[DT_EXPERTS] = {0}, pairs = c->n * w->shape.chosen, count = 0, first = 0;
  for (int i = 0; i < pairs; i++) next[w->scratch.routes.id[i]]++;
  for (int e = 0; e < w->shape.experts; e++) {
    int n = next[e];
    next[e] = first;
    if (n) groups[count++] = (group){e, first, n};
    first += n;
  }
  for (int i = 0; i < pairs; i++) place[i] = next[w->scratch.routes.id[i]]++;
  return count;
}

/* Writes this thread's share of the pairs' rows to their places, prepared for the products. */
static void put_rows(const cpu_chunk *c, const cpu_layer *l, const int *place, const float *x, bool inner) {
  const dt_weights *w = c->p->w;
  const cpu_routes *routes = &w->scratch.routes;
  int first, last;
  cpu_share(c->me, c->n * w->shape.chosen, &first, &last);
  for (int i = first; i < last; i++) {
    const cpu_expert *e = &l->expert[routes->id[i]];
    const cpu_matrix *m = inner ? &e->down : &e->up;
    const float *row =
        inner ? routes->inner + (size_t)place[i] * routes->ldinner : x + (size_t)(i / w->shape.chosen) * w->scratch.ldx;
    char *to = routes->rows + (size_t)place[i] * routes->step;
    if (m->format->prepare)
      m->format->prepare(row, m->k, to);
    else
      memcpy(to, row, (size_t)m->k * sizeof *row);
  }
  cpu_wait(c->me);
}

/* Multiplies the rows at their places: with gates and ups, giving inner rows, or with downs, giving `out`. */
static void multiply_groups(const cpu_chunk *c, const cpu_layer *l, const group *groups, int count, bool inner) {
  const cpu_routes *routes = &c->p->w->scratch.routes;
  const size_t ldx = c->p->w->scratch.ldx;
  cpu_product products[DT_EXPERTS];
  cpu_input in[DT_EXPERTS];
  for (int i = 0; i < count; i++) {
    const cpu_expert *e = &l->expert[groups[i].expert];
    size_t first = (size_t)groups[i].first;
    in[i] = (cpu_input){routes->rows + first * routes->step, routes->step, groups[i].n};
    products[i] = (cpu_product){.matrix = inner ? &e->up : &e->down,
                                .how = inner ? CPU_GATE : CPU_STORE,
                                .out = inner ? routes->inner + first * routes->ldinner : routes->out + first * ldx,
                                .ldo = inner ? routes->ldinner : ldx};
  }
  cpu_multiply_prepared(c, products, in, count);
  cpu_wait(c->me);
}

/* Adds up the pairs of each row, in the order of rising expert ids, for this thread's share of the columns. */
static void add_pairs(const cpu_chunk *c, const cpu_layer *l, const int *place) {
  const dt_weights *w = c->p->w;
  const int chosen = w->shape.chosen, hidden = w->shape.hidden;
  int first, last;
  cpu_share(c->me, (hidden + 15) / 16, &first, &last);
  if (first == last) return; /* the last share begins past the columns if their number is no multiple of 16 */
  first *= 16, last = last * 16 < hidden ? last * 16 : hidden;
  for (int r = 0; r < c->n; r++) {
    const float *weight = w->scratch.routes.weight + (size_t)r * (size_t)chosen;
    float *sum = w->scratch.routes.out + (size_t)place[r * chosen] * w->scratch.ldx,
          *x = w->scratch.x + (size_t)r * w->scratch.ldx;
    for (int i = first; i < last; i++) sum[i] *= weight[0];
    for (int j = 1; j < chosen; j++) {
      const float *more = w->scratch.routes.out + (size_t)place[r * chosen + j] * w->scratch.ldx;
      for (int i = first; i < last; i++) sum[i] += weight[j] * more[i];
    }
    if (l->down_norm || l->up.data)
      memcpy(w->scratch.normed + (size_t)r * w->scratch.ldx + first, sum + first, (size_t)(last - first) * sizeof *sum);
    else
      for (int i = first; i < last; i++) x[i] += w->residual_scale * sum[i];
  }
}

/* Writes the numbers of the chosen experts to the results, if the caller wants them. */
static void tell(const cpu_chunk *c, int layer, int groups) {
  const dt_weights *w = c->p->w;
  const dt_out *out = c->p->out;
  const size_t chosen = (size_t)w->shape.chosen, layers = (size_t)w->shape.layers;
  if (out->experts_read) *out->experts_read += groups;
  for (int j = 0; out->experts && j < c->wanted_n; j++) {
    size_t result = (size_t)(c->wanted + j), row = (size_t)(out->row[result] - c->first);
    memcpy(out->experts + (result * layers + (size_t)layer) * chosen, w->scratch.routes.id + row * chosen,
           chosen * sizeof *out->experts);
  }
}

void cpu_run_experts(const cpu_chunk *c, int layer, const float *x, const float *by) {
  const dt_weights *w = c->p->w;
  const cpu_layer *l = &w->layer[layer];
  const cpu_routes *routes = &w->scratch.routes;
  const size_t chosen = (size_t)w->shape.chosen;
  group groups[DT_EXPERTS];
  int first, last, *place = routes->place + (size_t)c->me->thread * CPU_ROWS * chosen;
  cpu_multiply(c, &(cpu_product){&l->router, by, w->scratch.ldx, CPU_STORE, routes->logits, routes->ldlogits}, 1);
  cpu_wait(c->me);
  cpu_share(c->me, c->n, &first, &last);
  for (int r = first; r < last; r++)
    choose(w, l, routes->logits + (size_t)r * routes->ldlogits, routes->id + (size_t)r * chosen,
           routes->weight + (size_t)r * chosen);
  cpu_wait(c->me);
  int count = group_pairs(c, groups, place);
  if (c->p->out && c->me->thread == 0) tell(c, layer, count);
  put_rows(c, l, place, x, false);
  multiply_groups(c, l, groups, count, true);
  put_rows(c, l, place, NULL, true);
  multiply_groups(c, l, groups, count, false);
  add_pairs(c, l, place);
}
