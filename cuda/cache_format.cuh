/* How caches store a row: the keys or the values of one head in one slot. With 16 bits, a row has numbers of the
 * activations' type. In q8 it has 8-bit codes, to which 128 is added, followed by a scale in F16 for every SCALED of
 * them (the last scale may be for 16). A number is code * scale, rounded to the activations' type when it is read. */
#ifndef DT_CUDA_CACHE_FORMAT_CUH
#define DT_CUDA_CACHE_FORMAT_CUH

#include "internal.cuh"

#include <type_traits>

constexpr int SCALED = 32;

/* A number with 16 bits, or a code. */
template <cache_format C> using stored = std::conditional_t<C == CACHE_Q8, unsigned char, uint16_t>;

/* A row is moved and copied in pieces of eight elements; it has a whole number of pieces. */
template <cache_format C> using row_piece = std::conditional_t<C == CACHE_Q8, uint2, uint4>;

/* The distance between two rows, in elements. `dim` is one of the widths of padded_head() in upload.cu. */
__host__ __device__ constexpr int row_length(cache_format c, int dim) {
  return c == CACHE_Q8 ? dim + ((dim + SCALED - 1) / SCALED * 2 + 7) / 8 * 8 : dim;
}
inline size_t row_bytes(cache_format c, int dim) {
  return (size_t)row_length(c, dim) * (c == CACHE_Q8 ? sizeof(stored<CACHE_Q8>) : sizeof(stored<CACHE_16>));
}

/* Returns the scale of the number at dimension d. */
template <int DIM> static __device__ __forceinline__ float scale_at(const unsigned char *row, int d) {
  return widen<F16>(reinterpret_cast<const uint16_t *>(row + DIM)[d / SCALED]);
}

/* Returns four codes times a scale, two in a register. A code c becomes the float 2^15 + 128 + c; everything after that
 * is exact, before a single rounding. */
template <number TYPE> static __device__ __forceinline__ uint2 widen_codes(unsigned four, float scale) {
  float less = -32896.0f * scale, x[4];
#pragma unroll
  for (int i = 0; i < 4; i++)
    x[i] = fmaf(__uint_as_float(__byte_perm(four, 0x47000000u, 0x7404u + 16u * (unsigned)i)), scale, less);
  return make_uint2(narrow2<TYPE>(x[0], x[1]), narrow2<TYPE>(x[2], x[3]));
}

/* Loads numbers of a row from dimension d on, two in a register; d is a multiple of their number. */
template <number TYPE, int DIM> static __device__ __forceinline__ unsigned load_two(const uint16_t *row, int d) {
  return *reinterpret_cast<const unsigned *>(row + d);
}
template <number TYPE, int DIM> static __device__ __forceinline__ uint2 load_four(const uint16_t *row, int d) {
  return *reinterpret_cast<const uint2 *>(row + d);
}
template <number TYPE, int DIM> static __device__ __forceinline__ uint4 load_eight(const uint16_t *row, int d) {
  return *reinterpret_cast<const uint4 *>(row + d);
}
template <number TYPE, int DIM> static __device__ __forceinline__ unsigned load_two(const unsigned char *row, int d) {
  return widen_codes<TYPE>(*reinterpret_cast<const uint16_t *>(row + d), scale_at<DIM>(row, d)).x;
}
template <number TYPE, int DIM> static __device__ __forceinline__ uint2 load_four(const unsigned char *row, int d) {
  return widen_codes<TYPE>(*reinterpret_cast<const unsigned *>(row + d), scale_at<DIM>(row, d));
}
template <number TYPE, int DIM> static __device__ __forceinline__ uint4 load_eight(const unsigned char *row, int d) {
  uint2 codes = *reinterpret_cast<const uint2 *>(row + d);
  float scale = scale_at<DIM>(row, d);
  uint2 first = widen_codes<TYPE>(codes.x, scale), second = widen_codes<TYPE>(codes.y, scale);
  return make_uint4(first.x, first.y, second.x, second.y);
}

/* The position in a row that a lane remembers if it loads four numbers in each 16, beginning with the at-th: that of
 * its first number or, in q8, where it also needs the scales, the beginning of the row. d is a multiple of 16. */
template <cache_format C> static __device__ __forceinline__ int kept_at(int at) { return C == CACHE_Q8 ? 0 : at; }
template <number TYPE, int DIM> static __device__ __forceinline__ uint2 load_kept(const uint16_t *kept, int d, int) {
  return load_four<TYPE, DIM>(kept, d);
}
template <number TYPE, int DIM>
static __device__ __forceinline__ uint2 load_kept(const unsigned char *row, int d, int at) {
  return widen_codes<TYPE>(*reinterpret_cast<const unsigned *>(row + d + at), scale_at<DIM>(row, d));
}

/* Rounds rows of a layer, which the product has written with 16 bits, and writes them to the cache in q8: see
 * quantize.cu. */
struct quantize_job {
  const int *n;               /* on the device */
  const uint16_t *fresh;      /* number d of row r in list l at (l * fresh_rows + r) * dim + d */
  int fresh_rows, lists, dim; /* lists: of the layer, the keys of its heads and then their values */
  unsigned char *to; /* row of sequence s, list l, slot p at s * sequence_stride + (l * slots + p) * row_length() */
  const int32_t *sequence, *slot;
  size_t sequence_stride;
  int slots;
};
cudaError_t quantize_rows(const queue &, number type, const quantize_job &, int rows);

#endif
