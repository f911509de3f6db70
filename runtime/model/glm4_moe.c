/* GLM-4.5: the layers after the first dense ones have experts, chosen by sigmoids with a correction, and a shared
 * expert. */
#include "model/experts.h"
#include "model/llama.h"
#include "model/mtp.h"

static dt_status check_routing(const keys *k) {
  int gate = 0, groups = 0, taken = 0;
  dt_status status = config_int_or(k, NULL, "expert_gating_func", 2, CONFIG_MAX_SIZE, &gate);
  if (!status) status = config_int_or(k, "n_group", "expert_group_count", 1, DT_EXPERTS, &groups);
  if (!status) status = config_int_or(k, "topk_group", "expert_group_used_count", 1, DT_EXPERTS, &taken);
  if (status) return status;
  if (gate != 2) return dt_fail(k->err, DT_EINPUT, "%s: expert_gating_func is %d, expected 2 (sigmoid)", k->path, gate);
  if (groups != 1 || taken != 1)
    return dt_fail(k->err, DT_EINPUT,
                   "%s: %d of %d groups of experts, expected 1 of 1: groups of experts are not supported", k->path,
                   taken, groups);
  return DT_OK;
}

/* Reads the widths of the MLPs in dense layers and of the shared expert in the others. */
static dt_status read_widths(const keys *k, config *c) {
  dt_shape *s = &c->shape;
  int shared = 0, dense = 0, inter = s->inter;
  dt_status status = config_count(k, "n_shared_experts", "expert_shared_count", k->gguf ? 0 : 1,
                                  CONFIG_MAX_SIZE / s->expert_inter, &shared);
  if (!status)
    status = config_count(k, "first_k_dense_replace", "leading_dense_block_count", k->gguf ? 0 : 1, s->layers, &dense);
  if (shared) c->shared_name = "layers.%d.mlp.shared_experts";
  if (shared * s->expert_inter > s->inter) s->inter = shared * s->expert_inter;
  for (int i = 0; i < s->layers; i++) {
    c->dense[i] = i < dense;
    c->inter[i] = c->dense[i] ? inter : shared * s->expert_inter;
  }
  return status;
}

static dt_status read_glm4_moe(const keys *k, config *c) {
  dt_shape *s = &c->shape;
  double scale = 1;
  dt_status status = llama_read(k, &(llama_defaults){.eps = 1e-5, .part = 0.5}, c);
  if (!status) status = config_leave_further(k, c);
  if (!status) status = experts_read(k, false, c);
  if (!status) status = check_routing(k);
  if (!status) status = read_widths(k, c);
  if (!status) status = config_bool(k, "norm_topk_prob", "expert_weights_norm", !k->gguf, &s->chosen_only);
  if (!status)
    status = config_number(k, "routed_scaling_factor", "expert_weights_scale", 1, k->gguf ? 0 : 1e-6, 1e6, &scale);
  if (!status) status = config_bool(k, "use_qk_norm", NULL, k->gguf, &c->normed_heads);
  if (!status) status = config_bool(k, "attention_bias", NULL, false, &c->qkv_bias);
  s->experts_scale = (float)scale;
  s->router_sigmoid = c->post_named = true;
  c->perhaps_normed = k->gguf;
  return status;
}

/* The formula is that of SGLang's glm4_moe_nextn.py. */
static bool find_mtp(finder *f, const config *c, dt_head_desc *d, dt_layer *layer) {
  static const mtp_names names = {.fc = "layers.%d.eh_proj.weight",
                                  .token_norm = "layers.%d.enorm.weight",
                                  .feature_norm = "layers.%d.hnorm.weight",
                                  .final_norm = "layers.%d.shared_head.norm.weight",
                                  .embed = "layers.%d.embed_tokens.weight",
                                  .unembed = "layers.%d.shared_head.head.weight"};
  f->prefix = "model.";
  f->layer = c->shape.layers;
  if (!mtp_find(f, c, &names, d)) return false;
  llama_find_layer(f, c, layer);
  return true;
}

#define EXPERTS                                                                                                        \
  "n_routed_experts n_shared_experts expert_count expert_shared_count expert_weights_scale expert_gating_func"
extern const family glm4_moe;
const family glm4_moe = {"glm4_moe", "Glm4MoeForCausalLM", "glm4moe", EXPERTS, read_glm4_moe, llama_find, find_mtp};
