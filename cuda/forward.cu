/* A pass: rows to the device, its kernels as one graph, results back: one round trip. Rows are padded to a bucket and
 * kernels leave what lies behind the last row alone, so one graph serves all passes of a bucket; how many rows, units and
 * keys there are, the kernels read from the device's memory. */
#include "attention.cuh"
#include "logits.cuh"
#include "matmul.cuh"
#include "norm.cuh"

#include <new>

/* What decides which kernels are launched, and how many blocks of each. */
struct pass_shape {
  int rows, units, wanted; /* buckets; wanted may be 0 */
  dt_want want;
  bool filtered; /* some row's token is drawn from a part of the ids */
};

struct graph_list {
  pass_shape shape;
  cudaGraphExec_t exec;
  graph_list *next;
};

void graphs_free(graph_list *list) {
  while (list) {
    graph_list *next = list->next;
    cudaGraphExecDestroy(list->exec);
    delete list;
    list = next;
  }
}

static int bucket(int n) {
  return n == 0 ? 0 : n <= 8 ? 8 : n <= 16 ? 16 : n <= 32 ? 32 : n <= 64 ? 64 : round_up(n, WIDE_ROWS);
}

/* ---- the kernels of a pass ---- */

/* Launches on a stream until something fails. */
struct enqueuer {
  const dt_weights *w;
  const dt_cache *c;
  pass_shape shape;
  cudaStream_t stream;
  cudaError_t failed;
};

static void must(enqueuer *q, cudaError_t e) {
  if (q->failed == cudaSuccess) q->failed = e;
}

/* x takes up the embeddings (added null) or the parts of `added`; then the norms that are given. */
static void norms(enqueuer *q, const matrix *added, bool wanted, const float *weight1, const float *bias1, uint16_t *y1,
                  const float *weight2, const float *bias2) {
  const dt_weights *w = q->w;
  const pass_rows &rows = q->c->rows;
  norm_job a = {};
  a.n = wanted ? &rows.header->wanted : &rows.header->n;
  a.wanted = wanted ? rows.wanted : nullptr;
  a.hidden = w->hidden, a.x = w->x;
  if (added) {
    a.parts = w->partial, a.count = added->splits, a.part_stride = (size_t)ROWS * w->hidden;
    a.bias = reinterpret_cast<const float *>(added->bias);
  } else {
    a.embed = w->embed, a.token = rows.token;
  }
  a.kind = w->norm, a.eps = w->norm_eps;
  a.weight1 = weight1, a.bias1 = bias1, a.weight2 = weight2, a.bias2 = bias2;
  a.y1 = y1, a.y2 = w->normed2, a.ld = w->ldx;
  must(q, normalize(q->stream, w->type, a, wanted ? q->shape.wanted : q->shape.rows));
}

static product product_of(const enqueuer *q, const matrix &m, const uint16_t *input, int ld) {
  return {m, 0, m.tiles, m.tiles, input, nullptr, ld, &q->c->rows.header->n};
}

/* The parts of the product, for the next norms() to take up. */
static void parts(enqueuer *q, const matrix &m, const uint16_t *input) {
  const dt_weights *w = q->w;
  store to = {w->partial, (size_t)ROWS * w->hidden, w->hidden};
  must(q, multiply_store(q->stream, w->type, product_of(q, m, input, w->ldcat), to, q->shape.rows));
}

static size_t layer_rows(const dt_cache *c, int index) { /* a layer's keys behind a sequence's beginning; its values follow */
  return (size_t)index * 2 * c->weights->kv_heads * (size_t)c->slots * c->weights->dim;
}

/* q, k, v from the first norm, and from pair inner_from on the MLP's inner row from the second: tiles below `end`. */
static void spread_out(enqueuer *q, int index, const matrix &m, int end, int inner_from) {
  const dt_weights *w = q->w;
  const dt_cache *c = q->c;
  const pass_rows &rows = c->rows;
  spread s = {};
  s.bias = m.bias, s.inner_from = inner_from;
  s.heads = w->heads, s.kv_heads = w->kv_heads, s.head_dim = w->head_dim, s.dim = w->dim, s.rotary = w->rotary_dims;
  s.cosine = w->cosine, s.sine = w->sine;
  s.position = rows.position, s.sequence = rows.sequence, s.slot = rows.slot;
  s.q = w->q;
  s.keys = c->data + layer_rows(c, index);
  s.values = s.keys + (size_t)w->kv_heads * c->slots * w->dim;
  s.sequence_stride = cache_heads(*w), s.slots = c->slots;
  s.inner = w->cat + w->inner_at, s.inner_ld = w->ldcat, s.inter = w->inter;
  s.act = w->act, s.gated = w->gated;
  product p = product_of(q, m, w->normed1, w->ldx);
  p.end_tile = end, p.second_from = inner_from / 8, p.second = w->normed2;
  must(q, multiply_spread(q->stream, w->type, p, s, q->shape.rows));
}

static void attention_of(enqueuer *q, int index) {
  const dt_weights *w = q->w;
  const dt_cache *c = q->c;
  attention a = {};
  a.rows = c->rows;
  a.heads = w->heads, a.kv_heads = w->kv_heads, a.head_dim = w->head_dim, a.scale = w->scale;
  a.q = w->q;
  a.keys = c->data + layer_rows(c, index);
  a.values = a.keys + (size_t)w->kv_heads * c->slots * w->dim;
  a.sequence_stride = cache_heads(*w), a.slots = c->slots, a.splits = c->splits;
  a.part = c->part, a.weight = c->weight, a.done = c->done;
  a.out = w->cat, a.ld = w->ldcat;
  must(q, attend(q->stream, w->type, w->dim, a, q->shape.units));
}

static void logits(enqueuer *q, const matrix *added) {
  const dt_weights *w = q->w;
  const dt_cache *c = q->c;
  norms(q, added, true, w->final_norm, w->final_norm_bias, w->normed1, nullptr, nullptr);
  product p = product_of(q, w->unembed, w->normed1, w->ldx);
  p.n = &c->rows.header->wanted;
  must(q, multiply_store(q->stream, w->type, p, store{w->logits, 0, w->vocab}, q->shape.wanted));
  if (q->shape.want == DT_WANT_LOGITS) return;
  reduction r = {c->rows, q->shape.want == DT_WANT_TOPK, w->vocab, w->logits, w->parts, w->best, c->results};
  must(q, reduce_logits(q->stream, r, q->shape.wanted));
  if (q->shape.filtered) must(q, draw_filtered(q->stream, r, q->shape.wanted));
}

static void enqueue(enqueuer *q) {
  const dt_weights *w = q->w;
  const matrix *added = nullptr; /* what x has not yet taken up */
  int attention_pairs = (w->heads + 2 * w->kv_heads) * (w->head_dim / 2), attention_tiles = blocks_of(attention_pairs, 8);
  for (int i = 0; i < w->layers; i++) {
    const layer &l = w->layers_of[i];
    bool last = i == w->layers - 1 && q->shape.wanted == 0; /* nobody asks what comes out: keys and values are all */
    norms(q, added, false, l.norm1, l.norm1_bias, w->normed1, w->parallel ? l.norm2 : nullptr, l.norm2_bias);
    spread_out(q, i, l.in, last ? attention_tiles : l.in.tiles, attention_tiles * 8);
    if (last) return;
    attention_of(q, i);
    parts(q, l.out, w->cat);
    added = &l.out;
    if (w->parallel) continue;
    norms(q, added, false, l.norm2, l.norm2_bias, w->normed2, nullptr, nullptr);
    spread_out(q, i, l.up, l.up.tiles, 0);
    parts(q, l.down, w->cat + w->inner_at);
    added = &l.down;
  }
  logits(q, added);
}

/* The graph of a shape: found, or captured and kept with the cache. */
static cudaError_t graph_of(const dt_weights *w, dt_cache *c, pass_shape shape, cudaGraphExec_t *exec) {
  for (const graph_list *g = c->graphs; g; g = g->next)
    if (g->shape.rows == shape.rows && g->shape.units == shape.units && g->shape.wanted == shape.wanted &&
        g->shape.want == shape.want && g->shape.filtered == shape.filtered)
      return *exec = g->exec, cudaSuccess;
  graph_list *entry = new (std::nothrow) graph_list{shape, nullptr, c->graphs};
  if (!entry) return cudaErrorMemoryAllocation;
  cudaGraph_t graph = nullptr;
  enqueuer q = {w, c, shape, w->backend->stream, cudaSuccess};
  must(&q, cudaStreamBeginCapture(q.stream, cudaStreamCaptureModeThreadLocal));
  if (q.failed == cudaSuccess) {
    enqueue(&q);
    cudaError_t ended = cudaStreamEndCapture(q.stream, &graph); /* also after a failure */
    must(&q, ended);
  }
  if (q.failed == cudaSuccess) must(&q, cudaGraphInstantiate(&entry->exec, graph, 0));
  if (graph) cudaGraphDestroy(graph);
  if (q.failed != cudaSuccess)
    delete entry;
  else
    c->graphs = entry, *exec = entry->exec;
  return q.failed;
}

/* ---- its rows ---- */

/* The attention's work for rows [first, first + n) of one sequence: the parts that lie in the prefix of all, then what is
 * left of each row. Returns the units so far. */
static int add_units(const pass_rows &rows, int first, int n, int units) {
  int common = rows.prefix[first];
  for (int i = 1; i < n; i++) common = rows.prefix[first + i] < common ? rows.prefix[first + i] : common;
  int shared = common / SPLIT;
  for (int part = 0; part < shared; part++) rows.unit[units++] = make_int4(first, n, part, 0);
  for (int i = 0; i < n; i++)
    for (int part = shared; part <= rows.position[first + i] / SPLIT; part++)
      rows.unit[units++] = make_int4(first + i, 1, part, 0);
  return units;
}

/* Puts as many rows from `first` on as fit where the device will read them; returns how many. */
static int stage(dt_cache *c, const dt_rows *rows, int first, size_t *bytes) {
  const pass_rows &to = c->staged;
  size_t paths = 0, room = ROWS * (size_t)PATH + (size_t)c->slots;
  int n = 0;
  for (; n < ROWS && first + n < rows->n && paths + (size_t)rows->path_len[first + n] <= room; n++) {
    to.token[n] = rows->token[first + n];
    to.position[n] = rows->position[first + n];
    to.sequence[n] = rows->sequence[first + n];
    to.slot[n] = rows->slot[first + n];
    to.prefix[n] = rows->prefix[first + n];
    paths += (size_t)rows->path_len[first + n];
  }
  int units = 0;
  for (int i = 0, same; i < n; i += same) {
    for (same = 1; same < GROUP && i + same < n && to.sequence[i + same] == to.sequence[i];) same++;
    units = add_units(to, i, same, units);
  }
  int at = 4 * units; /* paths lie behind the units */
  for (int i = 0; i < n; i++) {
    const int32_t *path = rows->path + (size_t)(first + i) * (size_t)rows->path_stride;
    to.path_at[i] = at;
    for (int j = 0; j < rows->path_len[first + i]; j++) to.path[at++] = path[j];
  }
  *to.header = {n, 0, units, 0, 0};
  *bytes = ROWS_FIXED + sizeof(int32_t) * (size_t)at;
  return n;
}

/* Results [from, from + n) of `out` are those of this pass. */
static cudaError_t collect(const dt_weights *w, const dt_cache *c, const dt_out *out, int from, int n) {
  const pass_results &r = c->results;
  switch (out->want) {
  case DT_WANT_NOTHING: break;
  case DT_WANT_ARGMAX: memcpy(out->argmax + from, r.argmax, (size_t)n * sizeof(int32_t)); break;
  case DT_WANT_TOPK:
    for (int i = 0; i < n; i++) {
      size_t at = (size_t)(from + i) * (size_t)out->k;
      memcpy(out->top_id + at, r.top_id + i * CHECK_TOP, (size_t)out->k * sizeof(int32_t));
      memcpy(out->top_logp + at, r.top_logp + i * CHECK_TOP, (size_t)out->k * sizeof(float));
    }
    memcpy(out->confidence + from, r.confidence, (size_t)n * sizeof(float));
    memcpy(out->entropy + from, r.entropy, (size_t)n * sizeof(float));
    break;
  case DT_WANT_LOGITS: {
    size_t row = (size_t)w->vocab * sizeof(float);
    cudaStream_t stream = w->backend->stream;
    cudaError_t e =
        cudaMemcpyAsync(out->logits + (size_t)from * (size_t)w->vocab, w->logits, (size_t)n * row, cudaMemcpyDeviceToHost, stream);
    return e == cudaSuccess ? cudaStreamSynchronize(stream) : e;
  }
  }
  return cudaSuccess;
}

/* Rows from `first` on, as many as fit; results from *wanted on. */
static cudaError_t run_some(const dt_weights *w, dt_cache *c, const dt_rows *rows, const dt_out *out, int *first, int *wanted) {
  size_t bytes;
  int n = stage(c, rows, *first, &bytes), results = 0;
  bool filtered = false;
  for (; out && *wanted + results < out->n && out->row[*wanted + results] < *first + n; results++) {
    int row = out->row[*wanted + results];
    dt_sampling sampling = out->sampling ? out->sampling[rows->sequence[row]] : dt_sampling{};
    c->staged.wanted[results] = row - *first;
    c->staged.sampling[results] = sampling;
    filtered |= out->want == DT_WANT_ARGMAX && draw_is_filtered(&sampling);
  }
  pass_header *header = c->staged.header;
  header->wanted = results;
  if (out && out->want == DT_WANT_TOPK) header->top_k = out->k, header->top_vocab = out->vocab;
  pass_shape shape = {bucket(n), 8, bucket(results), results ? out->want : DT_WANT_NOTHING, filtered};
  while (shape.units < header->units) shape.units *= 2;

  cudaGraphExec_t exec = nullptr;
  cudaStream_t stream = w->backend->stream;
  cudaError_t e = graph_of(w, c, shape, &exec);
  if (e == cudaSuccess) e = cudaMemcpyAsync(c->rows.header, header, bytes, cudaMemcpyHostToDevice, stream);
  if (e == cudaSuccess) e = cudaGraphLaunch(exec, stream);
  if (e == cudaSuccess) e = cudaStreamSynchronize(stream);
  if (e == cudaSuccess && results) e = collect(w, c, out, *wanted, results);
  *first += n, *wanted += results;
  return e;
}

dt_status cuda_forward(dt_weights *w, dt_cache *c, const dt_rows *rows, const dt_out *out, dt_error *err) {
  if (out && (out->want == DT_WANT_NOTHING || out->n == 0)) out = nullptr;
  if (c->weights != w) return dt_fail(err, DT_EINPUT, "forward: the cache is of another model");
  dt_status status = check_pass(rows, out, dt_limits{w->vocab, w->context, c->sequences, c->slots}, err);
  if (status == DT_OK) status = cuda_check(w->backend, cudaSetDevice(w->backend->device), "being chosen", err);
  for (int first = 0, wanted = 0; status == DT_OK && first < rows->n;)
    status = cuda_check(w->backend, run_some(w, c, rows, out, &first, &wanted), "running a pass", err);
  return status;
}
