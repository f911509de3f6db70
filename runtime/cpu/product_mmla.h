/* Shared by products of many rows with SMMLA. This instruction multiplies two rows of x by two outputs, eight numbers
 * of each. The codes of a cell, minus their zero, are unpacked once for all rows: each eight numbers of a strip become
 * eight registers of two outputs. */
#ifndef DT_CPU_PRODUCT_MMLA_H
#define DT_CPU_PRODUCT_MMLA_H

#include "product_quant.h"

enum {
  MMLA_ROWS = 4,                         /* rows of a tile: two pairs, whose sums fill half of the registers */
  MMLA_EIGHT = 8 * QUANT_OUTPUTS,        /* bytes of eight numbers of each output of a strip */
  MMLA_CELL = QUANT_CELL * QUANT_OUTPUTS /* bytes of an unpacked cell of a strip */
};

VI void mmla_unpack_block(const quant_format *f, const uint8_t *block, int8_t *to) {
  const int8x16_t zero =
      vdupq_n_s8((int8_t)(quant_is_small(f) ? f->zero : 0)); /* others are already minus their zero */
#pragma GCC unroll 4
  for (int eight = 0; eight < QUANT_BLOCK / 8; eight++) {
    const i16 first = quant_code(f, block, 2 * eight), second = quant_code(f, block, 2 * eight + 1);
    const int32x4_t four[4] = {first.a, first.b, first.c, first.d}, next[4] = {second.a, second.b, second.c, second.d};
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++, to += 32) {
      vst1q_s8(to, vsubq_s8(vreinterpretq_s8_s32(vzip1q_s32(four[i], next[i])), zero));
      vst1q_s8(to + 16, vsubq_s8(vreinterpretq_s8_s32(vzip2q_s32(four[i], next[i])), zero));
    }
  }
}

VI void mmla_unpack(const quant_format *f, const quant_cell *c, int8_t *to) {
  for (int b = 0; b < c->blocks; b++)
    mmla_unpack_block(f, c->codes + (size_t)b * quant_block_bytes(f), to + b * QUANT_BLOCK * QUANT_OUTPUTS);
}

VI int32x4_t mmla_lower(int32x4_t a, int32x4_t b) {
  return vreinterpretq_s32_s64(vzip1q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
}
VI int32x4_t mmla_upper(int32x4_t a, int32x4_t b) {
  return vreinterpretq_s32_s64(vzip2q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
}

/* sum[r] = the sum of code * digit over a group, exactly. `codes` are the group's unpacked codes, `digits` the digits
 * of each row. */
VI void mmla_group(const int rows, const quant_format *f, const int8_t *codes, const int8_t *const digits[MMLA_ROWS],
                   i16 sum[MMLA_ROWS]) {
  const int pairs = rows / 2;
  int32x4_t part[MMLA_ROWS / 2][8]; /* each for two rows and two outputs */
#pragma GCC unroll 2
  for (int p = 0; p < pairs; p++)
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) part[p][i] = vdupq_n_s32(0);
#pragma GCC unroll 4
  for (int eight = 0; eight < f->group / 8; eight++, codes += MMLA_EIGHT) {
    int8x16_t x[MMLA_ROWS / 2];
#pragma GCC unroll 2
    for (int p = 0; p < pairs; p++)
      x[p] = vcombine_s8(vld1_s8(digits[2 * p] + 8 * eight), vld1_s8(digits[2 * p + 1] + 8 * eight));
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
      const int8x16_t two = vld1q_s8(codes + 16 * i);
#pragma GCC unroll 2
      for (int p = 0; p < pairs; p++) part[p][i] = vmmlaq_s32(part[p][i], x[p], two);
    }
  }
#pragma GCC unroll 2
  for (int p = 0; p < pairs; p++) {
    const int32x4_t *s = part[p];
    sum[2 * p] = (i16){mmla_lower(s[0], s[1]), mmla_lower(s[2], s[3]), mmla_lower(s[4], s[5]), mmla_lower(s[6], s[7])};
    sum[2 * p + 1] =
        (i16){mmla_upper(s[0], s[1]), mmla_upper(s[2], s[3]), mmla_upper(s[4], s[5]), mmla_upper(s[6], s[7])};
  }
}

/* A kernel adds a cell of a strip to the sums of a tile. The tile is the n rows (1 to MMLA_ROWS) at x, `step` bytes
 * apart. */
typedef void mmla_kernel(const quant_cell *c, const int8_t *codes, const char *x, size_t step, int n, float *sums,
                         size_t ld);

/* sums = n rows of x times `count` panels of m. All strips use a cell while its digits are in the L1 cache. `cell` is
 * the size of a row's cell in bytes. */
VI void mmla_walk(const quant_format *f, mmla_kernel *two_rows, mmla_kernel *four_rows, size_t cell,
                  const cpu_matrix *m, int first, int count, const char *x, size_t step, int n, float *sums,
                  size_t ld) {
  const size_t strip_bytes = quant_strip_bytes(f, m->k);
  const uint8_t *strips = (const uint8_t *)m->data + (size_t)first * QUANT_STRIPS * strip_bytes;
  int8_t codes[MMLA_CELL] __attribute__((aligned(64)));
  for (int r = 0; r < n; r++) memset(sums + (size_t)r * ld, 0, (size_t)count * CPU_PANEL * sizeof *sums);
  for (int at = 0; at < m->k; at += QUANT_CELL, x += cell) {
    quant_cell c = {.bytes = 0};
    for (int s = 0; s < QUANT_STRIPS * count; s++) {
      c = quant_cell_at(f, strips + (size_t)s * strip_bytes, m->k - at);
      for (size_t i = 0; i < c.bytes; i += QUANT_LINE) __builtin_prefetch(c.codes + c.bytes + i, 0, 3);
      mmla_unpack(f, &c, codes);
      for (int from = 0; from < n; from += MMLA_ROWS) {
        const int rows = n - from < MMLA_ROWS ? n - from : MMLA_ROWS;
        (rows > 2 ? four_rows : two_rows)(&c, codes, x + (size_t)from * step, step, rows,
                                          sums + (size_t)from * ld + QUANT_OUTPUTS * s, ld);
      }
    }
    strips += c.bytes;
  }
}

#endif
