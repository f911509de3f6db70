/* Keys and values: creating, moving, saving and restoring them. The keys of one head lie slot by slot, so that
 * attention reads a prefix in one stream. A cache also has the buffers of its passes. */
#include "adjust.cuh"
#include "cache_format.cuh"
#include "delta.cuh"
#include "launch.cuh"

#include <new>
#include <stdlib.h>

/* It is kept on the device if that leaves KEPT_FREE of its memory, otherwise on the host. */
struct dt_snapshot {
  dt_backend *backend;
  size_t slot_bytes; /* of the cache's model */
  int wide, n;       /* n rows of each list of the cache, then features: [n][wide] */
  size_t row;        /* numbers of a row of delta layers */
  int base;          /* see delta_newest; these rows come last */
  arena device;      /* empty: on the host */
  void *host;        /* malloc'd; NULL: on the device */
};
constexpr size_t KEPT_FREE = ((size_t)1 << 30) - MARGIN; /* and MARGIN, which cuda_bytes_free leaves out */

static dt_limits limits_of(const dt_cache *c) {
  return {c->weights->shape.vocab, c->weights->shape.context, c->sequences, c->slots, TOP};
}

static unsigned char *sequence_rows(const dt_cache *c, int sequence) {
  return c->data + (size_t)sequence * (size_t)c->slots * c->weights->slot_bytes;
}

/* Lists of the cache (keys or values of a head) that follow each other and whose rows have the same width. */
struct list_run {
  size_t lists, width, at; /* width: bytes of a row; at: bytes of a slot before them */
};
/* Calls f for each run of lists of a sequence, until it fails. */
template <class F> static cudaError_t each_run(const dt_weights *w, F f) {
  list_run run = {};
  cudaError_t e = cudaSuccess;
  for (int i = 0; i < w->shape.layers && !e; i++) {
    const layer &l = w->layers_of[i];
    if (!l.has_keys) continue;
    size_t lists = 2 * (size_t)l.kv_heads, width = row_bytes(w->backend->caches, l.dim);
    if (run.lists && run.width != width) e = f(run), run = {0, width, run.at + run.lists * run.width};
    run.lists += lists, run.width = width;
  }
  return run.lists && !e ? f(run) : e;
}

/* Bytes of a row's feature. */
static size_t feature_bytes(const dt_cache *c) { return (size_t)c->kept.width * sizeof(float); }
static float *sequence_features(const dt_cache *c, int sequence) {
  return c->kept.at + (size_t)sequence * (size_t)c->slots * (size_t)c->kept.width;
}

/* Bytes of one slot: all heads, and the feature. */
static size_t slot_bytes(const dt_cache *c) { return c->weights->slot_bytes + feature_bytes(c); }

/* Bytes of the embeddings of a pass's rows. */
static size_t embedding_bytes(const dt_weights *w) {
  return ((size_t)ROWS * (size_t)w->embedding * sizeof(uint16_t) + 255) & ~(size_t)255;
}

/* Lays out the arrays of a pass from `start` on, on the host or on the device. */
static pass_rows lay_rows(char *start, const dt_weights *w) {
  char *base = start + embedding_bytes(w);
  dt_sampling *sampling = reinterpret_cast<dt_sampling *>(base + ROWS_HEADER);
  int32_t *p = reinterpret_cast<int32_t *>(sampling + ROWS), *tail = reinterpret_cast<int32_t *>(base + rows_fixed(*w));
  return {reinterpret_cast<pass_header *>(base),
          sampling,
          p,
          p + ROWS,
          p + 2 * ROWS,
          p + 3 * ROWS,
          p + 4 * ROWS,
          p + 5 * ROWS,
          p + 6 * ROWS,
          reinterpret_cast<int4 *>(tail),
          tail,
          w->delta.all ? reinterpret_cast<delta_rows *>(p + 7 * ROWS) : nullptr};
}

static size_t rows_bytes(const dt_cache *c, const dt_weights *w) {
  return embedding_bytes(w) + ((rows_fixed(*w) + sizeof(int32_t) * c->tail + 255) & ~(size_t)255);
}

size_t cuda_cache_bytes(const dt_weights *w, int slots) {
  return (size_t)slots * (w->slot_bytes + (size_t)cache_feature(*w) * sizeof(float)) + w->delta.all * sizeof(float);
}

/* The number of angles of a rotation that rows of the cache may need. */
static size_t angles_of(const dt_cache *c, const dt_weights *w, int index) {
  int positions = c->slots < w->shape.context ? c->slots : w->shape.context;
  return (size_t)positions * (size_t)w->rotations[index].pairs;
}

static void layout(dt_cache *c, const dt_weights *w) {
  size_t heads = (size_t)c->batch * (size_t)w->shape.heads;
  size_t slots = (size_t)c->sequences * (size_t)c->slots;
  c->data = take<unsigned char>(&c->cache_arena, slots * w->slot_bytes);
  c->kept = {take<float>(&c->cache_arena, slots * (size_t)cache_feature(*w)), c->slots, cache_feature(*w)};
  c->deltas = take<float>(&c->cache_arena, (size_t)c->sequences * w->delta.all);
  c->part = take<float>(&c->scratch_arena, heads * (size_t)c->splits * (size_t)w->dim);
  c->weight = take<float2>(&c->scratch_arena, heads * (size_t)c->splits);
  c->done = take<unsigned>(&c->scratch_arena, heads);
  for (int i = 0; i < 2; i++)
    c->angles[i] = {take<float>(&c->scratch_arena, angles_of(c, w, i)),
                    take<float>(&c->scratch_arena, angles_of(c, w, i))};
  for (pass_rows &rows : c->rows) rows = lay_rows(take<char>(&c->scratch_arena, rows_bytes(c, w)), w);
}

/* Makes a cache with its sizes, without memory. */
static void measure(dt_cache *c, const dt_weights *w, int sequences, int slots) {
  c->sequences = sequences;
  c->slots = slots;
  c->splits = blocks_of(slots, SPLIT);
  size_t bytes = (size_t)sequences * cuda_cache_bytes(w, slots);
  c->batch = rows_of_batch(w->backend->batch, attention_row_bytes(w->shape.heads, c->splits, w->dim), bytes);
  c->tail = 8 * (size_t)round_up(ROWS, c->batch) * (size_t)c->splits + ROWS * (size_t)PATH + (size_t)slots;
  layout(c, w);
}

size_t cuda_scratch_bytes(const dt_weights *w, int sequences, int slots) {
  dt_cache c = {};
  measure(&c, w, sequences, slots);
  return c.scratch_arena.used;
}

void cuda_account_cache(const dt_weights *w, int sequences, int slots, dt_memory *to) {
  dt_cache c = {};
  measure(&c, w, sequences, slots);
  to->caches += c.cache_arena.used, to->scratch += c.scratch_arena.used;
}

/* Takes memory of the host for rows and results, which the device reads and writes directly. */
static dt_status open_host(dt_cache *c, dt_error *err) {
  const dt_shape &s = c->weights->shape;
  const size_t routes = s.experts ? (size_t)s.layers * ROWS * (size_t)s.chosen : 0;
  const size_t streams_at = ROWS * (4 + 3 * TOP) + routes + (routes ? (size_t)s.layers : 0),
               streams = c->weights->apart ? ROWS * (size_t)s.hidden : 0;
  size_t bytes = sizeof(int32_t) * (streams_at + streams);
  for (size_t i = 0; i < sizeof c->staged / sizeof *c->staged; i++) bytes += rows_bytes(c, c->weights);
  if (cudaHostAlloc(&c->host, bytes, cudaHostAllocDefault) != cudaSuccess) {
    cudaGetLastError();
    return dt_fail_memory(err, "the rows of a pass", bytes);
  }
  char *base = static_cast<char *>(c->host);
  for (pass_rows &rows : c->staged) rows = lay_rows(base, c->weights), base += rows_bytes(c, c->weights);
  float *f = reinterpret_cast<float *>(base);
  c->results = {reinterpret_cast<int32_t *>(f),
                reinterpret_cast<int32_t *>(f + ROWS),
                f + ROWS * (1 + TOP),
                f + ROWS * (1 + 2 * TOP),
                f + ROWS * (1 + 3 * TOP),
                f + ROWS * (2 + 3 * TOP),
                f + ROWS * (3 + 3 * TOP),
                routes ? reinterpret_cast<int32_t *>(f + ROWS * (4 + 3 * TOP)) : nullptr,
                routes ? reinterpret_cast<int32_t *>(f + ROWS * (4 + 3 * TOP)) + routes : nullptr};
  c->running.stream = streams ? f + streams_at : nullptr;
  return DT_OK;
}

static dt_status fill_angles(const dt_cache *c, int index, dt_error *err) {
  const dt_weights *w = c->weights;
  const rotation &by = w->rotations[index];
  const angle_table &to = c->angles[index];
  size_t angles = angles_of(c, w, index), pairs = (size_t)by.pairs, bytes = angles * sizeof(float);
  if (!angles) return DT_OK;
  float *table = static_cast<float *>(malloc(2 * bytes));
  if (!table) return dt_fail_memory(err, "the angles of a context", 2 * bytes);
  for (size_t i = 0; i < angles; i++) {
    double angle = (double)(i / pairs) * (double)by.frequency[i % pairs], scale = (double)by.scale;
    table[i] = (float)(cos(angle) * scale), table[angles + i] = (float)(sin(angle) * scale);
  }
  const queue &stream = w->backend->stream;
  cudaError_t e = cudaMemcpyAsync(to.cosine, table, bytes, cudaMemcpyHostToDevice, stream);
  if (!e) e = cudaMemcpyAsync(to.sine, table + angles, bytes, cudaMemcpyHostToDevice, stream);
  if (!e) e = cudaStreamSynchronize(stream);
  free(table);
  return cuda_check(w->backend, e, "opening a cache", err);
}

dt_status cuda_create_cache(dt_weights *w, int sequences, int slots, dt_cache **out, dt_error *err) {
  if (sequences < 1 || slots < 1)
    return dt_fail(err, DT_EINPUT, "cache: %d sequences of %d slots, both must be at least 1", sequences, slots);
  dt_cache *c = new (std::nothrow) dt_cache();
  if (!c) return dt_fail_memory(err, "a cache", sizeof *c);
  c->weights = w;
  measure(c, w, sequences, slots);
  dt_status status = arena_open(w->backend, &c->cache_arena, "the cache", &w->backend->memory.caches, err);
  if (status == DT_OK) status = arena_open(w->backend, &c->scratch_arena, "scratch", &w->backend->memory.scratch, err);
  if (status == DT_OK) status = open_host(c, err);
  if (status == DT_OK && w->delta.all) {
    c->delta_states = new (std::nothrow) delta_state[(size_t)sequences]();
    if (!c->delta_states) status = dt_fail_memory(err, "a cache", (size_t)sequences * sizeof *c->delta_states);
  }
  if (status == DT_OK) {
    layout(c, w);
    for (int i = 0; i < 2 && status == DT_OK; i++) status = fill_angles(c, i, err);
  }
  if (status == DT_OK)
    *out = c;
  else
    cuda_free_cache(c);
  return status;
}

void cuda_free_cache(dt_cache *c) {
  if (!c) return;
  graphs_free(c->graphs);
  if (c->host) cudaFreeHost(c->host);
  free_adjustments(c);
  delete[] c->delta_states;
  arena_close(&c->cache_arena, &c->weights->backend->memory.caches);
  arena_close(&c->scratch_arena, &c->weights->backend->memory.scratch);
  delete c;
}

constexpr int MOVES = 256, THREADS = 128;
struct move_plan { /* a kernel argument: no copy to wait for */
  int n, from[MOVES], to[MOVES];
};

/* Thread i moves a piece of every slot of a list, in order; a row has `each` pieces. */
template <class PIECE> static __global__ void k_move(PIECE *rows, int lists, int slots, int each, move_plan plan) {
  dependency_release();
  dependency_wait();
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= lists * each) return;
  PIECE *at = rows + (size_t)(i / each) * slots * each + i % each;
  for (int m = 0; m < plan.n; m++) at[(size_t)plan.to[m] * each] = at[(size_t)plan.from[m] * each];
}

/* Moves rows of `bytes` bytes in lists that lie one after another. */
template <class PIECE>
static cudaError_t move_rows(const dt_cache *c, void *rows, size_t lists, size_t bytes, const move_plan &plan) {
  int each = (int)(bytes / sizeof(PIECE));
  if (!each) return cudaSuccess;
  return launch(c->weights->backend->stream, dim3((unsigned)blocks_of((int)lists * each, THREADS)), THREADS, 0,
                k_move<PIECE>, static_cast<PIECE *>(rows), (int)lists, c->slots, each, plan);
}

/* Moves rows of all lists, and of the features. */
template <class PIECE> static cudaError_t start_moves(const dt_cache *c, int sequence, const move_plan &plan) {
  unsigned char *rows = sequence_rows(c, sequence);
  cudaError_t e = each_run(c->weights, [&](const list_run &run) {
    return move_rows<PIECE>(c, rows + (size_t)c->slots * run.at, run.lists, run.width, plan);
  });
  return e ? e : move_rows<PIECE>(c, sequence_features(c, sequence), 1, feature_bytes(c), plan);
}

dt_status cuda_move(dt_cache *c, int sequence, const int32_t *from, const int32_t *to, int n, dt_error *err) {
  dt_backend *b = c->weights->backend;
  dt_status status = check_slots("move", sequence, from, n, limits_of(c), err);
  if (status == DT_OK) status = check_slots("move", sequence, to, n, limits_of(c), err);
  if (status == DT_OK) status = cuda_check(b, cudaSetDevice(b->device), "being chosen", err);
  for (int first = 0; status == DT_OK && first < n; first += MOVES) {
    move_plan plan = {};
    for (; plan.n < MOVES && first + plan.n < n; plan.n++)
      plan.from[plan.n] = from[first + plan.n], plan.to[plan.n] = to[first + plan.n];
    cudaError_t e = b->caches == CACHE_Q8 ? start_moves<row_piece<CACHE_Q8>>(c, sequence, plan)
                                          : start_moves<row_piece<CACHE_16>>(c, sequence, plan);
    status = cuda_check(b, e, "moving rows of a cache", err);
  }
  if (status == DT_OK) status = cuda_check(b, delta_move(c, sequence, from, to, n), "moving rows of a cache", err);
  return status;
}

/* Copies slots first..first+n-1 of a sequence, heads and then features, between the cache and contiguous memory: out of
 * the cache if `to` is not null, otherwise into it. */
static dt_status copy_slots(const dt_cache *c, int sequence, int first, int n, void *to, const void *from,
                            cudaMemcpyKind kind, dt_error *err) {
  dt_backend *b = c->weights->backend;
  const size_t all = (size_t)n * c->weights->slot_bytes, wide = (size_t)n * feature_bytes(c);
  unsigned char *rows = sequence_rows(c, sequence);
  float *kept = sequence_features(c, sequence) + (size_t)first * (size_t)c->kept.width;
  cudaError_t e = cudaSetDevice(b->device);
  if (e == cudaSuccess && n)
    e = each_run(c->weights, [&](const list_run &run) {
      const size_t pitch = (size_t)c->slots * run.width, each = (size_t)n * run.width, before = (size_t)n * run.at;
      unsigned char *at = rows + (size_t)c->slots * run.at + (size_t)first * run.width;
      return to ? cudaMemcpy2DAsync(static_cast<char *>(to) + before, each, at, pitch, each, run.lists, kind, b->stream)
                : cudaMemcpy2DAsync(at, pitch, static_cast<const char *>(from) + before, each, each, run.lists, kind,
                                    b->stream);
    });
  if (e == cudaSuccess && wide)
    e = to ? cudaMemcpyAsync(static_cast<char *>(to) + all, kept, wide, kind, b->stream)
           : cudaMemcpyAsync(kept, static_cast<const char *>(from) + all, wide, kind, b->stream);
  if (e == cudaSuccess) e = cudaStreamSynchronize(b->stream);
  return cuda_check(b, e, "copying rows of a cache", err);
}

static size_t snapshot_bytes(const dt_cache *c, const dt_snapshot *s) {
  return (size_t)s->n * slot_bytes(c) + delta_bytes(c->weights, s->base, s->n);
}

/* Copies a sequence's rows to a snapshot or (not `out`) back. */
static dt_status copy_snapshot(const dt_cache *c, int sequence, const dt_snapshot *s, bool out, dt_error *err) {
  dt_backend *b = c->weights->backend;
  char *rows = s->host ? static_cast<char *>(s->host) : s->device.base, *deltas = rows + (size_t)s->n * slot_bytes(c);
  const cudaMemcpyKind kind = !s->host ? cudaMemcpyDeviceToDevice
                              : out    ? cudaMemcpyDeviceToHost
                                       : cudaMemcpyHostToDevice;
  dt_status status = copy_slots(c, sequence, 0, s->n, out ? rows : nullptr, rows, kind, err);
  if (status != DT_OK) return status;
  cudaError_t e = delta_carry(c, sequence, s->base, s->n, out ? deltas : nullptr, deltas, kind);
  if (e == cudaSuccess) e = cudaStreamSynchronize(b->stream);
  return cuda_check(b, e, "copying rows of a cache", err);
}

dt_status cuda_snapshot(const dt_cache *c, int sequence, int n, dt_snapshot **out, dt_error *err) {
  dt_backend *b = c->weights->backend;
  dt_status status = check_slots("snapshot", sequence, nullptr, 0, limits_of(c), err);
  if (status != DT_OK) return status;
  if (n < 0 || n > c->slots) return dt_fail(err, DT_EINPUT, "snapshot: %d slots, the cache has %d", n, c->slots);
  dt_snapshot *s = new (std::nothrow) dt_snapshot{
      b, c->weights->slot_bytes, c->kept.width, n, c->weights->delta.row, delta_newest(c, sequence, n), {}, nullptr};
  if (!s) return dt_fail_memory(err, "a snapshot", sizeof *s);
  const size_t bytes = snapshot_bytes(c, s), left = cuda_bytes_free(b);
  s->device.used = bytes;
  if (left > KEPT_FREE && left - KEPT_FREE >= bytes)
    status = arena_open(b, &s->device, "a snapshot", &b->memory.caches, err);
  else if (!(s->host = malloc(bytes ? bytes : 1)))
    status = dt_fail_memory(err, "a snapshot", bytes);
  if (status == DT_OK) status = copy_snapshot(c, sequence, s, true, err);
  if (status == DT_OK)
    *out = s;
  else
    cuda_free_snapshot(s);
  return status;
}

dt_status cuda_restore(dt_cache *c, int sequence, const dt_snapshot *s, dt_error *err) {
  dt_status status = check_slots("restore", sequence, nullptr, 0, limits_of(c), err);
  if (status != DT_OK) return status;
  if (s->slot_bytes != c->weights->slot_bytes || s->wide != c->kept.width || s->row != c->weights->delta.row)
    return dt_fail(err, DT_EINPUT, "restore: the snapshot belongs to another model");
  if (s->n > c->slots) return dt_fail(err, DT_EINPUT, "restore: %d slots, the cache has %d", s->n, c->slots);
  delta_restart(c, sequence, s->base);
  return copy_snapshot(c, sequence, s, false, err);
}

void cuda_free_snapshot(dt_snapshot *s) {
  if (!s) return;
  arena_close(&s->device, &s->backend->memory.caches);
  free(s->host);
  delete s;
}

dt_status cuda_read_slot(const dt_cache *c, int sequence, int slot, void **bytes, size_t *len, dt_error *err) {
  dt_status status = check_slots("read_slot", sequence, &slot, 1, limits_of(c), err);
  if (status != DT_OK) return status;
  *len = slot_bytes(c);
  void *copy = malloc(*len);
  if (!copy) return dt_fail_memory(err, "a slot", *len);
  status = copy_slots(c, sequence, slot, 1, copy, nullptr, cudaMemcpyDeviceToHost, err);
  if (status == DT_OK)
    *bytes = copy;
  else
    free(copy);
  return status;
}
