/* Attention over caches in f32. */
#include "variant.h"

#define CACHE f32
enum { LINES = 4 };

static size_t row_bytes(int dim) { return (size_t)dim * sizeof(float); }

static void write_row(const float *x, int dim, char *row) { memcpy(row, x, row_bytes(dim)); }

VI v16 load_sixteen(const char *row, int dim, int d) {
  (void)dim;
  return v_load((const float *)(const void *)row + d);
}

#include "attention.h"
