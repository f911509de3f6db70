/* AMX tiles in plain C, for machines that have none: included before a kernel's source (-include), these take the intrinsics'
 * places. Shapes that a processor would refuse end the program. */
#ifndef DT_EMULATED_TILES_H
#define DT_EMULATED_TILES_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static struct {
  uint8_t palette, rest[15];
  uint16_t columns[16]; /* bytes */
  uint8_t rows[16];
} emulated_shape;

static uint8_t emulated_tile[8][16][64];

static inline void emulated_loadconfig(const void *shape) {
  memcpy(&emulated_shape, shape, sizeof emulated_shape);
  for (int i = 0; i < 8; i++)
    if (emulated_shape.palette != 1 || emulated_shape.columns[i] > 64 || emulated_shape.rows[i] > 16) abort();
}

static inline void emulated_release(void) { emulated_shape.palette = 0; }

static inline void emulated_zero(int t) { memset(emulated_tile[t], 0, sizeof emulated_tile[t]); }

static inline void emulated_loadd(int t, const void *from, size_t step) {
  if (!emulated_shape.palette) abort();
  emulated_zero(t);
  for (int r = 0; r < emulated_shape.rows[t]; r++)
    memcpy(emulated_tile[t][r], (const char *)from + (size_t)r * step, emulated_shape.columns[t]);
}

static inline void emulated_stored(int t, void *to, size_t step) {
  for (int r = 0; r < emulated_shape.rows[t]; r++)
    memcpy((char *)to + (size_t)r * step, emulated_tile[t][r], emulated_shape.columns[t]);
}

/* sum += a * b, bytes of a signed */
static inline void emulated_dp(int sum, int a, int b, bool b_signed) {
  const uint16_t *columns = emulated_shape.columns;
  const uint8_t *rows = emulated_shape.rows;
  if (rows[sum] != rows[a] || columns[sum] != columns[b] || columns[a] != 4 * rows[b]) abort();
  for (int m = 0; m < rows[sum]; m++)
    for (int n = 0; n < columns[sum] / 4; n++) {
      int32_t total;
      memcpy(&total, emulated_tile[sum][m] + 4 * n, sizeof total);
      for (int k = 0; k < columns[a]; k++) {
        uint8_t w = emulated_tile[b][k / 4][4 * n + k % 4];
        total += (int8_t)emulated_tile[a][m][k] * (b_signed ? (int8_t)w : (int)w);
      }
      memcpy(emulated_tile[sum][m] + 4 * n, &total, sizeof total);
    }
}

#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbssd
#undef _tile_dpbsud
#define _tile_loadconfig emulated_loadconfig
#define _tile_release emulated_release
#define _tile_zero emulated_zero
#define _tile_loadd emulated_loadd
#define _tile_stored emulated_stored
#define _tile_dpbssd(sum, a, b) emulated_dp(sum, a, b, true)
#define _tile_dpbsud(sum, a, b) emulated_dp(sum, a, b, false)

#endif
