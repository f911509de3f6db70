/* Small models of random weights in memory, of any shape, for the tests of backends. */
#ifndef RANDOM_MODEL_H
#define RANDOM_MODEL_H

#include "backend.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
  const char *name;
  int vocab, hidden, layers, heads, kv_heads, head_dim, inter, rotary_dims;
  dt_dtype dtype;
  dt_norm_kind norm;
  dt_act_kind act;
  bool parallel, gated, biased, interleaved; /* interleaved: q, k and v rows of a head lie together, as in GPT-NeoX */
} model_shape;

enum { RANDOM_CONTEXT = 1024, RANDOM_LAYERS = 4 };

/* Awkward on purpose: nothing is a multiple of what it is cut into, and every switch of the layer is used. */
static const model_shape random_shapes[] = {
    {"neox f16, head 80/20", 1031, 240, 2, 3, 3, 80, 501, 20, DT_F16, DT_NORM_LAYER, DT_ACT_GELU_ERF, true, false, true,
     true},
    {"sequential bf16, head 24", 515, 72, 2, 3, 3, 24, 130, 6, DT_BF16, DT_NORM_LAYER, DT_ACT_GELU_TANH, false, false,
     true, false},
    {"llama f32, gated, grouped", 300, 100, 2, 4, 2, 32, 90, 32, DT_F32, DT_NORM_RMS, DT_ACT_SILU, false, true, false,
     false},
    {"no rotary f16, gated, parallel", 97, 64, 1, 4, 1, 16, 70, 0, DT_F16, DT_NORM_RMS, DT_ACT_SILU, true, true, true,
     false},
};
enum { RANDOM_SHAPES = sizeof random_shapes / sizeof *random_shapes };

typedef struct {
  dt_model_desc desc;
  dt_layer layer[RANDOM_LAYERS];
  float inv_freq[64];
  void *owned[RANDOM_LAYERS * 24 + 8];
  int count;
  uint64_t state;
  dt_dtype dtype;
} random_model;

static inline dt_matrix random_matrix(random_model *m, int rows, int cols, float size, float offset) {
  size_t n = (size_t)rows * (size_t)cols;
  char *data = malloc(n * 4);
  m->owned[m->count++] = data;
  for (size_t i = 0; i < n; i++) {
    float x = offset + size * ((float)(random_next(&m->state) & 0xffff) / 32768.0f - 1.0f);
    uint32_t bits;
    uint16_t half;
    memcpy(&bits, &x, 4);
    switch (m->dtype) {
    case DT_F32: memcpy(data + 4 * i, &x, 4); break;
    case DT_BF16: half = (uint16_t)(bits >> 16), memcpy(data + 2 * i, &half, 2); break;
    case DT_F16: /* cut to 10 bits of fraction; too small a number becomes zero */
      half = (uint16_t)((bits >> 16 & 0x8000) |
                        ((bits & 0x7fffffff) < 0x38800000 ? 0 : ((bits >> 13) & 0x3ffff) - 0x1c000));
      memcpy(data + 2 * i, &half, 2);
      break;
    }
  }
  return (dt_matrix){data, m->dtype, rows, cols, rows, rows};
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
    if (s->interleaved) { /* one matrix, seen three ways */
      dt_matrix all = random_matrix(m, 3 * a, h, 0.2f, 0.0f), bias = random_matrix(m, 3 * a, 1, 0.2f, 0.0f);
      dt_matrix *part[3] = {&l->q, &l->k, &l->v}, *part_bias[3] = {&l->q_bias, &l->k_bias, &l->v_bias};
      size_t element = s->dtype == DT_F32 ? 4 : 2;
      for (int p = 0; p < 3; p++) {
        const char *from = (const char *)all.data + (size_t)(p * s->head_dim * h) * element;
        const char *bias_from = (const char *)bias.data + (size_t)(p * s->head_dim) * element;
        *part[p] = (dt_matrix){from, s->dtype, a, h, s->head_dim, 3 * s->head_dim};
        *part_bias[p] = (dt_matrix){bias_from, s->dtype, a, 1, s->head_dim, 3 * s->head_dim};
      }
    } else {
      l->q = random_matrix(m, a, h, 0.2f, 0.0f), l->k = random_matrix(m, g, h, 0.2f, 0.0f);
      l->v = random_matrix(m, g, h, 0.2f, 0.0f);
    }
    l->o = random_matrix(m, h, a, 0.1f, 0.0f);
    l->up = random_matrix(m, s->inter, h, 0.1f, 0.0f), l->down = random_matrix(m, h, s->inter, 0.1f, 0.0f);
    if (s->gated) l->gate = random_matrix(m, s->inter, h, 0.1f, 0.0f);
    if (!s->biased) continue;
    l->norm1_bias = random_matrix(m, h, 1, 0.1f, 0.0f), l->norm2_bias = random_matrix(m, h, 1, 0.1f, 0.0f);
    l->o_bias = random_matrix(m, h, 1, 0.1f, 0.0f), l->down_bias = random_matrix(m, h, 1, 0.1f, 0.0f);
    l->up_bias = random_matrix(m, s->inter, 1, 0.1f, 0.0f);
    if (s->gated) l->gate_bias = random_matrix(m, s->inter, 1, 0.1f, 0.0f);
  }
  m->desc = (dt_model_desc){.vocab = s->vocab,
                            .hidden = h,
                            .layers = s->layers,
                            .heads = s->heads,
                            .kv_heads = s->kv_heads,
                            .head_dim = s->head_dim,
                            .inter = s->inter,
                            .context = RANDOM_CONTEXT,
                            .rotary_dims = s->rotary_dims,
                            .inv_freq = m->inv_freq,
                            .norm_eps = 1e-5f,
                            .norm = s->norm,
                            .act = s->act,
                            .parallel_residual = s->parallel,
                            .layer = m->layer};
  m->desc.embed = random_matrix(m, s->vocab, h, 1.0f, 0.0f);
  m->desc.final_norm = random_matrix(m, h, 1, 0.3f, 1.0f);
  if (s->biased) m->desc.final_norm_bias = random_matrix(m, h, 1, 0.1f, 0.0f);
  m->desc.unembed = random_matrix(m, s->vocab, h, 0.2f, 0.0f);
  return m;
}

static inline void random_model_free(random_model *m) {
  for (int i = 0; i < m->count; i++) free(m->owned[i]);
  free(m);
}

#endif
