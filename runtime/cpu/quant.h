/* Weights that stay codes. A quantized matrix is held as its file has it, codes, scales and minima, laid out anew for vectors
 * that run across sixteen outputs. Rows of x are rounded to whole numbers; products within a group are summed as integers,
 * exact in any order; groups are combined in f32 in one fixed order. So every variant gives the same bits.
 *
 * A weight is (code - zero) * scale + minimum, scale and minimum by groups of 16 or 32 numbers. An output is the sum acc over
 * the cells of 256 numbers, in order, and in a cell over its groups, in order. There are two definitions of it, by what is
 * kept of x; ties go to even.
 *
 * One digit ("8"): x is rounded by 32 numbers, q = round(x * (127 / most)), most = the largest |x| of them, and their scale is
 * sx = most / 127. isum = the sum of (code - zero) * q over a group, an int32, as f32.
 *
 *   QUANT_F16        scale is an f16          acc = fma(isum, scale * sx, acc)
 *   QUANT_F16_MIN    so is the minimum        and acc = fma(minimum, sx * (sum of q), acc)
 *   QUANT_WHOLE      scale is a whole number, times the cell's f16 d. u = the sum of isum * scale over the groups of 32 numbers,
 *                    below 2^24 and so exact; t = 0, t = fma(u, sx, t); then acc = fma(t, d, acc)
 *   QUANT_WHOLE_MIN  and the minimum one times -dmin. s = sx * (sum of q), of each group, is rounded again: whole = round(s *
 *                    (32767 / most)), ss = most / 32767, most = the cell's largest |s|; then
 *                    acc = fma(sum of minimum * whole, dmin * -ss, acc)
 *
 *   Where most is above QUANT_FAR times the mean |x| of the 32 numbers, the others would hardly be told apart: such a block keeps a
 *   finer digit of each, r = round((x * (127 / most) - q) * 128), of scale sx / 128. It adds as q did, behind the cell's groups and
 *   before its end: acc = fma(rsum, scale * (sx / 128), acc), or t = fma(u of rsum, sx / 128, t). Minima take q + r / 128 for q.
 *
 * Two digits ("16"): x is rounded by cells, q = round(x * (limit / most)), sx = most / limit, q = (high << shift) + low.
 *
 *   t = 0;  t = fma(sum of (code - zero) * q, scale, t)      the sum is an int32, as f32
 *   QUANT_F16                                                acc = fma(t, sx, acc)
 *   QUANT_F16_MIN    behind each group                       acc = fma(t, sx, acc)
 *                    t = fma(sum of q, minimum, t)
 *   QUANT_WHOLE                                              acc = fma(t, d * sx, acc)
 *   QUANT_WHOLE_MIN                                          and acc = fma(sum of minimum * (sum of q), dmin * -sx, acc)
 *
 * Numbers of x that are not finite make their sx NaN, and q = 0. */
#ifndef DT_CPU_QUANT_H
#define DT_CPU_QUANT_H

#include "model/types.h"

#include <stddef.h>
#include <stdint.h>

enum {
  QUANT_CELL = 256,   /* numbers of a row that a pass over weights takes at once */
  QUANT_BLOCK = 32,   /* numbers whose codes lie together; rows have whole blocks */
  QUANT_BLOCKS = 8,   /* of a whole cell; the last one of a row may have fewer */
  QUANT_OUTPUTS = 16, /* outputs that lie together: a strip */
  QUANT_LINE = 64     /* bytes: four numbers each of a strip's outputs */
};

typedef enum { QUANT_F16, QUANT_F16_MIN, QUANT_WHOLE, QUANT_WHOLE_MIN } quant_scales;

/* Of two digits: q is (high << shift) + low, two signed bytes: as fine as the codes leave room for when shifted codes are bytes
 * too, so that both digits' products add up in one accumulator. Codes of eight bits leave none: their two sums are joined. The
 * limit of 1016 lets a sum of 32 fit sixteen bits. */
typedef struct {
  dt_dtype dtype;
  int bits; /* of a code as it is held: 4, 5 (four, and a plane of fifth bits), 6 (four, and two of two bits each) or 8 */
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
  X(q6_k, DT_Q6_K, 6, 32, 2, 508, 16, QUANT_WHOLE)

static inline int quant_is_whole(const quant_format *f) {
  return f->scales == QUANT_WHOLE || f->scales == QUANT_WHOLE_MIN;
}

/* ---- rows of x, rounded: a cell of one ------------------------------------------------------------------------------- */

enum {
  QUANT_LIMIT = 127,
  QUANT_SUM_LIMIT = 32767,
  QUANT_FINER = 7, /* bits of a finer digit */
  QUANT_FAR = 14   /* times the mean |x| of a block: its numbers get a finer digit where the largest is above that */
};

typedef struct {
  _Alignas(64) int8_t digit[QUANT_CELL];
  float scale[QUANT_BLOCKS]; /* sx */
  /* [groups] -zero * (sum of q). QUANT_F16_MIN: the bits of sx * (sum of q). QUANT_WHOLE_MIN: the whole sums of groups 2i and
   * 2i + 1, 16 bits each, at i. */
  int32_t extra[2 * QUANT_BLOCKS];
  float sums;    /* QUANT_WHOLE_MIN: ss */
  uint32_t fine; /* bit b: block b has finer digits, and what follows of it is set */
  int8_t finer[QUANT_CELL];
  float finer_scale[QUANT_BLOCKS];
  int32_t finer_extra[2 * QUANT_BLOCKS]; /* [groups] -zero * (sum of the finer digits) */
} quant_one;

typedef struct {
  _Alignas(64) int8_t digits[2 * QUANT_CELL]; /* [groups][2][group] the high digits, then the low ones */
  float scale;
  /* [groups] -zero * (sum of q). QUANT_F16_MIN: the bits of the sum as an f32. QUANT_WHOLE_MIN: the sums of groups 2i and 2i + 1,
   * 16 bits each, at i. */
  int32_t extra[2 * QUANT_BLOCKS];
} quant_two;

static inline int quant_cells(int k) { return (k + QUANT_CELL - 1) / QUANT_CELL; }

/* ---- weights --------------------------------------------------------------------------------------------------------- */

/* One cell of a strip: 256 inputs by 16 outputs. A "four" is four consecutive inputs of one output, the unit of a dot product of
 * bytes; a line (64 bytes) holds one four of each output. A block (32 inputs) has eight fours:
 *   8 bits   eight lines, line t = four t
 *   4 bits   four lines, line i = four i in the low halves of its bytes and four i + 4 in the high ones
 *   5 bits   the same and a fifth line: bit t of its bytes is the fifth bit of four t
 *   6 bits   four lines as above; two more: bits 2i and 2i + 1 of the first one's bytes are the upper bits of four i, of the
 *            second one's those of four i + 4
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
