/* Rounds keys and values to q8, as runtime/cpu/attention_q8.c does. A group of SCALED numbers is rounded alone, by one
 * warp, a lane for each number: nothing depends on other rows. The numbers had been rounded to the activations' type
 * before. */
#include "cache_format.cuh"
#include "launch.cuh"

constexpr float MOST_CODE = 127.0f;
/* The largest scale in F16: MOST_CODE times the next larger one would become infinite when it is read. */
constexpr float MOST_SCALE = 515.5f;

/* The least scale, at least 2^-24, that times MOST_CODE is not below `largest`; 0 if that is 0; NaN if no scale in F16
 * is enough. */
template <number TYPE> static __device__ __forceinline__ uint16_t scale_for(float largest) {
  if (!(largest > 0.0f)) return 0;
  uint16_t scale = narrow<F16>(largest / MOST_CODE);
  if (widen<F16>(scale) * MOST_CODE < largest) scale++;
  if (!(widen<F16>(scale) < INFINITY)) return 0x7e00;
  return TYPE == F16 && widen<F16>(scale) > MOST_SCALE ? narrow<F16>(MOST_SCALE) : scale;
}

template <number TYPE> static __global__ __launch_bounds__(MAX_HEAD) void k_quantize(quantize_job a) {
  dependency_release();
  int row = (int)blockIdx.x, list = (int)blockIdx.y, d = (int)threadIdx.x;
  if (row >= *a.n) return dependency_wait();
  unsigned char *codes = a.to + (size_t)a.sequence[row] * a.sequence_stride +
                         ((size_t)list * a.slots + a.slot[row]) * row_length(CACHE_Q8, a.dim);
  const uint16_t *fresh = a.fresh + ((size_t)list * a.fresh_rows + row) * a.dim;
  dependency_wait();
  float x = d < a.dim ? widen<TYPE>(fresh[d]) : 0.0f;
  uint16_t scale = scale_for<TYPE>(warp_max(fabsf(x) < INFINITY ? fabsf(x) : INFINITY)); /* also if x is NaN */
  float wide = widen<F16>(scale);
  int code = wide > 0.0f ? (int)rintf(x / wide) : 0;
  if (d < a.dim) codes[d] = (unsigned char)(code + 128);
  if (d % SCALED == 0) reinterpret_cast<uint16_t *>(codes + a.dim)[d / SCALED] = scale;
}

cudaError_t quantize_rows(const queue &stream, number type, const quantize_job &a, int rows) {
  dim3 grid((unsigned)rows, (unsigned)a.lists);
  return launch(stream, grid, round_up(a.dim, SCALED), 0, type == F16 ? k_quantize<F16> : k_quantize<BF16>, a);
}
