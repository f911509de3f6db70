/* The kernels of delta layers: see delta.cuh. A row's numbers depend only on its inputs and on the rows of its path
 * since its base, in one order of summation, whatever other rows its pass has. */
#include "delta.cuh"
#include "launch.cuh"

constexpr int THREADS = 128, WARPS = THREADS / WARP;
constexpr unsigned ALL = 0xffffffffu;

static __device__ __forceinline__ float silu(float x) { return x / (1.0f + expf(-x)); }
static __device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

/* What a sequence keeps for the layer, and the row of a slot in its ring. */
static __device__ __forceinline__ float *store_of(const delta_job &a, int sequence) {
  return a.store + (size_t)sequence * a.stride;
}
static __device__ __forceinline__ float *row_of(const delta_job &a, int sequence, int slot) {
  return store_of(a, sequence) + (size_t)(slot % DT_DELTA_RING) * a.size.row;
}

static __device__ __forceinline__ int slot_at(const pass_rows &rows, int r, int position) {
  int prefix = rows.prefix[r];
  return position < prefix ? position : rows.path[rows.path_at[r] + position - prefix];
}

/* The number of value heads that share a key head, and the number of the i-th of them. */
static __device__ __forceinline__ int sharing(const delta_job &a) { return a.size.values / a.key_heads; }
static __device__ __forceinline__ int value_head(const delta_job &a, int key, int i) {
  return a.tiled ? key + i * a.key_heads : key * sharing(a) + i;
}
static __device__ __forceinline__ int key_head(const delta_job &a, int value) {
  return a.tiled ? value % a.key_heads : value / sharing(a);
}

/* ---- inputs --------------------------------------------------------------------------------------------------------
 */

/* Number c of a row after the convolution with the rows before it. Its own number goes to its store. */
static __device__ __forceinline__ float convolve(const delta_job &a, int r, int c) {
  const int sequence = a.rows.sequence[r];
  float sum = 0.0f;
  for (int t = 0; t < DT_DELTA_TAPS - 1; t++) {
    int tap = a.rows.deltas->tap[r][t];
    if (tap == DELTA_NO_TAP) continue;
    float x = tap >= 0 ? a.scratch.in[(size_t)tap * a.size.outputs + c] : row_of(a, sequence, ~tap)[c];
    sum = fmaf(a.conv[(size_t)t * a.size.mixed + c], x, sum);
  }
  float own = a.scratch.in[(size_t)r * a.size.outputs + c];
  row_of(a, sequence, a.rows.slot[r])[c] = own;
  return silu(fmaf(a.conv[(size_t)(DT_DELTA_TAPS - 1) * a.size.mixed + c], own, sum));
}

/* Convolves the query (or the key, which also goes to the row's store) of a head and scales it to this length. */
static __device__ __forceinline__ void make_unit(const delta_job &a, int r, int head, bool key, float length,
                                                 float *shared) {
  const int first = ((key ? a.key_heads : 0) + head) * a.key_dim;
  float *to = a.scratch.mixed + (size_t)r * a.size.mixed + first, squares = 0.0f;
  for (int c = (int)threadIdx.x; c < a.key_dim; c += THREADS) {
    float x = convolve(a, r, first + c);
    to[c] = x, squares = fmaf(x, x, squares);
  }
  float by = length / sqrtf(block_sum<WARPS>(squares, shared) + 1e-6f);
  float *kept = row_of(a, a.rows.sequence[r], a.rows.slot[r]) + a.size.keys_at + (size_t)head * a.key_dim;
  for (int c = (int)threadIdx.x; c < a.key_dim; c += THREADS) { /* each thread reads what it wrote */
    float x = to[c] * by;
    to[c] = x;
    if (key) kept[c] = x;
  }
}

/* softplus(x) = ln(1 + e^x), which in f32 equals x for x above 20 */
static __device__ __forceinline__ void find_rates(const delta_job &a, int r) {
  const float *in = a.scratch.in + (size_t)r * a.size.outputs;
  float *rate = row_of(a, a.rows.sequence[r], a.rows.slot[r]) + a.size.rates_at;
  for (int h = (int)threadIdx.x; h < a.size.values; h += THREADS) {
    float x = in[a.size.a_at + h] + a.shift[h];
    rate[h] = a.decay[h] * (x > 20.0f ? x : logf(1.0f + expf(x)));
    a.scratch.strength[(size_t)r * a.size.values + h] = sigmoid(in[a.size.b_at + h]);
  }
}

/* Blocks of a row: one for each key head, one for THREADS numbers of values each, and one for rates. */
static __global__ __launch_bounds__(THREADS, 8) void k_delta_mix(delta_job a) {
  DYNAMIC_SHARED_OF(float, shared, (int)sizeof(float) * WARPS);
  dependency_release();
  const int r = (int)blockIdx.x, block = (int)blockIdx.y - a.key_heads;
  const bool there = r < a.rows.header->n;
  dependency_wait();
  if (!there) return;
  if (block < 0) {
    make_unit(a, r, (int)blockIdx.y, false, 1.0f / sqrtf((float)a.key_dim), shared);
    make_unit(a, r, (int)blockIdx.y, true, 1.0f, shared);
  } else if (block == (int)gridDim.y - 1 - a.key_heads) {
    find_rates(a, r);
  } else {
    int c = 2 * a.key_heads * a.key_dim + block * THREADS + (int)threadIdx.x;
    if (c < a.size.mixed) a.scratch.mixed[(size_t)r * a.size.mixed + c] = convolve(a, r, c);
  }
}

/* ---- factors -------------------------------------------------------------------------------------------------------
 */

/* The sum over this lane and those after it. */
static __device__ __forceinline__ float sum_from(float x, int lane) {
  for (int by = 1; by < WARP; by *= 2) {
    float other = __shfl_sync(ALL, x, (lane + by) % WARP);
    if (lane + by < WARP) x += other;
  }
  return x;
}

/* Computes the factors of one value head: the products with keys, each times e to the sum of the rates after its row up
 * to the row r itself. A lane has three rows. The last entry has the factor of the base and of the row's own delta. */
static __device__ __forceinline__ void decay_products(const delta_job &a, int r, int head, int base, int n,
                                                      const float2 *product, int lane) {
  constexpr int EACH = DELTA_FACTORS / WARP;
  const int sequence = a.rows.sequence[r];
  float rate[EACH], own = row_of(a, sequence, a.rows.slot[r])[a.size.rates_at + head], mine = 0.0f;
#pragma unroll
  for (int e = EACH - 1; e >= 0; e--) {
    int j = lane * EACH + e;
    rate[e] = j < n ? row_of(a, sequence, slot_at(a.rows, r, base + j))[a.size.rates_at + head] : 0.0f;
    mine += rate[e];
  }
  const float from_here = sum_from(mine, lane), next = __shfl_sync(ALL, from_here, (lane + 1) % WARP);
  float after = own + (lane + 1 < WARP ? next : 0.0f);
  float2 *to = a.scratch.factor + ((size_t)r * a.size.values + head) * DELTA_FACTORS;
#pragma unroll
  for (int e = EACH - 1; e >= 0; e--) {
    int j = lane * EACH + e;
    float by = expf(after);
    if (j < n) to[j] = make_float2(by * product[j].x, by * product[j].y);
    after += rate[e];
  }
  if (lane == 0) to[DELTA_FACTORS - 1] = make_float2(expf(own + from_here), product[n].y);
}

/* A block for each row and key head. A warp multiplies a key of the path with the row's key and query; the last product
 * is with the row's own key. */
static __global__ __launch_bounds__(THREADS) void k_delta_factors(delta_job a) {
  DYNAMIC_SHARED_OF(float2, product, (int)sizeof(float2) * DELTA_FACTORS);
  dependency_release();
  const int r = (int)blockIdx.x, head = (int)blockIdx.y, warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
  const bool there = r < a.rows.header->n;
  dependency_wait();
  if (!there) return;
  const int base = delta_base_of(a.rows.position[r]), n = a.rows.position[r] - base;
  const float *q = a.scratch.mixed + (size_t)r * a.size.mixed + (size_t)head * a.key_dim;
  const float *k = q + (size_t)a.key_heads * a.key_dim;
  for (int j = warp; j <= n; j += WARPS) {
    const float *row = row_of(a, a.rows.sequence[r], j < n ? slot_at(a.rows, r, base + j) : a.rows.slot[r]);
    const float *key = row + a.size.keys_at + (size_t)head * a.key_dim;
    float by_k = 0.0f, by_q = 0.0f;
    for (int c = lane; c < a.key_dim; c += WARP) by_k = fmaf(key[c], k[c], by_k), by_q = fmaf(key[c], q[c], by_q);
    by_k = warp_sum(by_k), by_q = warp_sum(by_q);
    if (lane == 0) product[j] = make_float2(by_k, by_q);
  }
  __syncthreads();
  for (int i = warp; i < sharing(a); i += WARPS) decay_products(a, r, value_head(a, head, i), base, n, product, lane);
}

/* ---- bases and sums ------------------------------------------------------------------------------------------------
 */

/* A block has WARP columns of a value head's state. Each warp has the same columns of some keys, and of some rows on a
 * path; what they compute is added up in the order of the warps. */
constexpr int PARTS = 8, PATH_ROWS = DELTA_FACTORS / PARTS;

/* A thread's part of a state: numbers of one column, of the keys from part * `each` on. EACH: the largest `each`. */
template <int EACH> struct state_part { float v[EACH]; };

struct state_place {
  int each, key, part, column; /* column: of a value head, beyond its last one in an idle thread */
  size_t at, step;             /* the first number in a base, and the distance to the next */
  bool there;
};

static __device__ __forceinline__ float *base_of(const delta_job &a, float *store, int position) {
  return store + a.size.bases_at + (size_t)(position / DT_DELTA_STEP % DT_DELTA_BASES) * a.size.base;
}

template <int EACH>
static __device__ __forceinline__ state_part<EACH> load_state(const delta_job &a, const state_place &p, float *store,
                                                              int position) {
  state_part<EACH> s;
  const float *base = base_of(a, store, position) + p.at;
#pragma unroll
  for (int e = 0; e < EACH; e++) s.v[e] = position && p.there && e < p.each ? base[e * p.step] : 0.0f;
  return s;
}

/* Moves a state DT_DELTA_STEP rows on, to this position. shared: [DT_DELTA_STEP + 1]. */
template <int EACH>
static __device__ __forceinline__ void move_state(const delta_job &a, const state_place &p, float *store, int head,
                                                  int position, float *shared, state_part<EACH> *s) {
  static_assert(DT_DELTA_STEP == WARP, "a lane has one row");
  const int first = position - DT_DELTA_STEP;
  const auto row = [&](int j) { return store + (size_t)((first + j) % DT_DELTA_RING) * a.size.row; };
  __syncthreads(); /* other warps may still read `shared` */
  if (p.part == 0) {
    const int lane = (int)threadIdx.x;
    const float rest = sum_from(row(lane)[a.size.rates_at + head], lane);
    const float after = __shfl_sync(ALL, rest, (lane + 1) % WARP);
    shared[lane] = lane + 1 < WARP ? expf(after) : 1.0f; /* the last row itself does not decay */
    if (lane == 0) shared[DT_DELTA_STEP] = expf(rest);
  }
  __syncthreads();
  if (!p.there) return;
#pragma unroll
  for (int e = 0; e < EACH; e++) s->v[e] *= shared[DT_DELTA_STEP];
  for (int j = 0; j < DT_DELTA_STEP; j++) {
    const float u = row(j)[a.size.deltas_at + (size_t)head * a.value_dim + p.column], decay = shared[j];
    const float *key = row(j) + a.size.keys_at + p.key;
#pragma unroll
    for (int e = 0; e < EACH; e++)
      if (e < p.each) s->v[e] = fmaf(decay * key[e], u, s->v[e]);
  }
  float *base = base_of(a, store, position) + p.at;
#pragma unroll
  for (int e = 0; e < EACH; e++)
    if (e < p.each) base[e * p.step] = s->v[e];
}

/* This thread's part of a row's sums: x with its key, from which its delta is computed, y with its query. */
template <int EACH>
static __device__ __forceinline__ float2 sum_part(const delta_job &a, const state_place &p, int r, int head, int base,
                                                  const state_part<EACH> &s) {
  const float2 *factor = a.scratch.factor + ((size_t)r * a.size.values + head) * DELTA_FACTORS;
  const float *q = a.scratch.mixed + (size_t)r * a.size.mixed + p.key;
  const float *k = q + (size_t)a.key_heads * a.key_dim;
  const int n = a.rows.position[r] - base, sequence = a.rows.sequence[r];
  float2 sum = make_float2(0.0f, 0.0f);
#pragma unroll
  for (int e = 0; e < EACH; e++)
    if (e < p.each) sum.x = fmaf(k[e], s.v[e], sum.x), sum.y = fmaf(q[e], s.v[e], sum.y);
  const float decay = factor[DELTA_FACTORS - 1].x;
  sum.x *= decay, sum.y *= decay;
#pragma unroll
  for (int i = 0; i < PATH_ROWS; i++) {
    int j = p.part * PATH_ROWS + i;
    if (j >= n) break;
    const float *row = row_of(a, sequence, slot_at(a.rows, r, base + j));
    float u = row[a.size.deltas_at + (size_t)head * a.value_dim + p.column];
    sum.x = fmaf(factor[j].x, u, sum.x), sum.y = fmaf(factor[j].y, u, sum.y);
  }
  return sum;
}

/* Adds up the parts of a row's sums, and computes its delta and its result. */
static __device__ __forceinline__ void finish_row(const delta_job &a, int r, int head, int column, const float2 *part) {
  float2 sum = part[0];
  for (int i = 1; i < PARTS; i++) sum.x += part[i * WARP].x, sum.y += part[i * WARP].y;
  const size_t at = (size_t)head * a.value_dim + column;
  const float v = a.scratch.mixed[(size_t)r * a.size.mixed + 2 * (size_t)a.key_heads * a.key_dim + at];
  const float own = a.scratch.factor[((size_t)r * a.size.values + head + 1) * DELTA_FACTORS - 1].y;
  const float u = a.scratch.strength[(size_t)r * a.size.values + head] * (v - sum.x);
  row_of(a, a.rows.sequence[r], a.rows.slot[r])[a.size.deltas_at + at] = u;
  a.scratch.y[(size_t)r * a.size.values * a.value_dim + at] = fmaf(own, u, sum.y);
}

/* Blocks for a run of rows, a value head and WARP of its columns. A row's delta depends on those of the rows before it
 * on its path, in the same column: a block computes the rows in order. */
template <int EACH> static __global__ __launch_bounds__(PARTS *WARP) void k_delta_sums(delta_job a) {
  DYNAMIC_SHARED_OF(float2, part, (int)sizeof(float2) * (PARTS * WARP + (DT_DELTA_STEP + 2) / 2));
  float *decays = reinterpret_cast<float *>(part + PARTS * WARP);
  dependency_release();
  const int head = (int)blockIdx.y, key = key_head(a, head), lane = (int)threadIdx.x % WARP;
  const delta_run run = a.rows.deltas->run[blockIdx.x];
  const bool there = (int)blockIdx.x < a.rows.deltas->runs;
  dependency_wait();
  if (!there) return;
  float *store = store_of(a, run.sequence);
  state_place p;
  p.each = a.key_dim / PARTS, p.part = (int)threadIdx.x / WARP, p.key = key * a.key_dim + p.part * p.each;
  p.column = (int)blockIdx.z * WARP + lane, p.there = p.column < a.value_dim, p.step = (size_t)a.value_dim;
  p.at = ((size_t)head * a.key_dim + (size_t)(p.part * p.each)) * p.step + (size_t)p.column;
  int held = run.from;
  state_part<EACH> state = load_state<EACH>(a, p, store, held);
  while (held < run.to) move_state<EACH>(a, p, store, head, held += DT_DELTA_STEP, decays, &state);
  for (int r = run.first; r < run.first + run.n; r++) {
    const int base = delta_base_of(a.rows.position[r]);
    if (base != held) state = load_state<EACH>(a, p, store, held = base);
    if (p.there) part[threadIdx.x] = sum_part<EACH>(a, p, r, head, base, state);
    __syncthreads();
    if (p.there && p.part == 0) finish_row(a, r, head, p.column, part + lane);
    __syncthreads(); /* the next row may read this row's delta, and writes `part` */
  }
}

/* A block for each row and value head. */
template <number TYPE> static __global__ __launch_bounds__(THREADS) void k_delta_out(delta_job a) {
  DYNAMIC_SHARED_OF(float, shared, (int)sizeof(float) * WARPS);
  dependency_release();
  const int r = (int)blockIdx.x, first = (int)blockIdx.y * a.value_dim;
  const bool there = r < a.rows.header->n;
  dependency_wait();
  if (!there) return;
  const float *y = a.scratch.y + (size_t)r * a.size.values * a.value_dim + first;
  const float *z = a.scratch.in + (size_t)r * a.size.outputs + a.size.z_at + first;
  float squares = 0.0f;
  for (int c = (int)threadIdx.x; c < a.value_dim; c += THREADS) squares = fmaf(y[c], y[c], squares);
  float scale = 1.0f / sqrtf(block_sum<WARPS>(squares, shared) / (float)a.value_dim + a.eps);
  for (int c = (int)threadIdx.x; c < a.value_dim; c += THREADS)
    a.out.at[a.out.place(r, first + c)] = narrow<TYPE>(y[c] * scale * a.norm[c] * silu(z[c]));
}

/* ---- launches ------------------------------------------------------------------------------------------------------
 */

cudaError_t delta_mix(const queue &stream, const delta_job &a, int rows) {
  const int values = blocks_of(a.size.values * a.value_dim, THREADS);
  return launch(stream, dim3((unsigned)rows, (unsigned)(a.key_heads + values + 1)), THREADS, sizeof(float) * WARPS,
                k_delta_mix, a);
}

cudaError_t delta_factors(const queue &stream, const delta_job &a, int rows) {
  return launch(stream, dim3((unsigned)rows, (unsigned)a.key_heads), THREADS, sizeof(float2) * DELTA_FACTORS,
                k_delta_factors, a);
}

cudaError_t delta_sums(const queue &stream, const delta_job &a, int runs) {
  const dim3 grid((unsigned)runs, (unsigned)a.size.values, (unsigned)blocks_of(a.value_dim, WARP));
  const size_t shared = sizeof(float2) * (PARTS * WARP + (DT_DELTA_STEP + 2) / 2);
  constexpr int MOST = DELTA_KEYS / PARTS;
  auto kernel = a.key_dim <= MOST / 2 * PARTS ? k_delta_sums<MOST / 2> : k_delta_sums<MOST>;
  return launch(stream, grid, PARTS * WARP, shared, kernel, a);
}

cudaError_t delta_out(const queue &stream, number type, const delta_job &a, int rows) {
  return launch(stream, dim3((unsigned)rows, (unsigned)a.size.values), THREADS, sizeof(float) * WARPS,
                type == F16 ? k_delta_out<F16> : k_delta_out<BF16>, a);
}
