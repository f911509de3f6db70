/* Loads a model onto the device. The layout code runs twice: once to measure, once to take the memory and fill it. */
#include "attention.cuh"
#include "cache_format.cuh"
#include "experts.cuh"
#include "format.cuh"
#include "gemm.cuh"
#include "launch.cuh"
#include "matmul.cuh"
#include "pack.cuh"
#include "supported.cuh"

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

/* Takes room for `pairs` pairs of outputs of k inputs, all zero, without the tiles before the first. `split`: the sum
 * over k may be split, into as many parts as keep all blocks of a pass of more than 64 rows in place at once. */
static matrix take_matrix(builder *b, int first, int pairs, int k, bool split, packing packed) {
  matrix m = {};
  m.format = b->w->activations; /* both operands have the same type: check_supported rejects mixed types, and the
                                   weights of heads are converted */
  m.packed = packed;
  m.first = first, m.tiles = blocks_of(pairs, 8);
  m.steps = blocks_of(k, 32);
  m.splits = split ? MULTIPROCESSORS / blocks_of(m.tiles, BLOCK_TILES) : 1;
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

/* Reads a norm of one head or of all heads, in the order of their pairs. */
static float2 *take_head_norm(builder *b, const dt_matrix *source, int head_dim, int rotary) {
  if (!source->source) return nullptr;
  size_t pairs = (size_t)source->rows / 2;
  float2 *v = take<float2>(&b->w->weights_arena, pairs);
  if (!b->filling) return v;
  float2 *ordered = static_cast<float2 *>(calloc(pairs, sizeof *ordered));
  if (!ordered) return must(b, cudaErrorMemoryAllocation), v;
  add_bias(b, {0, head_dim, rotary, -1}, source, ordered);
  copy_up(b, v, ordered, pairs * sizeof *ordered);
  free(ordered);
  return v;
}

static const dt_matrix NONE = {};

static packing packing_for(const builder *b, const part &p) {
  return b->w->activations == F16 && !b->w->backend->widens ? packing_of(p.weights->dtype) : BITS16;
}

/* Whether one matrix can have both parts as they are stored. */
static bool alike(const builder *b, const part &p, const part &other) {
  packing packed = packing_for(b, p);
  return packed == packing_for(b, other) &&
         (packed != TABLE4 || dt_code_values(p.weights->dtype) == dt_code_values(other.weights->dtype));
}

/* Parts that are not alike, or a part that cannot be packed, become a matrix of 16-bit numbers. */
static packing packing_for_all(const builder *b, const part *parts, int count) {
  for (int i = 1; i < count; i++)
    if (!alike(b, parts[i], parts[0])) return BITS16;
  return packing_for(b, parts[0]);
}

/* Remembers what the model's matrices are stored as. */
static void note_stored(builder *b, packing packed, const part *parts, int count) {
  for (int i = 0; i < count; i++) {
    const char *name = stored_name(parts[i].weights->dtype, packed, b->w->activations), **stored = &b->w->stored;
    *stored = !*stored || *stored == name ? name : "mixed";
  }
}

/* Builds a matrix from parts, with tiles from `first` on. */
static matrix build(builder *b, int first, int pairs, int k, bool split, const part *parts, int count) {
  matrix m = take_matrix(b, first, pairs, k, split, packing_for_all(b, parts, count));
  m.table = table_of(parts[0].weights->dtype);
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
  while (n < count && alike(b, parts[n], parts[0])) n++;
  if (n == count || parts[n].map.first % 8 || parts[n].map.first == parts[n - 1].map.first) return count;
  for (int i = n; i < count; i++)
    if (!alike(b, parts[i], parts[n])) return count;
  return n;
}

static void build_in(builder *b, layer *built, int pairs, int k, const part *parts, int count) {
  int before = parts_before(b, parts, count), middle = before < count ? parts[before].map.first : pairs;
  built->in = build(b, 0, middle, k, false, parts, before);
  if (before < count) built->in_tail = build(b, middle / 8, pairs, k, false, parts + before, count - before);
}

keys_of_layer cuda_keys_of(const dt_weights *w, int i) {
  const layer &l = w->layers_of[i];
  return {l.has_keys, l.window > 0, l.kv_heads, l.head_dim};
}

/* The narrowest width at least head_dim that attention is compiled for. */
static int padded_head(int head_dim) {
  const int widths[] = {32, 64, 80, 96, 128, 256, MAX_HEAD};
  for (int width : widths)
    if (head_dim <= width) return width;
  return 0;
}

/* The sizes of a layer, and where the keys are that it reads. */
static layer size_layer(dt_weights *w, const dt_layer *l) {
  const dt_shape s = dt_shape_of(&w->shape, l);
  layer built = {};
  built.kv_heads = s.kv_heads, built.head_dim = s.head_dim, built.inter = s.inter;
  built.dim = padded_head(s.head_dim);
  built.score_scale = s.attention_scale != 0 ? s.attention_scale : (float)(1.0 / sqrt((double)s.head_dim));
  const dt_weights *target = w->head.target;
  built.has_keys = !l->keys_of && !reads_keys(*w);
  if (!built.has_keys) {
    built.keys_at = reads_keys(*w)
                        ? target->layers_of[layer_read(target, target->shape.layers, l->window, cuda_keys_of)].keys_at
                        : w->layers_of[l->keys_of - 1].keys_at;
    return built;
  }
  built.keys_at = w->slot_bytes;
  w->slot_bytes += 2 * (size_t)s.kv_heads * row_bytes(w->backend->caches, built.dim);
  return built;
}

static void size_layers(dt_weights *w, const dt_layer *l) {
  int common = 0; /* the greatest common divisor of the numbers of heads that share keys */
  w->last_keys = -1;
  for (int i = 0; i < w->shape.layers; i++) {
    w->layers_of[i] = size_layer(w, &l[i]);
    if (w->layers_of[i].dim > w->dim) w->dim = w->layers_of[i].dim;
    if (w->layers_of[i].has_keys) w->last_keys = i;
    int group = w->shape.heads / w->layers_of[i].kv_heads;
    while (group) {
      int left = common % group;
      common = group, group = left;
    }
  }
  w->joined = common ? heads_together(common) : 1;
}

/* Reads the rows of matrices with k columns as floats, one matrix after another; null: there are none. */
static float *take_floats(builder *b, const dt_matrix *const *sources, int count, int k) {
  int rows = 0;
  for (int i = 0; i < count; i++) rows += sources[i]->source ? sources[i]->rows : 0;
  if (!rows) return nullptr;
  float *all = take<float>(&b->w->weights_arena, (size_t)rows * (size_t)k), *to = all;
  for (int i = 0; i < count && b->filling; i++)
    for (int r = 0; sources[i]->source && r < sources[i]->rows && going(b); r++, to += k) {
      b->status = dt_read_rows(sources[i], r, 1, b->raw, b->err);
      if (!going(b)) break;
      dt_type_of(sources[i]->dtype)->decode(b->raw, (size_t)k, b->wide);
      copy_up(b, to, b->wide, (size_t)k * sizeof(float));
    }
  return all;
}

/* Builds one matrix of a matrix of every expert, or of two whose outputs are pairs: `count` parts for each expert,
 * whose outputs begin at pair 0. */
static matrix build_all_experts(builder *b, part *parts, int count, int pairs, int k) {
  const int experts = b->w->shape.experts, each = round_up(pairs, 8);
  for (int i = 0; i < experts * count; i++) parts[i].map.first = i / count * each;
  return build(b, 0, experts * each, k, false, parts, experts * count);
}

static expert_parts build_experts(builder *b, const dt_layer *l) {
  const dt_shape &s = b->w->shape;
  const dt_matrix *routers[] = {&l->router, &l->mlp_gate};
  expert_parts e = {};
  e.outputs = s.experts + (l->mlp_gate.source ? 1 : 0);
  e.router = take_floats(b, routers, 2, s.hidden);
  e.router_bias = take_vector(b, &l->router_bias);
  e.correction = take_vector(b, &l->router_correction), e.scale = take_vector(b, &l->expert_scale);
  e.router_norm = take_vector(b, &l->router_norm), e.expert_norm = take_vector(b, &l->expert_norm);
  e.experts_norm = take_vector(b, &l->experts_norm), e.mlp_norm = take_vector(b, &l->mlp_norm);
  part *parts = new (std::nothrow) part[2 * (size_t)s.experts];
  if (!parts) return must(b, cudaErrorMemoryAllocation), e;
  for (int i = 0; i < s.experts; i++) {
    const dt_expert *from = &l->expert[i];
    parts[2 * i] = {&from->gate, &from->gate_bias, {0, s.expert_inter, 0, 0}, 0, nullptr, 0};
    parts[2 * i + 1] = {&from->up, &from->up_bias, {0, s.expert_inter, 0, 1}, 0, nullptr, 0};
  }
  e.up = build_all_experts(b, parts, 2, s.expert_inter, s.hidden);
  for (int i = 0; i < s.experts; i++)
    parts[i] = {&l->expert[i].down, &l->expert[i].down_bias, {0, s.hidden, 0, -1}, 0, nullptr, 0};
  e.down = build_all_experts(b, parts, 1, blocks_of(s.hidden, 2), s.expert_inter);
  delete[] parts;
  return e;
}

/* Builds a whole matrix, row by row. */
static matrix build_whole(builder *b, const dt_matrix *source, const dt_matrix *bias, bool split) {
  part all = {source, bias, {0, source->rows, 0, -1}, 0, nullptr, 0};
  return build(b, 0, blocks_of(source->rows, 2), source->cols, split, &all, 1);
}

static layer build_layer(builder *b, const dt_layer *l, layer built) {
  const dt_weights *w = b->w;
  const bool local = l->window && w->rotations[1].pairs;
  const int head_dim = built.head_dim, inter = built.inter, key_heads = built.has_keys ? built.kv_heads : 0;
  int half = head_dim / 2, rotary = 2 * w->rotations[local].pairs, keys = w->shape.heads * half,
      values = keys + key_heads * half;
  int up_at = w->shape.parallel_residual ? round_up(values + key_heads * half, 8) : 0,
      pairs = w->shape.gated ? inter : blocks_of(inter, 2);
  int ins = built.has_keys ? 3 : 1, ups = w->shape.gated ? 2 : 1, hidden = blocks_of(w->shape.hidden, 2);
  part in[5] = {{&l->q, &l->q_bias, {0, head_dim, rotary, -1}, 0, nullptr, 0},
                {&l->k, &l->k_bias, {keys, head_dim, rotary, -1}, 0, nullptr, 0},
                {&l->v, &l->v_bias, {values, head_dim, rotary, -1}, 0, nullptr, 0}};
  part up[2] = {{&l->up, &l->up_bias, {up_at, inter, 0, -1}, 0, nullptr, 0}};
  if (w->shape.gated) {
    up[0] = {&l->gate, &l->gate_bias, {up_at, inter, 0, 0}, 0, nullptr, 0};
    up[1] = {&l->up, &l->up_bias, {up_at, inter, 0, 1}, 0, nullptr, 0};
  }
  part out[2] = {{&l->o, &l->o_bias, {0, w->shape.hidden, 0, -1}, 0, nullptr, 0},
                 {&l->down, &l->down_bias, {0, w->shape.hidden, 0, -1}, 0, nullptr, 0}};

  built.scale = 1.0f;
  if (l->scale.source && b->filling) {
    float *scale = read_vector(b, &l->scale);
    if (scale) built.scale = *scale;
    delete[] scale;
  }
  if (w->shape.inputs) {
    built.input_gate = build_whole(b, &l->input_gate, &NONE, false);
    built.input_out = build_whole(b, &l->input_out, &NONE, true);
    built.input_norm = take_vector(b, &l->input_norm);
  }
  built.sinks = take_vector(b, &l->sinks), built.window = l->window;
  built.still = l->still, built.local = local;
  built.norm1 = take_vector(b, &l->norm1), built.norm1_bias = take_vector(b, &l->norm1_bias);
  built.norm2 = take_vector(b, &l->norm2), built.norm2_bias = take_vector(b, &l->norm2_bias);
  built.o_norm = take_vector(b, &l->o_norm), built.down_norm = take_vector(b, &l->down_norm);
  built.q_norm = take_head_norm(b, &l->q_norm, head_dim, rotary);
  built.k_norm = take_head_norm(b, &l->k_norm, head_dim, rotary);
  if (w->shape.parallel_residual) {
    for (int i = 0; i < ups; i++) in[ins + i] = up[i];
    out[1].k0 = w->inner_at;
    build_in(b, &built, up_at + pairs, w->shape.hidden, in, ins + ups);
    built.out = build(b, 0, hidden, w->inner_at + inter, true, out, 2);
  } else {
    build_in(b, &built, values + key_heads * half, l->q.cols, in, ins);
    if (l->up.source) built.up = build(b, 0, pairs, w->shape.hidden, false, up, ups);
    built.out = build(b, 0, hidden, w->shape.heads * head_dim, true, out, 1);
    if (l->up.source) built.down = build(b, 0, hidden, inter, true, out + 1, 1);
    if (l->expert) built.experts = build_experts(b, l);
  }
  return built;
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
  if (d->kind == DT_HEAD_CROSS_ATTENTION) h->post = build_whole(b, &d->post, &NONE, true);
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

static void take_host(dt_weights *w, size_t bytes) { w->host_bytes += bytes, w->backend->memory.host += bytes; }

/* Keeps the embeddings on the host: a pass needs few of their rows. */
static void build_embed(builder *b) {
  dt_weights *w = b->w;
  const dt_matrix *embed = &b->desc->embed;
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
  w->outputs = d->ids ? d->n_ids : d->shape.vocab;
  w->embed_width = d->embed.source ? d->embed.cols : target->shape.hidden;
  w->embedding = w->embed_width + w->shape.layers * w->shape.inputs;
  w->no_chunks = w->shape.inputs || w->shape.experts; /* chunks have no steps for them */
  w->embed_scale = factor(d->shape.embed_scale), w->residual_scale = factor(d->shape.residual_scale);
  w->logit_scale = factor(d->shape.logit_scale);
  w->inner_at = round_up(w->shape.heads * w->shape.head_dim, 32);
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
