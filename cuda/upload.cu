/* A model onto the device. The layout code runs twice: once to measure, once to take the memory and fill it. */
#include "attention.cuh"
#include "gemm.cuh"
#include "launch.cuh"
#include "matmul.cuh"
#include "pack.cuh"

#include <new>
#include <stdlib.h>

constexpr int STAGING = 32 << 20, LEAST_STEPS = 8, WAVES = 320;

/* What an upload works with besides its result. */
struct builder {
  dt_weights *w;
  const dt_model_desc *desc;
  uint16_t *staging; /* on the device */
  cudaError_t failed;
  bool filling;
};

static size_t bytes_of(dt_dtype dtype) { return dtype == DT_F32 ? 4 : 2; }

static const char *row_of(const dt_matrix *m, int row) {
  size_t at = (size_t)(row / m->group) * (size_t)m->stride + (size_t)(row % m->group);
  return (const char *)m->data + at * (size_t)m->cols * bytes_of(m->dtype);
}

static float element(const dt_matrix *m, int row) { /* of a vector */
  uint16_t half;
  float x;
  if (m->dtype == DT_F32)
    memcpy(&x, row_of(m, row), 4);
  else
    memcpy(&half, row_of(m, row), 2), x = m->dtype == DT_F16 ? widen<F16>(half) : widen<BF16>(half);
  return x;
}

static void must(builder *b, cudaError_t e) {
  if (!b->failed) b->failed = e;
}

static void copy_up(builder *b, void *to, const void *from, size_t bytes) {
  must(b, cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, b->w->backend->stream));
  must(b, cudaStreamSynchronize(b->w->backend->stream)); /* `from` may go */
}

static float *take_vector(builder *b, const dt_matrix *source) {
  if (!source->data) return nullptr;
  float *v = take<float>(&b->w->weights_arena, (size_t)source->rows);
  if (!b->filling) return v;
  float *wide = new (std::nothrow) float[(size_t)source->rows];
  if (!wide) return must(b, cudaErrorMemoryAllocation), v;
  for (int i = 0; i < source->rows; i++) wide[i] = element(source, i);
  copy_up(b, v, wide, (size_t)source->rows * sizeof(float));
  delete[] wide;
  return v;
}

/* Room for `pairs` pairs of outputs of k inputs, all zero. `apart`: the sum over k may be taken in parts, so many that a
 * pass of 64 rows has work for all multiprocessors. */
static matrix take_matrix(builder *b, int pairs, int k, bool apart) {
  matrix m = {};
  m.tiles = blocks_of(pairs, 8);
  m.steps = blocks_of(k, 32);
  m.splits = apart ? blocks_of(WAVES, blocks_of(m.tiles, 4)) : 1;
  if (m.splits > m.steps / LEAST_STEPS) m.splits = m.steps / LEAST_STEPS;
  if (m.splits > PARTIALS) m.splits = PARTIALS;
  if (m.splits < 1) m.splits = 1;
  m.data = take<uint4>(&b->w->weights_arena, (size_t)m.tiles * (size_t)m.steps * 64);
  m.bias = take<float2>(&b->w->weights_arena, (size_t)m.tiles * 8);
  return m;
}

static void put(builder *b, const matrix &m, pair_map map, const dt_matrix *source, int k0) {
  if (!b->filling) return;
  cudaStream_t stream = b->w->backend->stream;
  size_t row_bytes = (size_t)source->cols * 2;
  int most = (int)(STAGING / row_bytes) > 0 ? (int)(STAGING / row_bytes) : 1, rows;
  for (int row = 0; row < source->rows && !b->failed; row += rows) {
    rows = source->rows - row < most ? source->rows - row : most;
    int run = source->group - row % source->group; /* rows that lie together from here */
    if (run < rows && row % source->group == 0 && source->group <= most) {
      rows = rows / source->group * source->group;
      must(b, cudaMemcpy2DAsync(b->staging, source->group * row_bytes, row_of(source, row), source->stride * row_bytes,
                                source->group * row_bytes, (size_t)(rows / source->group), cudaMemcpyHostToDevice, stream));
    } else {
      if (run < rows) rows = run;
      must(b, cudaMemcpyAsync(b->staging, row_of(source, row), rows * row_bytes, cudaMemcpyHostToDevice, stream));
    }
    must(b, pack(stream, m, map, b->staging, row, rows, source->cols, k0));
  }
  must(b, cudaStreamSynchronize(stream));
}

/* Adds the vector to the biases of the outputs where `map` puts its matrix's rows. */
static void add_bias(const pair_map &map, const dt_matrix *source, float2 *bias) {
  if (!source->data) return;
  for (int r = 0; r < source->rows; r++) {
    place p = place_of(map, r);
    (p.half ? bias[p.pair].y : bias[p.pair].x) += element(source, r);
  }
}

/* One source of a matrix with its bias. */
struct part {
  const dt_matrix *weights, *bias;
  pair_map map;
  int k0;
};

static matrix build(builder *b, int pairs, int k, bool apart, const part *parts, int count) {
  matrix m = take_matrix(b, pairs, k, apart);
  if (!b->filling) return m;
  size_t n = (size_t)m.tiles * 8;
  float2 *bias = static_cast<float2 *>(calloc(n, sizeof *bias));
  if (!bias) return must(b, cudaErrorMemoryAllocation), m;
  for (int i = 0; i < count; i++) {
    put(b, m, parts[i].map, parts[i].weights, parts[i].k0);
    add_bias(parts[i].map, parts[i].bias, bias);
  }
  copy_up(b, m.bias, bias, n * sizeof *bias);
  free(bias);
  return m;
}

static layer build_layer(builder *b, const dt_layer *l) {
  const dt_weights *w = b->w;
  int half = w->head_dim / 2, rotary = w->rotary_dims, keys = w->heads * half, values = keys + w->kv_heads * half;
  int up_at = w->parallel ? round_up(values + w->kv_heads * half, 8) : 0, pairs = w->gated ? w->inter : blocks_of(w->inter, 2);
  part in[5] = {{&l->q, &l->q_bias, {0, w->head_dim, rotary, -1}, 0},
                {&l->k, &l->k_bias, {keys, w->head_dim, rotary, -1}, 0},
                {&l->v, &l->v_bias, {values, w->head_dim, rotary, -1}, 0}};
  part up[2] = {{&l->up, &l->up_bias, {up_at, w->inter, 0, -1}, 0}};
  if (w->gated) {
    up[0] = {&l->gate, &l->gate_bias, {up_at, w->inter, 0, 0}, 0};
    up[1] = {&l->up, &l->up_bias, {up_at, w->inter, 0, 1}, 0};
  }
  int ups = w->gated ? 2 : 1, hidden = blocks_of(w->hidden, 2);
  part out[2] = {{&l->o, &l->o_bias, {0, w->hidden, 0, -1}, 0}, {&l->down, &l->down_bias, {0, w->hidden, 0, -1}, 0}};

  layer built = {};
  built.norm1 = take_vector(b, &l->norm1), built.norm1_bias = take_vector(b, &l->norm1_bias);
  built.norm2 = take_vector(b, &l->norm2), built.norm2_bias = take_vector(b, &l->norm2_bias);
  if (w->parallel) {
    for (int i = 0; i < ups; i++) in[3 + i] = up[i];
    out[1].k0 = w->inner_at;
    built.in = build(b, up_at + pairs, w->hidden, false, in, 3 + ups);
    built.out = build(b, hidden, w->inner_at + w->inter, true, out, 2);
  } else {
    built.in = build(b, values + w->kv_heads * half, w->hidden, false, in, 3);
    built.up = build(b, pairs, w->hidden, false, up, ups);
    built.out = build(b, hidden, w->heads * w->head_dim, true, out, 1);
    built.down = build(b, hidden, w->inter, true, out + 1, 1);
  }
  return built;
}

static void build_model(builder *b) {
  dt_weights *w = b->w;
  const dt_model_desc *d = b->desc;
  for (int i = 0; i < w->layers; i++) w->layers_of[i] = build_layer(b, &d->layer[i]);
  w->final_norm = take_vector(b, &d->final_norm);
  w->final_norm_bias = take_vector(b, &d->final_norm_bias);
  static const dt_matrix none = {};
  part all = {&d->unembed, &none, {0, w->vocab, 0, -1}, 0};
  w->unembed = build(b, blocks_of(w->vocab, 2), w->hidden, false, &all, 1);
  size_t pairs = (size_t)w->rotary_dims / 2, angles = (size_t)w->context * pairs;
  w->embed = take<uint16_t>(&w->weights_arena, (size_t)w->vocab * (size_t)w->hidden);
  w->cosine = take<float>(&w->weights_arena, angles);
  w->sine = take<float>(&w->weights_arena, angles);
  if (!b->filling) return;

  size_t row = (size_t)w->hidden * 2; /* the embedding is a whole matrix */
  if (d->embed.group == d->embed.rows)
    copy_up(b, w->embed, d->embed.data, (size_t)w->vocab * row);
  else
    for (int r = 0; r < w->vocab; r++) copy_up(b, w->embed + (size_t)r * w->hidden, row_of(&d->embed, r), row);
  float *table = static_cast<float *>(malloc((2 * angles + 1) * sizeof(float)));
  if (!table) return must(b, cudaErrorMemoryAllocation);
  for (size_t i = 0; i < angles; i++) {
    double angle = (double)(i / pairs) * (double)d->inv_freq[i % pairs];
    table[i] = (float)cos(angle), table[angles + i] = (float)sin(angle);
  }
  copy_up(b, w->cosine, table, angles * sizeof(float));
  copy_up(b, w->sine, table + angles, angles * sizeof(float));
  free(table);
}

/* Of the largest piece of a matrix that a chunk of a prompt is multiplied with. */
static size_t plain_numbers(const dt_weights *w) {
  const layer &l = w->layers_of[0]; /* all have the same shapes */
  size_t most = 0;
  for (const matrix *m : {&l.in, &l.up, &l.out, &l.down}) {
    size_t outputs = (size_t)(m->tiles * 16 < PIECE ? m->tiles * 16 : PIECE), numbers = outputs * (size_t)m->steps * 32;
    if (numbers > most) most = numbers;
  }
  return most;
}

static void build_scratch(dt_weights *w) {
  arena *a = &w->scratch_arena;
  size_t blocks = (size_t)blocks_of(w->vocab, LOGIT_BLOCK);
  w->ldx = round_up(w->hidden, 32);
  w->x = take<float>(a, CHUNK * (size_t)w->hidden);
  w->normed1 = take<uint16_t>(a, CHUNK * (size_t)w->ldx);
  w->normed2 = take<uint16_t>(a, CHUNK * (size_t)w->ldx);
  w->q = take<uint16_t>(a, CHUNK * (size_t)w->heads * (size_t)w->dim);
  w->cat = take<uint16_t>(a, CHUNK * (size_t)w->ldcat);
  w->partial = take<float>(a, PARTIALS * ROWS * (size_t)w->hidden);
  arena chunk = *a;
  w->plain = take<uint16_t>(&chunk, plain_numbers(w));
  w->sums = take<float>(&chunk, CHUNK * (size_t)PIECE);
  w->logits = take<float>(a, ROWS * (size_t)w->vocab);
  if (a->used < chunk.used) a->used = chunk.used;
  w->parts = take<logit_part>(a, ROWS * blocks);
  w->best = take<uint64_t>(a, ROWS * blocks * CHECK_TOP);
}

/* The widths of a head that the attention is compiled for. */
static int padded_head(int head_dim) {
  const int widths[] = {32, 64, 80, 96, 128, MAX_HEAD};
  for (int width : widths)
    if (head_dim <= width) return width;
  return 0;
}

static dt_status check_supported(const dt_model_desc *d, dt_error *err) {
  dt_dtype type = d->embed.dtype;
  bool same = type == d->unembed.dtype;
  for (int i = 0; i < d->layers; i++) {
    const dt_layer *l = &d->layer[i];
    const dt_matrix *all[] = {&l->q, &l->k, &l->v, &l->o, &l->up, &l->gate, &l->down};
    for (const dt_matrix *m : all) same &= !m->data || m->dtype == type;
  }
  if (!same || type == DT_F32)
    return dt_fail(err, DT_EINPUT, "the CUDA backend computes with weights that are all F16 or all BF16, this model's are %s: "
                   "use --backend cpu", same ? "F32" : "of several types");
  if (d->head_dim % 2 || d->head_dim > MAX_HEAD)
    return dt_fail(err, DT_EINPUT, "the CUDA backend computes with heads of an even size up to %d, this model's have %d: "
                   "use --backend cpu", (int)MAX_HEAD, d->head_dim);
  if (d->hidden > MAX_HIDDEN)
    return dt_fail(err, DT_EINPUT, "the CUDA backend computes with a hidden size up to %d, this model's is %d: use --backend cpu",
                   (int)MAX_HIDDEN, d->hidden);
  return DT_OK;
}

static dt_status fill(builder *b, dt_error *err) {
  dt_weights *w = b->w;
  dt_backend *device = w->backend;
  build_model(b); /* measures */
  build_scratch(w);
  arena staging = {nullptr, STAGING, 0};
  if ((size_t)w->hidden * 2 > STAGING || (size_t)w->ldcat * 2 > STAGING) staging.used = (size_t)(w->hidden + w->ldcat) * 2;
  size_t passing = 0;
  dt_status status = arena_open(device, &w->weights_arena, "the weights", &device->memory.weights, err);
  if (status == DT_OK) status = arena_open(device, &w->scratch_arena, "scratch", &device->memory.scratch, err);
  if (status == DT_OK) status = arena_open(device, &staging, "loading", &passing, err);
  if (status == DT_OK) {
    must(b, attention_prepare(w->type, w->dim));
    must(b, multiply_prepare(w->type));
    b->staging = reinterpret_cast<uint16_t *>(staging.base);
    b->filling = true;
    build_model(b);
    build_scratch(w);
    status = b->failed == cudaErrorMemoryAllocation ? dt_fail_memory(err, "loading a model", STAGING)
                                                    : cuda_check(device, b->failed, "loading a model", err);
  }
  arena_close(&staging, &passing);
  return status;
}

dt_status cuda_upload(dt_backend *backend, const dt_model_desc *d, dt_weights **out, dt_error *err) {
  dt_status status = check_model(d, err);
  if (status == DT_OK) status = check_supported(d, err);
  if (status != DT_OK) return status;
  dt_weights *w = new (std::nothrow) dt_weights();
  if (w) w->layers_of = new (std::nothrow) layer[(size_t)d->layers]();
  if (!w || !w->layers_of) {
    delete w;
    return dt_fail_memory(err, "a model", sizeof *w);
  }
  w->backend = backend;
  w->type = d->embed.dtype == DT_F16 ? F16 : BF16;
  w->vocab = d->vocab, w->hidden = d->hidden, w->layers = d->layers, w->heads = d->heads, w->kv_heads = d->kv_heads;
  w->context = d->context, w->rotary_dims = d->rotary_dims, w->inter = d->inter, w->head_dim = d->head_dim;
  w->dim = padded_head(d->head_dim);
  w->scale = (float)(1.0 / sqrt((double)d->head_dim));
  w->norm_eps = d->norm_eps, w->norm = d->norm, w->act = d->act;
  w->parallel = d->parallel_residual;
  w->gated = d->layer[0].gate.data != nullptr;
  w->inner_at = round_up(w->heads * w->head_dim, 32);
  w->ldcat = w->inner_at + round_up(w->inter, 32);
  builder b = {w, d, nullptr, cudaSuccess, false};
  status = fill(&b, err);
  if (status == DT_OK)
    *out = w;
  else
    cuda_free_weights(w);
  return status;
}

void cuda_free_weights(dt_weights *w) {
  if (!w) return;
  gemms_free(w->gemms);
  arena_close(&w->weights_arena, &w->backend->memory.weights);
  arena_close(&w->scratch_arena, &w->backend->memory.scratch);
  delete[] w->layers_of;
  delete w;
}
