/* Tree attention. The keys of a row are taken by logical position, whatever slots they lie in, in parts of SPLIT positions
 * that begin at multiples of SPLIT; a part's 4 warps take 32 positions each. Every part of every row goes through the same
 * operations: scores by the tensor core over the head's dimensions in order, one maximum and one sum of the part, values
 * summed by the tensor core over 32 positions, the 4 warps' sums added in order, at last the parts in order. So a row's
 * result does not depend on which rows share its unit.
 *
 * A unit of work is one part of up to GROUP rows of a sequence that have these positions in common (in their prefix, or as
 * rows of one text, where the last row has the most keys: they are read once for all), or of one row alone where its path
 * begins. Rows are the M side of the products: in a row's own unit the other 15 rows are idle. The weight of a key that a
 * row has not is zero. The block that finishes the last part of a row adds the row's parts up. */
#include "attention.cuh"
#include "launch.cuh"

constexpr int WARPS = 4, KEYS = SPLIT / WARPS, TILES = KEYS / 8;

template <int DIM> constexpr size_t shared_bytes() {
  return sizeof(int) * SPLIT + sizeof(float) * (2 * WARPS * GROUP + GROUP) + sizeof(float) * WARPS * GROUP * DIM;
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

template <number TYPE, int DIM> static __global__ __launch_bounds__(WARPS *WARP) void k_attention(attention a) {
  DYNAMIC_SHARED(int, slot);                                      /* [SPLIT] */
  float *most = reinterpret_cast<float *>(slot + SPLIT);          /* [WARPS][GROUP] */
  float *sums = most + WARPS * GROUP;                             /* [WARPS][GROUP] */
  int *last = reinterpret_cast<int *>(sums + WARPS * GROUP);      /* [GROUP] */
  float *values_of = reinterpret_cast<float *>(last + GROUP);     /* [WARPS][GROUP][DIM] */
  dependency_release();
  dependency_wait();
  if ((int)blockIdx.x >= a.rows.header->units) return;
  int4 unit = a.rows.unit[blockIdx.x];
  int row0 = unit.x, rows = unit.y, part = unit.z, head = blockIdx.y, kv = head / (a.heads / a.kv_heads);
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
  int longest = row0 + rows - 1, keys_before = part * SPLIT;
  int left = a.rows.position[longest] + 1 - keys_before, keys = left < SPLIT ? left : SPLIT; /* in this part */
  int prefix = a.rows.prefix[longest];
  for (int i = threadIdx.x; i < SPLIT; i += WARPS * WARP) {
    int position = keys_before + (i < keys ? i : keys - 1); /* past the end: any key, its score is not used */
    slot[i] = position < prefix ? position : a.rows.path[a.rows.path_at[longest] + position - prefix];
  }
  __syncthreads();

  size_t head_rows = (a.rows.sequence[row0] * a.sequence_stride + kv) * a.slots;
  const uint16_t *k = a.keys + head_rows * DIM, *v = a.values + head_rows * DIM;
  int first = warp * KEYS, mine = keys - first < KEYS ? keys - first : KEYS; /* may be negative */
  int lower = g < rows ? g : 0, upper = g + 8 < rows ? g + 8 : 0;
  int keys_of_row[2] = {a.rows.position[row0 + lower] + 1 - keys_before - first,
                        a.rows.position[row0 + upper] + 1 - keys_before - first}; /* behind `first` */
  const uint16_t *q_lower = a.q + ((size_t)(row0 + lower) * a.heads + head) * DIM + 4 * t;
  const uint16_t *q_upper = a.q + ((size_t)(row0 + upper) * a.heads + head) * DIM + 4 * t;

  float score[TILES][4];
#pragma unroll
  for (int j = 0; j < TILES; j++)
    for (int i = 0; i < 4; i++) score[j][i] = 0.0f;
  if (mine > 0) {
    const uint16_t *key_of[TILES];
#pragma unroll
    for (int j = 0; j < TILES; j++) key_of[j] = k + (size_t)slot[first + 8 * j + g] * DIM + 4 * t;
#pragma unroll
    for (int d = 0; d < DIM; d += 16) { /* a lane takes dimensions d + 4 t .. + 3 as its k of the product */
      uint2 low = *reinterpret_cast<const uint2 *>(q_lower + d), high = *reinterpret_cast<const uint2 *>(q_upper + d);
      unsigned rows_of[4] = {low.x, high.x, low.y, high.y};
#pragma unroll
      for (int j = 0; j < TILES; j++) {
        uint2 key = *reinterpret_cast<const uint2 *>(key_of[j] + d);
        unsigned keys_of[2] = {key.x, key.y};
        mma<TYPE>(score[j], rows_of, keys_of);
      }
    }
  }

  /* Of rows g and g + 8: the largest score, exponentials in powers of two, their sum. */
  float scale = a.scale * 1.44269504f, largest[2] = {-INFINITY, -INFINITY}, sum[2] = {0.0f, 0.0f};
#pragma unroll
  for (int j = 0; j < TILES; j++)
    for (int i = 0; i < 4; i++) {
      score[j][i] = 8 * j + 2 * t + i % 2 < keys_of_row[i / 2] ? score[j][i] * scale : -INFINITY;
      largest[i / 2] = fmaxf(largest[i / 2], score[j][i]);
    }
  for (int h = 0; h < 2; h++) {
    for (int bits = 1; bits < 4; bits *= 2) largest[h] = fmaxf(largest[h], __shfl_xor_sync(0xffffffffu, largest[h], bits));
    if (t == 0) most[warp * GROUP + g + 8 * h] = largest[h];
  }
  __syncthreads();
  for (int h = 0; h < 2; h++)
    for (int w = 0; w < WARPS; w++) largest[h] = fmaxf(largest[h], most[w * GROUP + g + 8 * h]);
#pragma unroll
  for (int j = 0; j < TILES; j++)
    for (int i = 0; i < 4; i++) {
      score[j][i] = exp2f(score[j][i] - largest[i / 2]);
      sum[i / 2] += score[j][i];
    }
  for (int h = 0; h < 2; h++) {
    for (int bits = 1; bits < 4; bits *= 2) sum[h] += __shfl_xor_sync(0xffffffffu, sum[h], bits);
    if (t == 0) sums[warp * GROUP + g + 8 * h] = sum[h];
  }

  /* A lane takes dimensions (DIM / 8) g .. of its keys: column g of block j of 8 dimensions is dimension (DIM / 8) g + j. */
  float out[DIM / 8][4];
#pragma unroll
  for (int j = 0; j < DIM / 8; j++)
    for (int i = 0; i < 4; i++) out[j][i] = 0.0f;
#pragma unroll
  for (int j = 0; j < TILES && mine > 0; j += 2) {
    unsigned weights[4] = {narrow2<TYPE>(score[j][0], score[j][1]), narrow2<TYPE>(score[j][2], score[j][3]),
                           narrow2<TYPE>(score[j + 1][0], score[j + 1][1]), narrow2<TYPE>(score[j + 1][2], score[j + 1][3])};
    const unsigned *value[4];
    for (int i = 0; i < 4; i++) {
      int at = slot[first + 8 * j + 2 * t + i % 2 + i / 2 * 8];
      value[i] = reinterpret_cast<const unsigned *>(v + (size_t)at * DIM + DIM / 8 * g);
    }
#pragma unroll
    for (int c = 0; c < DIM / 16; c++) { /* two dimensions of each key */
      unsigned w0 = value[0][c], w1 = value[1][c], w2 = value[2][c], w3 = value[3][c];
      unsigned even[2] = {__byte_perm(w0, w1, 0x5410), __byte_perm(w2, w3, 0x5410)};
      unsigned odd[2] = {__byte_perm(w0, w1, 0x7632), __byte_perm(w2, w3, 0x7632)};
      mma<TYPE>(out[2 * c], weights, even);
      mma<TYPE>(out[2 * c + 1], weights, odd);
    }
  }
#pragma unroll
  for (int j = 0; j < DIM / 8; j++)
    for (int i = 0; i < 4; i++)
      values_of[(warp * GROUP + g + i / 2 * 8) * DIM + DIM / 8 * (2 * t + i % 2) + j] = out[j][i];
  __syncthreads();

  for (int item = threadIdx.x; item < rows * DIM; item += WARPS * WARP) {
    float total = values_of[item];
    for (int w = 1; w < WARPS; w++) total += values_of[w * GROUP * DIM + item];
    a.part[(((size_t)(row0 + item / DIM) * a.heads + head) * a.splits + part) * DIM + item % DIM] = total;
  }
  int r = threadIdx.x;
  if (r < rows) {
    float biggest = most[r], total = sums[r];
    for (int w = 1; w < WARPS; w++) biggest = fmaxf(biggest, most[w * GROUP + r]), total += sums[w * GROUP + r];
    a.weight[((size_t)(row0 + r) * a.heads + head) * a.splits + part] = make_float2(biggest, total);
  }
  __threadfence();
  __syncthreads();
  if (r < rows) {
    unsigned *done = &a.done[(size_t)(row0 + r) * a.heads + head];
    last[r] = atomicAdd(done, 1u) == (unsigned)(a.rows.position[row0 + r] / SPLIT);
    if (last[r]) *done = 0;
  }
  __syncthreads();
  __threadfence();
  for (int i = 0; i < rows; i++)
    if (last[i]) combine<TYPE, DIM>(a, row0 + i, head);
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
