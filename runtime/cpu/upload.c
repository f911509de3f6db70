/* Weights into panels. The layout code runs twice: once to measure, once to take the memory and fill it. */
#include "internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int round_up(int n, int to) { return (n + to - 1) / to * to; }

/* What an upload works with besides its result. */
typedef struct {
  dt_weights *w;
  const dt_model_desc *desc;
  bool failed; /* there was no memory for a matrix on its way to int8 */
} builder;

/* All columns of a source's rows become k0.. of outputs output.. ; of every `height` rows those begin `stride` outputs
 * later. */
static void put_rows(builder *b, const cpu_matrix *m, const dt_matrix *source, int output, int height, int stride,
                     int k0) {
  cpu_pack(b->w->backend, m, &(cpu_piece){source, 0, source->cols, k0, output, height, stride});
}

static void read_vector(builder *b, const dt_matrix *source, int row, int count, float *out) {
  for (int i = 0; i < count; i++) {
    float raw;
    memcpy(&raw, cpu_source_row(source, row + i), cpu_bytes_of(source->dtype));
    b->w->backend->kernels->widen(&raw, source->dtype, 1, out + i);
  }
}

static void add_vector(builder *b, const dt_matrix *source, float *out) {
  if (!source->data) return;
  for (int i = 0; i < source->rows; i++) {
    float value;
    read_vector(b, source, i, 1, &value);
    out[i] += value;
  }
}

static void put_bias_heads(builder *b, float *bias, const dt_matrix *source, int head_dim, int dim) {
  if (!source->data) return;
  for (int r = 0; r < source->rows; r++) read_vector(b, source, r, 1, bias + r / head_dim * dim + r % head_dim);
}

/* A vector of the model, NULL if it has none; room for a whole last sixteen. */
static float *take_vector(builder *b, const dt_matrix *source) {
  if (!source->data) return NULL;
  float *v = cpu_take(&b->w->weights_arena, (size_t)round_up(source->rows, 16) * sizeof *v);
  if (v) read_vector(b, source, 0, source->rows, v);
  return v;
}

/* A panel matrix of zeros for sources of these types: 16-bit if they all agree, else f32. */
static cpu_matrix take_matrix(builder *b, int outputs, int k, const dt_matrix *const *sources, int count) {
  cpu_matrix m = {.k = k, .panels = round_up(outputs, CPU_PANEL) / CPU_PANEL, .dtype = sources[0]->dtype};
  for (int i = 1; i < count; i++)
    if (sources[i]->dtype != m.dtype) m.dtype = DT_F32;
  size_t bytes = (size_t)m.panels * (size_t)k * CPU_PANEL * cpu_bytes_of(m.dtype);
  if (!b->desc->int8)
    m.data = cpu_take(&b->w->weights_arena, bytes);
  else if (b->w->weights_arena.base && !(m.data = calloc(1, bytes)))
    b->failed = true;
  m.bias = cpu_take(&b->w->weights_arena, (size_t)m.panels * CPU_PANEL * sizeof(float));
  return m;
}

/* A filled matrix as it stays: as it is, or with int8 weights. */
static cpu_matrix settle(builder *b, cpu_matrix m) {
  if (!b->desc->int8) return m;
  cpu_matrix rounded = m;
  rounded.scale = cpu_take(&b->w->weights_arena, (size_t)m.panels * CPU_PANEL * sizeof(float));
  rounded.data = cpu_take(&b->w->weights_arena, (size_t)m.panels * CPU_PANEL * (size_t)cpu_blocks(m.k) * CPU_BLOCK);
  if (m.data) cpu_round(b->w->backend, &m, &rounded);
  free(m.data);
  return rounded;
}

/* The sources of some matrices are copied: their pages need not stay in memory beside the copy. */
static void forget_sources(const builder *b) {
  if (b->w->weights_arena.base && b->desc->forget) b->desc->forget(b->desc->owner);
}

static cpu_matrix build_qkv(builder *b, const dt_layer *l) {
  const dt_weights *w = b->w;
  int head_dim = b->desc->head_dim, keys = w->heads * w->dim, values = keys + w->kv_heads * w->dim;
  cpu_matrix m =
      take_matrix(b, values + w->kv_heads * w->dim, w->hidden, (const dt_matrix *[]){&l->q, &l->k, &l->v}, 3);
  if (!m.data) return settle(b, m);
  put_rows(b, &m, &l->q, 0, head_dim, w->dim, 0);
  put_rows(b, &m, &l->k, keys, head_dim, w->dim, 0);
  put_rows(b, &m, &l->v, values, head_dim, w->dim, 0);
  put_bias_heads(b, m.bias, &l->q_bias, head_dim, w->dim);
  put_bias_heads(b, m.bias + keys, &l->k_bias, head_dim, w->dim);
  put_bias_heads(b, m.bias + values, &l->v_bias, head_dim, w->dim);
  return settle(b, m);
}

static cpu_matrix build_up(builder *b, const dt_layer *l) {
  const dt_weights *w = b->w;
  int inter = b->desc->inter;
  cpu_matrix m;
  if (!w->gated) {
    m = take_matrix(b, inter, w->hidden, (const dt_matrix *[]){&l->up}, 1);
    if (!m.data) return settle(b, m);
    put_rows(b, &m, &l->up, 0, inter, 0, 0);
    add_vector(b, &l->up_bias, m.bias);
    return settle(b, m);
  }
  m = take_matrix(b, 2 * round_up(inter, 16), w->hidden, (const dt_matrix *[]){&l->gate, &l->up}, 2);
  if (!m.data) return settle(b, m);
  put_rows(b, &m, &l->gate, 0, 16, CPU_PANEL, 0);
  put_rows(b, &m, &l->up, 16, 16, CPU_PANEL, 0);
  for (int r = 0; r < inter; r++) {
    int output = r / 16 * CPU_PANEL + r % 16;
    if (l->gate_bias.data) read_vector(b, &l->gate_bias, r, 1, m.bias + output);
    if (l->up_bias.data) read_vector(b, &l->up_bias, r, 1, m.bias + output + 16);
  }
  return settle(b, m);
}

/* The attention output's columns, head by head at their padded places. */
static void put_o(builder *b, cpu_matrix *m, const dt_layer *l) {
  int head_dim = b->desc->head_dim;
  for (int h = 0; h < b->w->heads; h++)
    cpu_pack(b->w->backend, m, &(cpu_piece){&l->o, h * head_dim, head_dim, h * b->w->dim, 0, l->o.rows, 0});
  add_vector(b, &l->o_bias, m->bias);
}

static void put_down(builder *b, cpu_matrix *m, const dt_layer *l, int k0) {
  put_rows(b, m, &l->down, 0, l->down.rows, 0, k0);
  add_vector(b, &l->down_bias, m->bias);
}

static void build_layer(builder *b, const dt_layer *l, cpu_layer *out) {
  dt_weights *w = b->w;
  int attention = w->heads * w->dim, inter = b->desc->inter;
  cpu_layer built = {take_vector(b, &l->norm1),
                     take_vector(b, &l->norm1_bias),
                     take_vector(b, &l->norm2),
                     take_vector(b, &l->norm2_bias),
                     build_qkv(b, l),
                     build_up(b, l),
                     {0},
                     {0}};
  if (w->parallel) {
    built.o = take_matrix(b, w->hidden, attention + inter, (const dt_matrix *[]){&l->o, &l->down}, 2);
    if (built.o.data) {
      put_o(b, &built.o, l);
      put_down(b, &built.o, l, attention);
    }
    built.o = settle(b, built.o);
  } else {
    built.o = take_matrix(b, w->hidden, attention, (const dt_matrix *[]){&l->o}, 1);
    built.down = take_matrix(b, w->hidden, inter, (const dt_matrix *[]){&l->down}, 1);
    if (built.o.data) {
      put_o(b, &built.o, l);
      put_down(b, &built.down, l, 0);
    }
    built.o = settle(b, built.o), built.down = settle(b, built.down);
  }
  if (out) *out = built;
  forget_sources(b);
}

static void build_model(builder *b) {
  dt_weights *w = b->w;
  const dt_model_desc *d = b->desc;
  w->layer = cpu_take(&w->weights_arena, (size_t)w->layers * sizeof *w->layer);
  for (int i = 0; i < w->layers; i++) build_layer(b, &d->layer[i], w->layer ? &w->layer[i] : NULL);
  w->final_norm = take_vector(b, &d->final_norm);
  w->final_norm_bias = take_vector(b, &d->final_norm_bias);

  size_t row = (size_t)w->hidden * cpu_bytes_of(d->embed.dtype);
  w->embed_dtype = d->embed.dtype;
  w->embed = cpu_take(&w->weights_arena, (size_t)w->vocab * row);
  w->unembed = take_matrix(b, w->vocab, w->hidden, (const dt_matrix *[]){&d->unembed}, 1);
  if (w->unembed.data) put_rows(b, &w->unembed, &d->unembed, 0, w->vocab, 0, 0);
  w->unembed = settle(b, w->unembed);
  forget_sources(b);
  int pairs = w->rotary_dims / 2;
  w->cosine = cpu_take(&w->weights_arena, (size_t)w->context * (size_t)pairs * sizeof(float));
  w->sine = cpu_take(&w->weights_arena, (size_t)w->context * (size_t)pairs * sizeof(float));
  if (!w->embed) return;
  for (int r = 0; r < w->vocab; r++) memcpy((char *)w->embed + (size_t)r * row, cpu_source_row(&d->embed, r), row);
  for (int p = 0; p < w->context; p++)
    for (int j = 0; j < pairs; j++) {
      double angle = (double)p * (double)d->inv_freq[j];
      w->cosine[(size_t)p * (size_t)pairs + (size_t)j] = (float)cos(angle);
      w->sine[(size_t)p * (size_t)pairs + (size_t)j] = (float)sin(angle);
    }
}

static void build_scratch(dt_weights *w, int inter, bool int8) {
  cpu_arena *a = &w->scratch_arena;
  size_t threads = (size_t)w->backend->threads;
  /* Sixteen numbers more, lest all rows of a power of two share the same few sets of the L1 cache. */
  w->ldx = (size_t)round_up(w->hidden, CPU_PANEL) + 16;
  w->ldqkv = (size_t)round_up((w->heads + 2 * w->kv_heads) * w->dim, CPU_PANEL);
  w->ldcat = (size_t)(w->heads * w->dim + round_up(inter, CPU_PANEL)) + 16;
  w->ldparts = (size_t)round_up((w->vocab + CPU_LOGIT_BLOCK - 1) / CPU_LOGIT_BLOCK, 16);
  w->x = cpu_take(a, CPU_ROWS * w->ldx * sizeof(float));
  w->normed = cpu_take(a, 2 * CPU_ROWS * w->ldx * sizeof(float));
  w->own = cpu_take(a, threads * 2 * CPU_OWN_NORMS * w->ldx * sizeof(float));
  w->qkv = cpu_take(a, CPU_ROWS * w->ldqkv * sizeof(float));
  w->cat = cpu_take(a, CPU_ROWS * w->ldcat * sizeof(float));
  w->sums = cpu_take(a, threads * CPU_ROWS * CPU_LOGIT_BLOCK * sizeof(float));
  w->top = cpu_take(a, threads * CPU_ROWS * sizeof(cpu_top));
  w->parts = cpu_take(a, CPU_ROWS * 3 * w->ldparts * sizeof(float));
  size_t most = w->ldcat > w->ldx ? w->ldcat : w->ldx;
  w->blocks = int8 ? CPU_ROWS * (size_t)cpu_blocks((int)most) : 0;
  w->rounded.q = cpu_take(a, threads * w->blocks * CPU_BLOCK);
  w->rounded.scale = cpu_take(a, threads * w->blocks * sizeof(float));
  w->rounded.offset = cpu_take(a, threads * w->blocks * sizeof(int32_t));
  w->ldlogits = (size_t)round_up(w->vocab, 16);
  w->logits = cpu_take(a, CPU_ROWS * w->ldlogits * sizeof(float));
  w->weight = cpu_take(a, threads * w->ldlogits * sizeof(uint32_t));
}

dt_status cpu_upload(dt_backend *backend, const dt_model_desc *d, dt_weights **out, dt_error *err) {
  dt_status status = check_model(d, err);
  if (status != DT_OK) return status;
  dt_weights *w = calloc(1, sizeof *w);
  if (!w) return dt_fail_memory(err, "a model", sizeof *w);
  w->backend = backend;
  w->vocab = d->vocab, w->hidden = d->hidden, w->layers = d->layers, w->heads = d->heads, w->kv_heads = d->kv_heads;
  w->context = d->context, w->rotary_dims = d->rotary_dims;
  w->dim = round_up(d->head_dim, 16);
  w->scale = (float)(1.0 / sqrt((double)d->head_dim));
  w->norm_eps = d->norm_eps, w->norm = d->norm, w->act = d->act;
  w->parallel = d->parallel_residual;
  w->gated = d->layer[0].gate.data != NULL;

  builder b = {.w = w, .desc = d};
  build_model(&b); /* measures */
  build_scratch(w, d->inter, d->int8);
  status = cpu_arena_open(&w->weights_arena, "the weights", backend->threads, &backend->memory.weights, err);
  if (status == DT_OK)
    status = cpu_arena_open(&w->scratch_arena, "scratch", backend->threads, &backend->memory.scratch, err);
  if (status == DT_OK) {
    build_model(&b);
    build_scratch(w, d->inter, d->int8);
    if (b.failed) status = dt_fail_memory(err, "rounding weights", w->weights_arena.size);
  }
  if (status == DT_OK)
    *out = w;
  else
    cpu_free_weights(w);
  return status;
}

void cpu_free_weights(dt_weights *w) {
  if (!w) return;
  cpu_arena_close(&w->weights_arena, &w->backend->memory.weights);
  cpu_arena_close(&w->scratch_arena, &w->backend->memory.scratch);
  free(w);
}
