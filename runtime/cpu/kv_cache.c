/* Keys and values: creating, moving, saving and restoring them. The keys of one head are stored slot by slot, so that
 * attention reads a prefix as one stream. */
#include "delta_layer.h"

#include <stdlib.h>
#include <string.h>

struct dt_snapshot {
  int layers, n;
  size_t keys, feature; /* bytes of a slot's keys and values, and of its feature */
  size_t bytes;         /* of data */
  size_t deltas;        /* size of a row of delta layers in bytes; their part comes last in data */
  int base;             /* position of their base; -1: decoding cannot continue from it */
  size_t *account;
  char data[]; /* as `carry` lays them out */
};

/* The system clears a page when it is first written. A cache larger than this may never be filled, so its pages are
 * left to the system. A smaller one is cleared when it is created, so that the first text does not wait for it. */
#define CLEARED_AT_ONCE ((size_t)64 << 20)

static size_t feature_bytes(const dt_weights *w) { return w->ldfeature * sizeof(float); }

size_t cpu_cache_bytes(const dt_weights *w, int slots) {
  return (size_t)slots * (w->slot_bytes + feature_bytes(w)) + w->delta.all * sizeof(float);
}

static void layout(dt_cache *c) {
  const dt_weights *w = c->weights;
  c->data = cpu_take(&c->cache_arena, (size_t)c->sequences * (size_t)c->slots * w->slot_bytes);
  c->features = cpu_take(&c->cache_arena, (size_t)c->sequences * (size_t)c->slots * feature_bytes(w));
  c->deltas = cpu_take(&c->cache_arena, (size_t)c->sequences * w->delta.all * sizeof *c->deltas);
  c->since = cpu_take(&c->cache_arena, (size_t)c->sequences * sizeof *c->since);
  c->scores =
      cpu_take(&c->scratch_arena, (size_t)w->backend->threads * CPU_ATTENTION_ROWS * c->ldscores * sizeof(float));
}

dt_status cpu_create_cache(dt_weights *w, int sequences, int slots, dt_cache **out, dt_error *err) {
  if (sequences < 1 || slots < 1)
    return dt_fail(err, DT_EINPUT, "cache: got %d sequences of %d slots, both must be at least 1", sequences, slots);
  dt_cache *c = calloc(1, sizeof *c);
  if (!c) return dt_fail_memory(err, "a cache", sizeof *c);
  c->weights = w;
  c->sequences = sequences;
  c->slots = slots;
  c->ldscores = ((size_t)slots + 15) & ~(size_t)15;
  layout(c);
  cpu_team *clearing = c->cache_arena.used <= CLEARED_AT_ONCE ? w->backend->team : NULL;
  dt_status status = cpu_arena_open(&c->cache_arena, "the cache", clearing, &w->backend->memory.caches, err);
  if (status == DT_OK)
    status = cpu_arena_open(&c->scratch_arena, "scratch", w->backend->team, &w->backend->memory.scratch, err);
  if (status != DT_OK) {
    cpu_free_cache(c);
    return status;
  }
  layout(c);
  *out = c;
  return DT_OK;
}

void cpu_free_cache(dt_cache *c) {
  if (!c) return;
  cpu_arena_close(&c->cache_arena, &c->weights->backend->memory.caches);
  cpu_arena_close(&c->scratch_arena, &c->weights->backend->memory.scratch);
  free(c);
}

/* The number of lists of rows that a layer has (keys and values of all its heads); the lists are consecutive in
 * memory. */
static int lists_of(const dt_weights *w, int layer) {
  const cpu_layer *l = &w->layer[layer];
  return l->k.data ? 2 * l->mine.kv_heads.count : 0;
}

dt_status cpu_move(dt_cache *c, int sequence, const int32_t *from, const int32_t *to, int n, dt_error *err) {
  dt_status status = check_slots("move", sequence, from, n, cpu_limits(c), err);
  if (status == DT_OK) status = check_slots("move", sequence, to, n, cpu_limits(c), err);
  if (status != DT_OK) return status;
  const dt_weights *w = c->weights;
  for (int layer = 0; layer < w->shape.layers; layer++) {
    size_t row = cpu_row_bytes(w, layer), stride = (size_t)c->slots * row;
    char *rows = cpu_rows_of(c, sequence, layer, 0, 0);
    for (int h = 0; h < lists_of(w, layer); h++, rows += stride)
      for (int i = 0; i < n; i++)
        if (from[i] != to[i]) memcpy(rows + (size_t)to[i] * row, rows + (size_t)from[i] * row, row);
  }
  for (int i = 0; feature_bytes(w) && i < n; i++)
    if (from[i] != to[i])
      memcpy(cpu_feature_of(c, sequence, to[i]), cpu_feature_of(c, sequence, from[i]), feature_bytes(w));
  delta_move(c, sequence, from, to, n);
  return DT_OK;
}

/* Copies n slots from `first` on to `out` or, with `back`, from it: first all lists of rows, then the features. */
static void carry(const dt_cache *c, int sequence, int first, int n, char *out, bool back) {
  const dt_weights *w = c->weights;
  for (int layer = 0; layer < w->shape.layers; layer++) {
    size_t row = cpu_row_bytes(w, layer), part = (size_t)n * row, stride = (size_t)c->slots * row;
    char *rows = cpu_rows_of(c, sequence, layer, 0, 0) + (size_t)first * row;
    for (int h = 0; h < lists_of(w, layer); h++, rows += stride, out += part)
      memcpy(back ? rows : out, back ? out : rows, part);
  }
  size_t features = (size_t)n * feature_bytes(w);
  float *feature = cpu_feature_of(c, sequence, first);
  if (features) memcpy(back ? (char *)feature : out, back ? out : (char *)feature, features);
}

dt_status cpu_snapshot(const dt_cache *c, int sequence, int n, dt_snapshot **out, dt_error *err) {
  dt_status status = check_slots("snapshot", sequence, NULL, 0, cpu_limits(c), err);
  if (status != DT_OK) return status;
  if (n < 0 || n > c->slots)
    return dt_fail(err, DT_EINPUT, "snapshot: got %d slots, but the cache has %d", n, c->slots);
  const dt_weights *w = c->weights;
  size_t slots = (size_t)n * (w->slot_bytes + feature_bytes(w));
  int base = delta_newest(c, sequence, n);
  size_t bytes = slots + delta_bytes(w, base, n);
  dt_snapshot *s = malloc(sizeof *s + bytes);
  if (!s) return dt_fail_memory(err, "a snapshot", sizeof *s + bytes);
  *s = (dt_snapshot){.layers = w->shape.layers,
                     .n = n,
                     .keys = w->slot_bytes,
                     .feature = feature_bytes(w),
                     .bytes = bytes,
                     .deltas = w->delta.row,
                     .base = base,
                     .account = &w->backend->memory.caches};
  carry(c, sequence, 0, n, s->data, false);
  delta_carry(c, sequence, base, n, s->data + slots, false);
  *s->account += bytes;
  *out = s;
  return DT_OK;
}

dt_status cpu_restore(dt_cache *c, int sequence, const dt_snapshot *s, dt_error *err) {
  dt_status status = check_slots("restore", sequence, NULL, 0, cpu_limits(c), err);
  if (status != DT_OK) return status;
  const dt_weights *w = c->weights;
  if (s->layers != w->shape.layers || s->keys != w->slot_bytes || s->feature != feature_bytes(w) ||
      s->deltas != w->delta.row)
    return dt_fail(err, DT_EINPUT, "restore: the snapshot belongs to another model");
  if (s->n > c->slots)
    return dt_fail(err, DT_EINPUT, "restore: the snapshot has %d slots, but the cache has %d", s->n, c->slots);
  size_t slots = (size_t)s->n * (w->slot_bytes + feature_bytes(w));
  carry(c, sequence, 0, s->n, (char *)s->data, true);
  delta_restart(c, sequence, s->base);
  delta_carry(c, sequence, s->base, s->n, (char *)s->data + slots, true);
  return DT_OK;
}

void cpu_free_snapshot(dt_snapshot *s) {
  if (!s) return;
  *s->account -= s->bytes;
  free(s);
}

dt_status cpu_read_slot(const dt_cache *c, int sequence, int slot, void **bytes, size_t *len, dt_error *err) {
  dt_status status = check_slots("read_slot", sequence, &slot, 1, cpu_limits(c), err);
  if (status != DT_OK) return status;
  *len = c->weights->slot_bytes + feature_bytes(c->weights);
  char *copy = malloc(*len);
  if (!copy) return dt_fail_memory(err, "a slot", *len);
  carry(c, sequence, slot, 1, copy, false);
  *bytes = copy;
  return DT_OK;
}
