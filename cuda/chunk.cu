/* Products of a chunk of a prompt. These are limited by the speed of the tensor cores, not of memory, so the library
 * computes them. It needs a matrix row by row: a piece of the matrix at a time is unpacked to a place that fits the
 * second-level cache, multiplied and, unless the next norm sums it, finished by the epilogue.
 *
 * A prompt's chunks begin at multiples of CHUNK and are whole; the rest of the prompt goes through a pass like any
 * other rows. So the summation of a row depends on its position and on the prompt's length only, under every policy
 * alike. */
#include "chunk.cuh"
#include "epilogue.cuh"
#include "gemm.cuh"
#include "launch.cuh"
#include "pack.cuh"

/* Computes the outputs of `tiles` tiles from `tile` on, at most `outputs`, into columns of `out`. */
static cudaError_t piece(const dt_weights *w, const matrix &m, int tile, int tiles, int outputs, const operand &input,
                         float *out, int out_ld, const queue &stream) {
  cudaError_t e = unpack(stream, m, tile, tiles, w->plain);
  if (e) return e;
  return multiply(w->gemms, gemm{m.format, outputs, m.steps * 32, input.ld, out_ld}, w->plain, input.at, out, stream);
}

cudaError_t chunk_store(const enqueuer *q, const matrix &m, const operand &input) {
  const dt_weights *w = q->w;
  for (int tile = 0; tile < m.tiles; tile += PIECE / 16) {
    int tiles = m.tiles - tile < PIECE / 16 ? m.tiles - tile : PIECE / 16, left = w->shape.hidden - 16 * tile;
    int outputs = left < 16 * tiles ? left : 16 * tiles; /* past the last output is padding */
    cudaError_t e = piece(w, m, tile, tiles, outputs, input, w->partial + 16 * tile, w->shape.hidden, q->stream);
    if (e) return e;
  }
  return cudaSuccess;
}

/* Thread i of a row takes pair first_pair + i. */
template <number TYPE>
static __global__ void k_epilogue(layer_epilogue s, const float *sums, int ld, int first_pair, int pairs) {
  dependency_release();
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), row = (int)blockIdx.y;
  if (i >= pairs) return dependency_wait();
  layer_target to = target_of<TYPE>(s, first_pair + i, 0, row);
  dependency_wait();
  float2 sum = *reinterpret_cast<const float2 *>(sums + (size_t)row * ld + 2 * i);
  finish<TYPE>(s, first_pair + i, to, sum.x, sum.y);
}

static cudaError_t finish_rows(const enqueuer *q, const layer_epilogue &s, int group, int tile, int tiles) {
  enum { THREADS = 128 };
  dim3 grid((unsigned)blocks_of(tiles * 8, THREADS), CHUNK_GROUP);
  const float *sums = q->w->sums + (size_t)group * CHUNK_GROUP * PIECE;
  auto kernel = q->w->activations == F16 ? k_epilogue<F16> : k_epilogue<BF16>;
  return launch(q->stream, grid, THREADS, 0, kernel, s, sums, (int)PIECE, tile * 8, tiles * 8);
}

cudaError_t chunk_epilogue(const enqueuer *q, int index, const matrix &m, int end, int inner_from) {
  const dt_weights *w = q->w;
  cudaError_t e = cudaSuccess;
  int inner_tile = inner_from / 8;
  for (int tile = m.first, tiles; tile < end && !e; tile += tiles) {
    bool inner = tile >= inner_tile; /* reads the second norm; a piece has tiles of one kind only */
    int stop = !inner && inner_tile < end ? inner_tile : end;
    tiles = stop - tile < PIECE / 16 ? stop - tile : PIECE / 16;
    e = piece(w, m, tile, tiles, 16 * tiles, inner ? w->chunk.normed2 : w->chunk.normed1, w->sums, PIECE, q->stream);
    for (int group = 0; group < groups(q) && !e; group++)
      e = finish_rows(q, step_epilogue(q, group, index, m, inner_from), group, tile, tiles);
  }
  return e;
}
