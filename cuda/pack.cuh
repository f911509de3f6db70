/* Weights in the order that tensor cores need. */
#ifndef DT_CUDA_PACK_CUH
#define DT_CUDA_PACK_CUH

#include "internal.cuh"

/* Maps the rows of a source matrix to pairs of outputs. One lane computes the two outputs of a pair, so that operations
 * on both (rotation, a gate) need no exchange between lanes. Pairs are dimensions j and j + rotary / 2 of a head that
 * rotates; a gate and the output that it multiplies; otherwise neighbours. */
struct pair_map {
  int first;  /* the pair of the first row */
  int head;   /* rows of a head; `rows` if there are no heads */
  int rotary; /* dimensions of a head that rotate */
  int half;   /* 0, 1: every row is this half of its own pair; -1: two rows make a pair */
};

struct place {
  int pair, half;
};
__host__ __device__ inline place place_of(pair_map m, int row) {
  if (m.half >= 0) return {m.first + row, m.half};
  int pair = m.first + row / m.head * (m.head / 2), d = row % m.head;
  if (d < m.rotary) return {pair + d % (m.rotary / 2), d / (m.rotary / 2)};
  return {pair + d / 2, d % 2}; /* rotary is even */
}

/* The bytes of a row of codes: see to_codes. */
__host__ __device__ inline size_t code_row_bytes(int cols) { return (size_t)cols / 4 * 5; }

/* Packs `rows` rows of a source ([rows][cols] on the device), from `row` on, as outputs of `to`; column 0 is k = k0.
 * The source has numbers with 16 bits or, if `to` is packed, rows of codes; then cols and k0 are multiples of 32. */
cudaError_t pack(const queue &, const matrix &to, pair_map, const void *source, int row, int rows, int cols, int k0);

/* Unpacks tiles of a matrix from `tile` on, row by row: output 2 p + h of pair p in row 2 p + h, [tiles * 16][steps *
 * 32]. */
cudaError_t unpack(const queue &, const matrix &from, int tile, int tiles, uint16_t *to);

#endif
