/* Attention over caches in f16. */
#include "variant.h"

#define CACHE f16
enum { LINES = 2 };

static size_t row_bytes(int dim) { return (size_t)dim * sizeof(uint16_t); }

/* Writes the nearest f16. Numbers from 65520 on, which would become infinite, become NaN instead. */
static void write_row(const float *x, int dim, char *row) {
  for (int d = 0; d < dim; d += 16) {
    v16 a = v_load(x + d);
    v_store_f16((uint16_t *)(void *)row + d, v_if_gt(v_set1(65520.0f), v_abs(a), a, v_set1(NAN)));
  }
}

VI v16 load_sixteen(const char *row, int dim, int d) {
  (void)dim;
  return v_load_f16((const uint16_t *)(const void *)row + d);
}

#include "attention.h"
