/* Matrix products with int8 weights: for a draft model, whose guesses need no last bits. A weight is q * scale of its output,
 * kept as q + 128; a row of x is rounded to int8 too, in blocks of 64 with a scale each. Sums within a block are of integers,
 * exact in any order; over the blocks an output has one f32 accumulator, in order. So this too gives the same bits in every
 * variant, in any place and for any number of rows. */
#include "variant.h"

/* As many rows side by side as there are registers for. */
#if defined(__AVX512F__)
enum { TILE_ROWS = 6 };
#elif defined(__AVX2__)
enum { TILE_ROWS = 2 };
#else
enum { TILE_ROWS = 1 };
#endif

enum { QUADS = CPU_BLOCK / 4, LINE = 4 * CPU_PANEL }; /* four k of all outputs of a panel lie together */

/* n numbers as q * scale, q in -127..127, with zeros behind them. */
static float round_block(const float *x, int n, int8_t *q, int32_t *offset) {
  float block[CPU_BLOCK] = {0};
  memcpy(block, x, (size_t)n * sizeof *x);
  v16 largest = v_set1(0.0f);
  for (int i = 0; i < CPU_BLOCK; i += 16) largest = v_max(v_abs(v_load(block + i)), largest);
  float most = v_hmax(largest);
  v16 inverse = v_set1(most > 0.0f ? 127.0f / most : 0.0f), magic = v_set1(12582912.0f);
  int32_t sum = 0;
  /* Adding 1.5 * 2^23 leaves the integer in the low bits. */
  for (int i = 0; i < CPU_BLOCK; i += 16) v_store(block + i, v_add(v_mul(v_load(block + i), inverse), magic));
  for (int i = 0; i < CPU_BLOCK; i++) {
    int32_t bits;
    memcpy(&bits, &block[i], sizeof bits);
    q[i] = (int8_t)bits;
    sum += q[i];
  }
  *offset = -128 * sum;
  return most / 127.0f;
}

void V(cpu_round_rows)(const float *x, size_t ldx, int n, int k, const cpu_rows8 *out) {
  int blocks = cpu_blocks(k);
  for (int r = 0; r < n; r++)
    for (int b = 0; b < blocks; b++) {
      int at = r * blocks + b, count = k - b * CPU_BLOCK < CPU_BLOCK ? k - b * CPU_BLOCK : CPU_BLOCK;
      out->scale[at] = round_block(x + (size_t)r * ldx + (size_t)b * CPU_BLOCK, count, out->q + (size_t)at * CPU_BLOCK,
                                   &out->offset[at]);
    }
}

/* sums[r][0..31]: one panel for a few rows. With one or two rows a block's sums are cut into chains, to hide the latency of
 * i_dot4. */
VI void tile(const int rows, const int chains, const uint8_t *weights, const float *scale, int blocks,
             const cpu_rows8 *x, int first, float *sums, size_t ld) {
  v16 acc[TILE_ROWS][2];
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++) acc[r][0] = acc[r][1] = v_set1(0.0f);
  for (int b = 0; b < blocks; b++) {
    i16 part[TILE_ROWS][2][4];
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
      for (int c = 0; c < chains; c++)
        part[r][0][c] = part[r][1][c] = i_set1(c ? 0 : x->offset[(first + r) * blocks + b]);
    for (int quad = 0; quad < QUADS; quad += chains)
#pragma GCC unroll 4
      for (int c = 0; c < chains; c++, weights += LINE) {
        i16 low = i_load(weights), high = i_load(weights + LINE / 2);
#pragma GCC unroll 6
        for (int r = 0; r < rows; r++) {
          int32_t four;
          memcpy(&four, x->q + (size_t)((first + r) * blocks + b) * CPU_BLOCK + 4 * (quad + c), sizeof four);
          part[r][0][c] = i_dot4(part[r][0][c], low, four);
          part[r][1][c] = i_dot4(part[r][1][c], high, four);
        }
      }
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
      for (int half = 0; half < 2; half++) {
        i16 sum = part[r][half][0];
#pragma GCC unroll 4
        for (int c = 1; c < chains; c++) sum = i_add(sum, part[r][half][c]);
        acc[r][half] = v_fma(i_to_float(sum), v_set1(x->scale[(first + r) * blocks + b]), acc[r][half]);
      }
  }
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++) {
    v_store(sums + (size_t)r * ld, v_mul(acc[r][0], v_load(scale)));
    v_store(sums + (size_t)r * ld + 16, v_mul(acc[r][1], v_load(scale + 16)));
  }
}

typedef void tile_fn(const uint8_t *weights, const float *scale, int blocks, const cpu_rows8 *x, int first, float *sums,
                     size_t ld);
#define DEFINE_TILE(ROWS, CHAINS)                                                                                      \
  static void tile##ROWS(const uint8_t *weights, const float *scale, int blocks, const cpu_rows8 *x, int first,        \
                         float *sums, size_t ld) {                                                                     \
    tile(ROWS, CHAINS, weights, scale, blocks, x, first, sums, ld);                                                    \
  }
#if defined(__AVX512F__)
DEFINE_TILE(1, 4)
DEFINE_TILE(2, 2)
DEFINE_TILE(3, 1)
DEFINE_TILE(4, 1)
DEFINE_TILE(5, 1)
DEFINE_TILE(6, 1)
static tile_fn *const tiles[TILE_ROWS] = {tile1, tile2, tile3, tile4, tile5, tile6};
#elif defined(__AVX2__)
DEFINE_TILE(1, 1)
DEFINE_TILE(2, 1)
static tile_fn *const tiles[TILE_ROWS] = {tile1, tile2};
#else
DEFINE_TILE(1, 1)
static tile_fn *const tiles[TILE_ROWS] = {tile1};
#endif

void V(cpu_matmul8)(const cpu_matrix *m, int first, int count, const cpu_rows8 *x, int n, float *sums, size_t ld) {
  int blocks = cpu_blocks(m->k), heights = (n + TILE_ROWS - 1) / TILE_ROWS;
  for (int p = 0; p < count; p++) {
    const uint8_t *weights = (const uint8_t *)m->data + (size_t)(first + p) * (size_t)blocks * QUADS * LINE;
    for (int t = 0; t < heights; t++) {
      int row = n * t / heights, rows = n * (t + 1) / heights - row;
      tiles[rows - 1](weights, m->scale + (size_t)(first + p) * CPU_PANEL, blocks, x, row,
                      sums + (size_t)row * ld + (size_t)p * CPU_PANEL, ld);
    }
  }
}
