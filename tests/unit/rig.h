/* A backend with one model and one cache, and passes over it that a test can write in one line. */
#ifndef RIG_H
#define RIG_H

#include "backend/backend.h"
#include "unit.h"

#include <stdlib.h>

typedef struct {
  const dt_backend_ops *ops;
  dt_backend *backend;
  dt_weights *weights;
  dt_cache *cache;
  int vocab;
  dt_window window; /* for passes of rig_run */
} rig;

static inline rig rig_open_rounded(const dt_backend_ops *ops, dt_backend_options options, const dt_model_desc *desc,
                                   dt_holding how, int sequences, int slots) {
  rig r = {.ops = ops, .vocab = desc->shape.vocab};
  ok(ops->open(&options, &r.backend, &err));
  ok(ops->upload(r.backend, desc, &how, &r.weights, &err));
  ok(ops->create_cache(r.weights, sequences, slots, &r.cache, &err));
  return r;
}

static inline rig rig_open_with(const dt_backend_ops *ops, dt_backend_options options, const dt_model_desc *desc,
                                int sequences, int slots) {
  return rig_open_rounded(ops, options, desc, (dt_holding){0}, sequences, slots);
}

static inline rig rig_open(const dt_backend_ops *ops, const char *variant, int threads, const dt_model_desc *desc,
                           int sequences, int slots) {
  return rig_open_with(ops, (dt_backend_options){.variant = variant, .threads = threads}, desc, sequences, slots);
}

static inline void rig_close(rig *r) {
  r->ops->free_cache(r->cache);
  r->ops->free_weights(r->weights);
  dt_memory left = r->ops->memory(r->backend);
  assert_int_equal(left.weights + left.caches + left.scratch, 0);
  r->ops->close(r->backend);
}

/* Rows in growing arrays. A row's path has at most ROW_PATH slots. */
enum { MAX_ROWS = 320, ROW_PATH = 24 };
typedef struct {
  int n;
  int32_t token[MAX_ROWS], position[MAX_ROWS], sequence[MAX_ROWS], slot[MAX_ROWS], prefix[MAX_ROWS];
  int32_t path[MAX_ROWS][ROW_PATH], path_len[MAX_ROWS];
} row_list;

static inline void row_add(row_list *l, int sequence, int32_t token, int prefix, const int32_t *path, int path_len) {
  int i = l->n++;
  l->token[i] = token, l->sequence[i] = sequence, l->prefix[i] = prefix, l->path_len[i] = path_len;
  l->position[i] = prefix + path_len - 1, l->slot[i] = path[path_len - 1];
  memcpy(l->path[i], path, sizeof *path * (size_t)path_len);
}

/* Adds a row of plain decoding: its slot is its position, and all positions before it are the prefix. */
static inline void row_add_plain(row_list *l, int sequence, int32_t token, int position) {
  row_add(l, sequence, token, position, &(int32_t){position}, 1);
}

/* Adds a random tree of n nodes, up to 128, below a prefix. The slots are in another order; tokens are below 90. */
static inline void row_add_tree(row_list *l, int sequence, int prefix, int n, uint64_t seed) {
  int32_t path[128][ROW_PATH];
  int depth[128];
  for (int i = 0; i < n; i++) {
    int parent;
    do parent = (int)(random_next(&seed) % (uint32_t)(i + 1)) - 1;
    while (parent >= 0 && depth[parent] == ROW_PATH);
    depth[i] = parent < 0 ? 1 : depth[parent] + 1;
    if (parent >= 0) memcpy(path[i], path[parent], sizeof path[i]);
    path[i][depth[i] - 1] = prefix + i * 7 % n;
    row_add(l, sequence, (int32_t)(random_next(&seed) % 90), prefix, path[i], depth[i]);
  }
}

static inline dt_rows rows_of(const row_list *l) {
  return (dt_rows){.n = l->n,
                   .token = l->token,
                   .position = l->position,
                   .sequence = l->sequence,
                   .slot = l->slot,
                   .prefix = l->prefix,
                   .path = &l->path[0][0],
                   .path_len = l->path_len,
                   .path_stride = ROW_PATH};
}

/* Rows for tokens from position `first` on, each in the slot with its position's number. Valid until the next call. */
enum { MOST_TEXT = 1100 };
static inline dt_rows text_rows(const int32_t *token, int sequence, int first, int n) {
  static int32_t at[MOST_TEXT], one[MOST_TEXT], in[MOST_TEXT];
  for (int i = 0; i < n; i++) at[i] = first + i, one[i] = 1, in[i] = sequence;
  return (dt_rows){.n = n,
                   .token = token,
                   .position = at,
                   .sequence = in,
                   .slot = at,
                   .prefix = at,
                   .path = at,
                   .path_len = one,
                   .path_stride = 1};
}

/* Runs the rows. Returns the logits of all of them, [n][vocab], malloc'd; without want_logits it only writes the
 * cache. */
static inline float *rig_run(rig *r, const row_list *l, bool want_logits) {
  dt_rows rows = rows_of(l);
  rows.window = r->window;
  if (!want_logits) {
    ok(r->ops->forward(r->weights, r->cache, &rows, NULL, &err));
    return NULL;
  }
  int32_t all[MAX_ROWS];
  for (int i = 0; i < l->n; i++) all[i] = i;
  float *logits = malloc(sizeof *logits * (size_t)l->n * (size_t)r->vocab);
  dt_out out = {.want = DT_WANT_LOGITS, .n = l->n, .row = all, .logits = logits};
  ok(r->ops->forward(r->weights, r->cache, &rows, &out, &err));
  return logits;
}

static inline void *rig_slot(rig *r, int sequence, int slot, size_t *len) {
  void *bytes = NULL;
  ok(r->ops->read_slot(r->cache, sequence, slot, &bytes, len, &err));
  return bytes;
}

#endif
