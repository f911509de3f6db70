/* Experts of verified rows: see experts.h. */
#include "session/experts.h"

#include "system/need.h"

#include <stdlib.h>
#include <string.h>

/* Ids of one row. */
static size_t row_ids(const dt_session *s) {
  const dt_model_info *target = &s->pair->target_info;
  return (size_t)target->layers * (size_t)target->chosen_experts;
}

dt_status experts_open(dt_session *s, dt_error *err) {
  size_t row = row_ids(s) * sizeof(int32_t);
  if (!row) return DT_OK;
  bool room = (s->experts = malloc((size_t)s->rows.capacity * row)) != NULL;
  for (int i = 0; room && i < s->sequences; i++)
    room = (s->seq[i].experts = malloc((1 + DT_TREE_VERIFY) * row)) != NULL;
  return room ? DT_OK : dt_fail_memory(err, "the experts of a pass", (size_t)s->rows.capacity * row);
}

void experts_take(dt_session *s, const dt_rows *rows) {
  const size_t ids = row_ids(s);
  for (int i = 0, row = 0; ids && i < rows->n; i++, row++) {
    if (i > 0 && rows->sequence[i] != rows->sequence[i - 1]) row = 0;
    memcpy(s->seq[rows->sequence[i]].experts + (size_t)row * ids, s->experts + (size_t)i * ids, ids * sizeof(int32_t));
  }
}

dt_status dt_seq_experts(const dt_session *s, int seq, int node, const int32_t **id, dt_error *err) {
  NEED(s, "session");
  NEED(id, "id");
  dt_status status = session_check(s, seq, err);
  if (!status) status = session_check_verified(&s->seq[seq], node, "experts", err);
  if (status) return status;
  const sequence *q = &s->seq[seq];
  *id = q->experts ? q->experts + (size_t)dt_tree_row(q->tree, node) * row_ids(s) : NULL;
  return DT_OK;
}
