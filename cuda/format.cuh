/* The formats of weights on the device. */
#ifndef DT_CUDA_FORMAT_CUH
#define DT_CUDA_FORMAT_CUH

#include "internal.cuh"

extern "C" {
#include "model/types_apart.h"
}

/* Chooses the format for weights of a type: F16 and BF16 do not change, and quantized weights become F16. False: the
 * device cannot compute with this type. */
bool format_of(dt_dtype, number *);

/* Returns how a matrix of this type is stored if activations are F16: packed if the type has blocks that format.cu
 * names, otherwise BITS16. */
packing packing_of(dt_dtype);

/* Returns the table of the type's codes as matrix.table has it; zeros: the type has none. */
uint4 table_of(dt_dtype);

/* Returns the name of the type that a matrix has on the device: its own type if it is packed, otherwise the format.
 * Equal names have equal pointers. */
const char *stored_name(dt_dtype, packing, number format);

/* Converts n numbers of a row of any type to a format, rounding them if format_of names another format. For a type that
 * can be packed, the numbers in F16 are equal to those that the kernels compute from the codes (record.cuh). wide: room
 * for n numbers. */
void to_format(dt_dtype, number format, const void *row, int n, float *wide, uint16_t *out);

/* Writes the codes of a row of n numbers of a type that can be packed, one byte each, followed by a scale and an offset
 * for every 16 numbers. */
void to_codes(dt_dtype, const void *row, int n, uint8_t *out);

#endif
