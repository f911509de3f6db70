/* Small models in memory with random weights and any shape, for tests of backends. */
#ifndef RANDOM_MODEL_H
#define RANDOM_MODEL_H

#include "backend/backend.h"
#include "random_block.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
  const char *name;
  int vocab, hidden, layers, heads, kv_heads, head_dim, inter, rotary_dims;
  dt_dtype dtype;
  dt_norm_kind norm;
  dt_act_kind act;
  bool parallel, gated, biased, interleaved; /* interleaved: q, k and v rows of a head are adjacent, as in GPT-NeoX */
  bool biased_qkv, normed_heads;
} model_shape;

enum { RANDOM_CONTEXT = 1024, RANDOM_LAYERS = 4, RANDOM_EXPERTS = 7 };

/* Awkward on purpose: no size is a multiple of the parts into which it is divided, and every option of a layer is
 * used. */
static const model_shape random_shapes[] = {
    {"neox f16, head 80/20", 1031, 240, 2, 3, 3, 80, 501, 20, DT_F16, DT_NORM_LAYER, DT_ACT_GELU_ERF, true, false, true,
     true, false, false},
    {"sequential bf16, head 24", 515, 72, 2, 3, 3, 24, 130, 6, DT_BF16, DT_NORM_LAYER, DT_ACT_GELU_TANH, false, false,
     true, false, false, false},
    {"llama f32, gated, grouped", 300, 100, 2, 4, 2, 32, 90, 32, DT_F32, DT_NORM_RMS, DT_ACT_SILU, false, true, false,
     false, false, false},
    {"no rotary f16, gated, parallel", 97, 64, 1, 4, 1, 16, 70, 0, DT_F16, DT_NORM_RMS, DT_ACT_SILU, true, true, true,
     false, false, false},
    {"qwen2 f16, 7 heads a group, biased q, k, v", 203, 84, 2, 14, 2, 16, 100, 16, DT_F16, DT_NORM_RMS, DT_ACT_SILU,
     false, true, false, false, true, false},
    {"qwen3 bf16, 3 heads a group, of a size of their own, normed", 331, 100, 2, 9, 3, 40, 70, 40, DT_BF16, DT_NORM_RMS,
     DT_ACT_SILU, false, true, false, false, false, true},
    {"llama q4_1, last cell of two blocks", 130, 320, 2, 5, 1, 64, 576, 64, DT_Q4_1, DT_NORM_RMS, DT_ACT_SILU, false,
     true, false, false, false, false},
    {"qwen2 q4_k and q6_k", 300, 512, 2, 8, 2, 64, 768, 64, DT_Q4_K, DT_NORM_RMS, DT_ACT_SILU, false, true, false,
     false, true, false},
    {"neox q8_0, parallel", 200, 96, 2, 3, 3, 32, 160, 8, DT_Q8_0, DT_NORM_LAYER, DT_ACT_GELU_ERF, true, false, true,
     false, false, false},
    {"llama iq4_xs and q3_k", 300, 512, 2, 8, 2, 64, 768, 64, DT_IQ4_XS, DT_NORM_RMS, DT_ACT_SILU, false, true, false,
     false, false, false},
    {"llama mxfp4 and iq4_nl", 130, 320, 2, 5, 1, 64, 576, 64, DT_MXFP4, DT_NORM_RMS, DT_ACT_SILU, false, true, false,
     false, false, false},
    {"qwen2 q2_k", 300, 256, 2, 4, 2, 64, 512, 64, DT_Q2_K, DT_NORM_RMS, DT_ACT_SILU, false, true, false, false, true,
     false},
};
enum { RANDOM_SHAPES = sizeof random_shapes / sizeof *random_shapes, PLAIN_SHAPES = 6 /* the rest is quantized */ };

typedef struct {
  dt_model_desc desc;
  dt_layer layer[RANDOM_LAYERS];
  dt_expert expert[RANDOM_LAYERS][RANDOM_EXPERTS];
  float inv_freq[64];
  dt_source owned[RANDOM_LAYERS * 32 + 8]; /* each has the numbers of one matrix */
  int count;
  uint64_t state;
  dt_dtype dtype;
} random_model;

/* Writes a block of random bytes whose numbers are about as large as `size`. */
static inline void put_random_block(random_model *m, dt_dtype dtype, float size, char *block) {
  for (int i = 0; i < dt_type_of(dtype)->bytes; i++) block[i] = (char)random_next(&m->state);
  scale_block(dtype, size, block);
}

static inline dt_matrix random_in(random_model *m, dt_dtype dtype, int rows, int cols, float size, float offset) {
  const dt_type *t = dt_type_of(dtype);
  size_t n = (size_t)rows * (size_t)cols, bytes = n / (size_t)t->numbers * (size_t)t->bytes;
  char *data = malloc(bytes);
  for (size_t at = 0; at < bytes; at += (size_t)t->bytes) {
    float x = offset + size * ((float)(random_next(&m->state) & 0xffff) / 32768.0f - 1.0f);
    if (t->numbers > 1)
      put_random_block(m, dtype, size, data + at);
    else
      put_random(dtype, x, data + at);
  }
  dt_source *source = &m->owned[m->count++];
  *source = source_of_memory("random", data, bytes);
  return (dt_matrix){.source = source, .dtype = dtype, .rows = rows, .cols = cols, .group = rows, .stride = rows};
}

/* A random matrix. The vectors of a quantized model have 32 bits. */
static inline dt_matrix random_matrix(random_model *m, int rows, int cols, float size, float offset) {
  bool quantized = dt_type_of(m->dtype)->numbers > 1;
  return random_in(m, quantized && cols == 1 ? DT_F32 : m->dtype, rows, cols, size, offset);
}

/* A matrix of a kind for which files of Q4_K use Q6_K. Mixtures of other types do not occur in files. */
static inline dt_matrix random_finer(random_model *m, int rows, int cols, float size) {
  dt_dtype of = m->dtype;
  dt_dtype finer = of == DT_Q4_K ? DT_Q6_K : of == DT_IQ4_XS ? DT_Q3_K : of == DT_MXFP4 ? DT_IQ4_NL : of;
  return random_in(m, finer, rows, cols, size, 0.0f);
}

static inline random_model *random_model_new(const model_shape *s, uint64_t seed) {
  random_model *m = calloc(1, sizeof *m);
  m->state = seed;
  m->dtype = s->dtype;
  int a = s->heads * s->head_dim, g = s->kv_heads * s->head_dim, h = s->hidden;
  for (int j = 0; j < s->rotary_dims / 2; j++) m->inv_freq[j] = (float)pow(10000.0, -2.0 * j / s->rotary_dims);
  for (int i = 0; i < s->layers; i++) {
    dt_layer *l = &m->layer[i];
    l->norm1 = random_matrix(m, h, 1, 0.3f, 1.0f), l->norm2 = random_matrix(m, h, 1, 0.3f, 1.0f);
    if (s->interleaved) { /* one matrix with three views */
      dt_matrix all = random_matrix(m, 3 * a, h, 0.2f, 0.0f), bias = random_matrix(m, 3 * a, 1, 0.2f, 0.0f);
      dt_matrix *part[3] = {&l->q, &l->k, &l->v}, *part_bias[3] = {&l->q_bias, &l->k_bias, &l->v_bias};
      for (int p = 0; p < 3; p++) {
        *part[p] = all, *part_bias[p] = bias;
        part[p]->offset = (uint64_t)(p * s->head_dim) * dt_row_bytes(s->dtype, (size_t)h);
        part_bias[p]->offset = (uint64_t)(p * s->head_dim) * dt_row_bytes(s->dtype, 1);
        part[p]->rows = part_bias[p]->rows = a;
        part[p]->group = part_bias[p]->group = s->head_dim;
        part[p]->stride = part_bias[p]->stride = 3 * s->head_dim;
      }
    } else {
      l->q = random_matrix(m, a, h, 0.2f, 0.0f), l->k = random_matrix(m, g, h, 0.2f, 0.0f);
      l->v = random_finer(m, g, h, 0.2f);
    }
    if (s->biased_qkv) {
      l->q_bias = random_matrix(m, a, 1, 0.2f, 0.0f), l->k_bias = random_matrix(m, g, 1, 0.2f, 0.0f);
      l->v_bias = random_matrix(m, g, 1, 0.2f, 0.0f);
    }
    if (s->normed_heads) {
      l->q_norm = random_matrix(m, s->head_dim, 1, 0.3f, 1.0f);
      l->k_norm = random_matrix(m, s->head_dim, 1, 0.3f, 1.0f);
    }
    l->o = random_matrix(m, h, a, 0.1f, 0.0f);
    l->up = random_matrix(m, s->inter, h, 0.1f, 0.0f), l->down = random_finer(m, h, s->inter, 0.1f);
    if (s->gated) l->gate = random_matrix(m, s->inter, h, 0.1f, 0.0f);
    if (!s->biased) continue;
    l->norm1_bias = random_matrix(m, h, 1, 0.1f, 0.0f), l->norm2_bias = random_matrix(m, h, 1, 0.1f, 0.0f);
    l->o_bias = random_matrix(m, h, 1, 0.1f, 0.0f), l->down_bias = random_matrix(m, h, 1, 0.1f, 0.0f);
    l->up_bias = random_matrix(m, s->inter, 1, 0.1f, 0.0f);
    if (s->gated) l->gate_bias = random_matrix(m, s->inter, 1, 0.1f, 0.0f);
  }
  m->desc = (dt_model_desc){.shape = {.vocab = s->vocab,
                                      .hidden = h,
                                      .layers = s->layers,
                                      .heads = s->heads,
                                      .kv_heads = s->kv_heads,
                                      .head_dim = s->head_dim,
                                      .inter = s->inter,
                                      .context = RANDOM_CONTEXT,
                                      .rotary_dims = s->rotary_dims,
                                      .norm_eps = 1e-5f,
                                      .norm = s->norm,
                                      .act = s->act,
                                      .parallel_residual = s->parallel,
                                      .gated = s->gated},
                            .inv_freq = m->inv_freq,
                            .layer = m->layer};
  m->desc.embed = random_matrix(m, s->vocab, h, 1.0f, 0.0f);
  m->desc.final_norm = random_matrix(m, h, 1, 0.3f, 1.0f);
  if (s->biased) m->desc.final_norm_bias = random_matrix(m, h, 1, 0.1f, 0.0f);
  m->desc.unembed = random_finer(m, s->vocab, h, 0.2f);
  return m;
}

static inline void random_model_free(random_model *m) {
  for (int i = 0; i < m->count; i++) free((void *)m->owned[i].bytes);
  free(m);
}

#endif
