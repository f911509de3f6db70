/* Delta layers (dt_layer) computed so that a row's numbers depend on its inputs and position only, whatever tree it is
 * in.
 *
 * The state before a row at position p is not kept. Unrolled from a base, the state S before position B =
 * delta_base_of(p), it is a decayed base and a sum over the rows of the path since then:
 *   S' k = D(B-1,p) base' k + sum over B <= j < p of D(j,p) (k_j . k) u_j          D(i,p) = e^(g_i+1 + .. + g_p)
 * and the same with q, where j = p takes part, too. So a row needs the base, which is of committed text since it lies
 * at least CPU_DELTA_LAG positions before it, and the keys, deltas u and rates g of at most CPU_DELTA_ROWS rows on its
 * path, which no row but its own ever changes. A tree costs no state. Plain decoding does the very same sums.
 *
 * Rows lie in a ring of CPU_DELTA_RING slots: row i of the text in slot i modulo that, a tree's after. Three bases, of
 * positions CPU_DELTA_STEP apart, serve all rows of a chunk; a base is made of the one before it and the rows between,
 * when it is wanted first. */
#ifndef DT_CPU_DELTA_LAYER_H
#define DT_CPU_DELTA_LAYER_H

#include "internal.h"

enum {
  CPU_DELTA_RING =
      512, /* rows that may be wanted yet: those since the oldest base, a deepest commit and the largest tree */
  CPU_DELTA_BASES = 3
};

/* The position of a row's base; 0: the text's beginning, where the state is zero. */
static inline int delta_base_of(int position) {
  return position < CPU_DELTA_LAG ? 0 : (position - CPU_DELTA_LAG) / CPU_DELTA_STEP * CPU_DELTA_STEP;
}

/* Of a sequence's store of a layer; head: a value head. */
static inline float *delta_store(const dt_cache *c, int sequence, const cpu_layer *l) {
  return c->deltas + (size_t)sequence * c->weights->delta.all + l->delta->at;
}
static inline float *delta_row(const dt_weights *w, float *store, int slot) {
  return store + (size_t)(slot % CPU_DELTA_RING) * w->delta.row;
}
static inline float *delta_base(const dt_weights *w, float *store, int head, int position) {
  size_t i = (size_t)head * CPU_DELTA_BASES + (size_t)(position / CPU_DELTA_STEP % CPU_DELTA_BASES);
  return store + w->delta.bases_at + i * w->delta.base;
}
/* Which position this base is of; 0: none yet. */
static inline int32_t *delta_tag(const dt_weights *w, float *store, int head, int position) {
  int32_t *tags = (int32_t *)(void *)(store + w->delta.tags_at);
  return &tags[head * CPU_DELTA_BASES + position / CPU_DELTA_STEP % CPU_DELTA_BASES];
}

/* How many of a chunk's rows first, first + 1, .. run together: as many as keep the bases of all are of rows before
 * them. */
int delta_rows_together(const dt_rows *rows, int first, int most);
/* DT_EINPUT where a row's base is not of text in the slots of its positions. */
dt_status delta_check(const dt_rows *rows, dt_error *err);
/* After a pass: which slots' rows have been overwritten. */
void delta_passed(dt_cache *c, const dt_rows *rows);

/* The position of the newest base that is there and that row `rows` and all after it can be made from; -1: none. 0,
 * too, where the model has no delta layers. */
int delta_newest(const dt_cache *c, int sequence, int rows);
/* Forgets all of a sequence but what delta_carry brings back: rows from this base on. */
void delta_restart(dt_cache *c, int sequence, int base);
/* Bytes of a base and the rows from it up to n, of all layers; base -1: 0. And copying them to `out` or, if `back`,
 * from it. */
size_t delta_bytes(const dt_weights *w, int base, int n);
void delta_carry(const dt_cache *c, int sequence, int base, int n, char *out, bool back);
/* Copies rows of the rings, as cpu_move. */
void delta_move(dt_cache *c, int sequence, const int32_t *from, const int32_t *to, int n);

#endif
