/* Matrix products with the interface of cuBLASLt: see cublasLt.h. Supports only out = transposed(a) b. */
#include <cublasLt.h>

#include "device.cuh"
#include "emu.h"

struct cublasLtContext {
  int open;
};

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  if (!emu::library_begins()) return CUBLAS_STATUS_NOT_INITIALIZED;
  return *handle = new cublasLtContext{1}, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return delete handle, CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t d, size_t size, cublasComputeType_t,
                                               cudaDataType_t scale) {
  if (size != sizeof *d) return CUBLAS_STATUS_INVALID_VALUE;
  d->a = CUBLAS_OP_N;
  return scale == CUDA_R_32F ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t, const void *value,
                                              size_t size) {
  if (size != sizeof d->a) return CUBLAS_STATUS_INVALID_VALUE;
  return memcpy(&d->a, value, size), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t l, size_t size, cudaDataType_t type,
                                                 uint64_t rows, uint64_t cols, int64_t ld) {
  if (size != sizeof *l) return CUBLAS_STATUS_INVALID_VALUE;
  *l = {type, rows, cols, ld};
  return ld >= (int64_t)rows ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t p, size_t size) {
  if (size != sizeof *p) return CUBLAS_STATUS_INVALID_VALUE;
  p->reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                                    size_t size) {
  bool memory = attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
  if (size != (memory ? sizeof(size_t) : sizeof(uint32_t))) return CUBLAS_STATUS_INVALID_VALUE;
  if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) memcpy(&p->reductions, value, size);
  return CUBLAS_STATUS_SUCCESS;
}

static size_t bytes(cudaDataType_t type) { return type == CUDA_R_32F ? 4 : 2; }
static bool aligned(cublasLtMatrixLayout_t l) { return (size_t)l->ld * bytes(l->type) % 16 == 0; }

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                              cublasLtMatrixLayout_t out, cublasLtMatmulPreference_t p, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results, int *found) {
  *found = 0;
  if (d->a != CUBLAS_OP_T || a->rows != b->rows || out->rows != a->cols || out->cols != b->cols || wanted < 1)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!aligned(a) || !aligned(b) || !aligned(c) || !aligned(out) || p->reductions != CUBLASLT_REDUCTION_SCHEME_NONE)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  results[0] = {{true}, CUBLAS_STATUS_SUCCESS};
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

template <number TYPE>
static void product(const uint16_t *a, cublasLtMatrixLayout_t al, const uint16_t *b, cublasLtMatrixLayout_t bl,
                    float *out, cublasLtMatrixLayout_t ol) {
  std::vector<float> wide(al->rows * al->cols), column(al->rows);
  for (uint64_t i = 0; i < al->cols; i++)
    for (uint64_t k = 0; k < al->rows; k++) wide[i * al->rows + k] = widen<TYPE>(a[i * (uint64_t)al->ld + k]);
  for (uint64_t j = 0; j < bl->cols; j++) {
    for (uint64_t k = 0; k < bl->rows; k++) column[k] = widen<TYPE>(b[j * (uint64_t)bl->ld + k]);
    for (uint64_t i = 0; i < al->cols; i++) {
      float sum = 0.0f;
      for (uint64_t k = 0; k < al->rows; k++) sum += wide[i * al->rows + k] * column[k];
      out[j * (uint64_t)ol->ld + i] = sum;
    }
  }
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,
                              const void *beta, const void *, cublasLtMatrixLayout_t, void *out,
                              cublasLtMatrixLayout_t out_layout, const cublasLtMatmulAlgo_t *algorithm, void *, size_t,
                              cudaStream_t) {
  if (cudaGetLastError() != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (!algorithm->chosen || *static_cast<const float *>(alpha) != 1.0f || *static_cast<const float *>(beta) != 0.0f ||
      ((uintptr_t)a | (uintptr_t)b | (uintptr_t)out) % 16)
    return CUBLAS_STATUS_INVALID_VALUE;
  auto multiply = a_layout->type == CUDA_R_16F ? product<F16> : product<BF16>;
  multiply(static_cast<const uint16_t *>(a), a_layout, static_cast<const uint16_t *>(b), b_layout,
           static_cast<float *>(out), out_layout);
  return CUBLAS_STATUS_SUCCESS;
}

void *emu::library_function(const char *name) {
  static const struct {
    const char *name;
    void *function;
  } all[] = {
#define FUNCTION(NAME) {#NAME, reinterpret_cast<void *>(NAME)}
      FUNCTION(cublasLtCreate),
      FUNCTION(cublasLtDestroy),
      FUNCTION(cublasLtMatmul),
      FUNCTION(cublasLtMatmulAlgoGetHeuristic),
      FUNCTION(cublasLtMatmulDescInit_internal),
      FUNCTION(cublasLtMatmulDescSetAttribute),
      FUNCTION(cublasLtMatmulPreferenceInit_internal),
      FUNCTION(cublasLtMatmulPreferenceSetAttribute),
      FUNCTION(cublasLtMatrixLayoutInit_internal),
  };
  for (auto &f : all)
    if (!strcmp(f.name, name)) return f.function;
  return nullptr;
}
