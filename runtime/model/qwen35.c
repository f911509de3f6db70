/* Qwen3.5 and 3.6, dense: three delta layers for each one with attention, whose output has a gate and whose heads turn in part. */
#include "model/delta.h"
#include "model/llama.h"

static dt_status read_qwen35(const keys *k, config *c) {
  c->normed_heads = c->gated_heads = true;
  c->norm_plus = k->gguf ? 0 : 1;
  c->post_named = true;
  dt_status status = llama_read(k, &(llama_defaults){.head_dim = 256, .part = 0.25}, c);
  if (!status) status = config_leave_further(k, c);
  return status ? status : delta_read(k, c);
}

/* The text part of a model that reads pictures too. */
static dt_status read_part(const keys *k, config *c) {
  keys text;
  dt_status status = config_text_part(k, "", &text);
  return status ? status : read_qwen35(&text, c);
}

static dt_status read_mtp(const keys *k, config *c) {
  bool whole = cJSON_HasObjectItem(k->json, "text_config");
  return whole ? read_part(k, c) : read_qwen35(k, c);
}

static void find_mtp(finder *f, const config *c, dt_model_desc *d, dt_layer *layer) {
  d->final_norm = find_vector(f, c->shape.hidden, "norm.weight", "blk.%d.nextn.shared_head_norm.weight");
  d->final_norm.plus = c->norm_plus;
  llama_find_layer(f, c, layer);
}

extern const family qwen35, qwen35_whole;
const family qwen35 = {"qwen3_5_text", "Qwen3_5ForCausalLM", "qwen35", "", read_qwen35, llama_find};
const family qwen35_whole = {"qwen3_5", "Qwen3_5ForConditionalGeneration", NULL, "vision_config", read_part,
                             llama_find};
const family qwen35_mtp = {"qwen3_5_text", "Qwen3_5ForCausalLM", "qwen35", "", read_mtp, find_mtp};
