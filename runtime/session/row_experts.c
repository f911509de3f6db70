/* Experts of verified rows: see row_experts.h. */
#include "session/row_experts.h"

#include <stdlib.h>
#include <string.h>

size_t experts_of_row(const dt_session *s) {
  const dt_model_info *target = &s->pair->target_info;
  return (size_t)target->layers * (size_t)target->chosen_experts;
}

dt_status experts_open(dt_session *s, dt_error *err) {
  size_t row = experts_of_row(s) * sizeof(int32_t);
  if (!row) return DT_OK;
  bool room = (s->experts = malloc((size_t)s->rows.capacity * row)) != NULL;
  for (int i = 0; room && i < s->sequences; i++)
    room = (s->seq[i].experts = malloc((1 + DT_TREE_VERIFY) * row)) != NULL;
  return room ? DT_OK : dt_fail_memory(err, "the experts of a pass", (size_t)s->rows.capacity * row);
}

void experts_take(dt_session *s, const dt_rows *rows) {
  const size_t ids = experts_of_row(s);
  for (int i = 0, row = 0; ids && i < rows->n; i++, row++) {
    if (i > 0 && rows->sequence[i] != rows->sequence[i - 1]) row = 0;
    memcpy(s->seq[rows->sequence[i]].experts + (size_t)row * ids, s->experts + (size_t)i * ids, ids * sizeof(int32_t));
  }
}
