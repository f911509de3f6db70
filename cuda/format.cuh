/* The formats of weights on the device. */
#ifndef DT_CUDA_FORMAT_CUH
#define DT_CUDA_FORMAT_CUH

#include "internal.cuh"

extern "C" {
#include "model/types_apart.h"
}

/* F16 and BF16 stay as they are; quantized weights become F16. false: the device cannot compute with this type. */
bool format_of(dt_dtype, number *);

/* How a matrix of this type is kept where activations are F16. BITS16: of other types than Q4_0, Q4_1, Q5_0, Q5_1,
 * Q8_0, Q4_K, Q5_K and Q6_K. */
packing packing_of(dt_dtype);

/* The name of what a matrix is kept as: of its type if it is packed, else of the format. One pointer for each name. */
const char *stored_name(dt_dtype, packing, number format);

/* Converts n numbers of a row of any type to a format; rounds them if format_of names another format. Of a type that
 * can be packed the numbers in F16 are those that the kernels compute from its codes: see record.cuh. wide: room for n
 * numbers. */
void to_format(dt_dtype, number format, const void *row, int n, float *wide, uint16_t *out);

/* The codes of a row of n numbers of a type that can be packed, a byte each; then for every 16 numbers their scale and
 * offset. */
void to_codes(dt_dtype, const void *row, int n, uint8_t *out);

#endif
