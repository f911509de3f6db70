/* Models of known shapes without files, for benchmarks of passes: every matrix is a view of the same random numbers. */
#ifndef BENCH_SHAPES_H
#define BENCH_SHAPES_H

#include "backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHAPE_LAYERS = 32, SHAPE_PAIRS = 64 };

static const struct {
  const char *name;
  int layers, hidden, heads, vocab;
} bench_shapes[] = {{"pythia-70m", 6, 512, 8, 50304},
                    {"pythia-410m", 24, 1024, 16, 50304},
                    {"pythia-1b", 16, 2048, 8, 50304},
                    {"pythia-2.8b", 32, 2560, 32, 50304},
                    {"pythia-6.9b", 32, 4096, 32, 50432}};

typedef struct {
  dt_model_desc desc;
  dt_layer layer[SHAPE_LAYERS];
  float inv_freq[SHAPE_PAIRS];
  uint16_t *numbers, *ones;
} shape_model;

static inline dt_matrix shape_matrix(const uint16_t *data, int rows, int cols) {
  return (dt_matrix){data, DT_F16, rows, cols, rows, rows};
}

/* The model of that name, to be freed as a whole with its two arrays; NULL: there is no such shape, or no memory. */
static inline shape_model *shape_model_new(const char *name) {
  size_t s = 0, count = sizeof bench_shapes / sizeof *bench_shapes;
  while (s < count && strcmp(bench_shapes[s].name, name)) s++;
  if (s == count) return NULL;
  int H = bench_shapes[s].hidden, V = bench_shapes[s].vocab, heads = bench_shapes[s].heads;
  int dim = H / heads, inter = 4 * H;
  size_t most = (size_t)V * (size_t)H; /* the embeddings are the largest */
  shape_model *m = calloc(1, sizeof *m);
  if (!m) return NULL;
  m->numbers = malloc(most * sizeof *m->numbers), m->ones = malloc((size_t)inter * sizeof *m->ones);
  if (!m->numbers || !m->ones) return free(m->numbers), free(m->ones), free(m), NULL;
  uint64_t state = 1;
  for (size_t i = 0; i < most; i++) { /* 2^-7 to 2^-6, of both signs */
    state = state * 6364136223846793005u + 1442695040888963407u;
    m->numbers[i] = (uint16_t)((state >> 33 & 0x83ff) | 0x2000);
  }
  for (int i = 0; i < inter; i++) m->ones[i] = 0x3c00;
  m->desc = (dt_model_desc){.vocab = V,
                            .hidden = H,
                            .layers = bench_shapes[s].layers,
                            .heads = heads,
                            .kv_heads = heads,
                            .head_dim = dim,
                            .inter = inter,
                            .context = 2048,
                            .rotary_dims = dim / 4,
                            .inv_freq = m->inv_freq,
                            .norm_eps = 1e-5f,
                            .norm = DT_NORM_LAYER,
                            .act = DT_ACT_GELU_ERF,
                            .parallel_residual = true,
                            .layer = m->layer,
                            .embed = shape_matrix(m->numbers, V, H),
                            .unembed = shape_matrix(m->numbers, V, H),
                            .final_norm = shape_matrix(m->ones, H, 1),
                            .final_norm_bias = shape_matrix(m->numbers, H, 1)};
  for (int j = 0; j < dim / 8; j++) m->inv_freq[j] = (float)pow(10000, -8.0 * j / dim);
  dt_matrix norm = shape_matrix(m->ones, H, 1), bias = shape_matrix(m->numbers, H, 1);
  dt_matrix square = shape_matrix(m->numbers, H, H);
  for (int i = 0; i < m->desc.layers; i++)
    m->layer[i] = (dt_layer){.norm1 = norm,
                             .norm1_bias = bias,
                             .norm2 = norm,
                             .norm2_bias = bias,
                             .q = square,
                             .k = square,
                             .v = square,
                             .q_bias = bias,
                             .k_bias = bias,
                             .v_bias = bias,
                             .o = square,
                             .o_bias = bias,
                             .up = shape_matrix(m->numbers, inter, H),
                             .up_bias = shape_matrix(m->numbers, inter, 1),
                             .down = shape_matrix(m->numbers, H, inter),
                             .down_bias = bias};
  return m;
}

static inline void shape_model_free(shape_model *m) { free(m->numbers), free(m->ones), free(m); }

#endif
