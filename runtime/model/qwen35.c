/* Qwen3.5 and 3.6: three delta layers for each layer with attention, whose output has a gate and whose heads rotate
 * only in part. Layers are dense, or have experts in addition to a shared expert. */
#include "model/delta.h"
#include "model/experts.h"
#include "model/llama.h"
#include "model/mtp.h"

static dt_status read_layers(const keys *k, bool no_mlp, config *c) {
  c->normed_heads = c->gated_heads = true;
  c->norm_plus = k->gguf ? 0 : 1;
  c->post_named = true;
  dt_status status = llama_read(k, &(llama_defaults){.head_dim = 256, .part = 0.25, .no_mlp = no_mlp}, c);
  if (!status) status = config_leave_further(k, c);
  return status ? status : delta_read(k, c);
}

static dt_status read_dense(const keys *k, config *c) { return read_layers(k, false, c); }

static dt_status read_moe(const keys *k, config *c) {
  c->shared_name = "layers.%d.mlp.shared_expert";
  c->gated_shared = true;
  dt_status status = read_layers(k, true, c);
  if (!status) status = experts_read(k, false, c);
  return status ? status
                : config_int(k, "shared_expert_intermediate_size", "expert_shared_feed_forward_length", CONFIG_MAX_SIZE,
                             &c->shape.inter);
}

/* The text part of a model that also reads images. */
static dt_status read_dense_part(const keys *k, config *c) {
  keys text;
  dt_status status = config_text_part(k, "", &text);
  return status ? status : read_dense(&text, c);
}

#define EXPERTS "num_experts shared_expert_intermediate_size expert_count expert_shared_feed_forward_length"

static dt_status read_moe_part(const keys *k, config *c) {
  keys text;
  dt_status status = config_text_part(k, EXPERTS, &text);
  return status ? status : read_moe(&text, c);
}

/* The formula is that of vLLM's qwen3_5_mtp.py. */
static bool find_mtp(finder *f, const config *c, dt_head_desc *d, dt_layer *layer) {
  static const mtp_names names = {.fc = "fc.weight",
                                  .token_norm = "pre_fc_norm_embedding.weight",
                                  .feature_norm = "pre_fc_norm_hidden.weight",
                                  .final_norm = "norm.weight"};
  f->prefix = "mtp.";
  f->layer = f->from->gguf ? c->shape.layers : 0;
  if (!mtp_find(f, c, &names, d)) return false;
  llama_find_layer(f, c, layer);
  return true;
}

#define WHOLE "ForConditionalGeneration"
extern const family qwen35, qwen35_whole, qwen35moe, qwen35moe_whole;
const family qwen35 = {"qwen3_5_text", "Qwen3_5ForCausalLM", "qwen35", "", read_dense, llama_find, find_mtp};
const family qwen35_whole = {"qwen3_5", "Qwen3_5" WHOLE, NULL, "vision_config", read_dense_part, llama_find, find_mtp};
const family qwen35moe = {
    "qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", "qwen35moe", EXPERTS, read_moe, llama_find, find_mtp};
const family qwen35moe_whole = {"qwen3_5_moe", "Qwen3_5Moe" WHOLE, NULL,    "vision_config",
                                read_moe_part, llama_find,         find_mtp};
