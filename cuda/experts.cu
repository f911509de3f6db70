/* Products of the experts' matrices: one grid for all of them. The matrices of all experts have one shape, and are
 * stored one after another as one matrix. A block computes some tiles of an expert for a group of pairs that chose it,
 * and then the same tiles for another group: the number of groups is known only on the device. The order of summation
 * is that of matmul.cu, so that a pair's numbers do not depend on its group. */
#include "experts.cuh"
#include "launch.cuh"
#include "matmul_few.cuh"

/* The number of groups whose blocks run at once. Blocks of other groups follow them. */
constexpr int AT_ONCE = 32;

struct expert_product {
  matrix m;
  int tiles; /* of an expert */
  operand input;
  int rows_of; /* pairs of a row of input: 1 or `chosen` */
  route_scratch by;
};

/* The place of a pair of outputs. */
struct inner_target {
  float2 bias;
  uint16_t *to;
};
struct outer_target {
  float2 bias;
  float *to;
  int count;
};

template <number TYPE>
static __device__ __forceinline__ inner_target target_of(const expert_inner &s, int before, int pair, int row) {
  return {s.bias[before + pair], pair < s.inter ? s.inner.at + s.inner.place(row, pair) : nullptr};
}
template <number TYPE>
static __device__ __forceinline__ outer_target target_of(const expert_outer &s, int before, int pair, int row) {
  int left = s.outputs - 2 * pair;
  return {s.bias[before + pair], s.out + (size_t)row * s.outputs + 2 * pair, left < 2 ? left : 2};
}

template <number TYPE>
static __device__ __forceinline__ void finish(const expert_inner &s, int, const inner_target &p, float a, float b) {
  if (p.to) *p.to = narrow<TYPE>(gated(s.act, a + p.bias.x, b + p.bias.y));
}
template <number TYPE>
static __device__ __forceinline__ void finish(const expert_outer &, int, const outer_target &p, float a, float b) {
  if (p.count > 0) p.to[0] = a + p.bias.x;
  if (p.count > 1) p.to[1] = b + p.bias.y;
}

template <number TYPE, packing P, int TILES, int NT, int DEEP, class FINISH>
static __global__ __launch_bounds__(WARPS *WARP, few<P, TILES, NT, DEEP>::BLOCKS) void k_experts(expert_product p,
                                                                                                 FINISH f) {
  using of = few<P, TILES, NT, DEEP>;
  DYNAMIC_SHARED_OF(uint4, shared, of::SHARED);
  constexpr int STRIDE = of::EACH * (int)(sizeof(uint4) / sizeof(float)), PAIRS = 8 * TILES,
                TURNS = WARPS * WARP / PAIRS;
  dependency_release();
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
  int tile = (int)blockIdx.y * TILES, left = p.tiles - tile, tiles = left < TILES ? left : TILES;
  int first_step = p.m.steps * warp / SLICES, end = p.m.steps * (warp + 1) / SLICES;
  uint4 *ring = shared + warp * of::EACH;
  dependency_wait();

  for (int g = (int)blockIdx.x, groups = *p.by.groups; g < groups; g += (int)gridDim.x) {
    int4 group = p.by.group[g];
    const int32_t *pair_at = p.by.order + group.y;
    const uint4 *weights[TILES], *input[NT];
#pragma unroll
    for (int i = 0; i < TILES; i++) /* past the last tile: its sums are not used */
      weights[i] = p.m.data + (size_t)(group.x * p.tiles + tile + (i < tiles ? i : 0)) * p.m.steps * of::PIECES;
#pragma unroll
    for (int j = 0; j < NT; j++) {
      int row = 8 * j + lane / 4 < group.z ? pair_at[8 * j + lane / 4] / p.rows_of : 0;
      input[j] = reinterpret_cast<const uint4 *>(p.input.at + p.input.place(row, 0)) + lane % 4;
    }
    auto copy_weights = [&](int at, uint4 *stage, bool wanted) { copy_tiles<P>(stage, weights, at, lane, wanted); };
    /* missing rows: as in matmul.cu */
    auto copy_rows = [&](int at, uint4 *stage, bool wanted) {
#pragma unroll
      for (int j = 0; j < NT; j++)
        copy_cached_if(wanted && 8 * j + lane / 4 < group.z, stage + TILES * of::PIECES + j * WARP + lane,
                       input[j] + (size_t)at * WARP);
    };
#pragma unroll
    for (int i = 0; i < DEEP; i++) copy_weights(first_step + i, ring + i * of::STAGE, first_step + i < end);
    sum_slice<TYPE, P, TILES, NT, DEEP>(ring, first_step, end, p.m.table, lane, copy_weights, copy_rows);
    __syncthreads();
    const float *sums = reinterpret_cast<const float *>(shared);
    int q = threadIdx.x % PAIRS, before = group.x * p.tiles * 8, pair = tile * 8 + q;
    int rows = q < tiles * 8 && (int)threadIdx.x < TURNS * PAIRS ? group.z : 0; /* that this thread finishes */
    for (int row = threadIdx.x / PAIRS; row < rows; row += TURNS)
      finish_pair<TYPE>(f, sums, SLICES, STRIDE, 8 * NT, pair, q, row, target_of<TYPE>(f, before, pair, pair_at[row]));
    __syncthreads(); /* the next group's copies go where the sums are */
  }
}

/* Blocks of 8 pairs, or of 32 where experts have many rows. */
template <packing P> constexpr int DEEP_FEW = P == BITS16 ? 5 : 6;
constexpr int TILES_FEW = 1, TILES_MANY = 3, DEEP_MANY = 3, MANY_NT = 4;

int pairs_of_group(const dt_weights *w, int rows) {
  return rows * w->shape.chosen > 8 * w->shape.experts ? 8 * MANY_NT : 8;
}

template <number TYPE, packing P, int TILES, int NT, int DEEP, class FINISH>
static cudaError_t start(const queue &stream, const expert_product &p, const FINISH &f, int groups) {
  dim3 grid((unsigned)(groups < AT_ONCE ? groups : AT_ONCE), (unsigned)blocks_of(p.tiles, TILES));
  return launch(stream, grid, WARPS * WARP, few<P, TILES, NT, DEEP>::SHARED,
                k_experts<TYPE, P, TILES, NT, DEEP, FINISH>, p, f);
}

template <number TYPE, packing P, class FINISH>
static cudaError_t choose(const queue &stream, const dt_weights *w, const expert_product &p, const FINISH &f,
                          int rows) {
  int pairs = rows * w->shape.chosen;
  if (pairs_of_group(w, rows) == 8) return start<TYPE, P, TILES_FEW, 1, DEEP_FEW<P>>(stream, p, f, pairs);
  return start<TYPE, P, TILES_MANY, MANY_NT, DEEP_MANY>(stream, p, f, pairs);
}

template <class FINISH>
static cudaError_t choose_packing(const queue &stream, const dt_weights *w, const expert_product &p, const FINISH &f,
                                  int rows) {
  return for_packing(p.m, [&]<number TYPE, packing P>() { return choose<TYPE, P>(stream, w, p, f, rows); });
}

static expert_product product_of(const dt_weights *w, const matrix &m, const operand &input, int rows_of) {
  return {m, m.tiles / w->shape.experts, input, rows_of, w->routes};
}

cudaError_t multiply_inner(const queue &stream, const dt_weights *w, const matrix &m, const operand &input,
                           const expert_inner &f, int rows) {
  return choose_packing(stream, w, product_of(w, m, input, w->shape.chosen), f, rows);
}

cudaError_t multiply_outer(const queue &stream, const dt_weights *w, const matrix &m, const operand &input,
                           const expert_outer &f, int rows) {
  return choose_packing(stream, w, product_of(w, m, input, 1), f, rows);
}

template <number TYPE, packing P, class FINISH> static cudaError_t prepare() {
  return cudaFuncSetAttribute(k_experts<TYPE, P, TILES_MANY, MANY_NT, DEEP_MANY, FINISH>,
                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                              few<P, TILES_MANY, MANY_NT, DEEP_MANY>::SHARED);
}

template <number TYPE, packing... P> static cudaError_t prepare_all() {
  cudaError_t e = cudaSuccess;
  for (cudaError_t next : {prepare<TYPE, P, expert_inner>()..., prepare<TYPE, P, expert_outer>()...})
    if (e == cudaSuccess) e = next;
  return e;
}

cudaError_t experts_prepare(number type) {
  return type == BF16 ? prepare_all<BF16, BITS16>()
                      : prepare_all<F16, BITS16, BITS3, BITS4, TABLE4, BITS5, BITS6, BITS8>();
}
