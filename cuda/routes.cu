/* Which experts the rows of a pass choose. The router works in f32 from the residual stream, which it normalizes by
 * itself, since the rows that products read are rounded to 16 bits. The choice is that of the CPU backend: see
 * dt_layer. One block sorts the pairs by expert, so that a block of the products reads an expert's weights for all rows
 * that chose it. */
#include "experts.cuh"
#include "launch.cuh"

constexpr int ROUTERS = 256, CHOOSERS = DT_EXPERTS, EACH = DT_EXPERTS / WARP, CHOOSING_WARPS = CHOOSERS / WARP;
constexpr unsigned ALL = 0xffffffffu;

struct router_job {
  const int *n; /* on the device */
  int hidden, outputs;
  const float *x, *norm, *norm_bias; /* norm null: none */
  dt_norm_kind kind;
  float eps;
  const float *router, *bias; /* [outputs][hidden] [outputs] */
  float *logits;              /* [rows][outputs] */
};

/* A block for a row and some outputs, one for each warp. */
static __global__ __launch_bounds__(ROUTERS) void k_router(router_job a) {
  DYNAMIC_SHARED(float, shared);
  float *y = shared + ROUTERS / WARP;
  dependency_release();
  int row = (int)blockIdx.y, output = (int)(blockIdx.x * (ROUTERS / WARP) + threadIdx.x / WARP),
      lane = threadIdx.x % WARP;
  bool there = row < *a.n;
  dependency_wait();
  if (!there) return;
  const float *x = a.x + (size_t)row * a.hidden;
  float sum = 0.0f, squares = 0.0f;
  for (int c = (int)threadIdx.x; c < a.hidden; c += ROUTERS) sum += y[c] = x[c];
  float mean = a.norm && a.kind == DT_NORM_LAYER ? block_sum<ROUTERS / WARP>(sum, shared) / (float)a.hidden : 0.0f;
  for (int c = (int)threadIdx.x; c < a.hidden; c += ROUTERS) squares = fmaf(y[c] - mean, y[c] - mean, squares);
  float scale = 1.0f / sqrtf(block_sum<ROUTERS / WARP>(squares, shared) / (float)a.hidden + a.eps);
  for (int c = (int)threadIdx.x; c < a.hidden && a.norm; c += ROUTERS)
    y[c] = fmaf((y[c] - mean) * scale, a.norm[c], a.norm_bias ? a.norm_bias[c] : 0.0f);
  __syncthreads();
  if (output >= a.outputs) return;
  const float *weight = a.router + (size_t)output * a.hidden;
  float logit = 0.0f;
  for (int c = lane; c < a.hidden; c += WARP) logit = fmaf(y[c], weight[c], logit);
  logit = warp_sum(logit);
  if (lane == 0) a.logits[(size_t)row * a.outputs + output] = logit + (a.bias ? a.bias[output] : 0.0f);
}

struct choice_job {
  const int *n;                       /* on the device */
  int experts, outputs, chosen, most; /* most: pairs of a group */
  bool sigmoid, chosen_only;
  float router_scale, experts_scale; /* 1: none */
  const float *correction, *scale;   /* [experts]; null: none */
  route_scratch to;
  int32_t *ids, *read; /* [rows][chosen], one number; on the host; null: not wanted */
};

/* A number and the expert that it belongs to; -1: none. */
struct candidate {
  float v;
  int id;
};
static __device__ __forceinline__ candidate better(const candidate &a, const candidate &b) {
  bool second = b.id >= 0 && (a.id < 0 || b.v > a.v || (b.v == a.v && b.id < a.id));
  return second ? b : a;
}

/* The best candidate of a warp, the same in every lane even if numbers are NaN. */
static __device__ __forceinline__ candidate best_of_warp(candidate c) {
  for (int bits = WARP / 2; bits; bits /= 2)
    c = better(c, {__shfl_xor_sync(ALL, c.v, bits), __shfl_xor_sync(ALL, c.id, bits)});
  return {__shfl_sync(ALL, c.v, 0), __shfl_sync(ALL, c.id, 0)};
}

/* A warp chooses the experts of a row. A lane has the experts lane, lane + 32, ... */
static __device__ void choose_row(const choice_job &a, int row, int lane) {
  float rank[EACH], p[EACH], largest = -INFINITY, sum = 0.0f;
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    int e = lane + WARP * i;
    rank[i] = e < a.experts ? a.to.logits[(size_t)row * a.outputs + e] * a.router_scale : -INFINITY;
    largest = fmaxf(largest, rank[i]);
  }
  largest = warp_max(largest);
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    int e = lane + WARP * i;
    p[i] = e >= a.experts ? 0.0f : a.sigmoid ? 1.0f / (1.0f + expf(-rank[i])) : expf(rank[i] - largest);
    sum += p[i];
    if (a.sigmoid) rank[i] = p[i] + (a.correction && e < a.experts ? a.correction[e] : 0.0f);
  }
  sum = a.sigmoid ? 1.0f : warp_sum(sum);
  unsigned taken = 0; /* bits: which of the lane's experts */
  for (int j = 0; j < a.chosen; j++) {
    candidate mine = {0.0f, -1};
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      int e = lane + WARP * i;
      if (e < a.experts && !(taken >> i & 1)) mine = better(mine, {rank[i], e});
    }
    mine = best_of_warp(mine);
    if (mine.id % WARP == lane) taken |= 1u << mine.id / WARP;
  }
  if (a.chosen_only) {
    sum = 0.0f;
#pragma unroll
    for (int i = 0; i < EACH; i++)
      if (taken >> i & 1) sum += p[i];
    sum = warp_sum(sum) + (a.sigmoid ? 1e-20f : 0.0f);
  }
  int before = 0;
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    int e = lane + WARP * i;
    unsigned lanes = __ballot_sync(ALL, taken >> i & 1);
    size_t at = (size_t)row * a.chosen + before + __popc(lanes & ((1u << lane) - 1));
    before += __popc(lanes);
    if (!(taken >> i & 1)) continue;
    float weight = p[i] / sum;
    if (a.scale) weight *= a.scale[e];
    a.to.id[at] = e, a.to.weight[at] = weight * a.experts_scale;
    if (a.ids) a.ids[at] = e;
  }
}

/* Returns the sum of the numbers of the threads before this one, and of all. */
static __device__ __forceinline__ unsigned sum_before(unsigned mine, unsigned *shared, unsigned *all) {
  unsigned sum = mine, total = 0;
  for (int by = 1; by < WARP; by *= 2) {
    unsigned other = __shfl_sync(ALL, sum, (int)(threadIdx.x % WARP) >= by ? (int)(threadIdx.x % WARP) - by : 0);
    if ((int)(threadIdx.x % WARP) >= by) sum += other;
  }
  if (threadIdx.x % WARP == WARP - 1) shared[threadIdx.x / WARP] = sum;
  __syncthreads();
  unsigned before = 0;
  for (int i = 0; i < CHOOSING_WARPS; i++) {
    if (i < (int)(threadIdx.x / WARP)) before += shared[i];
    total += shared[i];
  }
  *all = total;
  __syncthreads();
  return before + sum - mine;
}

/* Calls put(pair, rank) for the pairs of an expert, in rising order, one lane each; returns their number. */
template <class PUT>
static __device__ __forceinline__ int for_pairs(const int32_t *id, int pairs, int expert, const PUT &put) {
  int lane = threadIdx.x % WARP, count = 0;
  for (int first = 0; first < pairs; first += WARP) {
    bool its = first + lane < pairs && id[first + lane] == expert;
    unsigned lanes = __ballot_sync(ALL, its);
    if (its) put(first + lane, count + __popc(lanes & ((1u << lane) - 1)));
    count += __popc(lanes);
  }
  return count;
}

/* Chooses the experts of all rows, a warp for each; then counts the pairs of each expert, forms groups, and lists the
 * pairs by expert. One block, since groups need the counts of all rows. */
static __global__ __launch_bounds__(CHOOSERS, 1) void k_choose(choice_job a) {
  DYNAMIC_SHARED_OF(unsigned, shared, (int)sizeof(unsigned) * (CHOOSING_WARPS + 2 * DT_EXPERTS));
  unsigned *count = shared + CHOOSING_WARPS, *start = count + DT_EXPERTS;
  dependency_release();
  int n = *a.n, warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, pairs = n * a.chosen;
  dependency_wait();
  for (int row = warp; row < n; row += CHOOSING_WARPS) choose_row(a, row, lane);
  __syncthreads();
  for (int e = warp; e < a.experts; e += CHOOSING_WARPS) {
    int its = for_pairs(a.to.id, pairs, e, [](int, int) {});
    if (lane == 0) count[e] = (unsigned)its;
  }
  __syncthreads();
  unsigned mine = (int)threadIdx.x < a.experts ? count[threadIdx.x] : 0, all;
  unsigned groups = (mine + (unsigned)a.most - 1) / (unsigned)a.most;
  unsigned first = sum_before(mine, shared, &all), group = sum_before(groups, shared, &all), read;
  if ((int)threadIdx.x < a.experts) start[threadIdx.x] = first;
  if (threadIdx.x == 0) *a.to.groups = (int)all;
  for (unsigned i = 0; i < groups; i++) {
    unsigned left = mine - i * (unsigned)a.most;
    a.to.group[group + i] = make_int4((int)threadIdx.x, (int)(first + i * (unsigned)a.most),
                                      (int)(left < (unsigned)a.most ? left : (unsigned)a.most), 0);
  }
  sum_before(mine > 0, shared, &read); /* its barriers make `start` visible, too */
  if (threadIdx.x == 0 && a.read) *a.read = (int)read;
  for (int e = warp; e < a.experts; e += CHOOSING_WARPS) {
    int32_t *order = a.to.order + start[e];
    for_pairs(a.to.id, pairs, e, [&](int pair, int rank) { order[rank] = pair; });
  }
}

void step_routes(enqueuer *q, int layer) {
  const dt_weights *w = q->w;
  const dt_shape &s = w->shape;
  const struct layer &l = w->layers_of[layer];
  const expert_parts &by = l.experts;
  const int *n = &q->c->rows[0].header->n;
  const router_job router = {n,
                             s.hidden,
                             by.outputs,
                             w->x,
                             by.router_norm ? by.router_norm : l.norm2,
                             by.router_norm ? nullptr : l.norm2_bias,
                             s.norm,
                             s.norm_eps,
                             by.router,
                             by.router_bias,
                             w->routes.logits};
  must(q, launch(q->stream, dim3((unsigned)blocks_of(by.outputs, ROUTERS / WARP), (unsigned)q->shape.rows), ROUTERS,
                 sizeof(float) * (size_t)(ROUTERS / WARP + s.hidden), k_router, router));
  choice_job choice = {n,
                       s.experts,
                       by.outputs,
                       s.chosen,
                       pairs_of_group(w, q->shape.rows),
                       s.router_sigmoid,
                       s.chosen_only,
                       s.router_scale != 0 ? s.router_scale : 1.0f,
                       s.experts_scale != 0 ? s.experts_scale : 1.0f,
                       by.correction,
                       by.scale,
                       w->routes,
                       nullptr,
                       nullptr};
  if (q->shape.routes) {
    choice.ids = q->c->results.expert + (size_t)layer * ROWS * (size_t)s.chosen;
    choice.read = q->c->results.experts_read + layer;
  }
  must(q, launch(q->stream, dim3(1), CHOOSERS, sizeof(unsigned) * (CHOOSING_WARPS + 2 * DT_EXPERTS), k_choose, choice));
}
