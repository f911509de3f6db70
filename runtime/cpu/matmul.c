/* Matrix products of a few rows with a panel matrix, and what follows them. A lane is an output: every output has one
 * accumulator, which takes its products by fma in the order k = 0, 1, .., K-1. A tile is some rows by some vectors of
 * sixteen outputs, held in registers; how the work is cut into tiles and blocks of k cannot change a bit. */
#include "variant.h"

#include "vmath.h"

/* Tiles as (rows, columns of sixteen outputs, log2 of that), as many accumulators as there are registers for. A pass of
 * one row takes several panels at once, so that enough fma chains are under way. */
// clang-format off
#if defined(__AVX512F__)
enum { TILE_ROWS = 14 };
#define TILES(X, T)                                                                                                    \
  X(1, 8, 3, T) X(1, 4, 2, T) X(1, 2, 1, T) X(2, 8, 3, T) X(2, 4, 2, T) X(2, 2, 1, T) X(3, 4, 2, T) X(3, 2, 1, T)      \
  X(4, 4, 2, T) X(4, 2, 1, T) X(5, 4, 2, T) X(5, 2, 1, T) X(6, 4, 2, T) X(6, 2, 1, T) X(7, 2, 1, T) X(8, 2, 1, T)      \
  X(9, 2, 1, T) X(10, 2, 1, T) X(11, 2, 1, T) X(12, 2, 1, T) X(13, 2, 1, T) X(14, 2, 1, T)
#elif defined(__AVX2__)
enum { TILE_ROWS = 6 };
#define TILES(X, T)                                                                                                    \
  X(1, 4, 2, T) X(1, 2, 1, T) X(2, 2, 1, T) X(3, 1, 0, T) X(4, 1, 0, T) X(5, 1, 0, T) X(6, 1, 0, T)
#else
enum { TILE_ROWS = 4 };
#define TILES(X, T) X(1, 2, 1, T) X(2, 2, 1, T) X(3, 2, 1, T) X(4, 2, 1, T)
#endif
// clang-format on

enum { K_BLOCK = 256 }; /* with more rows than a tile has, 256 x 32 weights stay in the L1 cache from tile to tile */

/* Weights are asked for in advance: AHEAD lines, over the ends of pages and panels, or the next block of k, spread over the
 * tiles of this one, so that memory has no pause while there is arithmetic to do. */
enum { AHEAD = 24 };

VI size_t bytes_of(dt_dtype dtype) { return dtype == DT_F32 ? 4 : 2; }

VI v16 load_weights(const char *p, dt_dtype dtype) {
  if (dtype == DT_F16) return v_load_f16((const uint16_t *)p);
  if (dtype == DT_BF16) return v_load_bf16((const uint16_t *)p);
  return v_load((const float *)p);
}

/* sums[r][16 c + lane] = (resume ? sums : 0) + the products over k of x; column c is half c % 2 of panel c / 2. What lies at
 * `ahead`, and `step` bytes further for each k, is fetched into the cache. */
VI void tile(const int rows, const int columns, const dt_dtype dtype, const char *weights, size_t panel_bytes,
             const float *x, size_t ldx, int k, float *sums, size_t ld, int resume, const char *ahead, size_t step) {
  const size_t line = CPU_PANEL * bytes_of(dtype), half = line / 2;
  v16 acc[14][8];
#pragma GCC unroll 14
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
    for (int c = 0; c < columns; c++) acc[r][c] = resume ? v_load(sums + (size_t)r * ld + 16 * c) : v_set1(0.0f);
  for (int i = 0; i < k; i++, ahead += step) {
    if (rows >= 4) __builtin_prefetch(ahead, 0, 3); /* one row alone is slower with it */
    v16 w[8];
#pragma GCC unroll 8
    for (int c = 0; c < columns; c++)
      w[c] = load_weights(weights + (size_t)(c / 2) * panel_bytes + (size_t)(c % 2) * half, dtype);
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
TILES(DEFINE_TILE, DT_F32)
TILES(DEFINE_TILE, DT_F16)
TILES(DEFINE_TILE, DT_BF16)

#define NAME_TILE(R, C, L, T) [T][R][L] = tile_##R##x##C##_##T,
static tile_fn *const tiles[3][TILE_ROWS + 1][4] = {TILES(NAME_TILE, DT_F32) TILES(NAME_TILE, DT_F16)
                                                        TILES(NAME_TILE, DT_BF16)};

/* All columns of `count` panels for at most TILE_ROWS rows, by the widest tiles there are. `ahead` as for a tile, or NULL:
 * the lines behind what a tile reads. */
static void tile_columns(dt_dtype dtype, const char *weights, size_t panel_bytes, int count, const float *x, size_t ldx,
                         int rows, int k, float *sums, size_t ld, int resume, const char *ahead, size_t step) {
  size_t line = CPU_PANEL * bytes_of(dtype);
  int level = 3;
  for (int c = 0; c < 2 * count;) {
    while (!tiles[dtype][rows][level] || c + (1 << level) > 2 * count) level--;
    const char *column = weights + (size_t)(c / 2) * panel_bytes + (size_t)(c % 2) * line / 2;
    tiles[dtype][rows][level](column, panel_bytes, x, ldx, k, sums + 16 * c, ld, resume,
                              ahead ? ahead : column + AHEAD * line, ahead ? step : line);
    c += 1 << level;
  }
}

/* One panel for more rows than a tile has: block by block of k, then tile by tile. */
static void panel_many_rows(dt_dtype dtype, const char *weights, const float *x, size_t ldx, int n, int k, float *sums,
                            size_t ld) {
  int count = (n + TILE_ROWS - 1) / TILE_ROWS;
  size_t line = CPU_PANEL * bytes_of(dtype), step = line / (size_t)count;
  for (int k0 = 0; k0 < k; k0 += K_BLOCK) {
    int length = k - k0 < K_BLOCK ? k - k0 : K_BLOCK;
    const char *block = weights + (size_t)k0 * line, *next = block + (size_t)length * line;
    for (int t = 0; t < count; t++, next += (size_t)length * step) { /* tiles of nearly equal height */
      int first = n * t / count, rows = n * (t + 1) / count - first;
      tile_columns(dtype, block, 0, 1, x + (size_t)first * ldx + k0, ldx, rows, length, sums + (size_t)first * ld, ld,
                   k0 > 0, next, step);
    }
  }
}

void V(cpu_matmul)(const cpu_matrix *m, int first, int count, const float *x, size_t ldx, int n, float *sums,
                   size_t ld) {
  size_t panel_bytes = (size_t)m->k * CPU_PANEL * bytes_of(m->dtype);
  const char *weights = (const char *)m->data + (size_t)first * panel_bytes;
  if (n <= TILE_ROWS) {
    tile_columns(m->dtype, weights, panel_bytes, count, x, ldx, n, m->k, sums, ld, 0, NULL, 0);
    return;
  }
  for (int p = 0; p < count; p++)
    panel_many_rows(m->dtype, weights + (size_t)p * panel_bytes, x, ldx, n, m->k, sums + p * CPU_PANEL, ld);
}

VI v16 activate(dt_act_kind act, v16 x) {
  if (act == DT_ACT_GELU_ERF) return v_gelu_erf(x);
  if (act == DT_ACT_GELU_TANH) return v_gelu_tanh(x);
  return v_silu(x);
}

VI void finish(cpu_finish how, dt_act_kind act, const float *bias, const float *sums, float *out) {
  v16 a = v_add(v_load(sums), v_load(bias)), b = v_add(v_load(sums + 16), v_load(bias + 16));
  switch (how) {
  case CPU_STORE: v_store(out, a), v_store(out + 16, b); break;
  case CPU_ADD: v_store(out, v_add(v_load(out), a)), v_store(out + 16, v_add(v_load(out + 16), b)); break;
  case CPU_ACTIVATE: v_store(out, activate(act, a)), v_store(out + 16, activate(act, b)); break;
  case CPU_GATE: v_store(out, v_mul(activate(act, a), b)); break;
  }
}

void V(cpu_finish_panels)(cpu_finish how, dt_act_kind act, const cpu_matrix *m, int first, int count, const float *sums,
                          size_t ld, int n, float *out, size_t ldo) {
  int width = how == CPU_GATE ? CPU_PANEL / 2 : CPU_PANEL;
  for (int r = 0; r < n; r++)
    for (int p = 0; p < count; p++)
      finish(how, act, m->bias + (size_t)(first + p) * CPU_PANEL, sums + (size_t)r * ld + (size_t)p * CPU_PANEL,
             out + (size_t)r * ldo + (size_t)(first + p) * (size_t)width);
}
