/* Keys and values: creating, moving, saving and restoring them. The keys of one head lie slot by slot, so that
 * attention reads a prefix in one stream. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

struct dt_snapshot {
  int layers, kv_heads, n;
  size_t row;     /* bytes of the keys, or values, of one head in one slot */
  size_t feature; /* bytes of a row's feature */
  size_t bytes;   /* of data */
  size_t *account;
  char data[]; /* [layers][2][kv_heads][n] rows, [n] features */
};

/* The system clears a page when it is first written. A cache larger than this may never be filled. A smaller one is
 * cleared when it is created, so that the first text need not wait for it. */
#define CLEARED_AT_ONCE ((size_t)64 << 20)

static size_t feature_bytes(const dt_weights *w) { return w->ldfeature * sizeof(float); }

static size_t key_bytes(const dt_weights *w, int slots) {
  return (size_t)w->shape.layers * 2 * (size_t)w->mine.kv_heads.count * (size_t)slots * cpu_row_bytes(w);
}

size_t cpu_cache_bytes(const dt_weights *w, int slots) {
  return key_bytes(w, slots) + (size_t)slots * feature_bytes(w);
}

static void layout(dt_cache *c) {
  const dt_weights *w = c->weights;
  c->data = cpu_take(&c->cache_arena, (size_t)c->sequences * key_bytes(w, c->slots));
  c->features = cpu_take(&c->cache_arena, (size_t)c->sequences * (size_t)c->slots * feature_bytes(w));
  c->scores =
      cpu_take(&c->scratch_arena, (size_t)w->backend->threads * CPU_ATTENTION_ROWS * c->ldscores * sizeof(float));
}

dt_status cpu_create_cache(dt_weights *w, int sequences, int slots, dt_cache **out, dt_error *err) {
  if (sequences < 1 || slots < 1)
    return dt_fail(err, DT_EINPUT, "cache: %d sequences of %d slots, both must be at least 1", sequences, slots);
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

/* The number of lists of rows that a sequence has, keys and values of all layers and heads; they lie one after the
 * other. */
static int heads_of(const dt_cache *c) { return c->weights->shape.layers * 2 * c->weights->mine.kv_heads.count; }

dt_status cpu_move(dt_cache *c, int sequence, const int32_t *from, const int32_t *to, int n, dt_error *err) {
  dt_status status = check_slots("move", sequence, from, n, cpu_limits(c), err);
  if (status == DT_OK) status = check_slots("move", sequence, to, n, cpu_limits(c), err);
  if (status != DT_OK) return status;
  size_t row = cpu_row_bytes(c->weights), stride = (size_t)c->slots * row;
  char *rows = cpu_rows_of(c, sequence, 0, 0, 0);
  for (int h = 0; h < heads_of(c); h++, rows += stride)
    for (int i = 0; i < n; i++)
      if (from[i] != to[i]) memcpy(rows + (size_t)to[i] * row, rows + (size_t)from[i] * row, row);
  for (int i = 0; feature_bytes(c->weights) && i < n; i++)
    if (from[i] != to[i])
      memcpy(cpu_feature_of(c, sequence, to[i]), cpu_feature_of(c, sequence, from[i]), feature_bytes(c->weights));
  return DT_OK;
}

dt_status cpu_snapshot(const dt_cache *c, int sequence, int n, dt_snapshot **out, dt_error *err) {
  dt_status status = check_slots("snapshot", sequence, NULL, 0, cpu_limits(c), err);
  if (status != DT_OK) return status;
  if (n < 0 || n > c->slots) return dt_fail(err, DT_EINPUT, "snapshot: %d slots, the cache has %d", n, c->slots);
  const dt_weights *w = c->weights;
  size_t row = cpu_row_bytes(w), part = (size_t)n * row, stride = (size_t)c->slots * row;
  size_t features = (size_t)n * feature_bytes(w), bytes = (size_t)heads_of(c) * part + features;
  dt_snapshot *s = malloc(sizeof *s + bytes);
  if (!s) return dt_fail_memory(err, "a snapshot", sizeof *s + bytes);
  *s = (dt_snapshot){w->shape.layers, w->mine.kv_heads.count,    n, row, feature_bytes(w),
                     bytes,           &w->backend->memory.caches};
  const char *rows = cpu_rows_of(c, sequence, 0, 0, 0);
  for (int h = 0; h < heads_of(c); h++) memcpy(s->data + (size_t)h * part, rows + (size_t)h * stride, part);
  if (features) memcpy(s->data + bytes - features, cpu_feature_of(c, sequence, 0), features);
  *s->account += bytes;
  *out = s;
  return DT_OK;
}

dt_status cpu_restore(dt_cache *c, int sequence, const dt_snapshot *s, dt_error *err) {
  dt_status status = check_slots("restore", sequence, NULL, 0, cpu_limits(c), err);
  if (status != DT_OK) return status;
  const dt_weights *w = c->weights;
  if (s->layers != w->shape.layers || s->kv_heads != w->mine.kv_heads.count || s->row != cpu_row_bytes(w) ||
      s->feature != feature_bytes(w))
    return dt_fail(err, DT_EINPUT, "restore: the snapshot is of another model");
  if (s->n > c->slots) return dt_fail(err, DT_EINPUT, "restore: %d slots, the cache has %d", s->n, c->slots);
  size_t part = (size_t)s->n * s->row, stride = (size_t)c->slots * s->row, features = (size_t)s->n * s->feature;
  char *rows = cpu_rows_of(c, sequence, 0, 0, 0);
  for (int h = 0; h < heads_of(c); h++) memcpy(rows + (size_t)h * stride, s->data + (size_t)h * part, part);
  if (features) memcpy(cpu_feature_of(c, sequence, 0), s->data + s->bytes - features, features);
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
  size_t row = cpu_row_bytes(c->weights), stride = (size_t)c->slots * row;
  size_t keys = (size_t)heads_of(c) * row, feature = feature_bytes(c->weights);
  *len = keys + feature;
  char *copy = malloc(*len);
  if (!copy) return dt_fail_memory(err, "a slot", *len);
  const char *rows = cpu_rows_of(c, sequence, 0, 0, 0) + (size_t)slot * row;
  for (int h = 0; h < heads_of(c); h++) memcpy(copy + (size_t)h * row, rows + (size_t)h * stride, row);
  if (feature) memcpy(copy + keys, cpu_feature_of(c, sequence, slot), feature);
  *bytes = copy;
  return DT_OK;
}
