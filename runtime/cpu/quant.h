/* Weights that stay codes. A quantized matrix is held as its file has it, codes, scales and minima, laid out anew for vectors
 * that run across sixteen outputs. Rows of x are rounded to whole numbers; products within a group are summed as integers,
 * exact in any order; groups are combined in f32 in one fixed order. So every variant gives the same bits.
 *
 * The definition. A row of x is rounded in cells of 256 numbers: q = round(x * (limit / most)), most = the largest |x| of the
 * cell, ties to even; the cell's scale is sx = most / limit. A weight is (code - zero) * scale + minimum, scale and minimum
 * by groups. An output is the sum acc over the cells, in order, and in a cell over its groups, in order:
 *
 *   t = 0;  t = fma(sum of (code - zero) * q, scale, t)      the sum is an int32, as f32
 *   QUANT_F16        scale is an f16                         acc = fma(t, sx, acc)
 *   QUANT_F16_MIN    so is the minimum; and behind each      acc = fma(t, sx, acc)
 *                    group t = fma(sum of q, minimum, t)
 *   QUANT_WHOLE      scale is a whole number, times the      acc = fma(t, d * sx, acc)
 *                    cell's f16 d
 *   QUANT_WHOLE_MIN  and the minimum one times -dmin         and acc = fma(sum of minimum * (sum of q), dmin * -sx, acc)
 *
 * A cell of x that holds what is not finite has sx = NaN and q = 0. */
#ifndef DT_CPU_QUANT_H
#define DT_CPU_QUANT_H

#include "model/types.h"

#include <stddef.h>
#include <stdint.h>

enum {
  QUANT_CELL = 256,   /* numbers of a row of x that share a scale */
  QUANT_BLOCK = 32,   /* numbers whose codes lie together; rows have whole blocks */
  QUANT_BLOCKS = 8,   /* of a whole cell; the last one of a row may have fewer */
  QUANT_OUTPUTS = 16, /* outputs that lie together: a strip */
  QUANT_LINE = 64     /* bytes: four numbers each of a strip's outputs */
};

typedef enum { QUANT_F16, QUANT_F16_MIN, QUANT_WHOLE, QUANT_WHOLE_MIN } quant_scales;

/* q is (high << shift) + low, two signed bytes: as fine as the codes leave room for when shifted codes are bytes too, so that
 * both digits' products add up in one accumulator. Codes of eight bits leave none: their two sums are joined. The limit of
 * 1016 lets a sum of 32 fit sixteen bits. */
typedef struct {
  dt_dtype dtype;
  int bits; /* of a code as it is held: 4, 5 (four, and a plane of fifth bits) or 8 */
  int zero, shift, limit, group;
  quant_scales scales;
} quant_format;

#define QUANT_FORMATS(X)                                                                                               \
  X(q4_0, DT_Q4_0, 4, 8, 4, 1016, 32, QUANT_F16)                                                                       \
  X(q4_1, DT_Q4_1, 4, 0, 4, 1016, 32, QUANT_F16_MIN)                                                                   \
  X(q5_0, DT_Q5_0, 5, 16, 3, 1016, 32, QUANT_F16)                                                                      \
  X(q5_1, DT_Q5_1, 5, 0, 3, 1016, 32, QUANT_F16_MIN)                                                                   \
  X(q8_0, DT_Q8_0, 8, 128, 7, 16256, 32, QUANT_F16)                                                                    \
  X(q4_k, DT_Q4_K, 4, 0, 4, 1016, 32, QUANT_WHOLE_MIN)                                                                 \
  X(q5_k, DT_Q5_K, 5, 0, 3, 1016, 32, QUANT_WHOLE_MIN)                                                                 \
  X(q6_k, DT_Q6_K, 8, 32, 2, 508, 16, QUANT_WHOLE)

static inline int quant_is_whole(const quant_format *f) {
  return f->scales == QUANT_WHOLE || f->scales == QUANT_WHOLE_MIN;
}

/* ---- rows of x, rounded ---------------------------------------------------------------------------------------------- */

typedef struct {
  float *scale; /* [cells] */
  /* [groups] -zero * (sum of q). QUANT_F16_MIN: the bits of the sum as an f32. QUANT_WHOLE_MIN: the sums of groups 2i and 2i + 1,
   * 16 bits each, at 2i. */
  int32_t *extra;
  int8_t *digits; /* [groups][2][group] the high digits, then the low ones */
} quant_row;

static inline int quant_cells(int k) { return (k + QUANT_CELL - 1) / QUANT_CELL; }

static inline size_t quant_digits_at(const quant_format *f, int k) {
  return (((size_t)quant_cells(k) * sizeof(float) + (size_t)(k / f->group) * sizeof(int32_t)) + 63) & ~(size_t)63;
}

/* A multiple of 64. */
static inline size_t quant_row_bytes(const quant_format *f, int k) { return quant_digits_at(f, k) + 2 * (size_t)k; }

static inline quant_row quant_row_at(const quant_format *f, const char *row, int k) {
  char *p = (char *)row;
  return (quant_row){(float *)p, (int32_t *)(p + (size_t)quant_cells(k) * sizeof(float)),
                     (int8_t *)(p + quant_digits_at(f, k))};
}

/* ---- weights --------------------------------------------------------------------------------------------------------- */

/* One cell of a strip: 256 inputs by 16 outputs. A "four" is four consecutive inputs of one output, the unit of a dot product of
 * bytes; a line (64 bytes) holds one four of each output. A block (32 inputs) has eight fours:
 *   8 bits   eight lines, line t = four t
 *   4 bits   four lines, line i = four i in the low halves of its bytes and four i + 4 in the high ones
 *   5 bits   the same and a fifth line: bit t of its bytes is the fifth bit of four t
 * QUANT_WHOLE_MIN: minima lie in pairs of groups. */
typedef struct {
  int blocks, groups;
  const uint8_t *codes;           /* [blocks] */
  const uint8_t *scales, *minima; /* [groups][16] */
  const uint8_t *d, *dmin;        /* [16] f16 */
  size_t bytes;                   /* after which the next cell begins */
} quant_cell;

static inline size_t quant_block_bytes(const quant_format *f) {
  return (size_t)f->bits * QUANT_BLOCK * QUANT_OUTPUTS / 8;
}

/* Where the parts of a cell begin, of what is left of k numbers or a whole one; and its bytes. */
typedef struct {
  int blocks, groups;
  size_t scales, minima, d, dmin, bytes;
} quant_layout;

static inline quant_layout quant_layout_of(const quant_format *f, int left) {
  quant_layout l = {.blocks = (left < QUANT_CELL ? left : QUANT_CELL) / QUANT_BLOCK};
  l.groups = l.blocks * QUANT_BLOCK / f->group;
  size_t line = (size_t)l.groups * QUANT_OUTPUTS * (quant_is_whole(f) ? 1 : 2), f16 = 2 * QUANT_OUTPUTS;
  l.scales = (size_t)l.blocks * quant_block_bytes(f);
  l.minima = l.scales + line;
  l.d = l.minima + (f->scales == QUANT_F16_MIN || f->scales == QUANT_WHOLE_MIN ? line : 0);
  l.dmin = l.d + (quant_is_whole(f) ? f16 : 0);
  l.bytes = (l.dmin + (f->scales == QUANT_WHOLE_MIN ? f16 : 0) + 63) & ~(size_t)63;
  return l;
}

static inline quant_cell quant_cell_at(const quant_format *f, const uint8_t *at, int left) {
  quant_layout l = quant_layout_of(f, left);
  return (quant_cell){l.blocks, l.groups, at, at + l.scales, at + l.minima, at + l.d, at + l.dmin, l.bytes};
}

/* Bytes of all cells of a strip. */
static inline size_t quant_strip_bytes(const quant_format *f, int k) {
  return (size_t)(k / QUANT_CELL) * quant_layout_of(f, QUANT_CELL).bytes +
         (k % QUANT_CELL ? quant_layout_of(f, k % QUANT_CELL).bytes : 0);
}

/* A row of a file's blocks into the place of one output of a zeroed strip. */
void quant_pack(const quant_format *f, const void *blocks, int k, int output, uint8_t *strip);

/* The k numbers of one output, with the bits of the type's reference decoder. */
void quant_unpack(const quant_format *f, const uint8_t *strip, int k, int output, float *out);

#endif
