/* Applies logit adjustments (backend/adjustment.h) in place, before ids are chosen. The host writes the lists and masks
 * of all wanted rows of a pass into one buffer, a list or mask that rows share only once, and one copy brings them to
 * the device. The logits of listed ids are kept: log-probabilities are those of the logits before adjustments. A listed
 * id that the mask forbids is left to the mask. */
#include "adjust.cuh"
#include "launch.cuh"

constexpr int THREADS = 256, IDS = 4096; /* ids of a block */

/* ---- from the host ----------------------------------------------------------------------------------------------- */

static size_t aligned(size_t bytes) { return (bytes + 255) & ~(size_t)255; }

void free_adjustments(dt_cache *c) {
  adjustment_buffer *b = &c->adjustments;
  if (b->host) cudaFreeHost(b->host);
  if (b->device) cudaFree(b->device);
  c->weights->backend->memory.scratch -= b->bytes;
  *b = {};
}

/* Makes room for this number of bytes on both sides. Passes are over when it is called. */
static cudaError_t reserve(dt_cache *c, size_t bytes) {
  adjustment_buffer *b = &c->adjustments;
  if (bytes <= b->bytes) return cudaSuccess;
  free_adjustments(c);
  bytes += bytes / 2;
  void *host = nullptr, *device = nullptr;
  cudaError_t e = cudaHostAlloc(&host, bytes, cudaHostAllocDefault);
  if (e == cudaSuccess) e = cudaMalloc(&device, bytes);
  if (e != cudaSuccess) {
    if (host) cudaFreeHost(host);
    return e;
  }
  *b = {static_cast<char *>(host), static_cast<char *>(device), bytes};
  c->weights->backend->memory.scratch += bytes;
  return cudaSuccess;
}

/* The adjustments of a row; nothing if there are none. */
static dt_row_adjustments of_result(const dt_out *out, int result) {
  return out->adjustments ? out->adjustments[result] : dt_row_adjustments{};
}

/* Where the lists and masks of rows lie, counted in entries of each kind. */
struct plan {
  adjusted_row row[ROWS];
  bool has_text[ROWS], has_mask[ROWS]; /* the row is the first one with its list, with its mask */
  size_t list, mask, raw;              /* the number of entries */
};

static void make_plan(plan *p, const dt_out *out, int from, int n, size_t words) {
  for (int j = 0; j < n; j++) {
    const dt_row_adjustments s = of_result(out, from + j);
    adjusted_row *r = &p->row[j];
    int text = s.n_text ? j - 1 : -1, mask = s.allowed ? j - 1 : -1;
    while (text >= 0 && of_result(out, from + text).text != s.text) text--;
    while (mask >= 0 && of_result(out, from + mask).allowed != s.allowed) mask--;
    p->has_text[j] = s.n_text && text < 0, p->has_mask[j] = s.allowed && mask < 0;
    *r = {text < 0 ? (int)p->list : p->row[text].text, s.n_text, 0, s.n_path, -1, (int)p->raw, -1};
    if (p->has_text[j]) p->list += (size_t)s.n_text;
    r->path = (int)p->list, p->list += (size_t)s.n_path;
    if (s.allowed) r->mask = mask < 0 ? (int)p->mask : p->row[mask].mask;
    if (p->has_mask[j]) p->mask += words;
    p->raw += (size_t)(s.n_text + s.n_path);
    if (out->given) r->given = out->given[from + j];
  }
}

cudaError_t stage_adjustments(dt_cache *c, const pass_rows &staged, const dt_out *out, int from, int n) {
  size_t words = ((size_t)c->weights->shape.vocab + 63) / 64;
  plan p = {};
  make_plan(&p, out, from, n, words);
  size_t lists = aligned(sizeof p.row), masks = lists + aligned(p.list * sizeof(dt_adjustment)),
         raws = masks + aligned(p.mask * sizeof(uint64_t));
  cudaError_t e = reserve(c, raws + aligned(p.raw * sizeof(float)));
  if (e != cudaSuccess) return e;
  char *host = c->adjustments.host, *device = c->adjustments.device;
  memcpy(host, p.row, sizeof p.row);
  for (int j = 0; j < n; j++) {
    const dt_row_adjustments s = of_result(out, from + j);
    dt_adjustment *list = reinterpret_cast<dt_adjustment *>(host + lists);
    uint64_t *mask = reinterpret_cast<uint64_t *>(host + masks);
    if (p.has_text[j]) memcpy(list + p.row[j].text, s.text, (size_t)s.n_text * sizeof *list);
    if (s.n_path) memcpy(list + p.row[j].path, s.path, (size_t)s.n_path * sizeof *list);
    if (p.has_mask[j]) memcpy(mask + p.row[j].mask, s.allowed, words * sizeof *mask);
  }
  staged.header->adjusted = {reinterpret_cast<adjusted_row *>(device),
                             reinterpret_cast<dt_adjustment *>(device + lists),
                             reinterpret_cast<uint64_t *>(device + masks), reinterpret_cast<float *>(device + raws)};
  return cudaMemcpyAsync(device, host, raws, cudaMemcpyHostToDevice, c->weights->backend->stream);
}

/* ---- on the device ----------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ bool allows(const adjusted_rows &of, const adjusted_row &r, int id) {
  return r.mask < 0 || (of.mask[r.mask + id / 64] >> (id % 64) & 1);
}

/* The place of an id in a list, or -1. */
static __device__ __forceinline__ int listed_at(const dt_adjustment *list, int n, int id) {
  int at = adjustment_place(list, n, id);
  return at < n && list[at].id == id ? at : -1;
}

/* The output that has this id, or -1. */
static __device__ __forceinline__ int output_of(const adjustment_job &a, int id) {
  if (!a.ids) return id < a.outputs ? id : -1;
  int low = 0, high = a.outputs;
  while (low < high) {
    int middle = low + (high - low) / 2;
    if (a.ids[middle] < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < a.outputs && a.ids[low] == id ? low : -1;
}

static __global__ __launch_bounds__(THREADS) void k_adjust(adjustment_job a) {
  dependency_release();
  int j = blockIdx.y, first = blockIdx.x * THREADS + threadIdx.x, stride = gridDim.x * THREADS;
  if (j >= a.rows.header->wanted) return dependency_wait();
  dependency_wait();
  const adjusted_rows of = a.rows.header->adjusted;
  const adjusted_row r = of.row[j];
  const dt_adjustment *text = of.list + r.text, *path = of.list + r.path;
  float *logits = a.logits + (size_t)j * a.outputs;
  for (int i = first; i < r.n_text + r.n_path; i += stride) {
    const dt_adjustment s = i < r.n_text ? text[i] : path[i - r.n_text];
    int at = output_of(a, s.id);
    if (at < 0 || !allows(of, r, s.id) || (i < r.n_text && listed_at(path, r.n_path, s.id) >= 0)) continue;
    of.raw[r.raw + i] = logits[at];
    logits[at] = adjust_logit(&s, logits[at]);
  }
  for (int i = first; r.mask >= 0 && i < a.outputs; i += stride)
    if (!allows(of, r, a.ids ? a.ids[i] : i)) logits[i] = -INFINITY;
}

cudaError_t adjust_logits(const queue &stream, const adjustment_job &a, int rows) {
  return launch(stream, dim3((unsigned)blocks_of(a.outputs, IDS), (unsigned)rows), THREADS, 0, k_adjust, a);
}

/* The logit of an id that may be chosen, before it was adjusted. */
static __device__ float raw_logit(const adjustment_job &a, const adjusted_rows &of, int j, int id) {
  if (of.row) {
    const adjusted_row r = of.row[j];
    int at = listed_at(of.list + r.path, r.n_path, id);
    if (at >= 0) return of.raw[r.raw + r.n_text + at];
    at = listed_at(of.list + r.text, r.n_text, id);
    if (at >= 0) return of.raw[r.raw + at];
  }
  return a.logits[(size_t)j * a.outputs + id];
}

static __global__ __launch_bounds__(ROWS) void k_logp(adjustment_job a) {
  dependency_release();
  int j = threadIdx.x;
  if (j >= a.rows.header->wanted) return dependency_wait();
  dependency_wait();
  const adjusted_rows of = a.rows.header->adjusted;
  int given = of.row ? of.row[j].given : -1, id = given >= 0 ? given : a.results.argmax[j];
  a.results.logp[j] = id < 0 ? NAN : (float)((double)raw_logit(a, of, j, id) - a.log_sums[j]);
}

cudaError_t write_logp(const queue &stream, const adjustment_job &a) {
  return launch(stream, dim3(1), ROWS, 0, k_logp, a);
}
