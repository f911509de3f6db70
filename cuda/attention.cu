/* Tree attention. The keys of a row are taken by logical position, whatever slots they lie in, in parts of SPLIT positions
 * that begin at multiples of SPLIT; a part's 4 warps take 32 positions each. Every part of every row goes through the same
 * operations: scores by the tensor core over the head's dimensions in order, one maximum and one sum of the part, values
 * summed by the tensor core over 16 positions at a time, the 4 warps' sums added in order, at last the parts in order. So a
 * row's result does not depend on which rows share its unit: a row of a tensor core's product does not depend on the others.
 *
 * A unit of work is one part of up to GROUP rows of a sequence. They have its positions in common (in their prefix, or as
 * rows of one text, where the last row has the most keys), so that keys and values are read once for all; or, up to OWN rows
 * of a tree, only the first `own` of them: then what is left is computed row by row, the rows shared out among the warps.
 * Rows are the M side of the products. The weight of a key that a row has not is zero: of the later rows of its text it
 * would meet a NaN or an infinity only, and such a text is lost anyway. The block that finishes the last part of a row adds
 * the row's parts up. */
#include "attention.cuh"
#include "launch.cuh"

constexpr int WARPS = 4, KEYS = SPLIT / WARPS, TILES = KEYS / 8;

/* Shared memory of a block, behind each other. */
struct room {
  int *slot;         /* [SPLIT] of the keys that the rows have in common */
  float *most;       /* [WARPS][GROUP] largest score */
  float *sums;       /* [WARPS][GROUP] of exponentials */
  int *last;         /* [GROUP] whether this was the row's last part */
  int *own_slot;     /* [OWN][SPLIT] of the other keys */
  float *own_score;  /* [OWN][SPLIT] then their exponentials */
  float *values_of;  /* [WARPS][GROUP][DIM] */
};
static __device__ __forceinline__ room rooms(int *slot) {
  room s;
  s.slot = slot;
  s.most = reinterpret_cast<float *>(slot + SPLIT);
  s.sums = s.most + WARPS * GROUP;
  s.last = reinterpret_cast<int *>(s.sums + WARPS * GROUP);
  s.own_slot = s.last + GROUP;
  s.own_score = reinterpret_cast<float *>(s.own_slot + OWN * SPLIT);
  s.values_of = s.own_score + OWN * SPLIT;
  return s;
}
template <int DIM> constexpr size_t shared_bytes() {
  return sizeof(int) * (SPLIT + GROUP + OWN * SPLIT) + sizeof(float) * (2 * WARPS * GROUP + OWN * SPLIT + WARPS * GROUP * DIM);
}

/* Scores of N times 8 keys: a lane takes dimensions d + 4 t .. + 3 of a row and of a key as its k of the product. */
template <number TYPE, int DIM, int N>
static __device__ __forceinline__ void multiply_keys(const uint16_t *lower, const uint16_t *upper, const uint16_t *const (&key_of)[N],
                                                     float (&score)[N][4]) {
#pragma unroll
  for (int d = 0; d < DIM; d += 16) {
    uint2 low = *reinterpret_cast<const uint2 *>(lower + d), high = *reinterpret_cast<const uint2 *>(upper + d);
    unsigned rows_of[4] = {low.x, high.x, low.y, high.y};
#pragma unroll
    for (int j = 0; j < N; j++) {
      uint2 key = *reinterpret_cast<const uint2 *>(key_of[j] + d);
      unsigned keys_of[2] = {key.x, key.y};
      mma<TYPE>(score[j], rows_of, keys_of);
    }
  }
}

/* Two dimensions of 16 keys' values. A lane takes dimensions (DIM / 8) g .. of its keys: column g of block j of 8 dimensions
 * is dimension (DIM / 8) g + j. */
template <number TYPE>
static __device__ __forceinline__ void add_values(const unsigned (&weights)[4], const unsigned *const (&value)[4], int c, float (&even)[4],
                                                  float (&odd)[4]) {
  unsigned w0 = value[0][c], w1 = value[1][c], w2 = value[2][c], w3 = value[3][c];
  unsigned first[2] = {__byte_perm(w0, w1, 0x5410), __byte_perm(w2, w3, 0x5410)};
  unsigned second[2] = {__byte_perm(w0, w1, 0x7632), __byte_perm(w2, w3, 0x7632)};
  mma<TYPE>(even, weights, first);
  mma<TYPE>(odd, weights, second);
}

/* Row r's parts in order: out = sum of parts / sum of exponentials. */
template <number TYPE, int DIM> static __device__ void combine(const attention &a, int r, int head) {
  size_t first = ((size_t)r * a.heads + head) * a.splits;
  int count = a.rows.position[r] / SPLIT + 1;
  float largest = -INFINITY;
  for (int s = 0; s < count; s++) largest = fmaxf(largest, __ldcg(&a.weight[first + s].x));
  for (int d = threadIdx.x; d < a.head_dim; d += WARPS * WARP) {
    float sum = 0.0f, total = 0.0f;
    for (int s = 0; s < count; s++) {
      float e = exp2f(__ldcg(&a.weight[first + s].x) - largest);
      total = fmaf(e, __ldcg(&a.weight[first + s].y), total);
      sum = fmaf(e, __ldcg(&a.part[(first + s) * DIM + d]), sum);
    }
    a.out[(size_t)r * a.ld + head * a.head_dim + d] = narrow<TYPE>(sum / total);
  }
}

/* A unit of work of one head, and where its keys and values are. */
struct work {
  int row0, rows, part, own, head;
  const uint16_t *k, *v;
};

/* How many keys row r of the unit has in its part. */
static __device__ __forceinline__ int count_of(const attention &a, const work &u, int r) {
  int left = a.rows.position[u.row0 + r] + 1 - u.part * SPLIT;
  return left < SPLIT ? left : SPLIT;
}

/* Slot of key i of row r in its part; past the end any key of the row, whose weight is zero. */
static __device__ __forceinline__ int slot_of(const attention &a, const work &u, int r, int i, int count) {
  int row = u.row0 + r, position = u.part * SPLIT + (i < count ? i : count - 1), prefix = a.rows.prefix[row];
  return position < prefix ? position : a.rows.path[a.rows.path_at[row] + position - prefix];
}

/* The scores of the keys that each row has for itself. A warp has rows warp, warp + WARPS, ..: all 16 rows of its product. */
template <number TYPE, int DIM> static __device__ __forceinline__ void score_own(const attention &a, const work &u, const room &s) {
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
  for (int r = warp; r < u.rows; r += WARPS) {
    int count = count_of(a, u, r);
    const uint16_t *q = a.q + ((size_t)(u.row0 + r) * a.heads + u.head) * DIM + 4 * t;
    for (int i = u.own / 8 * 8; i < count; i += 8) {
      const uint16_t *const key[1] = {u.k + (size_t)s.own_slot[r * SPLIT + i + g] * DIM + 4 * t};
      float score[1][4] = {};
      multiply_keys<TYPE, DIM>(q, q, key, score);
      if (g == 0) s.own_score[r * SPLIT + i + 2 * t] = score[0][0], s.own_score[r * SPLIT + i + 2 * t + 1] = score[0][1];
    }
  }
}

/* The values of these keys, and of those that share 16 positions with them, onto the warps' sums of the others. */
template <number TYPE, int DIM> static __device__ __forceinline__ void add_own(const attention &a, const work &u, const room &s) {
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
  for (int r = warp; r < u.rows; r += WARPS) {
    int end = (count_of(a, u, r) + KEYS - 1) / KEYS * KEYS; /* a warp that has some keys goes through all */
    for (int at = u.own / 16 * 16; at < end; at += 16) {
      const float *e = s.own_score + r * SPLIT + at + 2 * t;
      unsigned weights[4] = {narrow2<TYPE>(e[0], e[1]), 0, narrow2<TYPE>(e[8], e[9]), 0};
      const unsigned *value[4];
      for (int i = 0; i < 4; i++) {
        int slot = s.own_slot[r * SPLIT + at + 2 * t + i % 2 + i / 2 * 8];
        value[i] = reinterpret_cast<const unsigned *>(u.v + (size_t)slot * DIM + DIM / 8 * g);
      }
      float *sum = s.values_of + (at / KEYS * GROUP + r) * DIM + DIM / 8 * 2 * t;
#pragma unroll
      for (int c = 0; c < DIM / 16; c++) {
        float even[4] = {sum[2 * c], sum[DIM / 8 + 2 * c], 0.0f, 0.0f};
        float odd[4] = {sum[2 * c + 1], sum[DIM / 8 + 2 * c + 1], 0.0f, 0.0f};
        add_values<TYPE>(weights, value, c, even, odd);
        if (g == r % 8) sum[2 * c] = even[0], sum[DIM / 8 + 2 * c] = even[1], sum[2 * c + 1] = odd[0], sum[DIM / 8 + 2 * c + 1] = odd[1];
      }
      __syncwarp();
    }
  }
}

/* On a multiprocessor at once: what registers and shared memory allow without spilling. */
template <int DIM> constexpr int BLOCKS = DIM <= 80 ? 6 : DIM <= 128 ? 4 : 2;

template <number TYPE, int DIM> static __global__ __launch_bounds__(WARPS *WARP, BLOCKS<DIM>) void k_attention(attention a) {
  DYNAMIC_SHARED(int, shared);
  room s = rooms(shared);
  dependency_release();
  if ((int)blockIdx.x >= a.rows.header->units) return dependency_wait();
  int4 unit = a.rows.unit[blockIdx.x];
  work u = {unit.x, unit.y, unit.z, unit.w, (int)blockIdx.y, nullptr, nullptr};
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
  size_t head_rows = (a.rows.sequence[u.row0] * a.sequence_stride + u.head / (a.heads / a.kv_heads)) * a.slots;
  u.k = a.keys + head_rows * DIM, u.v = a.values + head_rows * DIM;
  bool apart = u.own < SPLIT;
  int common = apart ? u.own : count_of(a, u, u.rows - 1); /* keys that the rows have in common, but for the last ones of a text */
  for (int i = threadIdx.x; i < SPLIT && common; i += WARPS * WARP) s.slot[i] = slot_of(a, u, u.rows - 1, i, common);
  if (apart)
    for (int item = threadIdx.x; item < u.rows * SPLIT; item += WARPS * WARP)
      if (item % SPLIT >= u.own / 16 * 16) s.own_slot[item] = slot_of(a, u, item / SPLIT, item % SPLIT, count_of(a, u, item / SPLIT));
  int first = warp * KEYS, mine = common - first; /* may be negative */
  int lower = g < u.rows ? g : 0, upper = g + 8 < u.rows ? g + 8 : 0;
  int keys_of_row[2] = {count_of(a, u, lower) - first, count_of(a, u, upper) - first};
  dependency_wait();
  __syncthreads();

  float score[TILES][4] = {};
  if (mine > 0) {
    const uint16_t *key_of[TILES];
#pragma unroll
    for (int j = 0; j < TILES; j++) key_of[j] = u.k + (size_t)s.slot[first + 8 * j + g] * DIM + 4 * t;
    multiply_keys<TYPE, DIM>(a.q + ((size_t)(u.row0 + lower) * a.heads + u.head) * DIM + 4 * t,
                             a.q + ((size_t)(u.row0 + upper) * a.heads + u.head) * DIM + 4 * t, key_of, score);
  }
  if (apart) {
    score_own<TYPE, DIM>(a, u, s);
    __syncthreads();
  }

  /* Of rows g and g + 8: the largest score, exponentials in powers of two, their sum. */
  float scale = a.scale * 1.44269504f, largest[2] = {-INFINITY, -INFINITY}, sum[2] = {0.0f, 0.0f};
#pragma unroll
  for (int j = 0; j < TILES; j++)
    for (int i = 0; i < 4; i++) {
      int key = 8 * j + 2 * t + i % 2;
      if (i < 2 && first + key >= u.own && key < keys_of_row[0]) score[j][i] = s.own_score[lower * SPLIT + first + key];
      score[j][i] = key < keys_of_row[i / 2] ? score[j][i] * scale : -INFINITY;
      largest[i / 2] = fmaxf(largest[i / 2], score[j][i]);
    }
  for (int h = 0; h < 2; h++) {
    for (int bits = 1; bits < 4; bits *= 2) largest[h] = fmaxf(largest[h], __shfl_xor_sync(0xffffffffu, largest[h], bits));
    if (t == 0) s.most[warp * GROUP + g + 8 * h] = largest[h];
  }
  __syncthreads();
  for (int h = 0; h < 2; h++)
    for (int w = 0; w < WARPS; w++) largest[h] = fmaxf(largest[h], s.most[w * GROUP + g + 8 * h]);
#pragma unroll
  for (int j = 0; j < TILES; j++)
    for (int i = 0; i < 4; i++) {
      score[j][i] = exp2f(score[j][i] - largest[i / 2]);
      sum[i / 2] += score[j][i];
      if (apart && i < 2 && g < u.rows) s.own_score[g * SPLIT + first + 8 * j + 2 * t + i] = score[j][i];
    }
  for (int h = 0; h < 2; h++) {
    for (int bits = 1; bits < 4; bits *= 2) sum[h] += __shfl_xor_sync(0xffffffffu, sum[h], bits);
    if (t == 0) s.sums[warp * GROUP + g + 8 * h] = sum[h];
  }

  float out[DIM / 8][4] = {};
#pragma unroll
  for (int j = 0; j < TILES; j += 2) {
    if (apart ? first + 8 * j + 16 > u.own : mine <= 0) break;
    unsigned weights[4] = {narrow2<TYPE>(score[j][0], score[j][1]), narrow2<TYPE>(score[j][2], score[j][3]),
                           narrow2<TYPE>(score[j + 1][0], score[j + 1][1]), narrow2<TYPE>(score[j + 1][2], score[j + 1][3])};
    const unsigned *value[4];
    for (int i = 0; i < 4; i++) {
      int at = s.slot[first + 8 * j + 2 * t + i % 2 + i / 2 * 8];
      value[i] = reinterpret_cast<const unsigned *>(u.v + (size_t)at * DIM + DIM / 8 * g);
    }
#pragma unroll
    for (int c = 0; c < DIM / 16; c++) add_values<TYPE>(weights, value, c, out[2 * c], out[2 * c + 1]);
  }
#pragma unroll
  for (int j = 0; j < DIM / 8; j++)
    for (int i = 0; i < 4; i++)
      s.values_of[(warp * GROUP + g + i / 2 * 8) * DIM + DIM / 8 * (2 * t + i % 2) + j] = out[j][i];
  __syncthreads();
  if (apart) {
    add_own<TYPE, DIM>(a, u, s);
    __syncthreads();
  }

  for (int item = threadIdx.x; item < u.rows * DIM; item += WARPS * WARP) {
    float total = s.values_of[item];
    for (int w = 1; w < WARPS; w++) total += s.values_of[w * GROUP * DIM + item];
    a.part[(((size_t)(u.row0 + item / DIM) * a.heads + u.head) * a.splits + u.part) * DIM + item % DIM] = total;
  }
  int r = threadIdx.x;
  if (r < u.rows) {
    float biggest = s.most[r], total = s.sums[r];
    for (int w = 1; w < WARPS; w++) biggest = fmaxf(biggest, s.most[w * GROUP + r]), total += s.sums[w * GROUP + r];
    a.weight[((size_t)(u.row0 + r) * a.heads + u.head) * a.splits + u.part] = make_float2(biggest, total);
  }
  __threadfence();
  __syncthreads();
  if (r < u.rows) {
    unsigned *done = &a.done[(size_t)(u.row0 + r) * a.heads + u.head];
    s.last[r] = atomicAdd(done, 1u) == (unsigned)(a.rows.position[u.row0 + r] / SPLIT);
    if (s.last[r]) *done = 0;
  }
  __syncthreads();
  __threadfence();
  for (int i = 0; i < u.rows; i++)
    if (s.last[i]) combine<TYPE, DIM>(a, u.row0 + i, u.head);
}

template <number TYPE, int DIM> static cudaError_t start(cudaStream_t stream, const attention &a, int units) {
  dim3 grid((unsigned)units, (unsigned)a.heads);
  return launch(stream, grid, WARPS * WARP, shared_bytes<DIM>(), k_attention<TYPE, DIM>, a);
}

template <number TYPE, int DIM> static cudaError_t prepare() {
  return cudaFuncSetAttribute(k_attention<TYPE, DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes<DIM>());
}

/* The widths are those of padded_head() in upload.cu. */
#define FOR_WIDTH(TYPE, CALL)                                                                                          \
  switch (dim) {                                                                                                       \
  case 32: return CALL(TYPE, 32);                                                                                      \
  case 64: return CALL(TYPE, 64);                                                                                      \
  case 80: return CALL(TYPE, 80);                                                                                      \
  case 96: return CALL(TYPE, 96);                                                                                      \
  case 128: return CALL(TYPE, 128);                                                                                    \
  default: return CALL(TYPE, MAX_HEAD);                                                                                \
  }
#define START(TYPE, DIM) start<TYPE, DIM>(stream, a, units)
#define PREPARE(TYPE, DIM) prepare<TYPE, DIM>()

cudaError_t attend(cudaStream_t stream, number type, int dim, const attention &a, int units) {
  if (type == F16) FOR_WIDTH(F16, START)
  FOR_WIDTH(BF16, START)
}

cudaError_t attention_prepare(number type, int dim) {
  if (type == F16) FOR_WIDTH(F16, PREPARE)
  FOR_WIDTH(BF16, PREPARE)
}
