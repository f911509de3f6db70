/* Delta layers (see dt_layer), computed in such a way that a row's result depends only on its inputs and its position,
 * not on the tree that it belongs to.
 *
 * The state before a row at position p is not stored. It is computed from a base, which is the state S at position B =
 * delta_base_of(p), and from the rows of the path since then:
 *   S' k = D(B-1,p) base' k + sum over B <= j < p of D(j,p) (k_j . k) u_j          D(i,p) = e^(g_i+1 + .. + g_p)
 * and likewise for q, where the sum includes j = p. A row therefore needs two things. The first is the base; it covers
 * committed text only, since it lies at least CPU_DELTA_LAG positions before the row. The second is the keys, deltas u
 * and rates g of at most CPU_DELTA_ROWS rows on its path; each of these rows is written once and never changed by
 * another. A tree needs no state of its own, and plain decoding computes exactly the same sums.
 *
 * Rows are stored in a ring of CPU_DELTA_RING slots: row i of the text in slot i modulo CPU_DELTA_RING, and the rows of
 * a tree after the text. Three bases, CPU_DELTA_STEP positions apart, serve all rows of a chunk. A base is computed
 * when it is first needed, from the previous base and the rows in between. */
#ifndef DT_CPU_DELTA_LAYER_H
#define DT_CPU_DELTA_LAYER_H

#include "internal.h"

enum {
  CPU_DELTA_RING = 512, /* rows that may still be needed: since the oldest base, a longest commit, the largest tree */
  CPU_DELTA_BASES = 3
};

/* The position of the base of a row at this position. 0 is the beginning of the text, where the state is zero. */
static inline int delta_base_of(int position) {
  return position < CPU_DELTA_LAG ? 0 : (position - CPU_DELTA_LAG) / CPU_DELTA_STEP * CPU_DELTA_STEP;
}

/* The store that a sequence keeps for one layer, a row in its ring, and the base of a value head at a position. */
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
/* The position that this base belongs to; 0: the base is not computed yet. */
static inline int32_t *delta_tag(const dt_weights *w, float *store, int head, int position) {
  int32_t *tags = (int32_t *)(void *)(store + w->delta.tags_at);
  return &tags[head * CPU_DELTA_BASES + position / CPU_DELTA_STEP % CPU_DELTA_BASES];
}

/* How many of a chunk's rows first, first + 1, .. can run together: a base that one of them needs must not cover
 * another of them. */
int delta_rows_together(const dt_rows *rows, int first, int most);
/* Returns DT_EINPUT if a row's base would not cover text whose slots have the numbers of its positions. */
dt_status delta_check(const dt_rows *rows, dt_error *err);
/* To be called after a pass: records which slots' rows it has overwritten. */
void delta_passed(dt_cache *c, const dt_rows *rows);

/* The position of the newest base that exists and from which row `rows` and all later ones can be computed; -1 if there
 * is none. 0 if the model has no delta layers. */
int delta_newest(const dt_cache *c, int sequence, int rows);
/* Forgets everything of a sequence except what delta_carry restores: the rows from this base on. */
void delta_restart(dt_cache *c, int sequence, int base);
/* delta_bytes: the size in bytes of a base and the rows from it up to n, for all layers; 0 if base is -1. delta_carry
 * copies them to `out` or, with `back`, from it. */
size_t delta_bytes(const dt_weights *w, int base, int n);
void delta_carry(const dt_cache *c, int sequence, int base, int n, char *out, bool back);
/* Copies rows within the rings, as cpu_move does within the cache. */
void delta_move(dt_cache *c, int sequence, const int32_t *from, const int32_t *to, int n);

#endif
