/* config.json -> the numbers that make a model, in words that fit every family. Which family it was is kept only for
 * model.c, which knows how each names its tensors. */
#ifndef DT_CONFIG_H
#define DT_CONFIG_H

#include "backend.h"

#define CONFIG_MAX_EOS 8

typedef enum { CONFIG_GPT_NEOX } config_family;

typedef struct {
  config_family family;
  int vocab, hidden, layers, heads, kv_heads, head_dim, inter, context;
  int rotary_dims; /* of head_dim; even, may be 0 */
  double rotary_base;
  double norm_eps;
  dt_norm_kind norm;
  dt_act_kind act;
  bool parallel_residual;
  bool attention_bias; /* q, k, v and o have biases */
  bool tied;           /* the embedding may serve as unembedding */
  int32_t eos[CONFIG_MAX_EOS];
  int n_eos;
} config;

/* Reads a config.json in any spelling that a supported family has used. Every number is checked, so that products of two
 * of them fit 64 bits. DT_EINPUT names the file, the key, what was found and what is supported. */
dt_status config_read(const char *path, config *out, dt_error *err);

#endif
