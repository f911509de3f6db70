/* Gemma 4. Layers with and without a window have different heads and rotations. The last layers read the keys and
 * values of earlier ones. Each layer may read its own inputs, and have experts in addition to its MLP. */
#include "model/experts.h"
#include "model/llama.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Refuses the parts of the family that are not for text. */
static dt_status refuse_others(const keys *k, const config *c) {
  int inputs_vocab = 0;
  dt_status status = DT_OK;
  if (c->shape.inputs)
    status = config_int_or(k, "vocab_size_per_layer_input", NULL, c->shape.vocab, CONFIG_MAX_SIZE, &inputs_vocab);
  if (status) return status;
  if (!strcmp(config_text(k, "use_bidirectional_attention", NULL), "all"))
    return dt_fail(k->err, DT_EINPUT,
                   "%s: use_bidirectional_attention is not supported: a row can only see earlier rows", k->path);
  if (c->shape.inputs && inputs_vocab != c->shape.vocab)
    return dt_fail(k->err, DT_EINPUT, "%s: vocab_size_per_layer_input is %d, expected vocab_size, %d", k->path,
                   inputs_vocab, c->shape.vocab);
  return DT_OK;
}

/* Which layers have a window; the last one never has. */
static dt_status read_windows(const keys *k, config *c) {
  dt_status status = config_local(k, k->gguf ? 0 : 512, 6, c);
  if (!status && c->window == 0)
    status = dt_fail(k->err, DT_EINPUT, "%s: %s: expected at least 1", k->path,
                     k->gguf ? "attention.sliding_window" : "sliding_window");
  c->local[c->shape.layers - 1] = false;
  return status;
}

/* Reads a size of layer i, which Hugging Face's newer files list layer by layer; without the list it does not
 * change. */
static dt_status read_own(const keys *k, int i, const char *name, int *size) {
  char key[96];
  snprintf(key, sizeof key, "per_layer_config.%d.%s", i, name);
  return config_int_or(k, key, NULL, *size, CONFIG_MAX_SIZE, size);
}

/* Reads a key that is required in a GGUF file. */
static dt_status read_head_dim(const keys *k, const char *hf, const char *in_gguf, int absent, int *out) {
  return k->gguf ? config_int(k, NULL, in_gguf, CONFIG_MAX_SIZE, out)
                 : config_int_or(k, hf, NULL, absent, CONFIG_MAX_SIZE, out);
}

/* The sizes of heads: those of layers with a window and, under other names, without. */
static dt_status read_heads(const keys *k, config *c) {
  dt_shape *s = &c->shape;
  int local = 0, global = 0, global_kv = 0, values = 0, local_values = 0;
  bool listed = !k->gguf && cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(k->json, "per_layer_config"));
  dt_status status = config_int(k, "num_attention_heads", "attention.head_count", CONFIG_MAX_SIZE, &s->heads);
  if (!status) status = config_bool(k, "attention_k_eq_v", NULL, k->gguf, &c->values_are_keys);
  if (!status)
    status = config_each(k, "num_key_value_heads", "attention.head_count_kv", k->gguf ? s->heads : 4, CONFIG_MAX_SIZE,
                         s->layers, c->kv_heads);
  if (!status) status = read_head_dim(k, "head_dim", "attention.key_length_swa", 256, &local);
  if (!status) status = read_head_dim(k, "global_head_dim", "attention.key_length", 512, &global);
  if (!status) status = config_int_or(k, NULL, "attention.value_length", global, CONFIG_MAX_SIZE, &values);
  if (!status) status = config_int_or(k, NULL, "attention.value_length_swa", local, CONFIG_MAX_SIZE, &local_values);
  if (!status) status = config_int_or(k, "num_global_key_value_heads", NULL, 0, CONFIG_MAX_SIZE, &global_kv);
  if (!status && (values != global || local_values != local))
    status = dt_fail(k->err, DT_EINPUT, "%s: keys of %d and %d numbers but values of %d and %d, expected the same",
                     k->path, local, global, local_values, values);
  for (int i = 0; i < s->layers && !status; i++) {
    bool other = !c->local[i] && !listed;
    c->head_dim[i] = other ? global : local;
    if (other && global_kv && c->values_are_keys) c->kv_heads[i] = global_kv;
    status = read_own(k, i, "head_dim", &c->head_dim[i]);
    if (!status) status = read_own(k, i, "num_key_value_heads", &c->kv_heads[i]);
    if (!status) status = config_check_heads(k, s->heads, c->kv_heads[i], c->head_dim[i]);
  }
  return status;
}

/* Layers of one kind have the same rotation, so their heads must have the same size. All pairs rotate, some of them by
 * an angle of zero. */
static dt_status read_rotations(const keys *k, config *c) {
  dt_shape *s = &c->shape;
  int all = 0, local = 0;
  for (int i = 0; i < s->layers; i++) {
    int *dims = c->local[i] ? &s->local_dims : &s->rotary_dims;
    if (*dims && *dims != c->head_dim[i])
      return dt_fail(k->err, DT_EINPUT,
                     "%s: layer %d: heads of %d numbers, expected %d as in another layer of its kind", k->path, i,
                     c->head_dim[i], *dims);
    *dims = c->head_dim[i];
  }
  dt_status status = config_int_or(k, NULL, "rope.dimension_count", s->rotary_dims, CONFIG_MAX_SIZE, &all);
  if (!status) status = config_int_or(k, NULL, "rope.dimension_count_swa", s->local_dims, CONFIG_MAX_SIZE, &local);
  if (!status && (all != s->rotary_dims || local != s->local_dims))
    status = dt_fail(k->err, DT_EINPUT, "%s: %d and %d rotary dimensions, expected those of the heads, %d and %d",
                     k->path, local, all, s->local_dims, s->rotary_dims);
  if (!status && k->rope.scaling)
    status = dt_fail(k->err, DT_EINPUT, "rope_scaling: %s is not possible: this family's rotation cannot be replaced",
                     k->rope.scaling);
  if (!status) status = config_rotation(k, "rope_parameters.full_attention.rope_theta", 1e6, c);
  if (!status) status = config_pairs(k, c);
  if (!status) status = config_local_rotation(k, "rope_parameters.sliding_attention.rope_theta", 10000, c);
  if (!k->gguf && !cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(k->json, "rope_parameters")))
    c->rotation.part = 0.25;
  c->two_rotations = true;
  return status;
}

/* The last layers read the keys and values of the last layer of their kind that has its own. All layers of a
 * cross-attention head read those of another model. */
static dt_status read_shared(const keys *k, config *c) {
  int count = 0, layers = c->shape.layers, end = 0;
  dt_status status = config_count(k, "num_kv_shared_layers", "attention.shared_kv_layers",
                                  c->cross_attention ? layers : 0, layers - !c->cross_attention, &count);
  if (c->cross_attention && !status && count && count < layers)
    status =
        dt_fail(k->err, DT_EINPUT, "%s: num_kv_shared_layers is %d, expected all %d layers", k->path, count, layers);
  for (int i = 0; i < layers && c->cross_attention; i++) c->keys_of[i] = 1;
  end = c->cross_attention ? layers : layers - count;
  for (int i = end; i < layers && !status; i++) {
    int of = end;
    while (of > 0 && c->local[of - 1] != c->local[i]) of--;
    c->keys_of[i] = of;
    if (!of)
      status =
          dt_fail(k->err, DT_EINPUT,
                  "%s: layer %d reads the keys of an earlier layer of its kind, expected one that has its own keys",
                  k->path, i);
    else if (c->kv_heads[of - 1] != c->kv_heads[i])
      status =
          dt_fail(k->err, DT_EINPUT, "%s: layer %d has %d key heads, expected %d as in layer %d, whose keys it reads",
                  k->path, i, c->kv_heads[i], c->kv_heads[of - 1], of - 1);
  }
  return status;
}

/* Layers that read the keys of others may have an MLP twice as wide. */
static dt_status read_widths(const keys *k, config *c) {
  bool wide = false;
  dt_status status = config_each(k, "intermediate_size", "feed_forward_length", k->gguf ? 0 : 9216, CONFIG_MAX_SIZE / 2,
                                 c->shape.layers, c->inter);
  if (!status) status = config_bool(k, "use_double_wide_mlp", NULL, false, &wide);
  for (int i = 0; wide && i < c->shape.layers; i++)
    if (c->keys_of[i]) c->inter[i] *= 2;
  return status;
}

/* Sets the sizes of the shape to the largest ones of its layers. */
static void fill_shape(config *c) {
  dt_shape *s = &c->shape;
  for (int i = 0; i < s->layers; i++) {
    if (c->kv_heads[i] > s->kv_heads) s->kv_heads = c->kv_heads[i];
    if (c->head_dim[i] > s->head_dim) s->head_dim = c->head_dim[i];
    if (c->inter[i] > s->inter) s->inter = c->inter[i];
  }
}

/* Experts in addition to the MLP of each layer, with norms of their own. A GGUF file just has the keys; a folder also
 * has a key that enables them. */
static dt_status read_experts(const keys *k, config *c) {
  bool any = true;
  dt_status status = k->gguf ? DT_OK : config_bool(k, "enable_moe_block", NULL, false, &any);
  if (!status && any) status = experts_read(k, k->gguf, c);
  if (status || !c->shape.experts) return status;
  c->beside_experts = true;
  c->router_name = "layers.%d.router.proj.weight", c->experts_name = "layers.%d.experts";
  c->shape.router_scale = (float)(1 / sqrt(c->shape.hidden));
  return DT_OK;
}

static dt_status read_gemma4(const keys *k, config *c) {
  const llama_defaults usual = {.tied = true, .act_key = "hidden_activation", .act = "gelu_pytorch_tanh"};
  dt_shape *s = &c->shape;
  bool none = k->gguf || cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(k->json, "hidden_size_per_layer_input"));
  c->norms_before = c->norms_behind = c->normed_heads = c->scaled_layers = s->normed_values = true;
  dt_status status = llama_read_basics(k, &usual, c);
  if (!status)
    status = config_count(k, "hidden_size_per_layer_input", "embedding_length_per_layer_input", none ? 0 : 256,
                          CONFIG_MAX_SIZE / s->layers, &s->inputs);
  if (!status) status = refuse_others(k, c);
  if (!status) status = read_windows(k, c);
  if (!status) status = read_heads(k, c);
  if (!status) status = read_rotations(k, c);
  if (!status) status = read_shared(k, c);
  if (!status) status = read_widths(k, c);
  if (!status) status = read_experts(k, c);
  if (!status) status = config_bool(k, "attention_bias", NULL, false, &c->attention_bias);
  if (!status) status = config_cap(k, "final_logit_softcapping", 0, &s->logit_cap);
  c->qkv_bias = c->attention_bias;
  s->attention_scale = 1;
  s->embed_scale = (float)sqrt(s->hidden);
  fill_shape(c);
  return status;
}

#define TAKES "final_logit_softcapping num_experts expert_count"

/* The text part of a model: other parts, which read pictures and sound, are left out. */
static dt_status read_part(const keys *k, config *c) {
  keys text;
  dt_status status = config_text_part(k, TAKES, &text);
  return status ? status : read_gemma4(&text, c);
}

/* A draft head in several layers. Its logits have no cap. */
static dt_status read_assistant(const keys *k, config *c) {
  bool ordered = false;
  c->cross_attention = true;
  dt_status status = config_bool(k, "use_ordered_embeddings", NULL, false, &ordered);
  if (!status && ordered)
    status =
        dt_fail(k->err, DT_EINPUT,
                "%s: use_ordered_embeddings is not supported: the assistant would score only some clusters of its ids",
                k->path);
  if (!status) status = read_part(k, c);
  if (!status && c->shape.inputs)
    status = dt_fail(k->err, DT_EINPUT, "%s: hidden_size_per_layer_input is %d, expected 0 in an assistant", k->path,
                     c->shape.inputs);
  if (!status && c->shape.experts)
    status = dt_fail(k->err, DT_EINPUT, "%s: enable_moe_block: an assistant with experts is not supported", k->path);
  c->shape.logit_cap = 0;
  return status;
}

extern const family gemma4, gemma4_whole;
const family gemma4 = {"gemma4_text", "Gemma4ForCausalLM", "gemma4", TAKES, read_gemma4, llama_find, NULL};
const family gemma4_whole = {"gemma4", "Gemma4ForConditionalGeneration", NULL, "vision_config", read_part, llama_find,
                             NULL};
const family gemma4_assistant = {
    "gemma4_assistant", "Gemma4AssistantForCausalLM", NULL, "", read_assistant, llama_find, NULL};
