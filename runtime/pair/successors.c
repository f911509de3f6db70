/* See successors.h. */
#include "pair/successors.h"

#include "system/min_max.h"

#include <stdlib.h>

enum { AT_ONCE = 256 }; /* rows that are read together */
enum { LANES = 16 };    /* of a sum, so that compilers use vectors and every machine adds in the same order */

/* Reads rows in f32, each filled up with zeros to whole lanes. */
static dt_status read_rows(const dt_matrix *m, int rank, float **out, dt_error *err) {
  const size_t bytes = (size_t)m->rows * (size_t)rank * sizeof(float), row = dt_row_bytes(m->dtype, (size_t)m->cols);
  char *some = malloc(AT_ONCE * row);
  *out = calloc((size_t)m->rows * (size_t)rank, sizeof(float));
  dt_status status = some && *out ? DT_OK : dt_fail_memory(err, "what tokens add to their successors", bytes);
  for (int first = 0, n; first < m->rows && !status; first += n) {
    n = dt_min(m->rows - first, AT_ONCE);
    status = dt_read_rows(m, first, n, some, err);
    for (int i = 0; i < n && !status; i++)
      dt_type_of(m->dtype)->decode(some + (size_t)i * row, (size_t)m->cols, *out + (size_t)(first + i) * (size_t)rank);
  }
  free(some);
  return status;
}

/* A Markov head has a row for each row of the output. */
static dt_status number_rows(successors *s, const dt_model_desc *d, dt_error *err) {
  if (!d->id_rows || s->listed) return DT_OK;
  s->row = calloc((size_t)d->shape.vocab, sizeof *s->row);
  if (!s->row) return dt_fail_memory(err, "a head's ids", (size_t)d->shape.vocab * sizeof *s->row);
  for (int i = 0; i < d->n_ids; i++) s->row[d->ids[i]] = d->id_rows[i];
  return DT_OK;
}

dt_status successors_open(const dt_head_desc *head, successors **out, dt_error *err) {
  *out = NULL;
  if (!head->before.source) return DT_OK;
  successors *s = calloc(1, sizeof *s);
  if (!s) return dt_fail_memory(err, "a head", sizeof *s);
  s->factors = head->before.cols;
  s->rank = (head->before.cols + LANES - 1) / LANES * LANES;
  s->listed = head->listed;
  s->gated = head->post.source;
  dt_status status = read_rows(&head->before, s->rank, &s->before, err);
  if (!status) status = read_rows(&head->after, s->rank, &s->after, err);
  if (!status) status = number_rows(s, &head->model, err);
  if (status)
    successors_close(s);
  else
    *out = s;
  return status;
}

void successors_close(successors *s) {
  if (!s) return;
  free(s->before), free(s->after), free(s->row);
  free(s);
}

static float dot(const float *a, const float *b, int n) {
  float lane[LANES] = {0}, sum = 0;
  for (int i = 0; i < n; i += LANES)
    for (int l = 0; l < LANES; l++) lane[l] += a[i + l] * b[i + l];
  for (int l = 0; l < LANES; l++) sum += lane[l];
  return sum;
}

void successors_add(const successors *s, int32_t token, const float *gate, const int32_t *id, int n, float *factors,
                    float *sums) {
  const float *before = s->before + (size_t)token * (size_t)s->rank;
  for (int j = 0; j < s->rank; j++) factors[j] = gate ? before[j] * gate[j] : before[j];
  for (int i = 0; i < n; i++)
    sums[i] = dot(factors, s->after + (size_t)(s->row ? s->row[id[i]] : id[i]) * (size_t)s->rank, s->rank);
}
