/* The rows of views: see weights.h. */
#include "model/weights.h"

#include <stdlib.h>
#include <string.h>

/* The row of the source that is row r of the view, counted from the view's first row. */
static uint64_t place_of(const dt_matrix *m, int r) {
  int within = r % m->group, half = m->group / 2;
  if (m->zipped) within = within < half ? 2 * within : 2 * (within - half) + 1;
  return (uint64_t)(r / m->group) * (uint64_t)m->stride + (uint64_t)within;
}

/* Reads `run` rows, every other row of their source, with one read that includes the rows between them, which belong to
 * the same head. */
static dt_status read_zipped(const dt_source *source, uint64_t offset, size_t row, int run, char *to, dt_error *err) {
  size_t bytes = (2 * (size_t)run - 1) * row;
  char *all = malloc(bytes);
  if (!all) return dt_fail_memory(err, "rows of a head", bytes);
  dt_status status = source_read(source, offset, all, bytes, err);
  for (int i = 0; i < run && status == DT_OK; i++) memcpy(to + (size_t)i * row, all + 2 * (size_t)i * row, row);
  free(all);
  return status;
}

dt_status dt_read_rows(const dt_matrix *m, int first, int count, void *to, dt_error *err) {
  size_t row = dt_row_bytes(m->dtype, (size_t)m->cols);
  dt_status status = DT_OK;
  for (int r = first, run, end = first + count; r < end && status == DT_OK; r += run) {
    uint64_t at = place_of(m, r), offset = m->offset + at * row;
    uint64_t step = r + 1 < end && place_of(m, r + 1) == at + 2 ? 2 : 1;
    char *row_r = (char *)to + (size_t)(r - first) * row;
    for (run = 1; r + run < end && place_of(m, r + run) == at + step * (uint64_t)run;) run++;
    status = step == 2 ? read_zipped(m->source, offset, row, run, row_r, err)
                       : source_read(m->source, offset, row_r, (size_t)run * row, err);
  }
  return status;
}

dt_status dt_read_vector(const dt_matrix *m, float *out, dt_error *err) {
  size_t bytes = (size_t)m->rows * dt_row_bytes(m->dtype, 1);
  void *raw = malloc(bytes);
  if (!raw) return dt_fail_memory(err, "a vector", bytes);
  dt_status status = dt_read_rows(m, 0, m->rows, raw, err);
  if (status == DT_OK) dt_type_of(m->dtype)->decode(raw, (size_t)m->rows, out);
  for (int i = 0; m->plus != 0 && status == DT_OK && i < m->rows; i++) out[i] += m->plus;
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
  return dt_some_rows(fused, fused.rows / parts * part, fused.rows / parts);
}

dt_matrix dt_some_rows(dt_matrix fused, int first, int rows) {
  if (!fused.source) return fused;
  fused.offset += (uint64_t)first * dt_row_bytes(fused.dtype, (size_t)fused.cols);
  fused.rows = fused.group = fused.stride = rows;
  return fused;
}

dt_matrix dt_zipped_heads(dt_matrix zipped, int head_dim) {
  zipped.group = zipped.stride = head_dim;
  zipped.zipped = true;
  return zipped;
}

dt_shape dt_shape_of(const dt_shape *s, const dt_layer *l) {
  dt_shape own = *s;
  if (l->kv_heads) own.kv_heads = l->kv_heads;
  if (l->head_dim) own.head_dim = l->head_dim;
  if (l->inter) own.inter = l->inter;
  if (l->window && s->local_dims) own.rotary_dims = s->local_dims;
  return own;
}
