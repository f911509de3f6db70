/* Weights in f32, f16 and bf16. Element (k, j) of a panel is at [k * 32 + j]; a lane is an output. Every output has one
 * accumulator, to which fma adds its products in the order k = 0, 1, .., K-1. A tile is a number of rows by a number of
 * vectors of sixteen outputs, held in registers. Because of the fixed order, the division into tiles and into blocks of
 * k cannot change a bit. */
#include "variant.h"

/* The shapes of tiles: (rows, columns of sixteen outputs, log2 of the columns). Each has as many accumulators as there
 * are registers. A pass over one row takes several panels at once, so that enough chains of fma overlap. */
// clang-format off
#if defined(__AVX512F__)
enum { TILE_ROWS = 14 };
#define TILES(X, T)                                                                                                    \
  X(1, 8, 3, T) X(1, 4, 2, T) X(1, 2, 1, T) X(2, 8, 3, T) X(2, 4, 2, T) X(2, 2, 1, T) X(3, 4, 2, T) X(3, 2, 1, T)      \
  X(4, 4, 2, T) X(4, 2, 1, T) X(5, 4, 2, T) X(5, 2, 1, T) X(6, 4, 2, T) X(6, 2, 1, T) X(7, 2, 1, T) X(8, 2, 1, T)      \
  X(9, 2, 1, T) X(10, 2, 1, T) X(11, 2, 1, T) X(12, 2, 1, T) X(13, 2, 1, T) X(14, 2, 1, T)
#elif defined(__AVX2__) || defined(SIMD_NEON) /* registers hold equally many floats in total */
enum { TILE_ROWS = 6 };
#define TILES(X, T)                                                                                                    \
  X(1, 4, 2, T) X(1, 2, 1, T) X(2, 2, 1, T) X(3, 1, 0, T) X(4, 1, 0, T) X(5, 1, 0, T) X(6, 1, 0, T)
#else
enum { TILE_ROWS = 4 };
#define TILES(X, T) X(1, 2, 1, T) X(2, 2, 1, T) X(3, 2, 1, T) X(4, 2, 1, T)
#endif
// clang-format on

enum { K_BLOCK = 256 }; /* with more rows than one tile has, 256 x 32 weights stay in the L1 cache for all tiles */

/* Weights are prefetched, so that memory is busy while the processor computes. If the rows fit one tile, AHEAD lines
 * ahead, past the ends of pages and panels. With more rows, the next block of k is prefetched, spread over the tiles of
 * the current block. */
enum { AHEAD = 24 };

/* Few rows take several panels at once. If the panels are short, the hardware prefetcher detects their streams too
 * late. Therefore FEW_AHEAD lines of each panel are prefetched and, before its end, the first lines of the panel that
 * comes next. For longer panels that come from memory this would be slower, so they are not prefetched. */
enum { FEW_ROWS = 3, SHORT_PANEL = 512, FEW_AHEAD = 40 };

enum { F32, F16, BF16 };

VI size_t bytes_of(int type) { return type == F32 ? 4 : 2; }

VI v16 load_weights(const char *p, int type) {
  if (type == F16) return v_load_f16((const uint16_t *)p);
  if (type == BF16) return v_load_bf16((const uint16_t *)p);
  return v_load((const float *)p);
}

/* sums[r][16 c + lane] = (resume ? sums : 0) + the sum over k of x * weight. Column c is half c % 2 of panel c / 2. The
 * address `ahead` is prefetched and advances by `step` bytes for each k. With few rows each panel is prefetched
 * instead, if the panels are short. */
VI void tile(const int rows, const int columns, const int type, const char *weights, size_t panel_bytes, const float *x,
             size_t ldx, int k, float *sums, size_t ld, int resume, const char *ahead, size_t step) {
  const size_t line = CPU_PANEL * bytes_of(type), half = line / 2;
  v16 acc[14][8];
#pragma GCC unroll 14
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
    for (int c = 0; c < columns; c++) acc[r][c] = resume ? v_load(sums + (size_t)r * ld + 16 * c) : v_set1(0.0f);
  const bool each = rows <= FEW_ROWS && k < SHORT_PANEL;
  for (int i = 0; i < k; i++, ahead += step) {
    if (rows > FEW_ROWS) __builtin_prefetch(ahead, 0, 3);
    if (each) {
      if (i == k - FEW_AHEAD) ahead += (size_t)((columns + 1) / 2 - 1) * panel_bytes;
#pragma GCC unroll 8
      for (int c = 0; c < columns; c += 64 / (int)half)
        __builtin_prefetch(ahead + (size_t)(c / 2) * panel_bytes + (size_t)(c % 2) * half, 0, 3);
    }
    v16 w[8];
#pragma GCC unroll 8
    for (int c = 0; c < columns; c++)
      w[c] = load_weights(weights + (size_t)(c / 2) * panel_bytes + (size_t)(c % 2) * half, type);
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) {
      v16 xi = v_set1(x[(size_t)r * ldx + (size_t)i]);
#pragma GCC unroll 8
      for (int c = 0; c < columns; c++) acc[r][c] = v_fma(xi, w[c], acc[r][c]);
    }
    weights += line;
  }
#pragma GCC unroll 14
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
    for (int c = 0; c < columns; c++) v_store(sums + (size_t)r * ld + 16 * c, acc[r][c]);
}

typedef void tile_fn(const char *weights, size_t panel_bytes, const float *x, size_t ldx, int k, float *sums, size_t ld,
                     int resume, const char *ahead, size_t step);

#define DEFINE_TILE(R, C, L, T)                                                                                        \
  static void tile_##R##x##C##_##T(const char *weights, size_t panel_bytes, const float *x, size_t ldx, int k,         \
                                   float *sums, size_t ld, int resume, const char *ahead, size_t step) {               \
    tile(R, C, T, weights, panel_bytes, x, ldx, k, sums, ld, resume, ahead, step);                                     \
  }
TILES(DEFINE_TILE, F32)
TILES(DEFINE_TILE, F16)
TILES(DEFINE_TILE, BF16)

#define NAME_TILE(R, C, L, T) [T][R][L] = tile_##R##x##C##_##T,
static tile_fn *const tiles[3][TILE_ROWS + 1][4] = {TILES(NAME_TILE, F32) TILES(NAME_TILE, F16) TILES(NAME_TILE, BF16)};

/* Computes all columns of `count` panels for at most TILE_ROWS rows, in tiles as wide as possible. `ahead`: see tile;
 * NULL: the lines after those that a tile reads. */
static void tile_columns(int type, const char *weights, size_t panel_bytes, int count, const float *x, size_t ldx,
                         int rows, int k, float *sums, size_t ld, int resume, const char *ahead, size_t step) {
  size_t line = CPU_PANEL * bytes_of(type);
  int level = 3;
  for (int c = 0; c < 2 * count;) {
    while (!tiles[type][rows][level] || c + (1 << level) > 2 * count) level--;
    const char *column = weights + (size_t)(c / 2) * panel_bytes + (size_t)(c % 2) * line / 2;
    tiles[type][rows][level](column, panel_bytes, x, ldx, k, sums + 16 * c, ld, resume,
                             ahead ? ahead : column + (size_t)(rows > FEW_ROWS ? AHEAD : FEW_AHEAD) * line,
                             ahead ? step : line);
    c += 1 << level;
  }
}

/* Computes one panel for more rows than a tile has: one block of k after the other, and in each block all tiles. */
static void panel_many_rows(int type, const char *weights, const float *x, size_t ldx, int n, int k, float *sums,
                            size_t ld) {
  int count = (n + TILE_ROWS - 1) / TILE_ROWS;
  size_t line = CPU_PANEL * bytes_of(type), step = line / (size_t)count;
  for (int k0 = 0; k0 < k; k0 += K_BLOCK) {
    int length = k - k0 < K_BLOCK ? k - k0 : K_BLOCK;
    const char *block = weights + (size_t)k0 * line, *next = block + (size_t)length * line;
    for (int t = 0; t < count; t++, next += (size_t)length * step) { /* the heights of tiles differ by at most 1 */
      int first = n * t / count, rows = n * (t + 1) / count - first;
      tile_columns(type, block, 0, 1, x + (size_t)first * ldx + k0, ldx, rows, length, sums + (size_t)first * ld, ld,
                   k0 > 0, next, step);
    }
  }
}

static void multiply(int type, const cpu_matrix *m, int first, int count, const char *rows, size_t step, int n,
                     float *sums, size_t ld) {
  size_t panel_bytes = (size_t)m->k * CPU_PANEL * bytes_of(type), ldx = step / sizeof(float);
  const char *weights = m->data + (size_t)first * panel_bytes;
  const float *x = (const float *)rows;
  if (n <= TILE_ROWS) {
    tile_columns(type, weights, panel_bytes, count, x, ldx, n, m->k, sums, ld, 0, NULL, 0);
    return;
  }
  for (int p = 0; p < count; p++)
    panel_many_rows(type, weights + (size_t)p * panel_bytes, x, ldx, n, m->k, sums + p * CPU_PANEL, ld);
}

static void pack_4(char *panel, int k, const char *const row[CPU_PANEL]) {
  float *to = (float *)panel;
  for (int j = 0; j < CPU_PANEL; j++)
    for (int i = 0; row[j] && i < k; i++) memcpy(to + (size_t)i * CPU_PANEL + j, row[j] + (size_t)i * 4, 4);
}

static void pack_2(char *panel, int k, const char *const row[CPU_PANEL]) {
  uint16_t *to = (uint16_t *)panel;
  for (int j = 0; j < CPU_PANEL; j++)
    for (int i = 0; row[j] && i < k; i++) memcpy(to + (size_t)i * CPU_PANEL + j, row[j] + (size_t)i * 2, 2);
}

VI void unpack(int type, const char *panel, int k, int j, float *out) {
  size_t bytes = bytes_of(type);
  for (int i = 0; i < k; i += 16) {
    char some[64];
    float wide[16];
    int n = k - i < 16 ? k - i : 16;
    memset(some, 0, sizeof some);
    for (int l = 0; l < n; l++)
      memcpy(some + (size_t)l * bytes, panel + ((size_t)(i + l) * CPU_PANEL + (size_t)j) * bytes, bytes);
    v_store(wide, load_weights(some, type));
    memcpy(out + i, wide, (size_t)n * sizeof *out);
  }
}

#define DEFINE_FORMAT(lower, T, bytes)                                                                                 \
  static size_t bytes_##T(int k) { return (size_t)k * CPU_PANEL * bytes; }                                             \
  static void unpack_##T(const char *panel, int k, int j, float *out) { unpack(T, panel, k, j, out); }                 \
  static void multiply_##T(const cpu_matrix *m, int first, int count, const char *x, size_t step, int n, float *sums,  \
                           size_t ld) {                                                                                \
    multiply(T, m, first, count, x, step, n, sums, ld);                                                                \
  }                                                                                                                    \
  const cpu_format V(cpu_format_##lower) = {#lower,     DT_##T, 0,    bytes_##T,   pack_##bytes,                       \
                                            unpack_##T, NULL,   NULL, multiply_##T};
DEFINE_FORMAT(f32, F32, 4)
DEFINE_FORMAT(f16, F16, 2)
DEFINE_FORMAT(bf16, BF16, 2)
