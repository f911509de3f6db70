/* Delta layers (see dt_layer and backend/delta_rows.h), computed in such a way that a row's result depends only on its
 * inputs and its position, not on the tree that it belongs to. A base is computed when it is first needed, from the
 * previous base and the rows in between. */
#ifndef DT_CPU_DELTA_LAYER_H
#define DT_CPU_DELTA_LAYER_H

#include "backend/delta_rows.h"
#include "internal.h"

/* The store that a sequence keeps for one layer, a row in its ring, and the base of a value head at a position. */
static inline float *delta_store(const dt_cache *c, int sequence, const cpu_layer *l) {
  return c->deltas + (size_t)sequence * c->weights->delta.all + l->delta->at;
}
static inline float *delta_row(const dt_weights *w, float *store, int slot) {
  return store + (size_t)(slot % DT_DELTA_RING) * w->delta.row;
}
static inline float *delta_base(const dt_weights *w, float *store, int head, int position) {
  size_t i = (size_t)head * DT_DELTA_BASES + (size_t)(position / DT_DELTA_STEP % DT_DELTA_BASES);
  return store + w->delta.bases_at + i * w->delta.base;
}
/* The position that this base belongs to; 0: the base is not computed yet. */
static inline int32_t *delta_tag(const dt_weights *w, float *store, int head, int position) {
  int32_t *tags = (int32_t *)(void *)(store + w->delta.tags_at);
  return &tags[head * DT_DELTA_BASES + position / DT_DELTA_STEP % DT_DELTA_BASES];
}

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
