/* gpt-oss: experts with biases and a clamped activation, attention sinks, every other layer with a window, YaRN. */
#include "model/experts.h"
#include "model/llama.h"

#include <math.h>

/* The rotation that transformers uses if config.json names none. */
static const rotation usual_rotation = {
    .factor = 32, .part = 1, .low = 1, .high = 32, .original = 4096, .yarn = true, .scale = 1.3465735902799727};

/* The numbers of the activation are fixed. */
static dt_status check_number(const keys *k, const char *name, double expected) {
  double found = 0;
  dt_status status = config_number(k, name, NULL, expected, 0, 1e9, &found);
  if (!status && found != expected)
    status = dt_fail(k->err, DT_EINPUT, "%s: %s: found %g, expected %g", k->path, name, found, expected);
  return status;
}

static bool is_absent(const keys *k, const char *name) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(k->json, name);
  return !item || cJSON_IsNull(item);
}

static dt_status read_gpt_oss(const keys *k, config *c) {
  const llama_defaults usual = {.head_dim = 64, .eps = 1e-5, .base = 150000};
  dt_status status = llama_read(k, &usual, c);
  if (!status) status = check_number(k, "swiglu_limit", 7);
  if (!status) status = check_number(k, "swiglu_alpha", 1.702);
  if (!status) status = config_bool(k, "attention_bias", NULL, true, &c->attention_bias);
  if (!status) status = config_local(k, k->gguf ? 0 : 128, 2, c);
  if (!status) status = experts_read(k, false, c);
  if (status) return status;
  if (!c->rotation.replaced && !k->gguf && is_absent(k, "rope_scaling") && is_absent(k, "rope_parameters")) {
    double base = c->rotation.base;
    c->rotation = usual_rotation, c->rotation.base = base;
  }
  c->qkv_bias = c->attention_bias;
  c->biased_experts = c->sinks = c->post_named = true;
  c->router_name = "layers.%d.mlp.router.weight";
  c->shape.act = DT_ACT_CLAMPED;
  return DT_OK;
}

extern const family gpt_oss;
const family gpt_oss = {
    "gpt_oss",    "GptOssForCausalLM", "gpt-oss", "num_experts num_local_experts expert_count mxfp4",
    read_gpt_oss, llama_find,          NULL};
