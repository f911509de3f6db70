/* What a checkpoint's weights become on the device. */
#ifndef DT_CUDA_FORMAT_CUH
#define DT_CUDA_FORMAT_CUH

#include "internal.cuh"

/* F16 and BF16 stay what they are, numbers in blocks become F16; false: such a type is not computed with. */
bool format_of(dt_dtype, number *);

/* n numbers of a row of any type in a format, rounded where they are not what format_of says; wide: room for n. */
void to_format(dt_dtype, number format, const void *row, int n, float *wide, uint16_t *out);

#endif
