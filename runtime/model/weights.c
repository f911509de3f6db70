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

/* Converts rows of blocks and rows of scales to ggml's MXFP4 blocks: a scale, followed by bytes, of which byte j has
 * the numbers j and j + 16 of the block. */
static void put_blocks(const uint8_t *codes, const uint8_t *scales, size_t blocks, uint8_t *to) {
  for (; blocks > 0; blocks--, codes += 16, scales++, to += 17) {
    to[0] = *scales;
    for (int j = 0; j < 16; j++) {
      int low = codes[j / 2] >> j % 2 * 4 & 15, high = codes[j / 2 + 8] >> j % 2 * 4 & 15;
      to[1 + j] = (uint8_t)(low | high << 4);
    }
  }
}

/* Reads one row whose scales are in another source. */
static dt_status read_apart(const dt_matrix *m, uint64_t row, char *to, dt_error *err) {
  size_t blocks = (size_t)m->cols / 32;
  uint8_t *both = malloc(blocks * 17);
  if (!both) return dt_fail_memory(err, "a row of blocks", blocks * 17);
  dt_status status = source_read(m->source, m->offset + row * blocks * 16, both, blocks * 16, err);
  if (!status) status = source_read(m->scales, m->scales_offset + row * blocks, both + blocks * 16, blocks, err);
  if (!status) put_blocks(both, both + blocks * 16, blocks, (uint8_t *)to);
  free(both);
  return status;
}

/* Reads rows that are columns of the source, `step` apart, from number `at` of each on. */
static dt_status read_across(const dt_matrix *m, uint64_t at, int run, uint64_t step, char *to, dt_error *err) {
  size_t size = dt_row_bytes(m->dtype, 1), row = size * (size_t)m->cols, bytes = size * ((size_t)(run - 1) * step + 1);
  char *part = malloc(bytes);
  if (!part) return dt_fail_memory(err, "a part of a row", bytes);
  dt_status status = DT_OK;
  for (int c = 0; c < m->cols && !status; c++) {
    uint64_t from = (uint64_t)c * (uint64_t)m->across + at;
    status = source_read(m->source, m->offset + from * size, part, bytes, err);
    for (int r = 0; r < run && !status; r++)
      memcpy(to + (size_t)r * row + (size_t)c * size, part + (size_t)r * step * size, size);
  }
  free(part);
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
    if (m->scales)
      run = 1, status = read_apart(m, at, row_r, err);
    else if (m->across)
      status = read_across(m, at, run, step, row_r, err);
    else
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

static void skip_rows(dt_matrix *m, uint64_t rows) {
  size_t cols = (size_t)m->cols;
  m->offset += rows * (m->scales ? cols / 2 : dt_row_bytes(m->dtype, m->across ? 1 : cols));
  m->scales_offset += m->scales ? rows * (cols / 32) : 0;
}

dt_matrix dt_part_of_heads(dt_matrix fused, int parts, int part, int head_dim) {
  if (!fused.source) return fused;
  skip_rows(&fused, (uint64_t)part * (uint64_t)head_dim);
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
  skip_rows(&fused, (uint64_t)first);
  fused.rows = fused.group = fused.stride = rows;
  return fused;
}

dt_matrix dt_one_of(dt_matrix all, int i, int rows) {
  if (!all.across) return dt_some_rows(all, i * rows, rows);
  all.offset += (uint64_t)i * (uint64_t)all.across * dt_row_bytes(all.dtype, (size_t)all.cols);
  return all;
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

/* Where the matrices of a layer's second half are, apart from those of its experts. */
#define AT(name) offsetof(dt_layer, name)
static const size_t SECOND_HALF[] = {AT(norm2),        AT(norm2_bias), AT(down_norm),    AT(up),
                                     AT(up_bias),      AT(gate),       AT(gate_bias),    AT(down),
                                     AT(down_bias),    AT(input_gate), AT(input_out),    AT(input_norm),
                                     AT(scale),        AT(router),     AT(router_bias),  AT(router_correction),
                                     AT(expert_scale), AT(mlp_norm),   AT(experts_norm), AT(expert_norm),
                                     AT(router_norm),  AT(mlp_gate)};
enum { OF_SECOND_HALF = sizeof SECOND_HALF / sizeof *SECOND_HALF };

dt_layer dt_first_half(const dt_layer *l) {
  dt_layer half = *l;
  for (size_t i = 0; i < OF_SECOND_HALF; i++) memset((char *)&half + SECOND_HALF[i], 0, sizeof(dt_matrix));
  half.expert = NULL;
  return half;
}

dt_layer dt_second_half(const dt_layer *l) {
  dt_layer half = {.expert = l->expert, .inter = l->inter, .apart = l->apart};
  for (size_t i = 0; i < OF_SECOND_HALF; i++)
    memcpy((char *)&half + SECOND_HALF[i], (const char *)l + SECOND_HALF[i], sizeof(dt_matrix));
  return half;
}
