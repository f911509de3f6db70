/* Attention over caches with 8 bits per number. A row holds its codes and after them an f16 scale for each 32 codes
 * (the last scale may be for 16). A number is code * scale, which f32 represents exactly. */
#include "variant.h"

#define CACHE q8
enum { LINES = 1, GROUP = 32, MOST = 127 };

static size_t row_bytes(int dim) { return (size_t)dim + (size_t)((dim + GROUP - 1) / GROUP) * sizeof(uint16_t); }

/* Returns the smallest f16, at least 2^-24, whose product with MOST is not below `largest`. *wide is the same number as
 * f32. */
static uint16_t scale_for(float largest, float *wide) {
  uint16_t half[16];
  float back[16];
  v_store_f16(half, v_set1(largest / MOST));
  v_store(back, v_load_f16(half));
  if (back[0] * MOST < largest) half[0]++;
  v_store(back, v_load_f16(half));
  *wide = back[0];
  return half[0];
}

/* Writes the nearest codes. A group becomes NaN if it holds a NaN or if its scale is too large for f16. */
static void write_row(const float *x, int dim, char *row) {
  char *scale = row + dim;
  for (int d = 0; d < dim; d += GROUP, scale += sizeof(uint16_t)) {
    const bool two = d + 16 < dim;
    v16 a = v_load(x + d), b = two ? v_load(x + d + 16) : v_set1(0);
    float largest = v_hmax(v_max(v_abs(a), v_abs(b))), wide = 0;
    uint16_t half = 0;
    i16 first = i_set1(0), second = i_set1(0);
    if (largest > 0) half = scale_for(largest, &wide);
    if (!(wide < INFINITY) || v_nan_mask(a) || v_nan_mask(b))
      half = 0x7e00;
    else if (largest > 0)
      first = i_nearest(v_div(a, v_set1(wide))), second = i_nearest(v_div(b, v_set1(wide)));
    i_store_i8((int8_t *)row + d, first);
    if (two) i_store_i8((int8_t *)row + d + 16, second);
    memcpy(scale, &half, sizeof half);
  }
}

VI v16 load_sixteen(const char *row, int dim, int d) {
  return v_mul(v_load_i8((const int8_t *)row + d), v_set1_f16((const uint16_t *)(const void *)(row + dim) + d / GROUP));
}

#include "attention.h"
