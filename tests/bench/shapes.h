/* Models of known shapes without files, for benchmarks of passes. All matrices are views of the same random numbers or
 * blocks. */
#ifndef BENCH_SHAPES_H
#define BENCH_SHAPES_H

#include "../unit/random_block.h"
#include "backend/backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHAPE_LAYERS = 32, SHAPE_PAIRS = 64 };

static const struct {
  const char *name;
  int layers, hidden, heads, kv_heads, inter, vocab;
  bool llama; /* true: a gate, RMS norms, a sequential residual, no biases; false: GPT-NeoX */
} bench_shapes[] = {{"tiny", 2, 256, 4, 2, 256, 300, true}, /* for rehearsals */
                    {"pythia-70m", 6, 512, 8, 8, 2048, 50304, false},
                    {"pythia-410m", 24, 1024, 16, 16, 4096, 50304, false},
                    {"pythia-1b", 16, 2048, 8, 8, 8192, 50304, false},
                    {"pythia-2.8b", 32, 2560, 32, 32, 10240, 50304, false},
                    {"pythia-6.9b", 32, 4096, 32, 32, 16384, 50432, false},
                    {"smollm2-135m", 30, 576, 9, 3, 1536, 49152, true},
                    {"qwen2.5-0.5b", 24, 896, 14, 2, 4864, 151936, true},
                    {"qwen2.5-1.5b", 28, 1536, 12, 2, 8960, 151936, true},
                    {"llama-3.2-1b", 16, 2048, 32, 8, 8192, 128256, true},
                    {"llama-3.1-8b", 32, 4096, 32, 8, 14336, 128256, true}};

typedef struct {
  dt_model_desc desc;
  dt_layer layer[SHAPE_LAYERS];
  float inv_freq[SHAPE_PAIRS];
  uint16_t *numbers, *ones;
  char *blocks;
  dt_source number_source, one_source, block_source;
} shape_model;

static inline void shape_model_free(shape_model *m) { free(m->numbers), free(m->ones), free(m->blocks), free(m); }

static inline dt_matrix shape_matrix(const dt_source *source, int rows, int cols) {
  return (dt_matrix){.source = source, .dtype = DT_F16, .rows = rows, .cols = cols, .group = rows, .stride = rows};
}

/* The first rows of a matrix. */
static inline dt_matrix shape_few_rows(dt_matrix m, int rows) {
  m.rows = m.group = m.stride = rows;
  return m;
}

/* Makes blocks of random bytes. Returns false if memory does not suffice. */
static inline bool shape_blocks(shape_model *m, dt_dtype dtype, size_t count) {
  size_t bytes = dt_row_bytes(dtype, count), block = (size_t)dt_type_of(dtype)->bytes;
  if (!(m->blocks = malloc(bytes))) return false;
  uint64_t state = 2;
  for (size_t i = 0; i < bytes; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    m->blocks[i] = (char)(state >> 33);
  }
  for (size_t at = 0; at < bytes; at += block) scale_block(dtype, 0.015f, m->blocks + at);
  m->block_source = source_of_memory(dt_type_of(dtype)->name, m->blocks, bytes);
  return true;
}

/* Gives matrices another type than F16; vectors keep theirs. */
static inline void shape_in_blocks(shape_model *m, dt_dtype dtype) {
  dt_matrix *whole[] = {&m->desc.embed, &m->desc.unembed};
  for (int i = 0; i < 2; i++) whole[i]->source = &m->block_source, whole[i]->dtype = dtype;
  for (int l = 0; l < m->desc.shape.layers; l++) {
    dt_layer *y = &m->layer[l];
    dt_matrix *all[] = {&y->q, &y->k, &y->v, &y->o, &y->up, &y->gate, &y->down};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
      if (all[i]->source) all[i]->source = &m->block_source, all[i]->dtype = dtype;
  }
}

/* The model of that name, with matrices of this type; its sizes must be whole blocks of the type. Free it with
 * shape_model_free. Returns NULL if there is no such shape, or memory does not suffice. */
static inline shape_model *shape_model_new(const char *name, dt_dtype dtype) {
  size_t s = 0, count = sizeof bench_shapes / sizeof *bench_shapes;
  while (s < count && strcmp(bench_shapes[s].name, name)) s++;
  if (s == count) return NULL;
  int H = bench_shapes[s].hidden, V = bench_shapes[s].vocab, heads = bench_shapes[s].heads;
  int dim = H / heads, inter = bench_shapes[s].inter, keys = bench_shapes[s].kv_heads * dim;
  bool llama = bench_shapes[s].llama;
  int rotary = llama ? dim : dim / 4;
  size_t most = (size_t)V * (size_t)H; /* the embeddings are the largest */
  shape_model *m = calloc(1, sizeof *m);
  if (!m) return NULL;
  m->numbers = malloc(most * sizeof *m->numbers), m->ones = malloc((size_t)inter * sizeof *m->ones);
  if (!m->numbers || !m->ones) return free(m->numbers), free(m->ones), free(m), NULL;
  uint64_t state = 1;
  for (size_t i = 0; i < most; i++) { /* 2^-7 to 2^-6, with both signs */
    state = state * 6364136223846793005u + 1442695040888963407u;
    m->numbers[i] = (uint16_t)((state >> 33 & 0x83ff) | 0x2000);
  }
  for (int i = 0; i < inter; i++) m->ones[i] = 0x3c00;
  m->number_source = source_of_memory(name, m->numbers, most * sizeof *m->numbers);
  m->one_source = source_of_memory(name, m->ones, (size_t)inter * sizeof *m->ones);
  m->desc = (dt_model_desc){.shape = {.vocab = V,
                                      .hidden = H,
                                      .layers = bench_shapes[s].layers,
                                      .heads = heads,
                                      .kv_heads = bench_shapes[s].kv_heads,
                                      .head_dim = dim,
                                      .inter = inter,
                                      .context = 2048,
                                      .rotary_dims = rotary,
                                      .norm_eps = 1e-5f,
                                      .norm = llama ? DT_NORM_RMS : DT_NORM_LAYER,
                                      .act = llama ? DT_ACT_SILU : DT_ACT_GELU_ERF,
                                      .parallel_residual = !llama,
                                      .gated = llama},
                            .inv_freq = m->inv_freq,
                            .layer = m->layer,
                            .embed = shape_matrix(&m->number_source, V, H),
                            .unembed = shape_matrix(&m->number_source, V, H),
                            .final_norm = shape_matrix(&m->one_source, H, 1)};
  for (int j = 0; j < rotary / 2; j++) m->inv_freq[j] = (float)pow(10000, -2.0 * j / rotary);
  dt_matrix norm = shape_matrix(&m->one_source, H, 1), bias = {0}, inner_bias = {0}, gate = {0};
  dt_matrix square = shape_matrix(&m->number_source, H, H), key = shape_matrix(&m->number_source, keys, H);
  dt_matrix up = shape_matrix(&m->number_source, inter, H);
  if (llama)
    gate = up;
  else
    bias = shape_matrix(&m->number_source, H, 1), inner_bias = shape_matrix(&m->number_source, inter, 1);
  m->desc.final_norm_bias = bias;
  for (int i = 0; i < m->desc.shape.layers; i++)
    m->layer[i] = (dt_layer){.norm1 = norm,
                             .norm1_bias = bias,
                             .norm2 = norm,
                             .norm2_bias = bias,
                             .q = square,
                             .k = key,
                             .v = key,
                             .q_bias = bias,
                             .k_bias = bias,
                             .v_bias = bias,
                             .o = square,
                             .o_bias = bias,
                             .gate = gate,
                             .up = up,
                             .up_bias = inner_bias,
                             .down = shape_matrix(&m->number_source, H, inter),
                             .down_bias = bias};
  if (dtype == DT_F16) return m;
  if (H % dt_type_of(dtype)->numbers || inter % dt_type_of(dtype)->numbers || !shape_blocks(m, dtype, most))
    return shape_model_free(m), NULL;
  shape_in_blocks(m, dtype);
  return m;
}

#endif
