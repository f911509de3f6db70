/* The formats of weights on the device. */
#ifndef DT_CUDA_FORMAT_CUH
#define DT_CUDA_FORMAT_CUH

#include "internal.cuh"

/* F16 and BF16 stay as they are; quantized weights become F16. false: the device cannot compute with this type. */
bool format_of(dt_dtype, number *);

/* Converts n numbers of a row of any type to a format; rounds them if format_of names another format. wide: room for n
 * numbers. */
void to_format(dt_dtype, number format, const void *row, int n, float *wide, uint16_t *out);

#endif
