/* Keys and tensors of delta layers: see delta.h. */
#include "model/delta.h"

#include <string.h>

#define MOST 4096 /* heads, and numbers of a head */

/* Whether an item of the list of layers names a delta layer; *wrong: it names no kind of layer. */
static bool is_delta(const keys *k, const cJSON *item, bool *wrong) {
  const char *type = cJSON_IsString(item) ? item->valuestring : "";
  bool delta = k->gguf ? cJSON_IsTrue(item) : !strcmp(type, "linear_attention");
  *wrong = !delta && !(k->gguf ? cJSON_IsFalse(item) : !strcmp(type, "full_attention"));
  return delta;
}

/* A GGUF file also lists MTP layers. */
static dt_status read_types(const keys *k, config *c) {
  const char *name = k->gguf ? "attention.recurrent_layers" : "layer_types";
  const cJSON *types = cJSON_GetObjectItemCaseSensitive(k->json, name), *item;
  int each = 0, i = 0, layers = c->shape.layers, listed = cJSON_GetArraySize(types);
  bool wrong = false;
  dt_status status =
      config_int_or(k, "full_attention_interval", "full_attention_interval", 4, CONFIG_MAX_LAYERS, &each);
  for (int j = 0; j < layers && !status; j++) c->delta[j] = (j + 1) % each != 0;
  if (status || !types || cJSON_IsNull(types)) return status;
  cJSON_ArrayForEach(item, types) {
    if (i == layers || wrong) break;
    c->delta[i++] = is_delta(k, item, &wrong);
  }
  if (wrong)
    return dt_fail(k->err, DT_EINPUT, "%s: %s: layer %d: expected %s", k->path, name, i - 1,
                   k->gguf ? "true or false" : "\"linear_attention\" or \"full_attention\"");
  if (i < layers || (!k->gguf && listed > layers))
    return dt_fail(k->err, DT_EINPUT, "%s: %s: found %d elements, expected one for each of %d layers", k->path, name,
                   listed, layers);
  return DT_OK;
}

dt_status delta_read(const keys *k, config *c) {
  dt_shape *s = &c->shape;
  int taps = 0, inner = 0;
  dt_status status = read_types(k, c);
  if (!status) status = config_int_or(k, "linear_conv_kernel_dim", "ssm.conv_kernel", 4, 64, &taps);
  if (!status) status = config_int_or(k, "linear_key_head_dim", "ssm.state_size", 128, MOST, &s->delta_key_dim);
  if (!status) status = config_int_or(k, "linear_num_key_heads", "ssm.group_count", 16, MOST, &s->delta_key_heads);
  if (!status)
    status = config_int_or(k, "linear_num_value_heads", "ssm.time_step_rank", 32, MOST, &s->delta_value_heads);
  if (!status) status = config_int_or(k, "linear_value_head_dim", NULL, 128, MOST, &s->delta_value_dim);
  if (!status && k->gguf) {
    status = config_int(k, NULL, "ssm.inner_size", CONFIG_MAX_SIZE, &inner);
    s->delta_value_dim = inner / s->delta_value_heads;
    if (!status && inner % (16 * s->delta_value_heads))
      status = dt_fail(k->err, DT_EINPUT, "%s: ssm.inner_size is %d, expected a multiple of 16 for each of %d heads",
                       k->path, inner, s->delta_value_heads);
  }
  if (status) return status;
  if (taps != DT_DELTA_TAPS)
    return dt_fail(k->err, DT_EINPUT, "%s: a convolution over %d rows, expected %d", k->path, taps, DT_DELTA_TAPS);
  if (s->delta_value_heads % s->delta_key_heads)
    return dt_fail(k->err, DT_EINPUT, "%s: %d value heads of linear attention, expected a multiple of %d key heads",
                   k->path, s->delta_value_heads, s->delta_key_heads);
  if (s->delta_key_dim % 16 || s->delta_value_dim % 16 || !s->delta_value_dim)
    return dt_fail(k->err, DT_EINPUT, "%s: linear attention has heads of %d and %d numbers, expected multiples of 16",
                   k->path, s->delta_key_dim, s->delta_value_dim);
  s->delta_log = !k->gguf;
  s->delta_tiled = k->gguf;
  return DT_OK;
}

void delta_find(finder *f, const dt_shape *s, dt_layer *l) {
  int H = s->hidden, V = s->delta_value_heads, U = V * s->delta_value_dim;
  int M = 2 * s->delta_key_heads * s->delta_key_dim + U;
  l->delta_in = find_matrix(f, M, H, "layers.%d.linear_attn.in_proj_qkv.weight", "blk.%d.attn_qkv.weight");
  l->delta_z = find_matrix(f, U, H, "layers.%d.linear_attn.in_proj_z.weight", "blk.%d.attn_gate.weight");
  l->delta_a = find_matrix(f, V, H, "layers.%d.linear_attn.in_proj_a.weight", "blk.%d.ssm_alpha.weight");
  l->delta_b = find_matrix(f, V, H, "layers.%d.linear_attn.in_proj_b.weight", "blk.%d.ssm_beta.weight");
  l->delta_conv = f->from->gguf ? find_matrix(f, M, DT_DELTA_TAPS, NULL, "blk.%d.ssm_conv1d.weight")
                                : find_matrices(f, M, 1, DT_DELTA_TAPS, "layers.%d.linear_attn.conv1d.weight", NULL);
  l->delta_decay = find_vector(f, V, "layers.%d.linear_attn.A_log", "blk.%d.ssm_a");
  l->delta_shift = find_vector(f, V, "layers.%d.linear_attn.dt_bias", "blk.%d.ssm_dt.bias");
  l->delta_norm = find_vector(f, s->delta_value_dim, "layers.%d.linear_attn.norm.weight", "blk.%d.ssm_norm.weight");
  l->o = find_matrix(f, H, U, "layers.%d.linear_attn.out_proj.weight", "blk.%d.ssm_out.weight");
}
