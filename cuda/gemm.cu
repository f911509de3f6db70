/* cuBLASLt as this backend uses it. It is opened for the first prompt that is long enough; nothing else needs it. For
 * each shape it is asked once for an algorithm, which is then always used. Algorithms that split the sum over k, or
 * that need memory, are excluded: the amount of free memory must not decide. */
#include "gemm.cuh"

#include <cublasLt.h>
#include <new>

constexpr int MOST_GEMMS = 16; /* maximum number of shapes of a model's products */
constexpr uint32_t ALIGNED = 16;

struct gemm_plan {
  gemm shape;
  cublasLtMatmulDescOpaque_t product;
  cublasLtMatrixLayoutOpaque_t weights, input, out; /* transposed: BLAS reads by column, but ours are stored by row */
  cublasLtMatmulAlgo_t algorithm;
};

/* The functions of the library that are used. */
#define FOR_FUNCTIONS(F)                                                                                               \
  F(cublasLtCreate)                                                                                                    \
  F(cublasLtDestroy)                                                                                                   \
  F(cublasLtMatmul)                                                                                                    \
  F(cublasLtMatmulAlgoGetHeuristic)                                                                                    \
  F(cublasLtMatmulDescInit_internal)                                                                                   \
  F(cublasLtMatmulDescSetAttribute)                                                                                    \
  F(cublasLtMatmulPreferenceInit_internal)                                                                             \
  F(cublasLtMatmulPreferenceSetAttribute)                                                                              \
  F(cublasLtMatrixLayoutInit_internal)
#define MEMBER(NAME) decltype(&::NAME) NAME;
#define FIND(NAME) (l->NAME = reinterpret_cast<decltype(l->NAME)>(library_function(l->library, #NAME))) &&
#define TEXT_OF(NUMBER) #NUMBER
#define LIBRARY(VERSION) "libcublasLt.so." TEXT_OF(VERSION) /* the version of the header */

struct gemm_library {
  void *library;
  FOR_FUNCTIONS(MEMBER)
  cublasLtHandle_t handle;
  int count;
  gemm_plan plan[MOST_GEMMS];
};

static cudaError_t error_of(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_SUCCESS: return cudaSuccess;
  case CUBLAS_STATUS_NOT_INITIALIZED: /* it is given up; the device has not failed */
  case CUBLAS_STATUS_NOT_SUPPORTED:
  case CUBLAS_STATUS_ARCH_MISMATCH: return cudaErrorNotSupported;
  case CUBLAS_STATUS_ALLOC_FAILED: return cudaErrorMemoryAllocation;
  default: return cudaErrorUnknown;
  }
}

cudaError_t gemms_open(gemm_library **out) {
  gemm_library *l = new (std::nothrow) gemm_library();
  if (!l) return cudaErrorMemoryAllocation;
  l->library = library_open(LIBRARY(CUBLAS_VER_MAJOR));
  bool found = l->library && FOR_FUNCTIONS(FIND) true;
  /* A library that is missing, or cannot begin, is done without; whatever the reason, the device has not failed. */
  if (!found || l->cublasLtCreate(&l->handle) != CUBLAS_STATUS_SUCCESS) {
    l->handle = nullptr;
    gemms_free(l);
    cudaGetLastError();
    return cudaErrorNotSupported;
  }
  *out = l;
  return cudaSuccess;
}

void gemms_free(gemm_library *l) {
  if (!l) return;
  if (l->handle) l->cublasLtDestroy(l->handle);
  library_close(l->library);
  delete l;
}

/* Keeps the first failure. */
static void must(cublasStatus_t *status, cublasStatus_t next) {
  if (*status == CUBLAS_STATUS_SUCCESS) *status = next;
}

static cublasStatus_t choose(const gemm_library *l, gemm_plan *p) {
  cublasLtMatmulPreferenceOpaque_t wish;
  cublasStatus_t status = l->cublasLtMatmulPreferenceInit_internal(&wish, sizeof wish);
  const size_t memory = 0;
  const uint32_t splits = CUBLASLT_REDUCTION_SCHEME_NONE;
  auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const void *value, size_t size) {
    must(&status, l->cublasLtMatmulPreferenceSetAttribute(&wish, attribute, value, size));
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &memory, sizeof memory);
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &splits, sizeof splits);
  for (auto matrix : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(matrix, &ALIGNED, sizeof ALIGNED);
  cublasLtMatmulHeuristicResult_t best = {};
  int found = 0;
  must(&status, l->cublasLtMatmulAlgoGetHeuristic(l->handle, &p->product, &p->weights, &p->input, &p->out, &p->out,
                                                  &wish, 1, &best, &found));
  if (status == CUBLAS_STATUS_SUCCESS && !found) status = CUBLAS_STATUS_NOT_SUPPORTED;
  must(&status, best.state);
  p->algorithm = best.algo;
  return status;
}

static cublasStatus_t plan(const gemm_library *l, const gemm &shape, gemm_plan *p) {
  cudaDataType_t type = shape.type == F16 ? CUDA_R_16F : CUDA_R_16BF;
  uint64_t outputs = (uint64_t)shape.outputs, k = (uint64_t)shape.k;
  const cublasOperation_t transposed = CUBLAS_OP_T;
  p->shape = shape;
  cublasStatus_t status =
      l->cublasLtMatmulDescInit_internal(&p->product, sizeof p->product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  must(&status,
       l->cublasLtMatmulDescSetAttribute(&p->product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
  must(&status, l->cublasLtMatrixLayoutInit_internal(&p->weights, sizeof p->weights, type, k, outputs, shape.k));
  must(&status, l->cublasLtMatrixLayoutInit_internal(&p->input, sizeof p->input, type, k, CHUNK, shape.input_ld));
  must(&status,
       l->cublasLtMatrixLayoutInit_internal(&p->out, sizeof p->out, CUDA_R_32F, outputs, CHUNK, shape.output_ld));
  must(&status, choose(l, p));
  return status;
}

static cudaError_t find(gemm_library *l, const gemm &shape, gemm_plan **out) {
  for (int i = 0; i < l->count; i++)
    if (l->plan[i].shape == shape) return *out = &l->plan[i], cudaSuccess;
  if (l->count == MOST_GEMMS) return cudaErrorNotSupported;
  cudaError_t e = error_of(plan(l, shape, &l->plan[l->count]));
  if (e == cudaSuccess) *out = &l->plan[l->count++];
  return e;
}

cudaError_t multiply(gemm_library *l, const gemm &shape, const uint16_t *weights, const uint16_t *input, float *out,
                     cudaStream_t stream) {
  gemm_plan *p = nullptr;
  cudaError_t e = find(l, shape, &p);
  if (e != cudaSuccess) return e;
  const float one = 1.0f, zero = 0.0f;
  return error_of(l->cublasLtMatmul(l->handle, &p->product, &one, weights, &p->weights, input, &p->input, &zero, out,
                                    &p->out, out, &p->out, &p->algorithm, nullptr, 0, stream));
}
