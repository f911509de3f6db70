/* What quantized blocks of a file hold, whatever their type: the inverse of the decoders of types.h, for backends that
 * keep the codes. */
#ifndef DT_TYPES_APART_H
#define DT_TYPES_APART_H

#include "model/types.h"

enum {
  DT_CELL = 256,     /* numbers that are taken apart at once */
  DT_BLOCK = 32,     /* numbers of a block, or of a part of a larger one */
  DT_CELL_BLOCKS = 8 /* blocks of a cell */
};

/* A cell of one row. A number is (code - zero) * scale + minimum, or the value of a table's code times the scale.
 * Groups have 32 numbers; those of Q2_K, Q3_K and Q6_K 16. */
typedef struct {
  uint8_t code[DT_CELL];                                   /* Q8_0: plus 128 */
  uint16_t scale[DT_CELL_BLOCKS], minimum[DT_CELL_BLOCKS]; /* f16, one per block of 32 numbers */
  /* Of blocks of 256 numbers, one per group: whole numbers, a scale perhaps signed, Q2_K's with the minimum in its
   * upper half. MXFP4: exponents. */
  uint8_t byte_scale[16], byte_minimum[DT_CELL_BLOCKS];
  uint16_t d, dmin; /* f16 */
} dt_codes;

/* Takes up to DT_CELL numbers apart: this number of blocks of 32, from the first of a block. Sets only what the type
 * has; the codes of MXFP4 and IQ4 are those of their tables. */
void dt_take_apart(dt_dtype dtype, const void *from, int blocks, dt_codes *to);

#endif
