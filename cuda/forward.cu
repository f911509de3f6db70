/* A pass: rows to the device, its kernels as one graph, results back, in one round trip. Rows are padded to a bucket,
 * and kernels ignore rows past the last, so one graph serves all passes of a bucket. The kernels read the number of
 * rows, units and keys from the device's memory. Whole chunks of a prompt go through the same steps without a graph:
 * their kernels take so long that launches do not matter. */
#include "adjust.cuh"
#include "bound.cuh"
#include "chunk.cuh"
#include "delta.cuh"
#include "draft_head.cuh"
#include "experts.cuh"
#include "gemm.cuh"
#include "graphs.cuh"
#include "inputs.cuh"
#include "logits.cuh"
#include "steps.cuh"

static int bucket(int n) {
  return n == 0 ? 0 : n <= 8 ? 8 : n <= 16 ? 16 : n <= 32 ? 32 : n <= 64 ? 64 : round_up(n, WIDE_ROWS);
}

static int runs_bucket(int n) {
  int runs = 1;
  while (runs < n) runs *= 2;
  return runs;
}

/* ---- the kernels of a pass --------------------------------------------------------------------------------------- */

/* Computes tiles of the matrix below `end`: q, k and v from `input` and, from pair inner_from on, the MLP's inner row
 * from the second norm. */
static void spread_out(enqueuer *q, int index, const matrix &m, const operand &input, int end, int inner_from) {
  if (end > m.tiles) end = m.tiles;
  if (m.first >= end) return;
  if (q->chunk) return must(q, chunk_epilogue(q, index, m, end, inner_from));
  product p = step_product(q, m, input);
  p.end_tile = end, p.second_from = inner_from / 8 > m.first ? inner_from / 8 : m.first, p.second = q->w->pass.normed2;
  must(q, multiply_layer(q->stream, p, step_epilogue(q, 0, index, m, inner_from), q->shape.rows));
}

static void logits(enqueuer *q, int layer, const entry &enters) {
  const dt_weights *w = q->w;
  const matrix &m = w->head.distances ? w->head.output[q->shape.distance] : w->unembed;
  step_norms(q, layer, enters, true, w->final_norm, w->final_norm_bias, w->pass.normed1, nullptr, nullptr);
  product p = step_product(q, m, w->pass.normed1);
  p.n = &q->c->rows[0].header->wanted;
  must(q, multiply_plain(q->stream, p, plain_epilogue{w->logits, 0, w->outputs}, q->shape.wanted));
  const bound_job bound = {q->c->rows[0].header, w->outputs, w->logits, w->logit_scale, w->shape.logit_cap};
  must(q, bound_logits(q->stream, bound, q->shape.wanted));
  reduction r = {q->c->rows[0],
                 q->shape.want == DT_WANT_BOTH,
                 q->shape.want == DT_WANT_BOTH,
                 w->outputs,
                 w->head.target ? w->head.leads + q->shape.distance : 0,
                 w->ids,
                 w->logits,
                 w->parts,
                 w->best,
                 w->samples,
                 w->log_sums,
                 q->c->results};
  const adjustment_job adjusting = {q->c->rows[0], w->outputs, w->ids, w->logits, w->log_sums, q->c->results};
  if (r.quiet) must(q, reduce_logits(q->stream, r, q->shape.wanted)); /* of the logits before adjustments */
  if (q->shape.adjusted) must(q, adjust_logits(q->stream, adjusting, q->shape.wanted));
  if (q->shape.want == DT_WANT_LOGITS) return;
  r.top = q->shape.want == DT_WANT_TOPK, r.quiet = false;
  must(q, reduce_logits(q->stream, r, q->shape.wanted));
  if (q->shape.filtered) must(q, sample_filtered(q->stream, r, q->shape.wanted));
  if (q->shape.logp) must(q, write_logp(q->stream, adjusting));
}

/* What q, k and v of a layer are computed from. */
static const operand &heads_input(const enqueuer *q) {
  return q->w->head.target ? head_reads(q->w) : operands_of(q).normed1;
}

/* Computes q, k and v and, unless only the last two are wanted, what else the layer's first product has. */
static void take_heads(enqueuer *q, int index, bool keys_only) {
  const layer &l = q->w->layers_of[index];
  const int end = attention_tiles(q->w, l);
  for (const matrix *m : {&l.in, &l.in_tail})
    spread_out(q, index, *m, heads_input(q), keys_only ? end : m->tiles, end * 8);
  step_heads(q, index, l.in_tail.tiles ? l.in_tail : l.in, end * 8); /* with biases of all pairs */
  step_hold(q, index);
}

static void attend(enqueuer *q, int index) {
  step_attention(q, index);
  step_gates(q, index, heads_input(q));
}

/* Has the second half of a layer computed elsewhere. The device waits for it. */
static entry hand_over(enqueuer *q, int index, const entry &enters) {
  const dt_weights *w = q->w;
  const running_rows &now = q->c->running;
  const size_t bytes = (size_t)now.n * (size_t)w->shape.hidden * sizeof *w->x;
  step_norms(q, UNKEPT, enters, false, nullptr, nullptr, operands_of(q).normed1, nullptr, nullptr);
  const entry complete = {SUM, 0, nullptr, false, false};
  if (!now.rows) return complete;
  must(q, cudaMemcpyAsync(now.stream, w->x, bytes, cudaMemcpyDeviceToHost, q->stream));
  must(q, cudaStreamSynchronize(q->stream));
  if (q->failed == cudaSuccess) now.rows->second_half(now.rows->context, index, now.first, now.n, now.stream);
  must(q, cudaMemcpyAsync(w->x, now.stream, bytes, cudaMemcpyHostToDevice, q->stream));
  return complete;
}

static void enqueue(enqueuer *q) {
  const dt_weights *w = q->w;
  entry enters = {}; /* enters x next: the embeddings, or: */
  if (w->part.enters) enters.kind = STREAM;
  if (w->head.target) enters = head_begin(q);
  if (w->shape.inputs) enters = inputs_begin(q);
  int layers = w->shape.layers;
  bool posts = reads_keys(*w), ends = keeps_ends(*w) || posts || w->part.leaves,
       keys_only = w->head.target && head_keys_only(q);
  const operands &rows = operands_of(q);
  for (int i = 0; i < layers; i++) {
    const layer &l = w->layers_of[i];
    /* without wanted results, the last layer of this kind needs only what caches keep of it */
    bool last = i == w->last_keys && q->shape.wanted == 0 && !ends;
    if (!w->head.target || (head_norms(w) && !keys_only))
      step_norms(q, i, enters, false, l.norm1, l.norm1_bias, rows.normed1,
                 w->shape.parallel_residual ? l.norm2 : nullptr, l.norm2_bias);
    if (l.delta.products)
      step_delta(q, i);
    else
      take_heads(q, i, last);
    if (last) return;
    if (keys_only) continue;
    if (!l.delta.products) attend(q, i);
    enters = step_store(q, l.out, rows.cat);
    enters.norm_after = l.o_norm;
    if (w->shape.parallel_residual) continue;
    if (l.apart) {
      enters = hand_over(q, i, enters);
      continue;
    }
    step_norms(q, UNKEPT, enters, false, l.norm2, l.norm2_bias, rows.normed2, nullptr, nullptr);
    if (l.up.tiles) {
      spread_out(q, i, l.up, rows.normed2, l.up.tiles, 0);
      enters = step_store(q, l.down, rows.cat.after(0, w->inner_at));
    }
    if (l.experts.outputs) enters = step_experts(q, i, l.up.tiles ? &enters : nullptr);
    enters.norm_after = l.down_norm;
    if (w->shape.inputs) enters = inputs_add(q, i, enters);
    enters.scale = l.scale;
  }
  if (ends) {
    step_norms(q, layers, enters, false, w->final_norm, w->final_norm_bias, rows.normed1, nullptr, nullptr);
    enters = {SUM, 0, nullptr, false, false}; /* x is complete */
  }
  if (posts) head_end(q);
  if (q->shape.wanted && !w->part.leaves) logits(q, ends ? (int)UNKEPT : layers, enters);
}

/* ---- running it -------------------------------------------------------------------------------------------------- */

/* Copies the experts of the wanted rows to results [from, from + n) of `out`. */
static void collect_routes(const dt_weights *w, const dt_cache *c, const dt_out *out, int from, int n) {
  const size_t chosen = (size_t)w->shape.chosen, layers = (size_t)w->shape.layers;
  for (size_t layer = 0; layer < layers; layer++) {
    if (!w->layers_of[layer].experts.outputs) continue;
    if (out->experts_read) *out->experts_read += c->results.experts_read[layer];
    for (int i = 0; i < n && out->experts; i++)
      memcpy(out->experts + ((size_t)(from + i) * layers + layer) * chosen,
             c->results.expert + (layer * ROWS + (size_t)c->staged[0].wanted[i]) * chosen, chosen * sizeof(int32_t));
  }
}

/* Copies the results of this pass to results [from, from + n) of `out`. */
static cudaError_t collect(const dt_weights *w, const dt_cache *c, const dt_out *out, int from, int n) {
  const pass_results &r = c->results;
  switch (out->want) {
  case DT_WANT_NOTHING: break;
  case DT_WANT_ARGMAX: memcpy(out->argmax + from, r.argmax, (size_t)n * sizeof(int32_t)); break;
  case DT_WANT_BOTH:
  case DT_WANT_TOPK:
    for (int i = 0; i < n; i++) {
      size_t at = (size_t)(from + i) * (size_t)out->k;
      memcpy(out->top_id + at, r.top_id + i * TOP, (size_t)out->k * sizeof(int32_t));
      memcpy(out->top_logp + at, r.top_logp + i * TOP, (size_t)out->k * sizeof(float));
      if (out->top_own) memcpy(out->top_own + at, r.top_own + i * TOP, (size_t)out->k * sizeof(float));
    }
    if (out->want == DT_WANT_BOTH) {
      if (!out->given) memcpy(out->argmax + from, r.argmax, (size_t)n * sizeof(int32_t));
      if (out->logp) memcpy(out->logp + from, r.logp, (size_t)n * sizeof(float));
      break;
    }
    memcpy(out->confidence + from, r.confidence, (size_t)n * sizeof(float));
    memcpy(out->entropy + from, r.entropy, (size_t)n * sizeof(float));
    break;
  case DT_WANT_LOGITS: {
    size_t row = (size_t)w->outputs * sizeof(float);
    const queue &stream = w->backend->stream;
    cudaError_t e = cudaMemcpyAsync(out->logits + (size_t)from * (size_t)w->outputs, w->logits, (size_t)n * row,
                                    cudaMemcpyDeviceToHost, stream);
    return e == cudaSuccess ? cudaStreamSynchronize(stream) : e;
  }
  }
  return cudaSuccess;
}

/* The number of outputs whose ids are below `vocab`. */
static int outputs_below(const dt_weights *w, int vocab) {
  int n = w->ids_here ? w->outputs : vocab;
  while (w->ids_here && n > 0 && w->ids_here[n - 1] >= vocab) n--;
  return n;
}

/* The number of rows from `first` on, at most `most`, before the first one of a block that does not fit among them. */
static int blocks_together(const dt_rows *rows, int first, int most) {
  int n = rows->n - first < most ? rows->n - first : most;
  while (rows->blocks && first + n < rows->n && rows->position[first + n] > rows->prefix[first + n]) n--;
  return n;
}

/* Runs as many rows as fit, from `first` on; their results begin at *wanted. */
static cudaError_t run_some(const dt_weights *w, dt_cache *c, const dt_rows *rows, const dt_out *out, int *first,
                            int *wanted) {
  size_t bytes;
  const pass_rows &staged = c->staged[0];
  int most = blocks_together(rows, *first, w->backend->rows), results = 0;
  if (w->delta.all) most = delta_together(rows, *first, most);
  int n = stage_rows(c, 0, rows, *first, most, &bytes);
  bool filtered = false;
  for (; out && *wanted + results < out->n && out->row[*wanted + results] < *first + n; results++) {
    int row = out->row[*wanted + results];
    dt_sampling sampling = out->sampling ? out->sampling[rows->sequence[row]] : dt_sampling{};
    staged.wanted[results] = row - *first;
    staged.sampling[results] = sampling;
    filtered |= (out->want == DT_WANT_ARGMAX || out->want == DT_WANT_BOTH) && sample_is_filtered(&sampling);
  }
  pass_header *header = staged.header;
  header->wanted = w->part.leaves ? 0 : results;
  if (out && out->want == DT_WANT_TOPK) header->top_k = out->k, header->top_ids = outputs_below(w, out->vocab);
  if (out && out->want == DT_WANT_BOTH) header->top_k = out->k, header->top_ids = w->outputs;
  bool logp = results && out->want == DT_WANT_BOTH && out->logp, given = logp && out->given;
  bool adjusted = results && out->adjustments && !given; /* given ids are not chosen */
  pass_shape shape = {bucket(n),
                      header->units,
                      header->batches,
                      bucket(header->wanted),
                      header->wanted ? out->want : DT_WANT_NOTHING,
                      filtered,
                      adjusted,
                      logp,
                      results && (out->experts || out->experts_read),
                      {},
                      rows->distance,
                      {},
                      staged.deltas ? runs_bucket(staged.deltas->runs) : 0};
  if (rows->features) shape.given = rows->features->kept;
  if (reads_keys(*w)) shape.keys = keys_in(*rows->features);

  const queue &stream = w->backend->stream;
  cudaError_t e = cudaSuccess;
  if (w->apart) c->running.rows = rows, c->running.first = *first, c->running.n = n;
  if (adjusted || given) e = stage_adjustments(c, staged, out, *wanted, results);
  if (e == cudaSuccess) e = copy_rows(c, 0, n, bytes);
  if (e == cudaSuccess) e = (w->apart ? start_one_by_one : start_pass)(w, c, shape, enqueue);
  if (e == cudaSuccess && w->part.leaves) {
    const size_t row = (size_t)w->shape.hidden;
    e = cudaMemcpyAsync(rows->leaving + (size_t)*first * row, w->x, (size_t)n * row * sizeof *w->x,
                        cudaMemcpyDeviceToHost, stream);
  }
  if (e == cudaSuccess) e = cudaStreamSynchronize(stream);
  if (e == cudaSuccess && header->wanted) e = collect(w, c, out, *wanted, results);
  if (e == cudaSuccess && shape.routes) collect_routes(w, c, out, *wanted, results);
  c->running.rows = nullptr;
  *first += n, *wanted += results;
  return e;
}

/* Runs CHUNK rows of a prompt. cudaErrorNotSupported: the library cannot do so for this model. */
static cudaError_t run_chunk(const dt_weights *w, const dt_cache *c, const dt_rows *rows, int first) {
  enqueuer q = {w,
                c,
                true,
                {CHUNK_GROUP, 0, 0, 0, DT_WANT_NOTHING, false, false, false, false, {}, 0, {}, 0},
                w->backend->stream,
                cudaSuccess};
  for (int group = 0; group < groups(&q); group++) {
    size_t bytes;
    int staged_rows = stage_rows(c, group, rows, first + group * CHUNK_GROUP, CHUNK_GROUP, &bytes);
    if (staged_rows < CHUNK_GROUP)
      return cudaErrorInvalidValue; /* cannot happen for a text, whose paths are single slots: see check.c */
    must(&q, copy_rows(c, group, CHUNK_GROUP, bytes));
  }
  enqueue(&q);
  must(&q, cudaStreamSynchronize(q.stream)); /* `staged` is written again afterwards */
  return q.failed;
}

/* From now on our own kernels compute chunks, which takes longer: the description of the device says so. */
static void do_without_library(dt_weights *w) {
  w->no_chunks = w->backend->no_library = true;
  describe_device(w->backend);
}

/* Runs the whole chunks of a prompt; returns their number of rows. */
static int run_chunks(dt_weights *w, const dt_cache *c, const dt_rows *rows, cudaError_t *e) {
  int first = 0;
  if (rows->n >= CHUNK && !w->gemms && !w->no_chunks) *e = gemms_open(&w->gemms);
  if (*e == cudaErrorNotSupported) do_without_library(w), *e = cudaSuccess;
  while (!w->no_chunks && *e == cudaSuccess && first + CHUNK <= rows->n) {
    *e = run_chunk(w, c, rows, first);
    if (*e == cudaErrorNotSupported)
      do_without_library(w), *e = cudaSuccess;
    else
      first += CHUNK;
  }
  return first;
}

/* ---- the first kernels ------------------------------------------------------------------------------------------- */

/* Runs all kernels that passes of this model can need, over no rows: one by one, since a kernel's first launch loads
 * it, which a driver may refuse while a graph is captured; then as passes do. */
static cudaError_t run_nothing(const dt_weights *w, dt_cache *c) {
  cudaError_t e = cudaSuccess;
  for (auto begin : {start_one_by_one, start_pass})
    for (int rows : {8, 16, 32, 64, WIDE_ROWS})
      if (e == cudaSuccess)
        e = begin(w, c, {rows, 8, 1, rows, DT_WANT_BOTH, true, true, true, true, {}, 0, {}, 1}, enqueue);
  return e == cudaSuccess ? cudaStreamSynchronize(w->backend->stream) : e;
}

/* Gives up a feature that a driver may refuse or a tool may not support: first dependent launches, then graphs. False:
 * none is left to give up. */
static bool do_without(dt_backend *b, cudaError_t why) {
  cudaGetLastError();
  if (cudaStreamSynchronize(b->stream) != cudaSuccess) return false; /* an error of another kind */
  bool *least = b->overlaps ? &b->overlaps : &b->graphs, had = *least;
  *least = false;
  if (!b->refused) b->refused = cudaGetErrorString(why);
  return had;
}

/* Launches every kernel once, since the first launch loads it: this must not happen in a pass that a user waits for or
 * measures. */
dt_status cuda_warm_up(dt_weights *w, dt_error *err) {
  dt_cache *c = nullptr;
  dt_status status = cuda_create_cache(w, 1, 1, &c, err);
  if (status != DT_OK) return status;
  cudaError_t e;
  do {
    w->backend->stream.overlaps = w->backend->overlaps;
    e = run_nothing(w, c);
  } while (e != cudaSuccess && do_without(w->backend, e));
  cuda_free_cache(c);
  describe_device(w->backend);
  return cuda_check(w->backend, e, "running its first kernels", err);
}

static dt_status check_given(const dt_weights *w, const dt_rows *rows, dt_error *err) {
  const dt_cache *from = rows->features;
  if (from && from->weights != w->head.target)
    return dt_fail(err, DT_EINPUT, "forward: the features belong to another model than the head's target");
  if (w->head.kind == DT_HEAD_BLOCK && !from) return DT_OK;
  dt_limits given = from ? dt_limits{0, 0, from->sequences, from->slots, 0} : dt_limits{};
  if (reads_keys(*w)) return check_reading(rows, from ? &given : nullptr, err);
  return check_features(rows, w->head.distances, from ? &given : nullptr, err);
}

dt_status cuda_forward(dt_weights *w, dt_cache *c, const dt_rows *rows, const dt_out *out, dt_error *err) {
  const bool tells = w->part.leaves && out && out->n && (out->experts || out->experts_read);
  if (out && (out->want == DT_WANT_NOTHING || out->n == 0) && !tells) out = nullptr;
  if (c->weights != w) return dt_fail(err, DT_EINPUT, "forward: the cache belongs to another model");
  dt_status status =
      check_pass(rows, out, dt_limits{w->shape.vocab, w->shape.context, c->sequences, c->slots, TOP}, err);
  if (status == DT_OK && out && w->ids && out->want != DT_WANT_TOPK)
    status =
        dt_fail(err, DT_EINPUT, "forward: a model with only %d of its output rows returns only candidates", w->outputs);
  if (status == DT_OK && out && out->want != DT_WANT_NOTHING && w->part.leaves)
    status = dt_fail(err, DT_EINPUT, "forward: a part of a model without its last layers has no results");
  if (status == DT_OK && w->apart && !rows->second_half)
    status = dt_fail(err, DT_EINPUT, "forward: some layers are apart, but nothing computes their second halves");
  if (status == DT_OK && rows->prompt && rows->position[0] % CHUNK)
    status = dt_fail(err, DT_EINPUT, "forward: a prompt pass begins at position %d, expected a multiple of %d",
                     rows->position[0], CHUNK);
  if (status == DT_OK) status = check_streams(w->part, rows, err);
  if (status == DT_OK && w->head.target) status = check_given(w, rows, err);
  if (status == DT_OK && w->delta.all) status = delta_check(rows, err);
  if (status == DT_OK) status = cuda_check(w->backend, cudaSetDevice(w->backend->device), "being chosen", err);
  if (status == DT_OK && out && out->experts)
    memset(out->experts, -1, (size_t)out->n * (size_t)w->shape.layers * (size_t)w->shape.chosen * sizeof *out->experts);
  int first = 0, wanted = 0;
  if (status == DT_OK && rows->prompt && !out && !w->head.target) {
    cudaError_t e = cudaSuccess;
    first = run_chunks(w, c, rows, &e);
    status = cuda_check(w->backend, e, "running a prompt pass", err);
  }
  while (status == DT_OK && first < rows->n)
    status = cuda_check(w->backend, run_some(w, c, rows, out, &first, &wanted), "running a pass", err);
  return status;
}
