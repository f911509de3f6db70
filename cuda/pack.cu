/* Weights into the fragments of the tensor cores' m16n8k16, so that a lane loads with 16 bytes what it needs of 16 outputs
 * and 16 k, a warp 512 bytes that lie together, and the part of k that a warp sums is one stretch of memory.
 *
 * Of step s of tile i (8 pairs of outputs, 32 k), half h, lane 4 g + t: four registers of two k each. Register `half + 2 w`
 * is that half of pair 8 i + g at k = 32 s + 8 t + 4 h + 2 w and the one behind it: a sum may take its k in any order, and
 * in this one the activations of a lane, k = 32 s + 8 t .. + 7, lie together too. */
#include "launch.cuh"
#include "pack.cuh"

static __global__ void k_pack(uint16_t *data, int steps, pair_map map, const uint16_t *source, int row, int cols, int k0) {
  dependency_wait();
  dependency_release();
  int column = (int)(blockIdx.y * blockDim.x + threadIdx.x);
  if (column >= cols) return;
  place to = place_of(map, row + (int)blockIdx.x);
  int k = k0 + column, step = k / 32, t = k % 32 / 8, h = k % 8 / 4, w = k % 4 / 2;
  int lane = to.pair % 8 * 4 + t;
  size_t at = ((((size_t)(to.pair / 8) * steps + step) * 2 + h) * 32 + lane) * 4 + to.half + 2 * w;
  data[at * 2 + k % 2] = source[(size_t)blockIdx.x * cols + column];
}

cudaError_t pack(cudaStream_t stream, const matrix &to, pair_map map, const uint16_t *source, int row, int rows, int cols,
                 int k0) {
  enum { THREADS = 256 };
  return launch(stream, dim3((unsigned)rows, (unsigned)blocks_of(cols, THREADS)), THREADS, 0, k_pack,
                reinterpret_cast<uint16_t *>(to.data), to.steps, map, source, row, cols, k0);
}
