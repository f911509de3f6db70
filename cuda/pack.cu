/* Packs weights into the fragments of the tensor cores' m16n8k16, so that a lane loads with 16 bytes all it needs of 16
 * outputs and 16 k, a warp loads 512 consecutive bytes, and the part of k that a warp sums is contiguous.
 *
 * Step s of tile i (8 pairs of outputs, 32 k), half h, lane 4 g + t has four registers of two k each. Register `half +
 * 2 w` is that half of pair 8 i + g at k = 32 s + 8 t + 4 h + 2 w and the next k. A sum may take its k in any order; in
 * this order the activations of a lane, k = 32 s + 8 t .. + 7, are also contiguous. */
#include "launch.cuh"
#include "pack.cuh"

static __global__ void k_pack(uint16_t *data, int steps, pair_map map, const uint16_t *source, int row, int cols,
                              int k0) {
  dependency_release();
  dependency_wait();
  int column = (int)(blockIdx.y * blockDim.x + threadIdx.x);
  if (column >= cols) return;
  place to = place_of(map, row + (int)blockIdx.x);
  int k = k0 + column, step = k / 32, t = k % 32 / 8, h = k % 8 / 4, w = k % 4 / 2;
  int lane = to.pair % 8 * 4 + t;
  size_t at = ((((size_t)(to.pair / 8) * steps + step) * 2 + h) * 32 + lane) * 4 + to.half + 2 * w;
  data[at * 2 + k % 2] = source[(size_t)blockIdx.x * cols + column];
}

cudaError_t pack(const queue &stream, const matrix &to, pair_map map, const uint16_t *source, int row, int rows,
                 int cols, int k0) {
  enum { THREADS = 256 };
  return launch(stream, dim3((unsigned)rows, (unsigned)blocks_of(cols, THREADS)), THREADS, 0, k_pack,
                reinterpret_cast<uint16_t *>(to.data), to.steps, map, source, row, cols, k0);
}

/* A thread unpacks the numbers of one lane: 8 k of two outputs. */
static __global__ void k_unpack(const uint4 *data, int steps, uint4 *to) {
  dependency_release();
  dependency_wait();
  int item = (int)(blockIdx.x * blockDim.x + threadIdx.x), step = item / WARP, lane = item % WARP;
  if (step >= steps) return;
  const uint4 *from = data + ((size_t)blockIdx.y * steps + step) * 64 + lane;
  uint4 low = load_stream(from), high = load_stream(from + 32);
  size_t row = (size_t)steps * 4; /* in units of 16 bytes */
  uint4 *at = to + ((size_t)blockIdx.y * 16 + lane / 4 * 2) * row + step * 4 + lane % 4;
  at[0] = make_uint4(low.x, low.z, high.x, high.z);
  at[row] = make_uint4(low.y, low.w, high.y, high.w);
}

cudaError_t unpack(const queue &stream, const matrix &from, int tile, int tiles, uint16_t *to) {
  enum { THREADS = 128 };
  return launch(stream, dim3((unsigned)blocks_of(from.steps * WARP, THREADS), (unsigned)tiles), THREADS, 0, k_unpack,
                from.data + (size_t)tile * from.steps * 64, from.steps, reinterpret_cast<uint4 *>(to));
}
