/* Random models with the parts of a layer that most families do not have: windows, norms after the blocks, scales,
 * caps, experts. */
#ifndef RANDOM_PARTS_H
#define RANDOM_PARTS_H

#include "random_model.h"

static inline void random_norms_behind(random_model *m, dt_layer *l) {
  int h = m->desc.shape.hidden;
  l->o_norm = random_matrix(m, h, 1, 0.3f, 1.0f), l->down_norm = random_matrix(m, h, 1, 0.3f, 1.0f);
}

/* Parts of Gemma: norms before and after a block, two rotations, caps, a window in every second layer. */
static inline void random_gemma(random_model *m) {
  static const float local_freq[64] = {1, 0.7f, 0.4f, 0.2f, 0.1f};
  dt_shape *s = &m->desc.shape;
  m->desc.local_freq = local_freq;
  s->embed_scale = 3, s->attention_scale = 0.3f, s->turn_scale = 1.1f, s->score_cap = 2, s->logit_cap = 1.5f;
  for (int i = 0; i < s->layers; i++) random_norms_behind(m, &m->layer[i]);
  m->layer[0].window = 7;
}

/* Parts of OLMo: norms only after the blocks, and norms over all heads together. Also Granite's scales, a layer without
 * rotation, and a window longer than a block of sixteen keys. */
static inline void random_olmo(random_model *m) {
  dt_shape *s = &m->desc.shape;
  s->wide_norms = true, s->residual_scale = 0.5f, s->logit_scale = 0.25f;
  for (int i = 0; i < s->layers; i++) {
    dt_layer *l = &m->layer[i];
    random_norms_behind(m, l);
    l->norm1 = l->norm2 = (dt_matrix){0};
    l->q_norm = random_matrix(m, s->heads * s->head_dim, 1, 0.3f, 1.0f);
    l->k_norm = random_matrix(m, s->kv_heads * s->head_dim, 1, 0.3f, 1.0f);
  }
  m->layer[0].window = 37, m->layer[1].still = true;
}

/* Parts of gpt-oss without experts: sinks, a clamped activation, and a window longer than a block of 128 keys. */
static inline void random_sinks(random_model *m) {
  dt_shape *s = &m->desc.shape;
  s->act = DT_ACT_CLAMPED;
  m->layer[0].window = 150;
  for (int i = 0; i < s->layers; i++) m->layer[i].sinks = random_matrix(m, s->heads, 1, 3.0f, 0.0f);
}

/* Gives a layer its own sizes; it has its own keys if `keys_of` is 0. */
static inline void random_sizes(random_model *m, dt_layer *l, int kv_heads, int head_dim, int inter, int keys_of) {
  l->kv_heads = kv_heads, l->head_dim = head_dim, l->inter = inter, l->keys_of = keys_of;
  const dt_shape s = dt_shape_of(&m->desc.shape, l);
  int h = s.hidden, keys = s.kv_heads * s.head_dim;
  l->q = random_matrix(m, s.heads * s.head_dim, h, 0.2f, 0.0f),
  l->o = random_matrix(m, h, s.heads * s.head_dim, 0.1f, 0);
  l->k = l->v = l->k_norm = (dt_matrix){0};
  if (!keys_of) {
    l->k = random_matrix(m, keys, h, 0.2f, 0.0f), l->v = random_matrix(m, keys, h, 0.2f, 0.0f);
    l->k_norm = random_matrix(m, s.head_dim, 1, 0.3f, 1.0f);
  }
  l->q_norm = random_matrix(m, s.head_dim, 1, 0.3f, 1.0f);
  l->gate = random_matrix(m, s.inter, h, 0.1f, 0.0f), l->up = random_matrix(m, s.inter, h, 0.1f, 0.0f);
  l->down = random_matrix(m, h, s.inter, 0.1f, 0.0f);
}

/* Parts of Gemma 4: layers whose heads and MLPs have several sizes, two layers that read the keys of others, normalized
 * values, keys that are also the values, and for every layer inputs and a scale. */
static inline random_model *random_gemma4(dt_dtype dtype, uint64_t seed) {
  enum { INPUTS = 20 };
  static const float local_freq[12] = {1, 0.7f, 0.4f, 0.2f, 0.1f};
  model_shape shape = random_shapes[5];
  shape.layers = RANDOM_LAYERS, shape.dtype = dtype;
  random_model *m = random_model_new(&shape, seed);
  dt_shape *s = &m->desc.shape;
  m->desc.local_freq = local_freq;
  s->local_dims = 24, s->normed_values = true, s->attention_scale = 0.3f, s->inputs = INPUTS;
  m->layer[0].window = 7, m->layer[2].window = 37;
  random_sizes(m, &m->layer[0], 1, 24, 0, 0);
  m->layer[1].v = m->layer[1].k;
  random_sizes(m, &m->layer[2], 1, 24, 33, 1);
  random_sizes(m, &m->layer[3], 0, 0, 0, 2);
  for (int i = 0; i < s->layers; i++) {
    dt_layer *l = &m->layer[i];
    random_norms_behind(m, l);
    l->input_gate = random_matrix(m, INPUTS, s->hidden, 0.2f, 0.0f);
    l->input_out = random_matrix(m, s->hidden, INPUTS, 0.2f, 0.0f);
    l->input_norm = random_matrix(m, s->hidden, 1, 0.3f, 1.0f);
    l->scale = random_matrix(m, 1, 1, 0.3f, 1.0f);
  }
  m->desc.inputs_embed = random_matrix(m, s->vocab, s->layers * INPUTS, 0.3f, 0.0f);
  m->desc.inputs_proj = random_matrix(m, s->layers * INPUTS, s->hidden, 0.2f, 0.0f);
  m->desc.inputs_norm = random_matrix(m, INPUTS, 1, 0.3f, 1.0f);
  return m;
}

/* Adds experts of `inter` numbers, three of which a row chooses, to the layers first, first + 1, .. They replace the
 * MLPs or, with `dense`, run in addition to them. */
static inline void random_experts(random_model *m, int first, int inter, bool chosen_only, bool dense) {
  dt_shape *s = &m->desc.shape;
  const int n = RANDOM_EXPERTS, h = s->hidden;
  s->experts = n, s->chosen = 3, s->expert_inter = inter, s->chosen_only = chosen_only;
  for (int i = first; i < s->layers; i++) {
    dt_layer *l = &m->layer[i];
    dt_matrix gate = random_matrix(m, n * inter, h, 0.1f, 0.0f), up = random_matrix(m, n * inter, h, 0.1f, 0.0f);
    dt_matrix down = random_finer(m, n * h, inter, 0.1f);
    l->router = random_in(m, DT_F32, n, h, 0.2f, 0.0f);
    if (!dense) l->gate = l->up = l->down = (dt_matrix){0};
    l->expert = m->expert[i];
    for (int e = 0; e < n; e++)
      l->expert[e] =
          (dt_expert){.gate = dt_one_of(gate, e, inter), .up = dt_one_of(up, e, inter), .down = dt_one_of(down, e, h)};
  }
}

/* Parts of gpt-oss: experts with biases and a clamped activation, sinks, and a window in every second layer. */
static inline void random_gpt_oss(random_model *m) {
  dt_shape *s = &m->desc.shape;
  s->act = DT_ACT_CLAMPED;
  random_experts(m, 0, 27, true, false);
  m->layer[0].window = 24;
  for (int i = 0; i < s->layers; i++) {
    dt_layer *l = &m->layer[i];
    l->sinks = random_matrix(m, s->heads, 1, 3.0f, 0.0f);
    l->o_bias = random_matrix(m, s->hidden, 1, 0.2f, 0.0f);
    l->router_bias = random_matrix(m, s->experts, 1, 0.2f, 0.0f);
    dt_matrix bias = random_matrix(m, s->experts * s->hidden, 1, 2.0f, 0.0f);
    for (int e = 0; e < s->experts; e++) {
      l->expert[e].gate_bias = dt_part_of_heads(dt_some_rows(bias, e * s->hidden, 2 * 27), 2, 0, 1);
      l->expert[e].up_bias = dt_part_of_heads(dt_some_rows(bias, e * s->hidden, 2 * 27), 2, 1, 1);
      l->expert[e].down_bias = dt_one_of(bias, e, s->hidden);
    }
  }
}

/* Parts of GLM-4.5: the first layer is dense, the others have experts chosen by sigmoids, and an expert that all rows
 * share. */
static inline void random_glm(random_model *m) {
  dt_shape *s = &m->desc.shape;
  random_experts(m, 1, 27, true, true);
  s->router_sigmoid = true, s->experts_scale = 2.5f;
  m->layer[1].router_correction = random_in(m, DT_F32, s->experts, 1, 0.3f, 0.0f);
}

/* Parts of Qwen3.5: delta layers, and between them layers whose heads have gates. */
static inline void random_delta(random_model *m, int key_dim, int value_dim, bool tiled) {
  dt_shape *s = &m->desc.shape;
  const int h = s->hidden, keys = 2 * key_dim, values = 6, all = values * value_dim;
  s->delta_key_heads = 2, s->delta_key_dim = key_dim, s->delta_value_heads = values, s->delta_value_dim = value_dim;
  s->delta_tiled = tiled, s->delta_log = !tiled;
  for (int i = 0; i < s->layers; i++) {
    dt_layer *l = &m->layer[i];
    if (i % 2) {
      l->q_gate = random_matrix(m, s->heads * s->head_dim, h, 0.3f, 0.0f);
      continue;
    }
    l->delta = true;
    l->q = l->k = l->v = l->q_bias = l->k_bias = l->v_bias = l->q_norm = l->k_norm = (dt_matrix){0};
    l->delta_in = random_matrix(m, 2 * keys + all, h, 0.3f, 0.0f);
    l->delta_z = random_matrix(m, all, h, 0.3f, 0.0f);
    l->delta_a = random_matrix(m, values, h, 0.3f, 0.0f), l->delta_b = random_matrix(m, values, h, 0.3f, 0.0f);
    l->delta_conv = random_in(m, DT_F32, 2 * keys + all, DT_DELTA_TAPS, 0.5f, 0.0f);
    l->delta_decay = random_in(m, DT_F32, values, 1, 0.4f, tiled ? -0.5f : -1.5f);
    l->delta_shift = random_in(m, DT_F32, values, 1, 0.5f, -1.0f);
    l->delta_norm = random_in(m, DT_F32, value_dim, 1, 0.3f, 1.0f);
    l->o = random_matrix(m, h, all, 0.1f, 0.0f);
  }
}

/* Parts of Qwen3.5: experts, and in addition one that all rows share and that has a gate. */
static inline void random_gated_experts(random_model *m) {
  random_experts(m, 0, 27, true, true);
  for (int i = 0; i < m->desc.shape.layers; i++)
    m->layer[i].mlp_gate = random_matrix(m, 1, m->desc.shape.hidden, 0.3f, 0.0f);
}

/* Parts of Gemma 4 with experts: the experts run in addition to an MLP, with norms of their own and a scale for
 * each. */
static inline void random_gemma4_experts(random_model *m) {
  dt_shape *s = &m->desc.shape;
  random_experts(m, 0, 27, true, true);
  s->router_scale = 0.1f;
  for (int i = 0; i < s->layers; i++) {
    dt_layer *l = &m->layer[i];
    dt_matrix *norm[] = {&l->mlp_norm, &l->experts_norm, &l->expert_norm, &l->router_norm};
    for (int j = 0; j < 4; j++) *norm[j] = random_matrix(m, s->hidden, 1, 0.3f, 1.0f);
    random_norms_behind(m, l);
    l->expert_scale = random_matrix(m, s->experts, 1, 0.5f, 1.0f);
  }
}

enum { RANDOM_SHARED = 3, RANDOM_PARTS = 9 }; /* the first RANDOM_SHARED ones can be split across ranks */
static const char *const random_part_names[RANDOM_PARTS] = {
    "as Gemma",   "as OLMo",    "as Gemma 4",          "experts after a dense layer", "quantized experts",
    "as gpt-oss", "as GLM-4.5", "as Gemma 4, experts", "as Qwen3.5, experts"};
static inline random_model *random_parts_new(int which, uint64_t seed) {
  if (which == 2) return random_gemma4(DT_BF16, seed);
  random_model *m = random_model_new(&random_shapes[which == 4 ? 7 : 5], seed);
  switch (which) {
  case 0: random_gemma(m); break;
  case 1: random_olmo(m); break;
  case 3: random_experts(m, 1, 27, false, false); break;
  case 4: random_experts(m, 0, 256, true, false); break;
  case 5: random_gpt_oss(m); break;
  case 6: random_glm(m); break;
  case 7: random_gemma4_experts(m); break;
  default: random_gated_experts(m);
  }
  return m;
}

#endif
