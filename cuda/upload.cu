/* Loads a model onto the device. The layout code runs twice: once to measure, once to take the memory and fill it. */
#include "attention.cuh"
#include "format.cuh"
#include "gemm.cuh"
#include "launch.cuh"
#include "matmul.cuh"
#include "pack.cuh"

#include <new>
#include <stdlib.h>

constexpr int STAGING = 32 << 20, LEAST_STEPS = 8;

/* The state of an upload. It keeps the first failure, after which nothing more is done. */
struct builder {
  dt_weights *w;
  const dt_model_desc *desc;
  const dt_head_desc *head; /* null: the model is not a head */
  dt_error *err;
  dt_status status;
  char *rows;    /* on the host: STAGING bytes, or a longer row */
  char *raw;     /* the same rows as they are in the file */
  float *wide;   /* one row of floats */
  char *staging; /* on the device: the same size as `rows` */
  cudaError_t failed;
  bool filling;
};

static void must(builder *b, cudaError_t e) {
  if (!b->failed) b->failed = e;
}

static bool going(const builder *b) { return b->status == DT_OK && !b->failed; }

/* Reads a whole vector as floats; null after a failure. The caller frees it with delete[]. */
static float *read_vector(builder *b, const dt_matrix *source) {
  float *wide = new (std::nothrow) float[(size_t)source->rows];
  if (!wide) must(b, cudaErrorMemoryAllocation);
  if (going(b)) b->status = dt_read_vector(source, wide, b->err);
  if (going(b)) return wide;
  delete[] wide;
  return nullptr;
}

static void copy_up(builder *b, void *to, const void *from, size_t bytes) {
  must(b, cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, b->w->backend->stream));
  must(b, cudaStreamSynchronize(b->w->backend->stream)); /* the caller may free `from` */
}

static float *take_vector(builder *b, const dt_matrix *source) {
  if (!source->source) return nullptr;
  float *v = take<float>(&b->w->weights_arena, (size_t)source->rows);
  if (!b->filling) return v;
  float *wide = read_vector(b, source);
  if (wide) copy_up(b, v, wide, (size_t)source->rows * sizeof(float));
  delete[] wide;
  return v;
}

/* Takes room for `pairs` pairs of outputs of k inputs, all zero, without the tiles before the first. `apart`: the sum
 * over k may be split, into as many parts as keep all blocks of a pass of more than 64 rows in place at once. */
static matrix take_matrix(builder *b, int first, int pairs, int k, bool apart, packing packed) {
  matrix m = {};
  m.format = b->w->activations; /* both operands have the same type: check_supported rejects mixed types, and the
                                   weights of heads are converted */
  m.packed = packed;
  m.first = first, m.tiles = blocks_of(pairs, 8);
  m.steps = blocks_of(k, 32);
  m.splits = apart ? MULTIPROCESSORS / blocks_of(m.tiles, BLOCK_TILES) : 1;
  if (m.splits > m.steps / LEAST_STEPS) m.splits = m.steps / LEAST_STEPS;
  if (m.splits > PARTIALS) m.splits = PARTIALS;
  if (m.splits < 1) m.splits = 1;
  size_t tile = (size_t)m.steps * (size_t)pieces_of(packed);
  m.data = take<uint4>(&b->w->weights_arena, (size_t)(m.tiles - first) * tile);
  if (b->filling) m.data -= (size_t)first * tile;
  m.bias = take<float2>(&b->w->weights_arena, (size_t)m.tiles * 8);
  return m;
}

/* The number of rows that fit the staging memory. */
static int rows_at_once(const dt_matrix *source) {
  size_t rows = STAGING / ((size_t)source->cols * 2);
  return rows > 1 ? (int)rows : 1;
}

static size_t packed_row_bytes(packing p, int cols) {
  return p == BITS16 ? (size_t)cols * sizeof(uint16_t) : code_row_bytes(cols);
}

/* Reads rows row..end-1 of a source, or of the rows that `only` lists (null: all), into b->rows as pack() takes them:
 * as many as fit. Returns their number. */
static int read_rows(builder *b, const dt_matrix *source, packing packed, const int32_t *only, int row, int end) {
  int most = rows_at_once(source), rows = end - row < most ? end - row : most;
  size_t bytes = dt_row_bytes(source->dtype, (size_t)source->cols);
  if (going(b) && !only) b->status = dt_read_rows(source, row, rows, b->raw, b->err);
  for (int r = 0; r < rows && going(b); r++) {
    char *raw = b->raw + (size_t)r * bytes;
    if (only) b->status = dt_read_rows(source, only[row + r], 1, raw, b->err);
    if (!going(b)) break;
    char *to = b->rows + (size_t)r * packed_row_bytes(packed, source->cols);
    if (packed == BITS16)
      to_format(source->dtype, b->w->activations, raw, source->cols, b->wide, reinterpret_cast<uint16_t *>(to));
    else
      to_codes(source->dtype, raw, source->cols, reinterpret_cast<uint8_t *>(to));
  }
  return rows;
}

/* One source of a matrix with its bias. */
struct part {
  const dt_matrix *weights, *bias;
  pair_map map;
  int k0;
  const int32_t *only; /* [only_n] the rows to take, in this order; null: all */
  int only_n;
};

static void put(builder *b, const matrix &m, const part &p) {
  const queue &stream = b->w->backend->stream;
  const int end = p.only ? p.only_n : p.weights->rows;
  for (int row = 0, rows; row < end && going(b); row += rows) {
    rows = read_rows(b, p.weights, m.packed, p.only, row, end);
    if (!going(b)) return;
    size_t bytes = (size_t)rows * packed_row_bytes(m.packed, p.weights->cols);
    must(b, cudaMemcpyAsync(b->staging, b->rows, bytes, cudaMemcpyHostToDevice, stream));
    must(b, pack(stream, m, p.map, b->staging, row, rows, p.weights->cols, p.k0));
    must(b, cudaStreamSynchronize(stream)); /* the next rows reuse the memory */
  }
}

/* Adds a bias to the outputs that `map` makes of its matrix's rows. */
static void add_bias(builder *b, const pair_map &map, const dt_matrix *source, float2 *bias) {
  float *wide = source->source ? read_vector(b, source) : nullptr;
  for (int r = 0; wide && r < source->rows; r++) {
    place p = place_of(map, r);
    (p.half ? bias[p.pair].y : bias[p.pair].x) += wide[r];
  }
  delete[] wide;
}

/* Reads a norm of heads, in the order of their pairs. */
static float2 *take_head_norm(builder *b, const dt_matrix *source) {
  if (!source->source) return nullptr;
  size_t pairs = (size_t)b->w->shape.head_dim / 2;
  float2 *v = take<float2>(&b->w->weights_arena, pairs);
  if (!b->filling) return v;
  float2 *ordered = static_cast<float2 *>(calloc(pairs, sizeof *ordered));
  if (!ordered) return must(b, cudaErrorMemoryAllocation), v;
  add_bias(b, {0, b->w->shape.head_dim, b->w->shape.rotary_dims, -1}, source, ordered);
  copy_up(b, v, ordered, pairs * sizeof *ordered);
  free(ordered);
  return v;
}

static const dt_matrix NONE = {};

/* Parts with different packings, or a part that cannot be packed, become a matrix of 16-bit numbers. */
static packing packing_for(const builder *b, const part *parts, int count) {
  packing p = packing_of(parts[0].weights->dtype);
  for (int i = 1; i < count; i++)
    if (packing_of(parts[i].weights->dtype) != p) p = BITS16;
  return b->w->activations == F16 && !b->w->backend->widens ? p : BITS16;
}

/* Remembers what the model's matrices are stored as. */
static void note_stored(builder *b, packing packed, const part *parts, int count) {
  for (int i = 0; i < count; i++) {
    const char *name = stored_name(parts[i].weights->dtype, packed, b->w->activations), **stored = &b->w->stored;
    *stored = !*stored || *stored == name ? name : "mixed";
  }
}

/* Builds a matrix from parts, with tiles from `first` on. */
static matrix build(builder *b, int first, int pairs, int k, bool apart, const part *parts, int count) {
  matrix m = take_matrix(b, first, pairs, k, apart, packing_for(b, parts, count));
  note_stored(b, m.packed, parts, count);
  if (!b->filling) return m;
  size_t n = (size_t)m.tiles * 8;
  float2 *bias = static_cast<float2 *>(calloc(n, sizeof *bias));
  if (!bias) return must(b, cudaErrorMemoryAllocation), m;
  for (int i = 0; i < count; i++) {
    put(b, m, parts[i]);
    add_bias(b, parts[i].map, parts[i].bias, bias);
  }
  copy_up(b, m.bias, bias, n * sizeof *bias);
  free(bias);
  return m;
}

/* Returns the number of parts in the first of two matrices: if the last parts are all packed in the same way, which
 * differs from the first ones, and begin with a tile, they go to the second matrix. Otherwise all parts are in the
 * first. */
static int parts_before(const builder *b, const part *parts, int count) {
  int n = 1;
  while (n < count && packing_for(b, parts + n, 1) == packing_for(b, parts, 1)) n++;
  if (n == count || parts[n].map.first % 8 || parts[n].map.first == parts[n - 1].map.first) return count;
  for (int i = n; i < count; i++)
    if (packing_for(b, parts + i, 1) != packing_for(b, parts + n, 1)) return count;
  return n;
}

static void build_in(builder *b, layer *built, int pairs, int k, const part *parts, int count) {
  int before = parts_before(b, parts, count), middle = before < count ? parts[before].map.first : pairs;
  built->in = build(b, 0, middle, k, false, parts, before);
  if (before < count) built->rest = build(b, middle / 8, pairs, k, false, parts + before, count - before);
}

static layer build_layer(builder *b, const dt_layer *l) {
  const dt_weights *w = b->w;
  int half = w->shape.head_dim / 2, rotary = w->shape.rotary_dims, keys = w->shape.heads * half,
      values = keys + w->shape.kv_heads * half;
  int up_at = w->shape.parallel_residual ? round_up(values + w->shape.kv_heads * half, 8) : 0,
      pairs = w->shape.gated ? w->shape.inter : blocks_of(w->shape.inter, 2);
  part in[5] = {{&l->q, &l->q_bias, {0, w->shape.head_dim, rotary, -1}, 0, nullptr, 0},
                {&l->k, &l->k_bias, {keys, w->shape.head_dim, rotary, -1}, 0, nullptr, 0},
                {&l->v, &l->v_bias, {values, w->shape.head_dim, rotary, -1}, 0, nullptr, 0}};
  part up[2] = {{&l->up, &l->up_bias, {up_at, w->shape.inter, 0, -1}, 0, nullptr, 0}};
  if (w->shape.gated) {
    up[0] = {&l->gate, &l->gate_bias, {up_at, w->shape.inter, 0, 0}, 0, nullptr, 0};
    up[1] = {&l->up, &l->up_bias, {up_at, w->shape.inter, 0, 1}, 0, nullptr, 0};
  }
  int ups = w->shape.gated ? 2 : 1, hidden = blocks_of(w->shape.hidden, 2);
  part out[2] = {{&l->o, &l->o_bias, {0, w->shape.hidden, 0, -1}, 0, nullptr, 0},
                 {&l->down, &l->down_bias, {0, w->shape.hidden, 0, -1}, 0, nullptr, 0}};

  layer built = {};
  built.norm1 = take_vector(b, &l->norm1), built.norm1_bias = take_vector(b, &l->norm1_bias);
  built.norm2 = take_vector(b, &l->norm2), built.norm2_bias = take_vector(b, &l->norm2_bias);
  built.q_norm = take_head_norm(b, &l->q_norm), built.k_norm = take_head_norm(b, &l->k_norm);
  if (w->shape.parallel_residual) {
    for (int i = 0; i < ups; i++) in[3 + i] = up[i];
    out[1].k0 = w->inner_at;
    build_in(b, &built, up_at + pairs, w->shape.hidden, in, 3 + ups);
    built.out = build(b, 0, hidden, w->inner_at + w->shape.inter, true, out, 2);
  } else {
    build_in(b, &built, values + w->shape.kv_heads * half, l->q.cols, in, 3);
    built.up = build(b, 0, pairs, w->shape.hidden, false, up, ups);
    built.out = build(b, 0, hidden, w->shape.heads * w->shape.head_dim, true, out, 1);
    built.down = build(b, 0, hidden, w->shape.inter, true, out + 1, 1);
  }
  return built;
}

/* Builds a whole matrix, row by row. */
static matrix build_whole(builder *b, const dt_matrix *source, const dt_matrix *bias, bool apart) {
  part all = {source, bias, {0, source->rows, 0, -1}, 0, nullptr, 0};
  return build(b, 0, blocks_of(source->rows, 2), source->cols, apart, &all, 1);
}

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
  h->given_norm = h->norms_all ? take_vector(b, &d->all_norm) : take_stream_norms(b, d, h->target->shape.hidden);
  h->token_norm = take_vector(b, &d->token_norm);
  h->feature_norm = take_vector(b, &d->feature_norm);
}

/* Builds the output matrix, or some rows of it; a head may use the target's. */
static void build_unembed(builder *b) {
  dt_weights *w = b->w;
  const dt_model_desc *d = b->desc;
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

static void build_embed(builder *b) {
  dt_weights *w = b->w;
  const dt_matrix *embed = &b->desc->embed;
  if (!embed->source) {
    w->embed = w->head.target->embed;
    return;
  }
  w->embed = take<uint16_t>(&w->weights_arena, (size_t)embed->rows * (size_t)embed->cols);
  for (int r = 0, rows; r < embed->rows && b->filling && going(b); r += rows) {
    rows = read_rows(b, embed, BITS16, nullptr, r, embed->rows);
    if (going(b))
      copy_up(b, w->embed + (size_t)r * (size_t)embed->cols, b->rows, (size_t)rows * (size_t)embed->cols * 2);
  }
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
  for (int i = 0; i < w->shape.layers; i++) w->layers_of[i] = build_layer(b, &d->layer[i]);
  w->final_norm = take_vector(b, &d->final_norm);
  w->final_norm_bias = take_vector(b, &d->final_norm_bias);
  if (b->head) build_head(b);
  build_unembed(b);
  build_embed(b);
  if (w->backend->caches == HELD_Q8) build_order(b);
}

/* Numbers of the largest piece of a matrix that a chunk of a prompt is multiplied with. */
static size_t plain_numbers(const dt_weights *w) {
  const layer &l = w->layers_of[0]; /* all layers have the same shapes */
  size_t most = 0;
  for (const matrix *m : {&l.in, &l.rest, &l.up, &l.out, &l.down}) {
    size_t outputs = (size_t)(m->tiles * 16 < PIECE ? m->tiles * 16 : PIECE), numbers = outputs * (size_t)m->steps * 32;
    if (numbers > most) most = numbers;
  }
  return most;
}

static operand take_operand(arena *a, size_t rows, int ld, bool tiled) {
  return {take<uint16_t>(a, rows * (size_t)ld), ld, tiled};
}

static operands take_operands(arena *a, const dt_weights *w, size_t rows, bool tiled) {
  return {take_operand(a, rows, w->ldx, tiled), take_operand(a, rows, w->ldx, tiled),
          take_operand(a, rows, w->ldcat, tiled)};
}

static void build_scratch(dt_weights *w) {
  arena *a = &w->scratch_arena;
  draft_head *h = &w->head;
  size_t blocks = (size_t)blocks_of(w->outputs, LOGIT_BLOCK),
         most = h->target ? (size_t)ROWS : (size_t)CHUNK; /* rows */
  w->ldx = round_up(w->shape.hidden, 32);
  w->x = take<float>(a, most * (size_t)w->shape.hidden);
  w->pass = take_operands(a, w, ROWS, true);
  w->q = take<uint16_t>(a, most * (size_t)w->shape.heads * (size_t)w->dim);
  if (w->backend->caches == HELD_Q8) {
    w->fresh_rows = (int)most;
    w->fresh = take<uint16_t>(a, 2 * (size_t)w->shape.kv_heads * most * (size_t)w->dim);
  }
  w->partial = take<float>(a, PARTIALS * ROWS * (size_t)w->shape.hidden);
  if (h->target) {
    h->given = take_operand(a, ROWS, round_up(h->streams * h->target->shape.hidden, 32), true);
    h->pair = take_operand(a, ROWS, round_up(2 * w->shape.hidden, 32), true);
    w->logits = take<float>(a, ROWS * (size_t)w->outputs);
  } else {
    w->chunk = take_operands(a, w, CHUNK, false);
    /* A chunk's products lie where the logits do: a chunk needs none. */
    size_t plain = (plain_numbers(w) + 255) & ~(size_t)255, sums = CHUNK * (size_t)PIECE,
           logits = ROWS * (size_t)w->outputs;
    size_t both = plain * sizeof *w->plain + sums * sizeof *w->sums, alone = logits * sizeof *w->logits;
    w->plain = take<uint16_t>(a, (both > alone ? both : alone) / sizeof *w->plain);
    w->logits = reinterpret_cast<float *>(w->plain);
    w->sums = w->plain ? reinterpret_cast<float *>(w->plain + plain) : nullptr;
  }
  w->parts = take<logit_part>(a, ROWS * blocks);
  w->best = take<uint64_t>(a, ROWS * blocks * TOP);
  w->samples = take<sample_row>(a, ROWS);
}

/* The narrowest width at least head_dim that attention is compiled for. */
static int padded_head(int head_dim) {
  const int widths[] = {32, 64, 80, 96, 128, MAX_HEAD};
  for (int width : widths)
    if (head_dim <= width) return width;
  return 0;
}

static dt_status check_sizes(const dt_shape *s, const char *whose, dt_error *err) {
  if (s->head_dim % 2 || s->head_dim > MAX_HEAD)
    return dt_fail(
        err, DT_EINPUT,
        "the CUDA backend supports heads of an even size up to %d, but this %s's have %d (--backend cpu supports any)",
        (int)MAX_HEAD, whose, s->head_dim);
  if (s->hidden > MAX_HIDDEN)
    return dt_fail(err, DT_EINPUT,
                   "the CUDA backend supports a hidden size up to %d, but this %s's is %d (--backend cpu supports any)",
                   (int)MAX_HIDDEN, whose, s->hidden);
  return DT_OK;
}

static dt_status check_supported(const dt_model_desc *d, number *format, dt_error *err) {
  dt_dtype type = d->embed.dtype;
  bool known = format_of(type, format), same = true;
  const auto look = [&](const dt_matrix &m) {
    number other = *format;
    if (m.source && !format_of(m.dtype, &other)) known = false, type = m.dtype;
    same &= other == *format;
  };
  look(d->unembed);
  for (int i = 0; i < d->shape.layers; i++) {
    const dt_layer *l = &d->layer[i];
    for (const dt_matrix *m : {&l->q, &l->k, &l->v, &l->o, &l->up, &l->gate, &l->down}) look(*m);
  }
  if (!known || !same)
    return dt_fail(err, DT_EINPUT,
                   "the CUDA backend supports matrices that are all BF16, or all F16 or quantized, but this model's "
                   "are %s (--backend cpu supports any)",
                   known ? "of several types" : dt_type_of(type)->name);
  return check_sizes(&d->shape, "model", err);
}

static dt_status fill(builder *b, dt_error *err) {
  dt_weights *w = b->w;
  dt_backend *device = w->backend;
  build_model(b); /* measures the memory */
  build_scratch(w);
  arena staging = {};
  staging.used = STAGING;
  int widest = w->shape.hidden + w->ldcat + w->head.given.ld + w->head.pair.ld; /* no row of a matrix is longer */
  if ((size_t)widest * 2 > STAGING) staging.used = (size_t)widest * 2;
  size_t passing = 0;
  dt_status status = arena_open(device, &w->weights_arena, "the weights", &device->memory.weights, err);
  if (status == DT_OK) status = arena_open(device, &w->scratch_arena, "scratch", &device->memory.scratch, err);
  if (status == DT_OK) status = arena_open(device, &staging, "loading", &passing, err);
  if (status == DT_OK) {
    must(b, attention_prepare(w->activations, device->caches, w->dim));
    must(b, multiply_prepare(w->activations));
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

/* Uploads a model or a head that was checked. */
static dt_status upload(dt_backend *backend, const dt_model_desc *d, const dt_head_desc *head, const dt_weights *target,
                        number format, dt_weights **out, dt_error *err) {
  dt_weights *w = new (std::nothrow) dt_weights();
  if (w) w->layers_of = new (std::nothrow) layer[(size_t)d->shape.layers]();
  if (w) w->inv_freq = new (std::nothrow) float[(size_t)d->shape.rotary_dims / 2];
  if (!w || !w->layers_of || !w->inv_freq) {
    if (w) delete[] w->layers_of, delete[] w->inv_freq;
    delete w;
    return dt_fail_memory(err, "a model", sizeof *w);
  }
  for (int i = 0; i < d->shape.rotary_dims / 2; i++) w->inv_freq[i] = d->inv_freq[i];
  w->backend = backend;
  w->activations = format;
  w->shape = d->shape;
  w->outputs = d->ids ? d->n_ids : d->shape.vocab;
  w->dim = padded_head(d->shape.head_dim);
  w->joined = d->shape.kv_heads ? heads_together(d->shape.heads / d->shape.kv_heads) : 1;
  w->scale = d->shape.head_dim ? (float)(1.0 / sqrt((double)d->shape.head_dim)) : 0.0f;
  w->inner_at = round_up(w->shape.heads * w->shape.head_dim, 32);
  w->ldcat = w->inner_at + round_up(w->shape.inter, 32);
  if (head) {
    w->head.target = target, w->head.kind = head->kind, w->head.streams = head->taps;
    w->head.norm_residual = head->norm_residual;
    w->head.leads = dt_head_leads(head);
    w->head.backward = d->shape.layers && d->layer[0].backward;
    w->head.distances = head->distances, w->head.blocks = head->blocks;
    w->taps = d->shape.layers && head->kind != DT_HEAD_BLOCK ? 1 : 0, w->tap[0] = d->shape.layers + head->norm_output;
  }
  builder b = {};
  b.w = w, b.desc = d, b.head = head, b.err = err;
  dt_status status = fill(&b, err);
  if (status == DT_OK) status = cuda_warm_up(w, err);
  if (status == DT_OK)
    *out = w;
  else
    cuda_free_weights(w);
  return status;
}

/* Kinds of heads that draft_head.cu does not compute, and norms of an EAGLE head, which begin_eagle() leaves out: MTP
 * layers have them. */
static dt_status check_kind(const dt_head_desc *head, dt_error *err) {
  for (int i = 0; i < head->model.shape.layers; i++)
    if (head->model.layer[i].backward != head->model.layer[0].backward)
      return dt_fail(err, DT_EINPUT,
                     "head: only some of its layers look backward, which a GPU does not compute "
                     "(--backend cpu does)");
  if (head->model.shape.mix_taps || head->post.source)
    return dt_fail(err, DT_EINPUT, "head: a DFlash2 head, which a GPU does not compute (--backend cpu does)");
  if (head->kind != DT_HEAD_EAGLE) return DT_OK;
  const dt_layer *l = head->model.layer;
  for (const dt_matrix *norm : {&head->token_norm, &head->feature_norm, &l->norm1, &l->norm1_bias})
    if (norm->source)
      return dt_fail(err, DT_EINPUT,
                     "head: it has norms before its layer, as MTP layers do, which a GPU does not compute "
                     "(--backend cpu does)");
  return DT_OK;
}

static dt_status check_asked(const dt_holding *how, dt_error *err) {
  const char *asked = !how ? nullptr : how->dtype ? how->dtype : how->output;
  return asked ? dt_fail(err, DT_EINPUT, "weights: the CUDA backend cannot convert weights to the type '%.40s'", asked)
               : DT_OK;
}

dt_status cuda_upload(dt_backend *backend, const dt_model_desc *d, const dt_holding *how, dt_weights **out,
                      dt_error *err) {
  dt_status status = check_asked(how, err);
  if (status == DT_OK) status = check_model(d, err);
  if (status == DT_OK) status = check_plain(d, "a GPU", err);
  number format;
  if (status == DT_OK) status = check_supported(d, &format, err);
  return status == DT_OK ? upload(backend, d, nullptr, nullptr, format, out, err) : status;
}

/* The head's weights take the format of its target's weights. */
dt_status cuda_upload_head(dt_backend *backend, const dt_head_desc *head, const dt_holding *how, dt_weights *target,
                           dt_weights **out, dt_error *err) {
  dt_status status = check_asked(how, err);
  if (status == DT_OK) status = check_head(head, &target->shape, err);
  if (status == DT_OK) status = check_plain(&head->model, "a GPU", err);
  if (status == DT_OK) status = check_kind(head, err);
  if (status == DT_OK) status = check_sizes(&head->model.shape, "draft head", err);
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
  delete[] w->ids_here;
  delete[] w->layers_of;
  delete[] w->inv_freq;
  delete w;
}
