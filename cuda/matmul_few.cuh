/* The part of a product that a block of four warps computes for few rows: see matmul.cu. Each warp has a slice of k and
 * a ring in shared memory. */
#ifndef DT_CUDA_MATMUL_FEW_CUH
#define DT_CUDA_MATMUL_FEW_CUH

#include "epilogue.cuh"
#include "record.cuh"

constexpr int WARPS = 4, SLICES = 4;
constexpr int MOST_NT = 8; /* maximum number of blocks of 8 rows that a block takes; of more rows, it takes a group */
constexpr int PITCH = 20;  /* pitch of 16 sums in shared memory: no two lanes of a warp write to the same bank */

template <number TYPE, class FINISH> using target_type = decltype(target_of<TYPE>(FINISH{}, 0, 0, 0));

/* Writes four sums of a lane, of columns 2 t and 2 t + 1 and outputs g and g + 8, to the place that finish_pair
 * reads. */
static __device__ __forceinline__ void put_sums(float *to, const float (&sum)[4]) {
  int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < 4; i++) to[(2 * t + i % 2) * PITCH + g + i / 2 * 8] = sum[i];
}

/* Multiplies 16 outputs and 8 rows, for 16 of a step's 32 k. */
template <number TYPE>
static __device__ __forceinline__ void multiply_half(float (&sum)[4], const uint4 &a, const uint4 &x, int half) {
  unsigned outputs[4] = {a.x, a.y, a.z, a.w}, k_of[2] = {half ? x.z : x.x, half ? x.w : x.y};
  mma<TYPE>(sum, outputs, k_of);
}

/* Finishes the pair of sums q of the block, of one row. Slices that are still to be added lie `stride` apart. */
template <number TYPE, class FINISH, class SPOT>
static __device__ __forceinline__ void finish_pair(const FINISH &f, const float *sums, int slices, int stride, int rows,
                                                   int pair, int q, int row, const SPOT &spot) {
  float v[2];
  for (int i = 0; i < 2; i++) {
    const float *from = sums + (q / 8 * rows + row) * PITCH + q % 8 + 8 * i;
    v[i] = from[0];
    for (int s = 1; s < slices; s++) v[i] += from[s * stride];
  }
  finish<TYPE>(f, pair, spot, v[0], v[1]);
}

/* Few rows, NT blocks of 8: one block takes all rows, or 64 of more rows, of TILES tiles. A warp's ring is [DEEP][TILES
 * of weights, NT of activations]. A round of its loop takes SPAN steps: where packed weights meet up to 8 rows, two
 * steps save a quarter of the instructions, which limit their speed. */
template <packing P, int TILES, int NT, int DEEP> struct few {
  static constexpr int SPAN = P == BITS16 || NT > 2 ? 1 : 2;
  static_assert(DEEP % SPAN == 0, "the ring has whole rounds");
  static constexpr int PIECES = pieces_of(P), STAGE = TILES * PIECES + NT * WARP,
                       RING = DEEP * STAGE; /* of a warp, in units of 16 bytes */
  static constexpr int SUMS = TILES * 8 * NT * PITCH / 4, EACH = RING > SUMS ? RING : SUMS,
                       SHARED = WARPS * EACH * (int)sizeof(uint4);
  static constexpr int SPOTS = (TILES * 8 * 8 * NT + WARPS * WARP - 1) / (WARPS * WARP); /* pairs of a thread */
  static constexpr int BLOCKS = NT == 1   ? 9
                                : NT == 2 ? (TILES == 1 ? 6 : 5)
                                : NT == 4 ? 3
                                          : 2; /* on a multiprocessor */
};

/* Calls a function for the type of a matrix and its packing, which are its template arguments. */
template <class CALL> static cudaError_t for_packing(const matrix &m, const CALL &call) {
  if (m.format == BF16) return call.template operator()<BF16, BITS16>();
  switch (m.packed) {
  case BITS3: return call.template operator()<F16, BITS3>();
  case BITS4: return call.template operator()<F16, BITS4>();
  case TABLE4: return call.template operator()<F16, TABLE4>();
  case BITS5: return call.template operator()<F16, BITS5>();
  case BITS6: return call.template operator()<F16, BITS6>();
  case BITS8: return call.template operator()<F16, BITS8>();
  default: return call.template operator()<F16, BITS16>();
  }
}

/* Begins a warp's copies of the weights of a step, of TILES tiles, if they are wanted. */
template <packing P, int TILES>
static __device__ __forceinline__ void copy_tiles(uint4 *stage, const uint4 *const (&weights)[TILES], int step,
                                                  int lane, bool wanted) {
  constexpr int PIECES = pieces_of(P);
#pragma unroll
  for (int i = 0; i < TILES; i++)
#pragma unroll
    for (int j = lane; j < PIECES; j += WARP)
      copy_stream_if(wanted, stage + i * PIECES + j, weights[i] + (size_t)step * PIECES + j);
}

/* Sums this warp's steps [step, end), and puts the sums at the beginning of its ring, from where finish_pair reads them
 * after a barrier. copy_weights(at, stage, wanted) and copy_rows(at, stage, wanted) begin the copies of a step; those
 * of the weights of the first DEEP steps have begun. */
template <number TYPE, packing P, int TILES, int NT, int DEEP, class WEIGHTS, class ROWS_OF>
static __device__ __forceinline__ void sum_slice(uint4 *ring, int step, int end, const uint4 &table, int lane,
                                                 const WEIGHTS &copy_weights, const ROWS_OF &copy_rows) {
  using of = few<P, TILES, NT, DEEP>;
#pragma unroll
  for (int i = 0; i < DEEP; i++) { /* the first group also has the weights requested before */
    copy_rows(step + i, ring + i * of::STAGE, step + i < end);
    if ((i + 1) % of::SPAN == 0) copies_commit();
  }
  float sum[TILES][NT][4] = {};
#pragma unroll 1
  for (int slot = 0; step < end; step += of::SPAN) {
    copies_wait<DEEP / of::SPAN - 1>();
    if (P != BITS16) __syncwarp(); /* a lane reads what others copied */
    uint4 *stage = ring + slot * of::STAGE;
#pragma unroll
    for (int s = 0; s < of::SPAN; s++, stage += of::STAGE) {
      if (s && step + s >= end) break;
      uint4 a[TILES][2], x[NT];
#pragma unroll
      for (int i = 0; i < TILES; i++) take_weights<P>(a[i], stage + i * of::PIECES, lane, table);
#pragma unroll
      for (int j = 0; j < NT; j++) x[j] = stage[TILES * of::PIECES + j * WARP + lane];
#pragma unroll
      for (int h = 0; h < 2; h++)
#pragma unroll
        for (int j = 0; j < NT; j++)
#pragma unroll
          for (int i = 0; i < TILES; i++) multiply_half<TYPE>(sum[i][j], a[i][h], x[j], h);
    }
    if (P != BITS16) __syncwarp(); /* all lanes have read the stages: mma waits for them too, but is no fence */
    stage = ring + slot * of::STAGE;
#pragma unroll
    for (int s = 0, at = step + DEEP; s < of::SPAN; s++, at++, stage += of::STAGE) {
      if (of::SPAN == 1 && at >= end) break; /* for many copies a branch is shorter than predicates */
      copy_weights(at, stage, of::SPAN == 1 || at < end), copy_rows(at, stage, of::SPAN == 1 || at < end);
    }
    copies_commit();
    slot = slot + of::SPAN < DEEP ? slot + of::SPAN : 0;
  }
  float *sums = reinterpret_cast<float *>(ring);
  __syncwarp(); /* all of the ring has been read */
#pragma unroll
  for (int i = 0; i < TILES; i++)
#pragma unroll
    for (int j = 0; j < NT; j++) put_sums(sums + (i * 8 * NT + 8 * j) * PITCH, sum[i][j]);
}

#endif
