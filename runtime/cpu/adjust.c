/* Applies the logit adjustments of a row: see backend/adjustment.h. */
#include "chunk.h"

#include <math.h>

/* The first id of a block, and the end of its range of ids (exclusive). */
static int32_t first_id(const int32_t *ids, int from) { return ids ? ids[from] : from; }
static int32_t end_id(const int32_t *ids, int from, int count) { return first_id(ids, from + count - 1) + 1; }

static bool any_of(const dt_adjustment *list, int n, int32_t first, int32_t end) {
  int at = adjustment_place(list, n, first);
  return at < n && list[at].id < end;
}

bool cpu_is_adjusted(const dt_row_adjustments *s, const int32_t *ids, int from, int count) {
  int32_t first = first_id(ids, from), end = end_id(ids, from, count);
  return s->allowed || any_of(s->text, s->n_text, first, end) || any_of(s->path, s->n_path, first, end);
}

/* Bans ids. A word with all bits set bans 64 ids at once; most words ban only a few. */
static void ban(const dt_row_adjustments *s, const int32_t *ids, int from, int count, float *logits) {
  for (int i = 0, n; i < count; i += n) {
    int32_t id = first_id(ids, from + i);
    n = ids ? 1 : 64 - id % 64 < count - i ? 64 - id % 64 : count - i;
    uint64_t banned = ~s->allowed[id / 64] >> id % 64;
    if (n < 64) banned &= (UINT64_C(1) << n) - 1;
    for (int j = 0; j < n && banned == UINT64_MAX; j++) logits[i + j] = -INFINITY;
    for (; banned && banned != UINT64_MAX; banned &= banned - 1) logits[i + __builtin_ctzll(banned)] = -INFINITY;
  }
}

static void add(const dt_row_adjustments *s, const int32_t *ids, int from, int count, float *logits) {
  int32_t first = first_id(ids, from), end = end_id(ids, from, count);
  const dt_adjustment *text = s->text + adjustment_place(s->text, s->n_text, first), *text_end = s->text + s->n_text;
  const dt_adjustment *path = s->path + adjustment_place(s->path, s->n_path, first), *path_end = s->path + s->n_path;
  int place = 0;
  while (text < text_end || path < path_end) {
    bool is_path = path < path_end && (text == text_end || path->id <= text->id);
    const dt_adjustment *next = is_path ? path : text;
    if (next->id >= end) return;
    if (!ids) place = next->id - from;
    while (ids && ids[from + place] < next->id) place++; /* the block's last id is not below */
    if (first_id(ids, from + place) == next->id) logits[place] = adjust_logit(next, logits[place]);
    if (text < text_end && text->id == next->id) text++;
    if (is_path) path++;
  }
}

void cpu_adjust(const dt_row_adjustments *s, const int32_t *ids, int from, int count, float *logits) {
  add(s, ids, from, count, logits);
  if (s->allowed) ban(s, ids, from, count, logits);
}
