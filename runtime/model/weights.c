/* Where the rows of a view lie: see weights.h. */
#include "model/weights.h"

#include <stdlib.h>

/* The row of its source, counted from the view's first, that row r is. */
static uint64_t place_of(const dt_matrix *m, int r) {
  int within = r % m->group, half = m->group / 2;
  if (m->zipped) within = within < half ? 2 * within : 2 * (within - half) + 1;
  return (uint64_t)(r / m->group) * (uint64_t)m->stride + (uint64_t)within;
}

dt_status dt_read_rows(const dt_matrix *m, int first, int count, void *to, dt_error *err) {
  size_t row = dt_row_bytes(m->dtype, (size_t)m->cols);
  dt_status status = DT_OK;
  for (int r = first, run; r < first + count && status == DT_OK; r += run) {
    uint64_t at = place_of(m, r);
    for (run = 1; r + run < first + count && place_of(m, r + run) == at + (uint64_t)run;) run++;
    status =
        source_read(m->source, m->offset + at * row, (char *)to + (size_t)(r - first) * row, (size_t)run * row, err);
  }
  return status;
}

dt_status dt_read_vector(const dt_matrix *m, float *out, dt_error *err) {
  size_t bytes = (size_t)m->rows * dt_row_bytes(m->dtype, 1);
  void *raw = malloc(bytes);
  if (!raw) return dt_fail_memory(err, "a vector", bytes);
  dt_status status = dt_read_rows(m, 0, m->rows, raw, err);
  if (status == DT_OK) dt_type_of(m->dtype)->decode(raw, (size_t)m->rows, out);
  free(raw);
  return status;
}

dt_matrix dt_part_of_heads(dt_matrix fused, int parts, int part, int head_dim) {
  if (!fused.source) return fused;
  fused.offset += (uint64_t)part * (uint64_t)head_dim * dt_row_bytes(fused.dtype, (size_t)fused.cols);
  fused.rows /= parts;
  fused.group = head_dim;
  fused.stride = parts * head_dim;
  return fused;
}

dt_matrix dt_part_of_rows(dt_matrix fused, int parts, int part) {
  int rows = fused.rows / parts;
  if (!fused.source) return fused;
  fused.offset += (uint64_t)part * (uint64_t)rows * dt_row_bytes(fused.dtype, (size_t)fused.cols);
  fused.rows = fused.group = fused.stride = rows;
  return fused;
}

dt_matrix dt_zipped_heads(dt_matrix zipped, int head_dim) {
  zipped.group = zipped.stride = head_dim;
  zipped.zipped = true;
  return zipped;
}
