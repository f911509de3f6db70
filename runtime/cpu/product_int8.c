/* Weights rounded to int8: for a draft model, whose guesses need no last bits. A weight is q * scale of its output, kept as
 * q + 128; a row of x is rounded to int8 too, in blocks of 64 with a scale each. Sums within a block are of integers, exact in
 * any order; over the blocks an output has one f32 accumulator, in order. So this too gives the same bits in every variant, in
 * any place and for any number of rows.
 *
 * A panel: its 32 scales, then the bytes, of which those of four k of an output lie together; k is filled up to whole blocks.
 * A row of x: the bytes of its blocks, then their scales, then -128 times the sum of each block's q, which takes back what
 * the 128 in each weight adds. */
#include "variant.h"

enum { BLOCK = 64, SCALES = CPU_PANEL * sizeof(float) };

static int blocks_of(int k) { return (k + BLOCK - 1) / BLOCK; }

/* As many rows side by side as there are registers for. */
#if defined(__AVX512F__)
enum { TILE_ROWS = 6 };
#elif defined(__AVX2__)
enum { TILE_ROWS = 2 };
#else
enum { TILE_ROWS = 1 };
#endif

enum { QUADS = BLOCK / 4, LINE = 4 * CPU_PANEL }; /* four k of all outputs of a panel lie together */

/* n numbers as q * scale, q in -127..127, with zeros behind them. */
static float round_block(const float *x, int n, int8_t *q, int32_t *offset) {
  float block[BLOCK] = {0};
  memcpy(block, x, (size_t)n * sizeof *x);
  v16 largest = v_set1(0.0f);
  for (int i = 0; i < BLOCK; i += 16) largest = v_max(v_abs(v_load(block + i)), largest);
  float most = v_hmax(largest);
  v16 inverse = v_set1(most > 0.0f ? 127.0f / most : 0.0f), magic = v_set1(12582912.0f);
  int32_t sum = 0;
  /* Adding 1.5 * 2^23 leaves the integer in the low bits. */
  for (int i = 0; i < BLOCK; i += 16) v_store(block + i, v_add(v_mul(v_load(block + i), inverse), magic));
  for (int i = 0; i < BLOCK; i++) {
    int32_t bits;
    memcpy(&bits, &block[i], sizeof bits);
    q[i] = (int8_t)bits;
    sum += q[i];
  }
  *offset = -128 * sum;
  return most / 127.0f;
}

static size_t prepared_bytes(int k) {
  return ((size_t)blocks_of(k) * (BLOCK + sizeof(float) + sizeof(int32_t)) + 63) & ~(size_t)63;
}

/* A prepared row. */
typedef struct {
  const int8_t *q;
  const float *scale;
  const int32_t *offset;
} row;

VI row row_at(const char *x, int blocks) {
  const float *scale = (const float *)(x + (size_t)blocks * BLOCK);
  return (row){(const int8_t *)x, scale, (const int32_t *)(scale + blocks)};
}

static void prepare(const float *x, int k, char *to) {
  int blocks = blocks_of(k);
  row r = row_at(to, blocks);
  for (int b = 0; b < blocks; b++) {
    int count = k - b * BLOCK < BLOCK ? k - b * BLOCK : BLOCK;
    ((float *)r.scale)[b] =
        round_block(x + (size_t)b * BLOCK, count, (int8_t *)to + (size_t)b * BLOCK, (int32_t *)r.offset + b);
  }
}

/* sums[r][0..31]: one panel for a few rows. With one or two rows a block's sums are cut into chains, to hide the latency of
 * i_dot4. */
VI void tile(const int rows, const int chains, const char *panel, int blocks, const char *rows_of_x, size_t step,
             float *sums, size_t ld) {
  const float *scale = (const float *)panel;
  const uint8_t *weights = (const uint8_t *)panel + SCALES;
  row x[TILE_ROWS];
  v16 acc[TILE_ROWS][2];
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++) x[r] = row_at(rows_of_x + (size_t)r * step, blocks);
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++) acc[r][0] = acc[r][1] = v_set1(0.0f);
  for (int b = 0; b < blocks; b++) {
    i16 part[TILE_ROWS][2][4];
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
      for (int c = 0; c < chains; c++) part[r][0][c] = part[r][1][c] = i_set1(c ? 0 : x[r].offset[b]);
    for (int quad = 0; quad < QUADS; quad += chains)
#pragma GCC unroll 4
      for (int c = 0; c < chains; c++, weights += LINE) {
        i16 low = i_load(weights), high = i_load(weights + LINE / 2);
#pragma GCC unroll 6
        for (int r = 0; r < rows; r++) {
          int32_t four;
          memcpy(&four, x[r].q + (size_t)b * BLOCK + 4 * (quad + c), sizeof four);
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
        acc[r][half] = v_fma(i_to_float(sum), v_set1(x[r].scale[b]), acc[r][half]);
      }
  }
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++) {
    v_store(sums + (size_t)r * ld, v_mul(acc[r][0], v_load(scale)));
    v_store(sums + (size_t)r * ld + 16, v_mul(acc[r][1], v_load(scale + 16)));
  }
}

typedef void tile_fn(const char *panel, int blocks, const char *rows_of_x, size_t step, float *sums, size_t ld);
#define DEFINE_TILE(ROWS, CHAINS)                                                                                      \
  static void tile##ROWS(const char *panel, int blocks, const char *rows_of_x, size_t step, float *sums, size_t ld) {  \
    tile(ROWS, CHAINS, panel, blocks, rows_of_x, step, sums, ld);                                                      \
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

static size_t panel_bytes(int k) { return SCALES + (size_t)blocks_of(k) * QUADS * LINE; }

static void multiply(const cpu_matrix *m, int first, int count, const char *x, size_t step, int n, float *sums,
                     size_t ld) {
  int blocks = blocks_of(m->k), heights = (n + TILE_ROWS - 1) / TILE_ROWS;
  for (int p = 0; p < count; p++) {
    const char *panel = m->data + (size_t)(first + p) * panel_bytes(m->k);
    for (int t = 0; t < heights; t++) {
      int from = n * t / heights, rows = n * (t + 1) / heights - from;
      tiles[rows - 1](panel, blocks, x + (size_t)from * step, step, sums + (size_t)from * ld + (size_t)p * CPU_PANEL,
                      ld);
    }
  }
}

/* Weights as q * scale, q in -127..127. What is not finite becomes 0. */
static void pack(char *panel, int k, const char *const rows[CPU_PANEL]) {
  float *scale = (float *)panel;
  uint8_t *q = (uint8_t *)panel + SCALES;
  memset(q, 128, panel_bytes(k) - SCALES);
  for (int j = 0; j < CPU_PANEL; j++) {
    const float *w = (const float *)rows[j];
    for (int i = 0; w && i < k; i++) scale[j] = fmaxf(scale[j], fabsf(w[i]) / 127.0f);
    for (int i = 0; w && i < k; i++) {
      float x = w[i] / scale[j];
      if (fabsf(x) <= 127.5f) q[(i / 4 * CPU_PANEL + j) * 4 + i % 4] = (uint8_t)(128 + (int)rintf(x));
    }
  }
}

const cpu_format V(cpu_format_int8) = {"int8", DT_F32, panel_bytes, pack, NULL, prepared_bytes, prepare, multiply};
