/* Delta layers: see delta_layer.h. */
#include "delta_layer.h"
#include "chunk.h"

#include <limits.h>
#include <math.h>
#include <string.h>

void delta_passed(dt_cache *c, const dt_rows *rows) {
  for (int i = 0; i < rows->n; i++) {
    int *since = &c->since[rows->sequence[i]], lost = rows->slot[i] + 1 - DT_DELTA_RING;
    if (lost > *since) *since = lost;
  }
}

/* Adds this thread's share of the numbers of all rows to the rings, and convolves them with those of the three rows
 * before each. */
static void mix(const cpu_chunk *c, const cpu_layer *l) {
  const dt_weights *w = c->p->w;
  const dt_rows *rows = c->p->rows;
  int first, last;
  cpu_share(c->me, (w->delta.mixed + 15) / 16, &first, &last);
  size_t from = (size_t)first * 16, n = (size_t)(last - first) * 16;
  for (int r = 0; r < c->n && n; r++) {
    float *store = delta_store(c->p->cache, rows->sequence[c->first + r], l);
    memcpy(delta_row(w, store, rows->slot[c->first + r]) + from, w->scratch.delta.in + (size_t)r * w->delta.ldin + from,
           n * sizeof(float));
  }
  for (int r = 0; r < c->n && n; r++) {
    int row = c->first + r;
    float *store = delta_store(c->p->cache, rows->sequence[row], l);
    const float *tap[DT_DELTA_TAPS] = {NULL};
    for (int t = 0; t < DT_DELTA_TAPS; t++) {
      int p = rows->position[row] - (DT_DELTA_TAPS - 1) + t;
      if (p >= 0) tap[t] = delta_row(w, store, delta_slot_of(rows, row, p)) + from;
    }
    w->backend->kernels->delta_mix(tap, l->delta->conv + from, w->delta.ldin, (int)n,
                                   w->scratch.delta.in + (size_t)r * w->delta.ldin + from);
  }
}

/* Computes rates and strengths for this thread's share of the rows. */
static void find_rates(const cpu_chunk *c, const cpu_layer *l) {
  const dt_weights *w = c->p->w;
  int first, last;
  cpu_share(c->me, c->n, &first, &last);
  for (int r = first; r < last; r++) {
    float *store = delta_store(c->p->cache, c->p->rows->sequence[c->first + r], l);
    w->backend->kernels->delta_rates(w->scratch.delta.a + (size_t)r * w->delta.ldrates, l->delta->shift,
                                     l->delta->decay, (w->delta.values + 15) / 16 * 16,
                                     delta_row(w, store, c->p->rows->slot[c->first + r]) + w->delta.rates_at,
                                     w->scratch.delta.b + (size_t)r * w->delta.ldrates);
  }
}

/* The base of a head at a position, computed now if it does not exist yet. NULL: the state is zero. */
static const float *find_base(const dt_weights *w, const cpu_delta_head *h, float *store, int head, int position) {
  if (position == 0) return NULL;
  float *base = delta_base(w, store, head, position);
  int32_t *tag = delta_tag(w, store, head, position);
  if (*tag == position) return base;
  const float *row[DT_DELTA_STEP], *before = find_base(w, h, store, head, position - DT_DELTA_STEP);
  for (int j = 0; j < DT_DELTA_STEP; j++) row[j] = delta_row(w, store, position - DT_DELTA_STEP + j);
  w->backend->kernels->delta_base(h, before, row, base);
  *tag = position;
  return base;
}

/* The key head that a value head shares. Both numbers count the heads of this rank. */
static int key_head_of(const dt_weights *w, int head) {
  return w->shape.delta_tiled ? head % w->delta.keys.count : head / (w->delta.values / w->delta.keys.count);
}

/* The number of a value head among the heads of all ranks. */
static int whole_head(const dt_weights *w, int head) {
  const cpu_range *keys = &w->delta.keys;
  if (!w->shape.delta_tiled) return keys->first * (w->delta.values / keys->count) + head;
  return head / keys->count * w->shape.delta_key_heads + keys->first + head % keys->count;
}

/* Computes one value head for rows r..r+n-1, which have the same base. */
static void run_rows(const cpu_chunk *c, const cpu_layer *l, const cpu_delta_head *h, int head, int r, int n) {
  const dt_weights *w = c->p->w;
  const dt_shape *s = &w->shape;
  const dt_rows *rows = c->p->rows;
  const int first = c->first + r, base = delta_base_of(rows->position[first]);
  float *store = delta_store(c->p->cache, rows->sequence[first], l);
  size_t key = (size_t)key_head_of(w, head) * (size_t)h->key_dim,
         keys = (size_t)w->delta.keys.count * (size_t)h->key_dim;
  size_t values = (size_t)head * (size_t)h->value_dim, to = (size_t)whole_head(w, head) * (size_t)h->value_dim;
  const float *seen[CPU_DELTA_TOGETHER][DT_DELTA_ROWS];
  cpu_delta_row x[CPU_DELTA_TOGETHER];
  for (int i = 0; i < n; i++) {
    const float *in = w->scratch.delta.in + (size_t)(r + i) * w->delta.ldin;
    for (int p = base; p < rows->position[first + i]; p++)
      seen[i][p - base] = delta_row(w, store, delta_slot_of(rows, first + i, p));
    x[i] = (cpu_delta_row){.q = in + key,
                           .k = in + keys + key,
                           .v = in + 2 * keys + values,
                           .strength = w->scratch.delta.b[(size_t)(r + i) * w->delta.ldrates + (size_t)head],
                           .row = seen[i],
                           .n = rows->position[first + i] - base,
                           .own = delta_row(w, store, rows->slot[first + i]),
                           .y = w->scratch.cat + (size_t)(r + i) * w->scratch.ldcat + to};
  }
  w->backend->kernels->delta_rows(h, find_base(w, h, store, head, base), x, n);
  for (int i = 0; i < n; i++) {
    w->backend->kernels->norm(DT_NORM_RMS, x[i].y, l->delta->norm, NULL, h->value_dim, s->norm_eps, x[i].y);
    w->backend->kernels->gate_silu(w->scratch.delta.z + (size_t)(r + i) * w->delta.ldz + values, h->value_dim, x[i].y);
  }
}

/* The number of consecutive rows from r on that have the same base. */
static int with_one_base(const cpu_chunk *c, int r) {
  const dt_rows *rows = c->p->rows;
  const int first = c->first + r, left = c->n - r, most = left < CPU_DELTA_TOGETHER ? left : CPU_DELTA_TOGETHER;
  int n = 1;
  while (n < most && rows->sequence[first + n] == rows->sequence[first] &&
         delta_base_of(rows->position[first + n]) == delta_base_of(rows->position[first]))
    n++;
  return n;
}

/* Prepares the queries and keys of a key head for all rows. */
static void prepare_keys(const cpu_chunk *c, const cpu_layer *l, int head) {
  const dt_weights *w = c->p->w;
  int n = w->shape.delta_key_dim;
  size_t at = (size_t)head * (size_t)n, all = (size_t)w->delta.keys.count * (size_t)n;
  for (int r = 0; r < c->n; r++) {
    float *q = w->scratch.delta.in + (size_t)r * w->delta.ldin + at, *k = q + all;
    float *store = delta_store(c->p->cache, c->p->rows->sequence[c->first + r], l);
    w->backend->kernels->unit(q, n, 1.0f / sqrtf((float)n));
    w->backend->kernels->unit(k, n, 1.0f);
    memcpy(delta_row(w, store, c->p->rows->slot[c->first + r]) + w->delta.keys_at + at, k, (size_t)n * sizeof *k);
  }
}

/* Runs this thread's heads. A thread takes whole key heads with all value heads that share them, and computes their
 * rows in order, since a row's delta depends on the deltas of its path. */
static void run_heads(const cpu_chunk *c, const cpu_layer *l) {
  const dt_weights *w = c->p->w;
  const dt_shape *s = &w->shape;
  int first, last;
  cpu_share(c->me, w->delta.keys.count, &first, &last);
  for (int key = first; key < last; key++) {
    prepare_keys(c, l, key);
    for (int head = 0; head < w->delta.values; head++) {
      if (key_head_of(w, head) != key) continue;
      const cpu_delta_head h = {
          s->delta_key_dim, s->delta_value_dim, w->delta.keys_at + (size_t)key * (size_t)s->delta_key_dim,
          w->delta.deltas_at + (size_t)head * (size_t)s->delta_value_dim, w->delta.rates_at + (size_t)head};
      for (int r = 0, n; r < c->n; r += n) run_rows(c, l, &h, head, r, n = with_one_base(c, r));
    }
  }
}

void cpu_run_delta(const cpu_chunk *c, int layer, const float *x) {
  const dt_weights *w = c->p->w;
  const cpu_layer *l = &w->layer[layer];
  const cpu_delta *d = l->delta;
  const cpu_product in[] = {{&d->in, x, w->scratch.ldx, CPU_STORE, w->scratch.delta.in, w->delta.ldin},
                            {&d->z, x, w->scratch.ldx, CPU_STORE, w->scratch.delta.z, w->delta.ldz},
                            {&d->a, x, w->scratch.ldx, CPU_STORE, w->scratch.delta.a, w->delta.ldrates},
                            {&d->b, x, w->scratch.ldx, CPU_STORE, w->scratch.delta.b, w->delta.ldrates}};
  cpu_multiply(c, in, 4);
  cpu_wait(c->me);
  mix(c, l);
  find_rates(c, l);
  cpu_wait(c->me);
  run_heads(c, l);
}

/* ---- what a cache keeps ------------------------------------------------------------------------------------------ */

void delta_move(dt_cache *c, int sequence, const int32_t *from, const int32_t *to, int n) {
  const dt_weights *w = c->weights;
  for (int layer = 0; w->delta.all && layer < w->shape.layers; layer++) {
    const cpu_layer *l = &w->layer[layer];
    if (!l->delta) continue;
    float *store = delta_store(c, sequence, l);
    for (int i = 0; i < n; i++)
      if (from[i] != to[i])
        memcpy(delta_row(w, store, to[i]), delta_row(w, store, from[i]), w->delta.row * sizeof *store);
  }
}

/* The first delta layer. It can stand for all layers, since they (and their heads) have the same bases. */
static const cpu_layer *first_delta(const dt_weights *w) {
  const cpu_layer *l = w->layer;
  while (!l->delta) l++;
  return l;
}

int delta_newest(const dt_cache *c, int sequence, int rows) {
  const dt_weights *w = c->weights;
  if (!w->delta.all) return 0;
  float *store = delta_store(c, sequence, first_delta(w));
  int newest = 0, wanted = delta_base_of(rows);
  for (int i = 0; i < DT_DELTA_BASES; i++) {
    int tag = *delta_tag(w, store, 0, i * DT_DELTA_STEP);
    if (tag <= wanted && tag > newest) newest = tag;
  }
  return c->since[sequence] <= newest ? newest : -1;
}

/* Forgets all bases except the one at position `but`. */
static void forget_bases(dt_cache *c, int sequence, int but) {
  const dt_weights *w = c->weights;
  for (int layer = 0; layer < w->shape.layers; layer++) {
    const cpu_layer *l = &w->layer[layer];
    for (int i = 0; l->delta && i < w->delta.values * DT_DELTA_BASES; i++) {
      int32_t *tag = delta_tag(w, delta_store(c, sequence, l), i / DT_DELTA_BASES, i * DT_DELTA_STEP);
      if (*tag != but) *tag = 0;
    }
  }
}

int cpu_keep(dt_cache *c, int sequence, int rows) {
  if (!c->weights->delta.all) return rows;
  int base = rows > 0 ? delta_newest(c, sequence, rows) : -1;
  forget_bases(c, sequence, base < 0 ? 0 : base);
  if (base >= 0) return rows;
  c->since[sequence] = 0;
  return 0;
}

void delta_restart(dt_cache *c, int sequence, int base) {
  if (!c->weights->delta.all) return;
  forget_bases(c, sequence, 0);
  c->since[sequence] = base < 0 ? INT_MAX : base;
}

size_t delta_bytes(const dt_weights *w, int base, int n) {
  size_t bases = base > 0 ? (size_t)w->delta.values * w->delta.base : 0, bytes = 0;
  for (int i = 0; w->delta.all && base >= 0 && i < w->shape.layers; i++)
    if (w->layer[i].delta) bytes += ((size_t)(n - base) * w->delta.row + bases) * sizeof(float);
  return bytes;
}

static void copy(float *here, size_t n, char **out, bool back) {
  memcpy(back ? (char *)here : *out, back ? *out : (char *)here, n * sizeof *here);
  *out += n * sizeof *here;
}

void delta_carry(const dt_cache *c, int sequence, int base, int n, char *out, bool back) {
  const dt_weights *w = c->weights;
  if (!w->delta.all) return;
  for (int i = 0; base >= 0 && i < w->shape.layers; i++) {
    if (!w->layer[i].delta) continue;
    float *store = delta_store(c, sequence, &w->layer[i]);
    for (int slot = base; slot < n; slot++) copy(delta_row(w, store, slot), w->delta.row, &out, back);
    for (int head = 0; base > 0 && head < w->delta.values; head++) {
      copy(delta_base(w, store, head, base), w->delta.base, &out, back);
      if (back) *delta_tag(w, store, head, base) = base;
    }
  }
}
