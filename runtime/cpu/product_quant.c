/* Products with quantized matrices: see quant.h for what is computed. A few rows at a time keep their sums in registers while
 * a strip of codes goes by once. */
#include "format.h"
#include "quant_tiles.h"
#include "simd.h"

#if defined(__AVX512F__)
enum { TILE_ROWS = 4 };
#elif defined(__AVX2__)
enum { TILE_ROWS = 2 };
#else
enum { TILE_ROWS = 1 };
#endif

enum { AHEAD = 4096 }; /* bytes: weights are asked for so far in advance, over the ends of cells and strips */

/* ---- rows of x ------------------------------------------------------------------------------------------------------- */

#define MAGIC 12582912.0f /* 1.5 * 2^23: added to a small number and taken away again, it leaves the nearest integer */

static int32_t bits_of(float x) {
  int32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* Rounds a group to its digits; returns their sum. */
VI int32_t round_group(const quant_format *f, const float *x, v16 inverse, int8_t *digits) {
  int32_t sum = 0, half = 1 << (f->shift - 1);
  for (int i = 0; i < f->group; i += 16) {
    float rounded[16];
    v_store(rounded, v_sub(v_add(v_mul(v_load(x + i), inverse), v_set1(MAGIC)), v_set1(MAGIC)));
    for (int j = 0; j < 16; j++) {
      int32_t q = (int32_t)rounded[j], high = (q + half) >> f->shift;
      digits[i + j] = (int8_t)high;
      digits[f->group + i + j] = (int8_t)(q - (int32_t)((uint32_t)high << f->shift));
      sum += q;
    }
  }
  return sum;
}

VI void round_cell(const quant_format *f, const float *x, int groups, quant_row to) {
  v16 largest = v_set1(0.0f), zero = v_set1(0.0f), all = zero;
  for (int i = 0; i < groups * f->group; i += 16) {
    v16 v = v_load(x + i);
    largest = v_max(v_abs(v), largest);
    all = v_fma(v, zero, all); /* NaN where any is not finite */
  }
  float most = v_hmax(largest);
  if (v_nan_mask(all)) {
    *to.scale = NAN;
    memset(to.extra, 0, (size_t)groups * sizeof *to.extra);
    memset(to.digits, 0, (size_t)(groups * f->group * 2));
    return;
  }
  *to.scale = most / (float)f->limit;
  v16 inverse = v_set1(most > 0.0f ? fminf((float)f->limit / most, 0x1p126f) : 0.0f);
  for (int g = 0; g < groups; g++) {
    int32_t sum = round_group(f, x + g * f->group, inverse, to.digits + 2 * g * f->group);
    switch (f->scales) {
    case QUANT_F16_MIN: to.extra[g] = bits_of((float)sum); break;
    case QUANT_WHOLE_MIN:
      to.extra[g & ~1] = g % 2 ? to.extra[g - 1] | (int32_t)((uint32_t)sum << 16) : sum & 0xffff;
      break;
    default: to.extra[g] = -f->zero * sum;
    }
  }
}

VI void round_row(const quant_format *f, const float *x, int k, char *to) {
  quant_row row = quant_row_at(f, to, k);
  for (int at = 0; at < k; at += QUANT_CELL) {
    int groups = (k - at < QUANT_CELL ? k - at : QUANT_CELL) / f->group;
    round_cell(f, x + at, groups, row);
    row.scale++, row.extra += groups, row.digits += 2 * groups * f->group;
  }
}

/* ---- products -------------------------------------------------------------------------------------------------------- */

VI int32_t four_at(const int8_t *p) {
  int32_t four;
  memcpy(&four, p, sizeof four);
  return four;
}

VI v16 float_at(const int32_t *p) {
  float x;
  memcpy(&x, p, sizeof x);
  return v_set1(x);
}

/* The codes of a block as eight fours. */
VI void load_codes(const int bits, const uint8_t *p, i16 code[8]) {
  if (bits == 8) {
#pragma GCC unroll 8
    for (int t = 0; t < 8; t++) code[t] = i_load(p + QUANT_LINE * t);
    return;
  }
#pragma GCC unroll 4
  for (int t = 0; t < 4; t++) {
    i16 line = i_load(p + QUANT_LINE * t);
    code[t] = i_and(line, 0x0f0f0f0f);
    code[t + 4] = i_and(i_right(line, 4), 0x0f0f0f0f);
  }
  if (bits == 4) return;
  i16 plane = i_load(p + QUANT_LINE * 4);
#pragma GCC unroll 8
  for (int t = 0; t < 8; t++) code[t] = i_or(code[t], i_left(i_and(i_right(plane, t), 0x01010101), 4));
}

/* start + the products of a group's codes with its q, exactly. */
VI i16 dot_group(const quant_format *f, const i16 *code, const int8_t *digits, int32_t start) {
  i16 high = i_set1(0), low = i_set1(start);
#pragma GCC unroll 8
  for (int t = 0; t < f->group / 4; t++) {
    high = i_dot4(high, code[t], four_at(digits + 4 * t));
    low = i_dot4(low, code[t], four_at(digits + f->group + 4 * t));
  }
  return i_add(i_left(high, f->shift), low);
}

/* One strip for a few rows, which lie `step` bytes apart. */
VI void few_rows(const int rows, const quant_format *f, const uint8_t *strip, int k, const char *x, size_t step,
                 float *sums, size_t ld) {
  const int parts = QUANT_BLOCK / f->group;
  quant_row row[TILE_ROWS];
  v16 acc[TILE_ROWS], t[TILE_ROWS];
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++) row[r] = quant_row_at(f, x + (size_t)r * step, k), acc[r] = v_set1(0.0f);
  for (int at = 0; at < k; at += QUANT_CELL) {
    quant_cell c = quant_cell_at(f, strip, k - at);
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) t[r] = v_set1(0.0f);
    for (int b = 0; b < c.blocks; b++) {
      const uint8_t *codes = c.codes + (size_t)b * quant_block_bytes(f);
      i16 code[8];
#pragma GCC unroll 8
      for (size_t i = 0; i < quant_block_bytes(f); i += QUANT_LINE) __builtin_prefetch(codes + AHEAD + i, 0, 3);
      load_codes(f->bits, codes, code);
#pragma GCC unroll 2
      for (int part = 0; part < parts; part++) {
        int g = b * parts + part;
        v16 scale = quant_is_whole(f) ? v_load_i8((const int8_t *)c.scales + QUANT_OUTPUTS * g)
                                      : v_load_f16((const uint16_t *)c.scales + QUANT_OUTPUTS * g);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
          i16 sum =
              dot_group(f, code + f->group / 4 * part, row[r].digits + 2 * f->group * g, f->zero ? row[r].extra[g] : 0);
          t[r] = v_fma(i_to_float(sum), scale, t[r]);
          if (f->scales == QUANT_F16_MIN)
            t[r] = v_fma(float_at(&row[r].extra[g]), v_load_f16((const uint16_t *)c.minima + QUANT_OUTPUTS * g), t[r]);
        }
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
      acc[r] = quant_add_cell(f, &c, acc[r], t[r], *row[r].scale, row[r].extra);
      row[r].scale++, row[r].extra += c.groups, row[r].digits += 2 * QUANT_BLOCK * c.blocks;
    }
    strip += c.bytes;
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++) v_store(sums + (size_t)r * ld, acc[r]);
}

typedef void rows_kernel(const uint8_t *strip, int k, const char *x, size_t step, float *sums, size_t ld);

/* Some panels for n rows, as many at a time as there are kernels for. */
VI void multiply(const quant_format *f, rows_kernel *const *kernels, const cpu_matrix *m, int first, int count,
                 const char *x, size_t step, int n, float *sums, size_t ld) {
  size_t bytes = quant_strip_bytes(f, m->k);
  const uint8_t *strip = (const uint8_t *)m->data + (size_t)first * 2 * bytes;
  int heights = (n + TILE_ROWS - 1) / TILE_ROWS;
  for (int s = 0; s < 2 * count; s++, strip += bytes, sums += QUANT_OUTPUTS)
    for (int i = 0; i < heights; i++) {
      int from = n * i / heights, rows = n * (i + 1) / heights - from;
      kernels[rows - 1](strip, m->k, x + (size_t)from * step, step, sums + (size_t)from * ld, ld);
    }
}

/* ---- one format ------------------------------------------------------------------------------------------------------ */

VI void pack_panel(const quant_format *f, char *panel, int k, const char *const row[CPU_PANEL]) {
  for (int j = 0; j < CPU_PANEL; j++)
    if (row[j])
      quant_pack(f, row[j], k, j % QUANT_OUTPUTS,
                 (uint8_t *)panel + (size_t)(j / QUANT_OUTPUTS) * quant_strip_bytes(f, k));
}

VI void unpack_output(const quant_format *f, const char *panel, int k, int j, float *out) {
  quant_unpack(f, (const uint8_t *)panel + (size_t)(j / QUANT_OUTPUTS) * quant_strip_bytes(f, k), k, j % QUANT_OUTPUTS,
               out);
}

#define ROWS(name, n)                                                                                                  \
  static void name##_rows##n(const uint8_t *strip, int k, const char *x, size_t step, float *sums, size_t ld) {        \
    few_rows(n, &name, strip, k, x, step, sums, ld);                                                                   \
  }
#if defined(__AVX512F__)
#define KERNELS(name)                                                                                                  \
  ROWS(name, 1)                                                                                                        \
  ROWS(name, 2)                                                                                                        \
  ROWS(name, 3)                                                                                                        \
  ROWS(name, 4) static rows_kernel *const name##_kernels[] = {name##_rows1, name##_rows2, name##_rows3, name##_rows4};
#elif defined(__AVX2__)
#define KERNELS(name)                                                                                                  \
  ROWS(name, 1) ROWS(name, 2) static rows_kernel *const name##_kernels[] = {name##_rows1, name##_rows2};
#else
#define KERNELS(name)                                                                                                  \
  ROWS(name, 1)                                                                                                        \
  static rows_kernel *const name##_kernels[] = {name##_rows1};
#endif

#if defined(__AMX_INT8__)
#define IN_TILES(name)                                                                                                 \
  if (n > TILES_FROM) {                                                                                                \
    V(quant_tiles_##name)(m, first, count, x, step, n, sums, ld);                                                      \
    return;                                                                                                            \
  }
#else
#define IN_TILES(name)
#endif

#define DEFINE(name, type, ...)                                                                                        \
  static const quant_format name = {type, __VA_ARGS__};                                                                \
  KERNELS(name)                                                                                                        \
  static size_t name##_panel_bytes(int k) { return 2 * quant_strip_bytes(&name, k); }                                  \
  static void name##_pack(char *panel, int k, const char *const row[CPU_PANEL]) { pack_panel(&name, panel, k, row); }  \
  static void name##_unpack(const char *panel, int k, int j, float *out) { unpack_output(&name, panel, k, j, out); }   \
  static size_t name##_row_bytes(int k) { return quant_row_bytes(&name, k); }                                          \
  static void name##_round(const float *x, int k, char *to) { round_row(&name, x, k, to); }                            \
  static void name##_multiply(const cpu_matrix *m, int first, int count, const char *x, size_t step, int n,            \
                              float *sums, size_t ld) {                                                                \
    IN_TILES(name)                                                                                                     \
    multiply(&name, name##_kernels, m, first, count, x, step, n, sums, ld);                                            \
  }                                                                                                                    \
  extern const cpu_format V(cpu_format_##name);                                                                        \
  const cpu_format V(cpu_format_##name) = {                                                                            \
      #name, type, name##_panel_bytes, name##_pack, name##_unpack, name##_row_bytes, name##_round, name##_multiply};
QUANT_FORMATS(DEFINE)
