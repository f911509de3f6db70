/* Shifts of a row's logits: see backend/shift.h. */
#include "chunk.h"

static bool any_of(const dt_shift *list, int n, int32_t from, int count) {
  int at = shift_place(list, n, from);
  return at < n && list[at].id < from + count;
}

bool cpu_is_shifted(const dt_row_shifts *s, int32_t from, int count) {
  return any_of(s->text, s->n_text, from, count) || any_of(s->path, s->n_path, from, count);
}

void cpu_shift(const dt_row_shifts *s, int32_t from, int count, float *logits) {
  const dt_shift *text = s->text + shift_place(s->text, s->n_text, from), *text_end = s->text + s->n_text;
  const dt_shift *path = s->path + shift_place(s->path, s->n_path, from), *path_end = s->path + s->n_path;
  while (text < text_end || path < path_end) {
    bool is_path = path < path_end && (text == text_end || path->id <= text->id);
    const dt_shift *next = is_path ? path : text;
    if (next->id >= from + count) return;
    logits[next->id - from] = shift_logit(next, logits[next->id - from]);
    if (text < text_end && text->id == next->id) text++;
    if (is_path) path++;
  }
}
