/* Packs weights into the fragments of the tensor cores' m16n8k16, so that a lane loads with 16 bytes all it needs of 16
 * outputs and 16 k, a warp loads 512 consecutive bytes, and the part of k that a warp sums is contiguous.
 *
 * Step s of tile i (8 pairs of outputs, 32 k), half h, lane 4 g + t has four registers of two k each. Register `half +
 * 2 w` is that half of pair 8 i + g at k = 32 s + 8 t + 4 h + 2 w and the next k. A sum may take its k in any order; in
 * this order the activations of a lane, k = 32 s + 8 t .. + 7, are also contiguous. */
#include "launch.cuh"
#include "pack.cuh"
#include "record.cuh"

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

/* A thread packs the codes of 8 k of one output; the source's rows are as to_codes makes them. Different threads may
 * write bits of one word: it is zero before. */
template <packing P>
static __global__ void k_pack_codes(unsigned *data, int steps, pair_map map, const uint8_t *source, int row, int cols,
                                    int k0) {
  dependency_release();
  dependency_wait();
  int eight = (int)(blockIdx.y * blockDim.x + threadIdx.x);
  if (eight >= cols / 8) return;
  place to = place_of(map, row + (int)blockIdx.x);
  int k = k0 + eight * 8, lane = to.pair % 8 * 4 + k % 32 / 8;
  unsigned *record = data + ((size_t)(to.pair / 8) * steps + k / 32) * (pieces_of(P) * 4);
  const uint8_t *from = source + (size_t)blockIdx.x * code_row_bytes(cols), *code = from + eight * 8;
  unsigned word[2] = {}, high = 0, factors = reinterpret_cast<const unsigned *>(from + cols)[eight / 2];
  for (int j = 0; j < 8; j++) {
    if (P == BITS8)
      word[j / 4] |= (unsigned)code[j] << 8 * (j % 4);
    else if (P == TABLE4)
      word[0] |= (unsigned)code[j] << 4 * j;
    else if (P == BITS3)
      word[0] |= (unsigned)(code[j] & 3) << (2 * (4 * to.half + j / 2) + 16 * (j % 2));
    else
      word[0] |= (unsigned)(code[j] & 15) << (4 * (j / 2) + 16 * (j % 2));
    if (P == BITS3 || P == BITS5 || P == BITS6)
      high |= (unsigned)(code[j] >> (P == BITS3 ? 2 : 4)) << (high_bit(P, to.half, j / 2) + 16 * (j % 2));
  }
  if (P == BITS8)
    record[(lane * 2 + to.half) * 2] = word[0], record[(lane * 2 + to.half) * 2 + 1] = word[1];
  else if (P == BITS3)
    atomicAdd(record + lane, word[0]);
  else
    record[lane * 2 + to.half] = word[0];
  if (P == BITS3 || P == BITS5) atomicAdd(record + high_at(P) + lane / 2, high << 8 * (lane % 2));
  if (P == BITS6) atomicAdd(record + high_at(P) + lane, high);
  unsigned *scales = record + scales_at(P);
  constexpr int SHARE = P == BITS3 || P == BITS6 ? 2 : 4; /* lanes of an output that have the same factors */
  if (lane % SHARE) return;
  if (P == BITS3 || P == BITS4 || P == BITS5)
    scales[lane / SHARE * 2 + to.half] = factors;
  else
    reinterpret_cast<uint16_t *>(scales)[lane / SHARE * 2 + to.half] = (uint16_t)factors;
}

template <packing P>
static cudaError_t pack_codes(const queue &stream, const matrix &to, pair_map map, const void *source, int row,
                              int rows, int cols, int k0) {
  enum { THREADS = 128 };
  return launch(stream, dim3((unsigned)rows, (unsigned)blocks_of(cols / 8, THREADS)), THREADS, 0, k_pack_codes<P>,
                reinterpret_cast<unsigned *>(to.data), to.steps, map, static_cast<const uint8_t *>(source), row, cols,
                k0);
}

cudaError_t pack(const queue &stream, const matrix &to, pair_map map, const void *source, int row, int rows, int cols,
                 int k0) {
  enum { THREADS = 256 };
  switch (to.packed) {
  case BITS3: return pack_codes<BITS3>(stream, to, map, source, row, rows, cols, k0);
  case BITS4: return pack_codes<BITS4>(stream, to, map, source, row, rows, cols, k0);
  case TABLE4: return pack_codes<TABLE4>(stream, to, map, source, row, rows, cols, k0);
  case BITS5: return pack_codes<BITS5>(stream, to, map, source, row, rows, cols, k0);
  case BITS6: return pack_codes<BITS6>(stream, to, map, source, row, rows, cols, k0);
  case BITS8: return pack_codes<BITS8>(stream, to, map, source, row, rows, cols, k0);
  default: break;
  }
  return launch(stream, dim3((unsigned)rows, (unsigned)blocks_of(cols, THREADS)), THREADS, 0, k_pack,
                reinterpret_cast<uint16_t *>(to.data), to.steps, map, static_cast<const uint16_t *>(source), row, cols,
                k0);
}

/* A thread unpacks the numbers of one lane: 8 k of two outputs. */
template <packing P> static __global__ void k_unpack(const uint4 *data, uint4 table, int steps, uint4 *to) {
  dependency_release();
  dependency_wait();
  int item = (int)(blockIdx.x * blockDim.x + threadIdx.x), step = item / WARP, lane = item % WARP;
  if (step >= steps) return;
  uint4 a[2];
  take_weights<P>(a, data + ((size_t)blockIdx.y * steps + step) * pieces_of(P), lane, table);
  size_t row = (size_t)steps * 4; /* in units of 16 bytes */
  uint4 *at = to + ((size_t)blockIdx.y * 16 + lane / 4 * 2) * row + step * 4 + lane % 4;
  at[0] = make_uint4(a[0].x, a[0].z, a[1].x, a[1].z);
  at[row] = make_uint4(a[0].y, a[0].w, a[1].y, a[1].w);
}

cudaError_t unpack(const queue &stream, const matrix &from, int tile, int tiles, uint16_t *to) {
  enum { THREADS = 128 };
  constexpr decltype(&k_unpack<BITS16>) kernels[PACKINGS] = {k_unpack<BITS16>, k_unpack<BITS3>, k_unpack<BITS4>,
                                                             k_unpack<TABLE4>, k_unpack<BITS5>, k_unpack<BITS6>,
                                                             k_unpack<BITS8>};
  return launch(stream, dim3((unsigned)blocks_of(from.steps * WARP, THREADS), (unsigned)tiles), THREADS, 0,
                kernels[from.packed], from.data + (size_t)tile * from.steps * pieces_of(from.packed), from.table,
                from.steps, reinterpret_cast<uint4 *>(to));
}
