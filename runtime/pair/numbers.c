/* Checks that all weights are finite: see numbers.h. */
#include "pair/numbers.h"

#include "model/model.h"
#include "ranks/witness.h"

#include <math.h>
#include <stdlib.h>

enum { AT_ONCE = 1 << 18 }; /* numbers read at once, but at least a row */

static dt_status check_matrix(const model *m, const dt_matrix *w, dt_error *err) {
  int some = w->cols < AT_ONCE ? AT_ONCE / w->cols : 1;
  if (some > w->rows) some = w->rows;
  size_t row = dt_row_bytes(w->dtype, (size_t)w->cols), numbers = (size_t)some * (size_t)w->cols;
  void *raw = malloc((size_t)some * row);
  float *wide = malloc(numbers * sizeof *wide);
  dt_status s = raw && wide ? DT_OK : dt_fail_memory(err, "a look at weights", numbers * sizeof *wide);
  for (int first = 0; first < w->rows && !s; first += some) {
    int count = w->rows - first < some ? w->rows - first : some;
    numbers = (size_t)count * (size_t)w->cols;
    s = dt_read_rows(w, first, count, raw, err);
    if (s) break;
    dt_type_of(w->dtype)->decode(raw, numbers, wide);
    size_t i = 0;
    while (i < numbers && isfinite(wide[i])) i++;
    if (i == numbers) continue;
    const char *tensor = model_tensor_at(m, w->source->name, w->offset);
    s = dt_fail(err, DT_EINPUT, "%s: tensor %s contains %s, which is not a valid weight", w->source->name,
                tensor ? tensor : "without a name", isnan(wide[i]) ? "NaN" : "an infinity");
  }
  free(raw), free(wide);
  return s;
}

dt_status numbers_check(const char *path, dt_error *err) {
  model *m;
  dt_status s = model_open(path, &m, err);
  if (s) return s;
  const dt_model_desc *d = model_desc(m);
  for (int i = 0; i < witness_matrices(d) && !s; i++) {
    const dt_matrix *w = witness_matrix(d, i);
    if (w->source) s = check_matrix(m, w, err);
  }
  model_close(m);
  return s;
}
