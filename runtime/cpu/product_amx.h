/* Shared by the products that use AMX tiles: the shapes of tiles, and the product of two tiles. */
#ifndef DT_CPU_PRODUCT_AMX_H
#define DT_CPU_PRODUCT_AMX_H

#include "quant.h"
#include "simd.h"

enum { AMX_ROWS = 16 }; /* maximum number of rows of a tile: rows of x, or their sums for sixteen outputs */

typedef struct {
  uint8_t palette, start, reserved[14];
  uint16_t columns[16]; /* bytes of a row of each tile */
  uint8_t rows[16];
} amx_shapes;

/* Configures the tiles: 0 to 3 hold sums, 4 and 5 rows of x (row_bytes each), 6 and 7 weights. */
VI void amx_shape(int rows, int row_bytes) {
  amx_shapes c = {.palette = 1};
  for (int i = 0; i < 8; i++) {
    c.rows[i] = (uint8_t)(i < 6 ? rows : row_bytes / 4);
    c.columns[i] = (uint16_t)(i == 4 || i == 5 ? row_bytes : QUANT_LINE);
  }
  _tile_loadconfig(&c);
}

/* Sets tile `sums` to rows of x, which are `step` bytes apart, times weights. This is a macro because the intrinsics
 * need literal tile numbers. */
#define AMX_MULTIPLY(product, sums, rows, weights, x, step, at)                                                        \
  do {                                                                                                                 \
    _tile_loadd(rows, x, step);                                                                                        \
    _tile_loadd(weights, at, QUANT_LINE);                                                                              \
    _tile_zero(sums);                                                                                                  \
    product(sums, rows, weights);                                                                                      \
  } while (0)

#endif
