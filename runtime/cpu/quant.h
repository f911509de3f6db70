/* Quantized matrices. A matrix keeps the codes, scales and minima of its file, laid out for vectors that span sixteen
 * outputs. Rows of x are rounded to whole numbers. Products within a group are summed as integers, exact in any order;
 * groups are combined in f32 in one fixed order. So every variant gives the same bits.
 *
 * A weight is (code - zero) * scale + minimum; scale and minimum belong to a group of 16 or 32 numbers. Where codes
 * stand for the values of a table, "code" below is that value plus zero. An output is
 * the sum acc over the cells of 256 numbers, in order, and in a cell over its groups, in order. There are two
 * definitions of it, which differ in the rounding of x; ties go to even.
 *
 * One digit ("8"): x is rounded in blocks of 32 numbers: q = round(x * (127 / most)), most = the largest |x| of the
 * block; its scale is sx = most / 127. isum = the sum of (code - zero) * q over a group, an int32, as f32.
 *
 *   QUANT_F16        scale is an f16: acc = fma(isum, scale * sx, acc)
 *   QUANT_F16_MIN    minimum is an f16 too: then acc = fma(minimum, sx * (sum of q), acc)
 *   QUANT_E8M0       scale is half a power of two, in one byte: else as QUANT_F16
 *   QUANT_WHOLE      scale is a whole number times d, an f16 of the cell. u = the sum of isum * whole scale over the
 *                    block's groups, below 2^24 and so exact; t = 0, t = fma(u, sx, t); then acc = fma(t, d, acc)
 *   QUANT_WHOLE_MIN  minimum is a whole number times -dmin, an f16 of the cell. s = sx * (sum of q) of each group is
 *                    rounded: whole = round(s * (32767 / most)), ss = most / 32767, most = the cell's largest |s|; then
 *                    acc = fma(sum of minimum * whole, dmin * -ss, acc)
 *   QUANT_HALVES_MIN the same; a whole scale and a minimum are halves of one byte
 *
 *   If most is above QUANT_FAR times the block's mean |x|, q would hardly tell the other numbers apart. Such a block
 *   has a finer digit of each number, r = round((x * (127 / most) - q) * 128), of scale sx / 128. It is added like q,
 *   after the cell's groups and before the cell's end: acc = fma(rsum, scale * (sx / 128), acc), or t = fma(u of rsum,
 *   sx / 128, t). Minima are multiplied with q + r / 128 instead of q.
 *
 * Two digits ("16"): x is rounded in cells: q = round(x * (limit / most)), sx = most / limit,
 * q = (high << shift) + low.
 *
 *   t = 0;  t = fma(sum of (code - zero) * q, scale, t)      the sum is an int32, as f32
 *   QUANT_F16, QUANT_E8M0                                    acc = fma(t, sx, acc)
 *   QUANT_F16_MIN    after each group also                   acc = fma(t, sx, acc)
 *                    t = fma(sum of q, minimum, t)
 *   QUANT_WHOLE                                              acc = fma(t, d * sx, acc)
 *   QUANT_WHOLE_MIN, QUANT_HALVES_MIN                        the same, then
 *                                                            acc = fma(sum of minimum * (sum of q), dmin * -sx, acc)
 *
 * If a number of x is not finite, sx of its block (two digits: its cell) is NaN, and every q there is 0. */
#ifndef DT_CPU_QUANT_H
#define DT_CPU_QUANT_H

#include "model/types_apart.h"

#include <stddef.h>
#include <stdint.h>

enum {
  QUANT_CELL = DT_CELL,          /* numbers of a row that a pass over weights takes at once */
  QUANT_BLOCK = DT_BLOCK,        /* numbers whose codes lie together; a row has whole blocks */
  QUANT_BLOCKS = DT_CELL_BLOCKS, /* blocks of a cell; the last cell of a row may have fewer */
  QUANT_OUTPUTS = 16,            /* outputs that lie together: a strip */
  QUANT_LINE = 64                /* bytes: four numbers of each output of a strip */
};

typedef enum { QUANT_F16, QUANT_F16_MIN, QUANT_E8M0, QUANT_WHOLE, QUANT_WHOLE_MIN, QUANT_HALVES_MIN } quant_scales;

/* What a code stands for: itself, or a value of a table. */
typedef enum { QUANT_ITSELF, QUANT_IQ4, QUANT_FP4 } quant_values;

/* For two digits, q is (high << shift) + low, two signed bytes. The shift is the largest at which shifted codes still
 * fit bytes, so that the products of both digits add up in one accumulator. Codes of 8 bits have no room to be shifted:
 * the sums of their digits are added afterwards. With the limit 1016 a sum of 32 fits 16 bits. */
typedef struct {
  dt_dtype dtype;
  int bits; /* bits of a code: see "weights" */
  int zero, shift, limit, group;
  quant_scales scales;
  quant_values values;
} quant_format;

#define QUANT_FORMATS(X)                                                                                               \
  X(q4_0, DT_Q4_0, 4, 8, 4, 1016, 32, QUANT_F16, QUANT_ITSELF)                                                         \
  X(q4_1, DT_Q4_1, 4, 0, 4, 1016, 32, QUANT_F16_MIN, QUANT_ITSELF)                                                     \
  X(q5_0, DT_Q5_0, 5, 16, 3, 1016, 32, QUANT_F16, QUANT_ITSELF)                                                        \
  X(q5_1, DT_Q5_1, 5, 0, 3, 1016, 32, QUANT_F16_MIN, QUANT_ITSELF)                                                     \
  X(q8_0, DT_Q8_0, 8, 128, 7, 16256, 32, QUANT_F16, QUANT_ITSELF)                                                      \
  X(q2_k, DT_Q2_K, 2, 0, 6, 2032, 16, QUANT_HALVES_MIN, QUANT_ITSELF)                                                  \
  X(q3_k, DT_Q3_K, 3, 4, 5, 2032, 16, QUANT_WHOLE, QUANT_ITSELF)                                                       \
  X(q4_k, DT_Q4_K, 4, 0, 4, 1016, 32, QUANT_WHOLE_MIN, QUANT_ITSELF)                                                   \
  X(q5_k, DT_Q5_K, 5, 0, 3, 1016, 32, QUANT_WHOLE_MIN, QUANT_ITSELF)                                                   \
  X(q6_k, DT_Q6_K, 6, 32, 2, 508, 16, QUANT_WHOLE, QUANT_ITSELF)                                                       \
  X(iq4_nl, DT_IQ4_NL, 4, 128, 7, 16256, 32, QUANT_F16, QUANT_IQ4)                                                     \
  X(iq4_xs, DT_IQ4_XS, 4, 128, 7, 16256, 32, QUANT_WHOLE, QUANT_IQ4)                                                   \
  X(mxfp4, DT_MXFP4, 4, 12, 3, 1016, 32, QUANT_E8M0, QUANT_FP4)

static inline int quant_is_whole(const quant_format *f) { return f->scales >= QUANT_WHOLE; }

static inline int quant_has_whole_minima(const quant_format *f) { return f->scales >= QUANT_WHOLE_MIN; }

/* The values of a table's codes, plus the format's zero. */
static const uint8_t quant_iq4[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};
static const uint8_t quant_fp4[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

static inline const uint8_t *quant_table(const quant_format *f) {
  return f->values == QUANT_IQ4 ? quant_iq4 : quant_fp4;
}

/* ---- rows of x, rounded: a cell of one --------------------------------------------------------------------------- */

enum {
  QUANT_LIMIT = 127,
  QUANT_SUM_LIMIT = 32767,
  QUANT_FINER = 7, /* bits of a finer digit */
  QUANT_FAR = 14   /* a block gets finer digits if its largest |x| is above so many times its mean |x| */
};

typedef struct {
  _Alignas(64) int8_t digit[QUANT_CELL];
  float scale[QUANT_BLOCKS]; /* sx */
  /* [groups] -zero * (sum of q). QUANT_F16_MIN: the bits of sx * (sum of q). Whole minima: the whole sums of groups 2i
   * and 2i + 1, 16 bits each, at i. */
  int32_t extra[2 * QUANT_BLOCKS];
  float sums;    /* whole minima: ss */
  uint32_t fine; /* bit b: block b has finer digits; without, its three arrays below are not set */
  int8_t finer[QUANT_CELL];
  float finer_scale[QUANT_BLOCKS];
  int32_t finer_extra[2 * QUANT_BLOCKS]; /* [groups] -zero * (sum of the finer digits) */
} quant_one;

typedef struct {
  _Alignas(64) int8_t digits[2 * QUANT_CELL]; /* [groups][2][group] the high digits, then the low digits */
  float scale;
  /* [groups] -zero * (sum of q). QUANT_F16_MIN: the bits of the sum as an f32. Whole minima: the sums of groups 2i and
   * 2i + 1, 16 bits each, at i. */
  int32_t extra[2 * QUANT_BLOCKS];
} quant_two;

static inline int quant_cells(int k) { return (k + QUANT_CELL - 1) / QUANT_CELL; }

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* One cell of a strip: 256 inputs by 16 outputs. A "four" is four consecutive inputs of one output, the unit of a dot
 * product of bytes. A line (64 bytes) holds one four of each output. A block (32 inputs) has eight fours:
 *   8 bits   eight lines: line t is four t
 *   2 bits   two lines: bits 2i and 2i + 1 of the bytes of line l are four 2i + l
 *   3 bits   the same and a third line: bit t of its bytes is the third bit of four t
 *   4 bits   four lines: line i has four i in the low halves of its bytes, four i + 4 in the high halves
 *   5 bits   the same and a fifth line: bit t of its bytes is the fifth bit of four t
 *   6 bits   the same four lines and two more: bits 2i and 2i + 1 of the bytes of the first are the upper bits of four
 *            i, those of the second the upper bits of four i + 4
 * QUANT_WHOLE_MIN: the minima of groups 2i and 2i + 1 lie side by side. QUANT_HALVES_MIN: so do their bytes, scales in
 * the low halves, minima in the high halves. */
typedef struct {
  int blocks, groups;
  const uint8_t *codes;           /* [blocks] */
  const uint8_t *scales, *minima; /* [groups][16] */
  const uint8_t *d, *dmin;        /* [16] f16 */
  size_t bytes;                   /* distance to the next cell */
} quant_cell;

static inline size_t quant_block_bytes(const quant_format *f) {
  return (size_t)f->bits * QUANT_BLOCK * QUANT_OUTPUTS / 8;
}

/* Bytes of one output's scale of a group. */
static inline int quant_scale_bytes(const quant_format *f) {
  return f->scales == QUANT_F16 || f->scales == QUANT_F16_MIN ? 2 : 1;
}

/* The offsets of a cell's parts, in bytes, for a whole cell or the last numbers of a row; and the cell's size in
 * bytes. */
typedef struct {
  int blocks, groups;
  size_t scales, minima, d, dmin, bytes;
} quant_layout;

static inline quant_layout quant_layout_of(const quant_format *f, int left) {
  quant_layout l = {.blocks = (left < QUANT_CELL ? left : QUANT_CELL) / QUANT_BLOCK};
  l.groups = l.blocks * QUANT_BLOCK / f->group;
  size_t line = (size_t)(l.groups * QUANT_OUTPUTS * quant_scale_bytes(f)), f16 = 2 * QUANT_OUTPUTS;
  l.scales = (size_t)l.blocks * quant_block_bytes(f);
  l.minima = l.scales + line;
  l.d = l.minima + (f->scales == QUANT_F16_MIN || f->scales == QUANT_WHOLE_MIN ? line : 0);
  l.dmin = l.d + (quant_is_whole(f) ? f16 : 0);
  l.bytes = (l.dmin + (quant_has_whole_minima(f) ? f16 : 0) + 63) & ~(size_t)63;
  return l;
}

static inline quant_cell quant_cell_at(const quant_format *f, const uint8_t *at, int left) {
  quant_layout l = quant_layout_of(f, left);
  return (quant_cell){l.blocks, l.groups, at, at + l.scales, at + l.minima, at + l.d, at + l.dmin, l.bytes};
}

/* Bytes of a strip: of all its cells. */
static inline size_t quant_strip_bytes(const quant_format *f, int k) {
  return (size_t)(k / QUANT_CELL) * quant_layout_of(f, QUANT_CELL).bytes +
         (k % QUANT_CELL ? quant_layout_of(f, k % QUANT_CELL).bytes : 0);
}

/* Packs a row of a file's blocks as one output of a zeroed strip. */
void quant_pack(const quant_format *f, const void *blocks, int k, int output, uint8_t *strip);

/* Unpacks the k numbers of one output, with the bits of the type's reference decoder. */
void quant_unpack(const quant_format *f, const uint8_t *strip, int k, int output, float *out);

#endif
