/* Products of many rows at once, computed by cuBLASLt. */
#ifndef DT_CUDA_GEMM_CUH
#define DT_CUDA_GEMM_CUH

#include "internal.cuh"

/* out[row][output] = the sum over k of input[row][k] * weights[output][k], for CHUNK rows. The order of the sum depends
 * only on the shape. */
struct gemm {
  number type;
  int outputs, k;          /* weights: [outputs][k] */
  int input_ld, output_ld; /* numbers from one row to the next */
  bool operator==(const gemm &) const = default;
};

cudaError_t gemms_open(gemm_library **); /* cudaErrorNotSupported: cuBLASLt is not installed */
void gemms_free(gemm_library *);         /* null: does nothing */
/* Enqueues a product. cudaErrorNotSupported: the library cannot compute it. */
cudaError_t multiply(gemm_library *, const gemm &, const uint16_t *weights, const uint16_t *input, float *out,
                     cudaStream_t);

#endif
