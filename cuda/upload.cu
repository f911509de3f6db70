/* Loads a model onto the device: see builder.cuh. */
#include "attention.cuh"
#include "builder.cuh"
#include "experts.cuh"
#include "format.cuh"
#include "gemm.cuh"
#include "matmul.cuh"
#include "supported.cuh"

#include <new>
#include <stdlib.h>

/* Reads the norms of a target's streams, one after another. */
static float *take_stream_norms(builder *b, const dt_head_desc *d, int width) {
  if (!d->stream_norm[0].source) return nullptr;
  float *v = take<float>(&b->w->weights_arena, (size_t)d->taps * (size_t)width);
  for (int i = 0; i < d->taps && b->filling && going(b); i++) {
    float *wide = read_vector(b, &d->stream_norm[i]);
    if (wide) copy_up(b, v + (size_t)i * (size_t)width, wide, (size_t)width * sizeof(float));
    delete[] wide;
  }
  return v;
}

static void build_head(builder *b) {
  const dt_head_desc *d = b->head;
  draft_head *h = &b->w->head;
  for (int i = 0; i < d->distances; i++) {
    h->output[i] = build_whole(b, &d->output[i], &NONE, false);
    for (int j = 0; j < d->blocks; j++) h->block[i][j] = build_whole(b, &d->block[i][j], &d->block_bias[i][j], true);
  }
  if (d->kind == DT_HEAD_MEDUSA) return;
  h->fc = build_whole(b, &d->fc, &d->fc_bias, true);
  h->norms_all = d->all_norm.source;
  if (d->kind == DT_HEAD_CROSS_ATTENTION) h->post = build_whole(b, &d->post, &NONE, true);
  h->given_norm = h->norms_all ? take_vector(b, &d->all_norm) : take_stream_norms(b, d, h->target->shape.hidden);
  h->token_norm = take_vector(b, &d->token_norm);
  h->feature_norm = take_vector(b, &d->feature_norm);
}

/* Builds the output matrix, or some rows of it; a head may use the target's. */
static void build_unembed(builder *b) {
  dt_weights *w = b->w;
  const dt_model_desc *d = b->desc;
  if (w->part.leaves) return;
  const part rows = {&d->unembed, &NONE, {0, w->outputs, 0, -1}, 0, d->id_rows ? d->id_rows : d->ids, d->n_ids};
  if (d->unembed.source)
    w->unembed = build(b, 0, blocks_of(w->outputs, 2), d->unembed.cols, false, &rows, 1);
  else if (!w->head.distances)
    w->unembed = w->head.target->unembed;
  if (!d->ids) return;
  w->ids = take<int32_t>(&w->weights_arena, (size_t)d->n_ids);
  if (!b->filling) return;
  w->ids_here = new (std::nothrow) int32_t[(size_t)d->n_ids];
  if (!w->ids_here) return must(b, cudaErrorMemoryAllocation);
  memcpy(w->ids_here, d->ids, (size_t)d->n_ids * sizeof *d->ids);
  copy_up(b, w->ids, d->ids, (size_t)d->n_ids * sizeof *d->ids);
}

static void take_host(dt_weights *w, size_t bytes) { w->host_bytes += bytes, w->backend->memory.host += bytes; }

/* Keeps the embeddings on the host: a pass needs few of their rows. */
static void build_embed(builder *b) {
  dt_weights *w = b->w;
  const dt_matrix *embed = &b->desc->embed;
  if (w->part.enters) return;
  if (!embed->source) {
    w->embed = w->head.target->embed, w->embed_scale = w->head.target->embed_scale;
    return;
  }
  const size_t hidden = (size_t)embed->cols;
  w->embed_bytes = (size_t)embed->rows * hidden * sizeof *w->embed;
  if (!b->filling) return;
  w->embed = w->embed_own = new (std::nothrow) uint16_t[(size_t)embed->rows * hidden];
  if (!w->embed) return must(b, cudaErrorMemoryAllocation);
  take_host(w, w->embed_bytes);
  for (int r = 0, rows; r < embed->rows && going(b); r += rows) {
    rows = read_rows(b, embed, BITS16, nullptr, r, embed->rows);
    if (going(b)) memcpy(w->embed_own + (size_t)r * hidden, b->rows, (size_t)rows * hidden * sizeof *w->embed);
  }
}

/* The rows of the layers' inputs stay on the host as they are stored: they are the largest part of a small model. */
static void build_inputs(builder *b) {
  dt_weights *w = b->w;
  const dt_matrix *rows = &b->desc->inputs_embed;
  if (!rows->source) return;
  const size_t row = dt_row_bytes(rows->dtype, (size_t)rows->cols), bytes = (size_t)rows->rows * row;
  w->inputs_proj = build_whole(b, &b->desc->inputs_proj, &NONE, false);
  w->inputs_norm = take_vector(b, &b->desc->inputs_norm);
  w->inputs_type = rows->dtype, w->embed_bytes += bytes;
  if (!b->filling) return;
  w->inputs_rows = new (std::nothrow) char[bytes];
  w->inputs_wide = new (std::nothrow) float[(size_t)rows->cols];
  if (!w->inputs_rows || !w->inputs_wide) return must(b, cudaErrorMemoryAllocation);
  take_host(w, bytes);
  const int some = 1024;
  for (int r = 0; r < rows->rows && going(b); r += some)
    b->status =
        dt_read_rows(rows, r, rows->rows - r < some ? rows->rows - r : some, w->inputs_rows + (size_t)r * row, b->err);
}

static void build_order(builder *b) {
  int32_t order[ROWS];
  for (int i = 0; i < ROWS; i++) order[i] = i;
  b->w->order = take<int32_t>(&b->w->weights_arena, ROWS);
  if (b->filling) copy_up(b, b->w->order, order, sizeof order);
}

static void build_model(builder *b) {
  dt_weights *w = b->w;
  const dt_model_desc *d = b->desc;
  for (int i = 0; i < w->shape.layers; i++) w->layers_of[i] = build_layer(b, &d->layer[i], w->layers_of[i]);
  w->final_norm = take_vector(b, &d->final_norm);
  w->final_norm_bias = take_vector(b, &d->final_norm_bias);
  if (b->head) build_head(b);
  build_unembed(b);
  build_embed(b);
  build_inputs(b);
  if (w->backend->caches == CACHE_Q8) build_order(b);
}

/* Takes the memory of a model that was measured, and fills it. */
static dt_status fill(builder *b, dt_error *err) {
  dt_weights *w = b->w;
  dt_backend *device = w->backend;
  arena staging = {};
  staging.used = STAGING;
  int widest = w->shape.hidden + w->shape.expert_inter + w->ldcat + w->head.given.ld +
               w->head.pair.ld; /* no row of a matrix is longer */
  if ((size_t)widest * 2 > STAGING) staging.used = (size_t)widest * 2;
  size_t passing = 0;
  dt_status status = arena_open(device, &w->weights_arena, "the weights", &device->memory.weights, err);
  if (status == DT_OK) status = arena_open(device, &w->scratch_arena, "scratch", &device->memory.scratch, err);
  if (status == DT_OK) status = arena_open(device, &staging, "loading", &passing, err);
  if (status == DT_OK) {
    for (int i = 0; i < w->shape.layers; i++)
      must(b, attention_prepare(w->activations, device->caches, w->layers_of[i].dim));
    must(b, multiply_prepare(w->activations));
    if (w->shape.experts) must(b, experts_prepare(w->activations));
    b->staging = staging.base;
    b->rows = new (std::nothrow) char[staging.size];
    b->raw = new (std::nothrow) char[2 * staging.size]; /* numbers of a head may have 32 bits */
    b->wide = new (std::nothrow) float[(size_t)widest];
    if (!b->rows || !b->raw || !b->wide) must(b, cudaErrorMemoryAllocation);
    b->filling = true;
    build_model(b);
    build_scratch(w);
    delete[] b->rows;
    delete[] b->raw;
    delete[] b->wide;
    status = b->status;
    if (b->failed == cudaErrorMemoryAllocation)
      status = dt_fail_memory(err, "loading a model", STAGING);
    else if (b->failed)
      status = cuda_check(device, b->failed, "loading a model", err);
  }
  arena_close(&staging, &passing);
  return status;
}

/* A factor of the shape, where 0 means none. */
static float factor(float given) { return given != 0.0f ? given : 1.0f; }

/* Copies the frequencies of a rotation. False: there is no memory. */
static bool keep_rotation(rotation *r, const float *frequency, int dims, float scale) {
  if (!frequency) return true;
  *r = {new (std::nothrow) float[(size_t)dims / 2], dims / 2, scale};
  for (int i = 0; i < r->pairs && r->frequency; i++) r->frequency[i] = frequency[i];
  return r->frequency;
}

static void free_rotations(dt_weights *w) {
  for (rotation &r : w->rotations) delete[] r.frequency;
}

static bool keep_rotations(dt_weights *w, const dt_model_desc *d) {
  const dt_shape *s = &d->shape;
  return keep_rotation(&w->rotations[0], d->inv_freq, s->rotary_dims, factor(s->turn_scale)) &&
         keep_rotation(&w->rotations[1], d->local_freq, s->local_dims ? s->local_dims : s->rotary_dims, 1.0f);
}

/* Makes the structures of a model or a head that was checked, and measures its memory without taking any. */
static dt_status measure(dt_backend *backend, const dt_model_desc *d, const dt_head_desc *head,
                         const dt_weights *target, number format, builder *b, dt_error *err) {
  dt_weights *w = new (std::nothrow) dt_weights();
  if (w) w->layers_of = new (std::nothrow) layer[(size_t)d->shape.layers]();
  if (!w || !w->layers_of || !keep_rotations(w, d)) {
    if (w) delete[] w->layers_of, free_rotations(w);
    delete w;
    return dt_fail_memory(err, "a model", sizeof *w);
  }
  w->backend = backend;
  w->activations = format;
  w->shape = d->shape;
  w->part = d->part;
  w->outputs = w->part.leaves ? 0 : d->ids ? d->n_ids : d->shape.vocab;
  w->embed_width = w->part.enters ? 2 * w->shape.hidden : d->embed.source ? d->embed.cols : target->shape.hidden;
  w->embedding = w->embed_width + w->shape.layers * w->shape.inputs;
  w->no_chunks = /* chunks have no steps for these */
      w->shape.inputs || w->shape.experts || w->shape.delta_value_heads || w->part.enters || w->part.leaves;
  bool routed = false;
  for (int i = 0; i < d->shape.layers; i++) {
    const dt_layer *l = &d->layer[i];
    w->no_chunks |= l->q_gate.source != nullptr, w->apart |= l->apart, routed |= l->expert && !l->apart;
  }
  if (!routed) w->shape.experts = w->shape.chosen = 0; /* they need no memory */
  w->embed_scale = factor(d->shape.embed_scale), w->residual_scale = factor(d->shape.residual_scale);
  w->logit_scale = factor(d->shape.logit_scale);
  const int attended = w->shape.heads * w->shape.head_dim,
            summed = w->shape.delta_value_heads * w->shape.delta_value_dim;
  w->inner_at = round_up(attended > summed ? attended : summed, 32);
  w->ldcat = w->inner_at + round_up(w->shape.inter, 32);
  if (head) {
    w->head.target = target, w->head.kind = head->kind, w->head.streams = head->taps;
    w->head.norm_residual = head->norm_residual;
    w->head.leads = dt_head_leads(head);
    w->head.backward = d->shape.layers && d->layer[0].backward;
    w->head.distances = head->distances, w->head.blocks = head->blocks;
    bool keeps_x = head->kind == DT_HEAD_EAGLE || head->kind == DT_HEAD_EAGLE3;
    w->taps = keeps_x, w->tap[0] = d->shape.layers + head->norm_output;
  }
  size_layers(w, d->layer);
  *b = {};
  b->w = w, b->desc = d, b->head = head, b->err = err;
  build_model(b);
  build_scratch(w);
  return DT_OK;
}

/* Uploads a model or a head that was checked. */
static dt_status upload(dt_backend *backend, const dt_model_desc *d, const dt_head_desc *head, const dt_weights *target,
                        number format, dt_weights **out, dt_error *err) {
  builder b;
  dt_status status = measure(backend, d, head, target, format, &b, err);
  if (status != DT_OK) return status;
  status = fill(&b, err);
  if (status == DT_OK) status = cuda_warm_up(b.w, err);
  if (status == DT_OK)
    *out = b.w;
  else
    cuda_free_weights(b.w);
  return status;
}

dt_status cuda_upload(dt_backend *backend, const dt_model_desc *d, const dt_holding *how, dt_weights **out,
                      dt_error *err) {
  number format;
  dt_status status = check_asked(how, err);
  if (status == DT_OK) status = check_supported(d, &format, err);
  return status == DT_OK ? upload(backend, d, nullptr, nullptr, format, out, err) : status;
}

dt_status cuda_account(dt_backend *backend, const dt_model_desc *d, int sequences, int slots, dt_memory *out,
                       dt_error *err) {
  number format;
  builder b;
  dt_status status = check_supported(d, &format, err);
  if (status == DT_OK) status = measure(backend, d, nullptr, nullptr, format, &b, err);
  if (status != DT_OK) return status;
  *out = {b.w->weights_arena.used, 0, b.w->scratch_arena.used, b.w->embed_bytes, true};
  cuda_account_cache(b.w, sequences, slots, out);
  cuda_free_weights(b.w);
  return DT_OK;
}

/* The head's weights take the format of its target's weights. */
dt_status cuda_upload_head(dt_backend *backend, const dt_head_desc *head, const dt_holding *how, dt_weights *target,
                           dt_weights **out, dt_error *err) {
  dt_status status = check_asked(how, err);
  if (status == DT_OK) status = check_head_supported(head, target, err);
  if (status == DT_OK) status = upload(backend, &head->model, head, target, target->activations, out, err);
  if (status != DT_OK) return status;
  target->taps = head->taps;
  for (int t = 0; t < head->taps; t++) target->tap[t] = head->tap[t];
  return DT_OK;
}

void cuda_free_weights(dt_weights *w) {
  if (!w) return;
  gemms_free(w->gemms);
  arena_close(&w->weights_arena, &w->backend->memory.weights);
  arena_close(&w->scratch_arena, &w->backend->memory.scratch);
  w->backend->memory.host -= w->host_bytes;
  delete[] w->embed_own;
  delete[] w->inputs_rows;
  delete[] w->inputs_wide;
  delete[] w->ids_here;
  delete[] w->layers_of;
  free_rotations(w);
  delete w;
}
