/* Vectors and matrices of a model: read, converted, copied to the device and laid out there. See builder.cuh. */
#include "builder.cuh"
#include "format.cuh"
#include "matmul.cuh"

#include <new>
#include <stdlib.h>

constexpr int LEAST_STEPS = 8;

float *read_vector(builder *b, const dt_matrix *source) {
  float *wide = new (std::nothrow) float[(size_t)source->rows];
  if (!wide) must(b, cudaErrorMemoryAllocation);
  if (going(b)) b->status = dt_read_vector(source, wide, b->err);
  if (going(b)) return wide;
  delete[] wide;
  return nullptr;
}

void copy_up(builder *b, void *to, const void *from, size_t bytes) {
  must(b, cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, b->w->backend->stream));
  must(b, cudaStreamSynchronize(b->w->backend->stream)); /* the caller may free `from` */
}

float *take_vector(builder *b, const dt_matrix *source) {
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

int read_rows(builder *b, const dt_matrix *source, packing packed, const int32_t *only, int row, int end) {
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

float2 *take_head_norm(builder *b, const dt_matrix *source, int head_dim, int rotary) {
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

static packing packing_for(const builder *b, const part &p) {
  return b->w->activations == F16 && !b->w->backend->widens ? packing_of(p.weights->dtype) : BITS16;
}

bool alike(const builder *b, const part &p, const part &other) {
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

matrix build(builder *b, int first, int pairs, int k, bool split, const part *parts, int count) {
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

matrix build_whole(builder *b, const dt_matrix *source, const dt_matrix *bias, bool split) {
  part all = {source, bias, {0, source->rows, 0, -1}, 0, nullptr, 0};
  return build(b, 0, blocks_of(source->rows, 2), source->cols, split, &all, 1);
}

float *take_floats(builder *b, const dt_matrix *const *sources, int count, int k) {
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
