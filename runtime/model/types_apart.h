/* Takes the quantized blocks of a file apart into codes and scales, for all types, for backends that compute with the
 * codes. The counterpart of the decoders of types.h. */
#ifndef DT_TYPES_APART_H
#define DT_TYPES_APART_H

#include "model/types.h"

enum {
  DT_CELL = 256,     /* numbers that are taken apart at once */
  DT_BLOCK = 32,     /* numbers of a block, or of a part of a larger one */
  DT_CELL_BLOCKS = 8 /* blocks of a cell */
};

/* A cell of one row. A number is (code - zero) * scale + minimum or, in types with a table, the table's value for the
 * code times the scale. A group has 32 numbers, or 16 in Q2_K, Q3_K and Q6_K. */
typedef struct {
  uint8_t code[DT_CELL];                                   /* Q8_0: plus 128 */
  uint16_t scale[DT_CELL_BLOCKS], minimum[DT_CELL_BLOCKS]; /* f16, one per block of 32 numbers */
  /* Only in blocks of 256 numbers, one for each group: integers. Scales may be signed; those of Q2_K have the minimum
   * in the upper half. In MXFP4: exponents. */
  uint8_t byte_scale[16], byte_minimum[DT_CELL_BLOCKS];
  uint16_t d, dmin; /* f16 */
} dt_codes;

/* Takes `blocks` blocks of 32 numbers apart, at most DT_CELL numbers, beginning with the first number of a block. Sets
 * only the fields that the type has. The codes of MXFP4 and IQ4 are indexes of their tables. */
void dt_take_apart(dt_dtype dtype, const void *from, int blocks, dt_codes *to);

/* Returns the table of a type's 16 codes; NULL: the type has none. MXFP4's values are doubled, to be integers. */
const int8_t *dt_code_values(dt_dtype dtype);

#endif
