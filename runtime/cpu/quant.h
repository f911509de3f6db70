/* Quantized matrices on the CPU: how their weights are laid out in memory, and what a product with them is.
 *
 * A matrix keeps the codes, scales and minima of its file, rearranged so that one vector spans sixteen outputs. Rows of
 * x (activations) are rounded to integers. The products within a group are summed as integers, which is exact in any
 * order; the groups are then combined in f32 in one fixed order. Every variant therefore gives the same bits.
 *
 *   group   16 or 32 consecutive inputs, which share a scale (and a minimum)
 *   block   32 consecutive inputs
 *   cell    256 consecutive inputs; the last cell of a row may have fewer
 *   strip   sixteen outputs, stored together
 *
 * A weight is (code - zero) * scale + minimum. Where codes are indices into a table, "code" below means the table's
 * value plus zero. An output is a sum acc: it starts at 0 and adds the cells of its row in order, and within a cell the
 * groups in order. How a group is added depends on how x is rounded: to one digit or to two. Rounding is to the nearest
 * number, ties to even.
 *
 * One digit (option "activations": 8). Each block of x is rounded with a scale of its own: with max = the block's
 * largest |x|, q = round(x * (127 / max)) and sx = max / 127. isum is the sum of (code - zero) * q over a group,
 * computed as an int32 and converted to f32.
 *
 *   QUANT_F16        scale is an f16: acc = fma(isum, scale * sx, acc)
 *   QUANT_F16_MIN    minimum is an f16 too; then also acc = fma(minimum, sx * (sum of q), acc)
 *   QUANT_E8M0       as QUANT_F16, but scale is half a power of two and stored as its exponent, in one byte
 *   QUANT_WHOLE      scale is an integer times d, an f16 of the cell. For each block, u = the sum of isum * integer
 *                    scale over its groups, which is exact (below 2^24), and t = fma(u, sx, t); t starts the cell at 0.
 *                    At the end of the cell acc = fma(t, d, acc)
 *   QUANT_WHOLE_MIN  as QUANT_WHOLE, and minimum is an integer times -dmin, an f16 of the cell. For each group,
 *                    s = sx * (sum of q) is rounded: whole = round(s * (32767 / smax)) with smax = the cell's
 *                    largest |s|, and ss = smax / 32767. At the end of the cell also
 *                    acc = fma(sum of integer minimum * whole, dmin * -ss, acc)
 *   QUANT_HALVES_MIN as QUANT_WHOLE_MIN; the integer scale and minimum of a group share a byte
 *
 * If max exceeds QUANT_FAR times the block's mean |x|, q hardly distinguishes the other numbers of the block. Such a
 * block gets a second, finer digit for each number: r = round((x * (127 / max) - q) * 128), with scale sx / 128. The
 * finer digits are added like q, after all groups of the cell and before the cell's last step: acc = fma(rsum, scale *
 * (sx / 128), acc), or t = fma(u of rsum, sx / 128, t). Minima are multiplied with q + r / 128 instead of q.
 *
 * Two digits (option "activations": 16). Each cell of x is rounded with one scale: q = round(x * (limit / max)) and sx
 * = max / limit. q is stored as two signed bytes: q = (high << shift) + low. For each cell t starts at 0, and for each
 * group t = fma(sum of (code - zero) * q, scale, t), where the sum is an int32 converted to f32. Then:
 *
 *   QUANT_F16, QUANT_E8M0                acc = fma(t, sx, acc)
 *   QUANT_F16_MIN                        the same; each group also adds its minimum: t = fma(sum of q, minimum, t)
 *   QUANT_WHOLE                          acc = fma(t, d * sx, acc)
 *   QUANT_WHOLE_MIN, QUANT_HALVES_MIN    as QUANT_WHOLE; then
 *                                        acc = fma(sum of integer minimum * (sum of q), dmin * -sx, acc)
 *
 * If a number of x is not finite, sx of its block (two digits: of its cell) is NaN, and every q of that block or cell
 * is 0. */
#ifndef DT_CPU_QUANT_H
#define DT_CPU_QUANT_H

#include "model/types_apart.h"

#include <stddef.h>
#include <stdint.h>

enum {
  QUANT_CELL = DT_CELL,          /* inputs of a cell, which kernels process at once */
  QUANT_BLOCK = DT_BLOCK,        /* inputs of a block; the length of a row is a multiple of it */
  QUANT_BLOCKS = DT_CELL_BLOCKS, /* blocks of a cell; the last cell of a row may have fewer */
  QUANT_OUTPUTS = 16,            /* outputs of a strip */
  QUANT_LINE = 64                /* bytes: four inputs for each output of a strip */
};

typedef enum { QUANT_F16, QUANT_F16_MIN, QUANT_E8M0, QUANT_WHOLE, QUANT_WHOLE_MIN, QUANT_HALVES_MIN } quant_scales;

/* What a code means: its own value, or an index into a table. */
typedef enum { QUANT_ITSELF, QUANT_IQ4, QUANT_FP4 } quant_values;

/* A quantized format. shift, limit: how x is rounded to two digits, q = (high << shift) + low. The shift is the largest
 * one with which shifted codes still fit into bytes, so that the products of both digits can be added in one
 * accumulator. Codes of 8 bits leave no room for a shift, so the sums of their two digits are kept apart and combined
 * afterwards. With a limit of 1016, the sum of 32 values of q fits 16 bits. */
typedef struct {
  dt_dtype dtype;
  int bits; /* bits of a stored code: see quant_cell */
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

/* The values that a table's codes stand for, plus the format's zero. */
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
  QUANT_FAR = 14   /* a block gets finer digits if its largest |x| exceeds this multiple of its mean |x| */
};

typedef struct {
  _Alignas(64) int8_t digit[QUANT_CELL];
  float scale[QUANT_BLOCKS]; /* sx */
  /* [groups] -zero * (sum of q). QUANT_F16_MIN: the bits of the float sx * (sum of q). Integer minima: element i holds
   * the rounded sums ("whole") of groups 2i and 2i + 1, 16 bits each. */
  int32_t extra[2 * QUANT_BLOCKS];
  float sums;    /* integer minima: ss */
  uint32_t fine; /* bit b: block b has finer digits; only then the three arrays below are set for it */
  int8_t finer[QUANT_CELL];
  float finer_scale[QUANT_BLOCKS];
  int32_t finer_extra[2 * QUANT_BLOCKS]; /* [groups] -zero * (sum of the finer digits) */
} quant_one;

typedef struct {
  _Alignas(64) int8_t digits[2 * QUANT_CELL]; /* [groups][2][group] the high digits, then the low digits */
  float scale;
  /* [groups] -zero * (sum of q). QUANT_F16_MIN: the bits of the sum as an f32. Integer minima: element i holds the sums
   * of groups 2i and 2i + 1, 16 bits each. */
  int32_t extra[2 * QUANT_BLOCKS];
} quant_two;

static inline int quant_cells(int k) { return (k + QUANT_CELL - 1) / QUANT_CELL; }

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* Pointers to the parts of one cell of a strip: 256 inputs of 16 outputs.
 *
 * A "four" is four consecutive inputs of one output, the operand of one byte dot product. A line (64 bytes) holds
 * one four for each of the sixteen outputs. A block (32 inputs) has eight fours, numbered 0 to 7. Their codes are
 * stored as follows, by bits per code:
 *   8 bits   eight lines: line t holds four t
 *   2 bits   two lines: bits 2i and 2i + 1 of the bytes of line l hold four 2i + l
 *   3 bits   as 2 bits, and a third line: bit t of its bytes is the third bit of four t
 *   4 bits   four lines: the low halves of the bytes of line i hold four i, the high halves hold four i + 4
 *   5 bits   as 4 bits, and a fifth line: bit t of its bytes is the fifth bit of four t
 *   6 bits   as 4 bits, and two more lines: bits 2i and 2i + 1 of their bytes are the upper bits of four i in the first
 *            of them, and of four i + 4 in the second
 * With QUANT_WHOLE_MIN the minima of groups 2i and 2i + 1 are interleaved output by output. With QUANT_HALVES_MIN
 * the bytes of these groups are interleaved in the same way; their low halves are the scales, their high halves the
 * minima. */
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

/* The size in bytes of a group's scale for one output. */
static inline int quant_scale_bytes(const quant_format *f) {
  return f->scales == QUANT_F16 || f->scales == QUANT_F16_MIN ? 2 : 1;
}

/* Where the parts of a cell begin, in bytes from its start, and the cell's size in bytes. */
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

/* The size of a strip of k inputs in bytes. */
static inline size_t quant_strip_bytes(const quant_format *f, int k) {
  return (size_t)(k / QUANT_CELL) * quant_layout_of(f, QUANT_CELL).bytes +
         (k % QUANT_CELL ? quant_layout_of(f, k % QUANT_CELL).bytes : 0);
}

/* Packs a row of k weights as output number `output` (0..15) of a strip. `blocks` is the row as the file stores it; the
 * strip must have been zeroed. */
void quant_pack(const quant_format *f, const void *blocks, int k, int output, uint8_t *strip);

/* Unpacks the k weights of one output (0..15) of a strip. The result has the bits of the type's reference decoder. */
void quant_unpack(const quant_format *f, const uint8_t *strip, int k, int output, float *out);

#endif
