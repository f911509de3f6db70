/* Weights that stay codes. A quantized matrix is held as its file has it, codes, scales and minima, laid out anew for vectors
 * that run across sixteen outputs. Rows of x are rounded to whole numbers; products are summed as integers, exact in any
 * order, as far as a scale reaches; what is left is combined in f32 in one fixed order. So every variant gives the same bits.
 *
 * The definition. A row of x is rounded in cells of 256 numbers: q = x / sx to the nearest, ties to even. The largest |x| of a
 * cell is 127 sx, but where it stands out of the cell by more than `spread` times the root of its mean square: then that is, and
 * the few larger numbers have a second digit, q = (high << 8) + low. Blocks of 32 whose high digits are all zero cost nothing
 * more. (ggml's rows of eight bits let one large number cost all others of its cell their precision.) A weight is (code - zero)
 * * scale + minimum, scale and minimum by groups. An output is the sum acc over the cells, in order, and in a cell:
 *
 *   QUANT_F16        scale is an f16         t = 0; for each group t = fma(sum of (code - zero) * q, scale, t)
 *   QUANT_F16_MIN    so is the minimum       and behind each group t = fma(sum of q, minimum, t);
 *                                            then acc = fma(t, sx, acc)
 *   QUANT_WHOLE      scale is a whole        acc = fma(sum over groups of scale * (sum of (code - zero) * q), d * sx, acc)
 *                    number times an f16 d
 *   QUANT_WHOLE_MIN  the minimum one         and acc = fma(sum over groups of minimum * (sum of q), dmin * -sx, acc)
 *                    times -dmin
 *
 * Sums are int32, as f32. A cell of x whose squares' sum is not finite has sx = NaN and q = 0. */
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

typedef struct {
  dt_dtype dtype;
  int bits; /* of a code as it is held: 4, 5 (four, and a plane of fifth bits) or 8 */
  int zero, group;
  quant_scales scales;
  float spread; /* the lower, the finer rows are rounded, and the more blocks have two digits */
} quant_format;

/* Spreads were chosen by the divergence from unrounded rows, beside that of ggml's rows, and by what second digits cost: the
 * types of 32 are measured against rows of eight bits per 32 numbers, the others against such per 256. */

#define QUANT_FORMATS(X)                                                                                               \
  X(q4_0, DT_Q4_0, 4, 8, 32, QUANT_F16, 2.5f)                                                                          \
  X(q4_1, DT_Q4_1, 4, 0, 32, QUANT_F16_MIN, 2.5f)                                                                      \
  X(q5_0, DT_Q5_0, 5, 16, 32, QUANT_F16, 2.5f)                                                                         \
  X(q5_1, DT_Q5_1, 5, 0, 32, QUANT_F16_MIN, 2.5f)                                                                      \
  X(q8_0, DT_Q8_0, 8, 128, 32, QUANT_F16, 2.5f)                                                                        \
  X(q4_k, DT_Q4_K, 4, 0, 32, QUANT_WHOLE_MIN, 5.0f)                                                                    \
  X(q5_k, DT_Q5_K, 5, 0, 32, QUANT_WHOLE_MIN, 5.0f)                                                                    \
  X(q6_k, DT_Q6_K, 8, 32, 16, QUANT_WHOLE, 5.0f)

static inline int quant_is_whole(const quant_format *f) {
  return f->scales == QUANT_WHOLE || f->scales == QUANT_WHOLE_MIN;
}

/* ---- rows of x, rounded ---------------------------------------------------------------------------------------------- */

/* What sx is measured by: with the first, the largest number is 127, and the second keeps a sum of 32 within sixteen bits where
 * squares underflow. */
#define QUANT_BYTE 127.4f
#define QUANT_MOST 1016.0f

/* A cell of a rounded row, which is an array of them. */
typedef struct {
  int8_t low[QUANT_CELL], high[QUANT_CELL];
  int32_t extra[QUANT_CELL /
                16]; /* [groups] -zero * (sum of q); with f16 minima the sum as an f32's bits; with whole minima
                                   * the sums of two groups as a pair of sixteen bits, at the even one */
  float scale;
  uint32_t wide; /* bit b: block b has high digits */
  char pad[56];
} quant_x;

static inline int quant_cells(int k) { return (k + QUANT_CELL - 1) / QUANT_CELL; }

/* ---- weights --------------------------------------------------------------------------------------------------------- */

/* A panel's two strips lie cell by cell side by side. Of one cell of a strip: four numbers of an output lie together, as dot
 * products of bytes want them. A block of 8 bits has eight lines; of 4 bits four, line i with the fours i in its low and i + 4
 * in its high halves; of 5 bits one more, whose bits t belong to the four t. Minima that are whole lie in pairs of groups. */
typedef struct {
  int blocks, groups;
  const uint8_t *codes;           /* [blocks] */
  const uint8_t *scales, *minima; /* [groups][16] */
  const uint8_t *d, *dmin;        /* [16] f16 */
  size_t bytes;                   /* after which both strips' next cells begin */
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

/* Of a panel's cells at `at`, `left` of k numbers before its end, that of one strip. */
static inline quant_cell quant_cell_at(const quant_format *f, const uint8_t *at, int left, int strip) {
  quant_layout l = quant_layout_of(f, left);
  at += (size_t)strip * l.bytes;
  return (quant_cell){l.blocks, l.groups, at, at + l.scales, at + l.minima, at + l.d, at + l.dmin, 2 * l.bytes};
}

static inline size_t quant_panel_bytes(const quant_format *f, int k) {
  return (size_t)(k / QUANT_CELL) * 2 * quant_layout_of(f, QUANT_CELL).bytes +
         (k % QUANT_CELL ? 2 * quant_layout_of(f, k % QUANT_CELL).bytes : 0);
}

/* A row of a file's blocks into the place of one output of a zeroed panel. */
void quant_pack(const quant_format *f, const void *blocks, int k, int output, uint8_t *panel);

/* The k numbers of one output, with the bits of the type's reference decoder. */
void quant_unpack(const quant_format *f, const uint8_t *panel, int k, int output, float *out);

#endif
