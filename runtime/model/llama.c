/* Llama and related families: a sequential residual, RMS norms, a gated MLP or experts, grouped heads. They differ in
 * biases, norms, windows, rotations, scales and defaults. */
#include "model/llama.h"
#include "model/delta.h"
#include "model/experts.h"

#include <math.h>

typedef llama_defaults defaults;

/* A head has hidden / heads numbers, unless a key says otherwise. */
static dt_status read_heads(const keys *k, int usual_head_dim, dt_shape *s) {
  int values = 0;
  dt_status status = config_int(k, "num_attention_heads", "attention.head_count", CONFIG_MAX_SIZE, &s->heads);
  if (!status)
    status =
        config_int_or(k, "num_key_value_heads", "attention.head_count_kv", s->heads, CONFIG_MAX_SIZE, &s->kv_heads);
  if (status) return status;
  if (!usual_head_dim) usual_head_dim = s->hidden / s->heads;
  status = config_int_or(k, "head_dim", "attention.key_length", usual_head_dim, CONFIG_MAX_SIZE, &s->head_dim);
  if (!status) status = config_int_or(k, NULL, "attention.value_length", s->head_dim, CONFIG_MAX_SIZE, &values);
  if (status) return status;
  if (values != s->head_dim)
    return dt_fail(k->err, DT_EINPUT, "%s: keys of %d numbers but values of %d, expected the same", k->path,
                   s->head_dim, values);
  return config_check_heads(k, s->heads, s->kv_heads, s->head_dim);
}

dt_status llama_read_basics(const keys *k, const defaults *usual, config *c) {
  dt_shape *s = &c->shape;
  double eps = 0;
  s->norm = DT_NORM_RMS;
  s->gated = true;
  dt_status status = config_int(k, "vocab_size", "vocab_size", CONFIG_MAX_SIZE, &s->vocab);
  if (!status) status = config_int(k, "hidden_size", "embedding_length", CONFIG_MAX_SIZE, &s->hidden);
  if (!status) status = config_int(k, "num_hidden_layers", "block_count", CONFIG_MAX_LAYERS, &s->layers);
  if (!status) status = config_int(k, "max_position_embeddings", "context_length", CONFIG_MAX_SIZE, &s->context);
  if (!status)
    status =
        config_act(k, usual->act_key ? usual->act_key : "hidden_act", NULL, usual->act ? usual->act : "silu", &s->act);
  if (!status)
    status = config_number(k, "rms_norm_eps", "attention.layer_norm_rms_epsilon", usual->eps > 0 ? usual->eps : 1e-6, 0,
                           1, &eps);
  if (!status) status = config_bool(k, "tie_word_embeddings", NULL, k->gguf || usual->tied, &c->tied);
  s->norm_eps = (float)eps;
  return status ? status : config_eos(k, c);
}

dt_status llama_read(const keys *k, const defaults *usual, config *c) {
  dt_shape *s = &c->shape;
  double part = 0;
  dt_status status = llama_read_basics(k, usual, c);
  if (!status && !usual->no_mlp)
    status = config_int(k, "intermediate_size", "feed_forward_length", CONFIG_MAX_SIZE, &s->inter);
  if (!status) status = read_heads(k, k->gguf ? 0 : usual->head_dim, s);
  if (!status)
    status = config_rotation(k, "rope_theta|rope_parameters.rope_theta|rope_parameters.full_attention.rope_theta",
                             usual->base > 0 ? usual->base : 10000, c);
  if (!status)
    status = config_number(k, "partial_rotary_factor|rope_parameters.partial_rotary_factor", NULL,
                           usual->part > 0 ? usual->part : 1, 0, 1, &part);
  if (c->rotation.part < 1) part = 1; /* the rotation itself defines which pairs rotate */
  if (!status)
    status = config_int_or(k, NULL, "rope.dimension_count", (int)(s->head_dim * part), s->head_dim, &s->rotary_dims);
  if (!status && s->rotary_dims % 2)
    status = dt_fail(k->err, DT_EINPUT, "%s: %d rotary dimensions of %d, expected an even number", k->path,
                     s->rotary_dims, s->head_dim);
  return status ? status : config_pairs(k, c);
}

static dt_status read_biases(const keys *k, config *c) {
  dt_status status = config_bool(k, "attention_bias", NULL, false, &c->attention_bias);
  if (!status) status = config_bool(k, "mlp_bias", NULL, false, &c->mlp_bias);
  c->qkv_bias = c->attention_bias;
  return status;
}

static dt_status read_llama(const keys *k, config *c) {
  dt_status status = llama_read(k, &(defaults){0}, c);
  if (!status) status = read_biases(k, c);
  if (!status && k->gguf) status = experts_read(k, true, c); /* Mixtral */
  c->zipped_heads = k->gguf;
  return status ? status : config_window(k, NULL, false, c);
}

static dt_status read_mixtral(const keys *k, config *c) {
  dt_status status = llama_read(k, &(defaults){.eps = 1e-5, .base = 1e6}, c);
  if (!status) status = experts_read(k, false, c);
  return status ? status : config_window(k, NULL, true, c);
}

static dt_status read_mistral(const keys *k, config *c) {
  dt_status status = llama_read(k, &(defaults){0}, c);
  return status ? status : config_window(k, NULL, true, c);
}

static dt_status read_qwen2(const keys *k, config *c) {
  c->qkv_bias = true;
  dt_status status = llama_read(k, &(defaults){0}, c);
  return status ? status : config_window(k, "use_sliding_window", true, c);
}

static dt_status read_normed_qwen(const keys *k, int head_dim, config *c) {
  c->normed_heads = true;
  dt_status status = llama_read(k, &(defaults){.head_dim = head_dim}, c);
  if (!status) status = config_bool(k, "attention_bias", NULL, false, &c->attention_bias);
  c->qkv_bias = c->attention_bias;
  return status ? status : config_window(k, "use_sliding_window", true, c);
}

static dt_status read_qwen3(const keys *k, config *c) { return read_normed_qwen(k, 128, c); }

static dt_status read_qwen3moe(const keys *k, config *c) {
  dt_status status = read_normed_qwen(k, 0, c);
  if (!status) status = experts_read(k, false, c);
  if (!status) status = config_dense(k, c);
  return status ? status : config_bool(k, "norm_topk_prob", NULL, k->gguf, &c->shape.chosen_only);
}

static dt_status read_smollm3(const keys *k, config *c) {
  bool windows = false;
  dt_status status = llama_read(k, &(defaults){.base = 2e6, .tied = true}, c);
  if (!status) status = read_biases(k, c);
  if (!status) status = config_still(k, 4, c);
  if (!status) status = config_bool(k, "use_sliding_window", NULL, false, &windows);
  if (!status && windows) status = config_local(k, 0, 0, c);
  c->zipped_heads = k->gguf;
  return status;
}

/* Reads a factor; `absent` is its default. In a GGUF file, 0 also means absent. */
static dt_status read_factor(const keys *k, const char *hf, const char *in_gguf, double absent, float *out) {
  double factor = 0;
  dt_status status = config_number(k, hf, in_gguf, absent, k->gguf ? 0 : 1e-6, 1e6, &factor);
  *out = (float)factor;
  return status;
}

static dt_status read_granite(const keys *k, config *c) {
  dt_shape *s = &c->shape;
  float divisor = 1;
  dt_status status = llama_read(k, &(defaults){0}, c);
  if (!status) status = read_biases(k, c);
  if (!status) status = read_factor(k, "embedding_multiplier", "embedding_scale", 1, &s->embed_scale);
  if (!status) status = read_factor(k, "residual_multiplier", "residual_scale", 1, &s->residual_scale);
  if (!status) status = read_factor(k, "attention_multiplier", "attention.scale", k->gguf ? 0 : 1, &s->attention_scale);
  if (!status) status = read_factor(k, "logits_scaling", "logit_scale", 1, &divisor);
  s->logit_scale = divisor > 0 ? 1 / divisor : 1;
  c->zipped_heads = k->gguf;
  return status;
}

/* OLMo 2 and 3: norms only after the blocks, and norms of all heads together. GGUF files call both olmo2. */
static dt_status read_olmo(const keys *k, double base, int window, config *c) {
  c->normed_heads = c->shape.wide_norms = c->norms_behind = true;
  dt_status status = llama_read(k, &(defaults){.eps = 1e-5, .base = base}, c);
  if (!status) status = read_biases(k, c);
  if (!status && (k->gguf || window)) status = config_local(k, k->gguf ? 0 : window, 4, c);
  if (!status && c->window)
    status = config_local_rotation(
        k, "rope_theta|rope_parameters.rope_theta|rope_parameters.sliding_attention.rope_theta", c->rotation.base, c);
  c->two_rotations = c->window > 0;
  return status;
}

static dt_status read_olmo2(const keys *k, config *c) { return read_olmo(k, 10000, 0, c); }
static dt_status read_olmo3(const keys *k, config *c) { return read_olmo(k, 500000, 4096, c); }

static dt_status read_phi3(const keys *k, config *c) {
  c->fused = true;
  dt_status status = llama_read(k, &(defaults){.eps = 1e-5}, c);
  if (!status && c->rotation.yarn && !c->rotation.replaced)
    status = dt_fail(k->err, DT_EINPUT,
                     "%s: rope_scaling.long_factor is missing: the type \"yarn\" means \"longrope\" in this family",
                     k->path);
  return status ? status : config_local(k, 0, 0, c);
}

/* Gemma 2 and 3: norms before and after the blocks, with 1 added to their weights (in GGUF files it is already added).
 * Every `each`-th layer sees all positions. In the largest model, the scale of scores depends on hidden / heads, which
 * a GGUF file does not say. */
static dt_status read_gemma(const keys *k, const defaults *usual, int each, int largest, config *c) {
  dt_shape *s = &c->shape;
  double scalar = 256;
  bool both_ways = false;
  c->norms_before = c->norms_behind = true;
  c->norm_plus = k->gguf ? 0 : 1;
  dt_status status = llama_read(k, usual, c);
  if (!status) status = config_local(k, k->gguf && each == 6 ? 0 : 4096, each, c);
  if (!status) status = config_number(k, "query_pre_attn_scalar", NULL, scalar, 1e-3, 1e9, &scalar);
  if (!status) status = config_bool(k, "use_bidirectional_attention", NULL, false, &both_ways);
  if (!status) status = read_biases(k, c);
  if (status) return status;
  if (both_ways)
    return dt_fail(k->err, DT_EINPUT,
                   "%s: use_bidirectional_attention is not supported: a row can only see earlier rows", k->path);
  if (k->gguf) scalar = s->layers == largest ? s->hidden / s->heads : s->head_dim;
  s->attention_scale = (float)(1 / sqrt(scalar));
  s->embed_scale = (float)sqrt(s->hidden);
  return DT_OK;
}

static dt_status read_gemma2(const keys *k, config *c) {
  const defaults usual = {.head_dim = 256, .tied = true, .act_key = "hidden_activation", .act = "gelu_pytorch_tanh"};
  dt_status status = read_gemma(k, &usual, 2, 46, c);
  if (!status) status = config_cap(k, "attn_logit_softcapping", 50, &c->shape.score_cap);
  return status ? status : config_cap(k, "final_logit_softcapping", 30, &c->shape.logit_cap);
}

static dt_status read_gemma3(const keys *k, config *c) {
  const defaults usual = {
      .head_dim = 256, .tied = true, .base = 1e6, .act_key = "hidden_activation", .act = "gelu_pytorch_tanh"};
  c->normed_heads = c->two_rotations = true;
  dt_status status = read_gemma(k, &usual, 6, 62, c);
  if (!status)
    status = config_local_rotation(k, "rope_local_base_freq|rope_parameters.sliding_attention.rope_theta", 10000, c);
  return status ? status : config_cap(k, "final_logit_softcapping", 0, &c->shape.logit_cap);
}

/* Finds a vector that only some models have; in a GGUF file it is optional. */
static dt_matrix find_some(finder *f, bool wanted, int n, const char *hf, const char *in_gguf) {
  if (f->from->gguf) wanted = find_is_there(f, hf, in_gguf);
  return wanted ? find_vector(f, n, hf, in_gguf) : (dt_matrix){0};
}

/* Rows of queries or keys; see dt_matrix. */
static dt_matrix of_heads(const config *c, dt_matrix m) {
  return m.source && c->zipped_heads ? dt_zipped_heads(m, c->shape.head_dim) : m;
}

/* Whether a layer's values are its projected keys. */
static bool has_no_values(const finder *f, const config *c, const dt_layer *l) {
  return c->values_are_keys && !l->window && !find_is_there(f, NULL, "blk.%d.attn_v.weight");
}

static dt_matrix find_norm(finder *f, const config *c, int n, const char *hf, const char *in_gguf) {
  dt_matrix m = find_vector(f, n, hf, in_gguf);
  m.plus = c->norm_plus;
  return m;
}

/* Finds the norms around both blocks. The norm after the first block has the name that Llama uses for the norm before
 * the second. */
static void find_norms(finder *f, const config *c, dt_layer *l) {
  int H = c->shape.hidden;
  const char *second =
      c->norms_behind ? "layers.%d.pre_feedforward_layernorm.weight" : "layers.%d.post_attention_layernorm.weight";
  if (c->norms_before || !c->norms_behind) {
    l->norm1 = find_norm(f, c, H, "layers.%d.input_layernorm.weight", "blk.%d.attn_norm.weight");
    l->norm2 =
        find_norm(f, c, H, second, c->post_named ? "blk.%d.post_attention_norm.weight" : "blk.%d.ffn_norm.weight");
  }
  if (!c->norms_behind) return;
  l->o_norm = find_norm(f, c, H, "layers.%d.post_attention_layernorm.weight", "blk.%d.post_attention_norm.weight");
  l->down_norm = find_norm(f, c, H, "layers.%d.post_feedforward_layernorm.weight", "blk.%d.post_ffw_norm.weight");
}

/* q, k and v in one matrix. */
static void find_fused(finder *f, const config *c, dt_layer *l) {
  const dt_shape *s = &c->shape;
  int H = s->hidden, A = s->heads * s->head_dim, G = s->kv_heads * s->head_dim;
  dt_matrix qkv = find_matrix(f, A + 2 * G, H, "layers.%d.self_attn.qkv_proj.weight", "blk.%d.attn_qkv.weight");
  l->q = dt_some_rows(qkv, 0, A);
  l->k = dt_some_rows(qkv, A, G);
  l->v = dt_some_rows(qkv, A + G, G);
}

/* Finds keys and values; a layer that reads those of another layer has none. */
static void find_keys(finder *f, const config *c, const dt_shape *s, dt_layer *l) {
  int H = s->hidden, G = s->kv_heads * s->head_dim;
  if (l->keys_of) return;
  l->k = of_heads(c, find_matrix(f, G, H, "layers.%d.self_attn.k_proj.weight", "blk.%d.attn_k.weight"));
  l->k_bias = of_heads(c, find_some(f, c->qkv_bias, G, "layers.%d.self_attn.k_proj.bias", "blk.%d.attn_k.bias"));
  if (has_no_values(f, c, l)) {
    l->v = l->k, l->v_bias = l->k_bias;
    return;
  }
  l->v = find_matrix(f, G, H, "layers.%d.self_attn.v_proj.weight", "blk.%d.attn_v.weight");
  l->v_bias = find_some(f, c->qkv_bias, G, "layers.%d.self_attn.v_proj.bias", "blk.%d.attn_v.bias");
}

static void find_apart(finder *f, const config *c, const dt_shape *s, dt_layer *l) {
  int H = s->hidden, A = s->heads * s->head_dim, parts = c->gated_heads ? 2 : 1;
  dt_matrix q = find_matrix(f, parts * A, H, "layers.%d.self_attn.q_proj.weight", "blk.%d.attn_q.weight");
  l->q = parts == 2 ? dt_part_of_heads(q, 2, 0, s->head_dim) : of_heads(c, q);
  if (parts == 2) l->q_gate = dt_part_of_heads(q, 2, 1, s->head_dim);
  l->q_bias = of_heads(c, find_some(f, c->qkv_bias, A, "layers.%d.self_attn.q_proj.bias", "blk.%d.attn_q.bias"));
  find_keys(f, c, s, l);
}

/* The MLP; gate and up may be in one matrix. */
static void find_mlp(finder *f, const config *c, const dt_shape *s, dt_layer *l) {
  int H = s->hidden, I = s->inter;
  if (c->fused) {
    dt_matrix both = find_matrix(f, 2 * I, H, "layers.%d.mlp.gate_up_proj.weight", "blk.%d.ffn_up.weight");
    l->gate = dt_part_of_rows(both, 2, 0);
    l->up = dt_part_of_rows(both, 2, 1);
  } else {
    l->gate = find_matrix(f, I, H, "layers.%d.mlp.gate_proj.weight", "blk.%d.ffn_gate.weight");
    l->up = find_matrix(f, I, H, "layers.%d.mlp.up_proj.weight", "blk.%d.ffn_up.weight");
  }
  l->gate_bias = find_some(f, c->mlp_bias, I, "layers.%d.mlp.gate_proj.bias", "blk.%d.ffn_gate.bias");
  l->up_bias = find_some(f, c->mlp_bias, I, "layers.%d.mlp.up_proj.bias", "blk.%d.ffn_up.bias");
  l->down = find_matrix(f, H, I, "layers.%d.mlp.down_proj.weight", "blk.%d.ffn_down.weight");
  l->down_bias = find_some(f, c->mlp_bias, H, "layers.%d.mlp.down_proj.bias", "blk.%d.ffn_down.bias");
}

static void find_head_norms(finder *f, const config *c, const dt_shape *s, dt_layer *l) {
  int queries = s->wide_norms ? s->heads * s->head_dim : s->head_dim;
  int of_keys = s->wide_norms ? s->kv_heads * s->head_dim : s->head_dim;
  l->q_norm = find_norm(f, c, queries, "layers.%d.self_attn.q_norm.weight", "blk.%d.attn_q_norm.weight");
  if (!l->keys_of)
    l->k_norm = find_norm(f, c, of_keys, "layers.%d.self_attn.k_norm.weight", "blk.%d.attn_k_norm.weight");
}

/* Finds the inputs that a layer reads for each token in addition to the stream. */
static void find_inputs(finder *f, const config *c, const dt_shape *s, dt_layer *l) {
  int H = s->hidden, P = s->inputs;
  l->input_gate = find_matrix(f, P, H, "layers.%d.per_layer_input_gate.weight", "blk.%d.inp_gate.weight");
  l->input_out = find_matrix(f, H, P, "layers.%d.per_layer_projection.weight", "blk.%d.proj.weight");
  l->input_norm = find_norm(f, c, H, "layers.%d.post_per_layer_input_norm.weight", "blk.%d.post_norm.weight");
}

static void find_attention(finder *f, const config *c, const dt_shape *s, dt_layer *l) {
  int H = s->hidden, A = s->heads * s->head_dim;
  if (c->fused)
    find_fused(f, c, l);
  else
    find_apart(f, c, s, l);
  if (c->normed_heads && (!c->perhaps_normed || find_is_there(f, NULL, "blk.%d.attn_q_norm.weight")))
    find_head_norms(f, c, s, l);
  l->o = find_matrix(f, H, A, "layers.%d.self_attn.o_proj.weight", "blk.%d.attn_output.weight");
  l->o_bias = find_some(f, c->attention_bias, H, "layers.%d.self_attn.o_proj.bias", "blk.%d.attn_output.bias");
  if (c->sinks) l->sinks = find_vector(f, s->heads, "layers.%d.self_attn.sinks", "blk.%d.attn_sinks.weight");
}

void llama_find_layer(finder *f, const config *c, dt_layer *l) {
  const dt_shape own = dt_shape_of(&c->shape, l), *s = &own;
  find_norms(f, c, l);
  if (l->delta)
    delta_find(f, s, l);
  else
    find_attention(f, c, s, l);
  if (l->expert) experts_find(f, c, s, l);
  if (!l->expert || c->beside_experts) find_mlp(f, c, s, l);
  if (s->inputs) find_inputs(f, c, s, l);
  if (c->scaled_layers) l->scale = find_vector(f, 1, "layers.%d.layer_scalar", "blk.%d.layer_output_scale.weight");
}

void llama_find(finder *f, const config *c, dt_model_desc *d, dt_layer *layers) {
  int V = c->shape.vocab, H = c->shape.hidden, L = c->shape.layers, P = c->shape.inputs;
  static const char *const prefixes[] = {"", "model.language_model.", "model."};
  for (int i = 0; i < 3 && !find_is_there(f, "embed_tokens.weight", "token_embd.weight"); i++) f->prefix = prefixes[i];
  d->embed = find_matrix(f, V, H, "embed_tokens.weight", "token_embd.weight");
  if (P) {
    d->inputs_embed = find_matrix(f, V, L * P, "embed_tokens_per_layer.weight", "per_layer_token_embd.weight");
    d->inputs_proj = find_matrix(f, L * P, H, "per_layer_model_projection.weight", "per_layer_model_proj.weight");
    d->inputs_norm = find_norm(f, c, P, "per_layer_projection_norm.weight", "per_layer_proj_norm.weight");
  }
  for (f->layer = 0; f->layer < L && f->status == DT_OK; f->layer++) llama_find_layer(f, c, &layers[f->layer]);
  d->final_norm = find_norm(f, c, H, "norm.weight", "output_norm.weight");
  f->prefix = "";
  bool own = !c->tied || find_is_there(f, "lm_head.weight", "output.weight");
  d->unembed = own ? find_matrix(f, V, H, "lm_head.weight", "output.weight") : d->embed;
}

/* Mistral's and Mixtral's models are called llama in a GGUF file, and OLMo 3's olmo2. */
#define SCALES "embedding_scale residual_scale attention.scale logit_scale"
#define CAP "final_logit_softcapping"
#define EXPERTS "num_experts num_local_experts expert_count"
extern const family llama, mistral, mixtral, qwen2, qwen3, qwen3moe, smollm3, granite, olmo2, olmo3, phi3, gemma2,
    gemma3;
const family llama = {"llama", "LlamaForCausalLM", "llama", "expert_count", read_llama, llama_find, NULL};
const family mistral = {"mistral", "MistralForCausalLM", NULL, "", read_mistral, llama_find, NULL};
const family mixtral = {"mixtral", "MixtralForCausalLM", NULL, EXPERTS, read_mixtral, llama_find, NULL};
const family qwen2 = {"qwen2", "Qwen2ForCausalLM", "qwen2", "", read_qwen2, llama_find, NULL};
const family qwen3 = {"qwen3", "Qwen3ForCausalLM", "qwen3", "", read_qwen3, llama_find, NULL};
const family qwen3moe = {"qwen3_moe", "Qwen3MoeForCausalLM", "qwen3moe", EXPERTS, read_qwen3moe, llama_find, NULL};
const family smollm3 = {"smollm3", "SmolLM3ForCausalLM", "smollm3", "", read_smollm3, llama_find, NULL};
const family granite = {"granite", "GraniteForCausalLM", "granite", SCALES, read_granite, llama_find, NULL};
const family olmo2 = {"olmo2", "Olmo2ForCausalLM", "olmo2", "", read_olmo2, llama_find, NULL};
const family olmo3 = {"olmo3", "Olmo3ForCausalLM", NULL, "", read_olmo3, llama_find, NULL};
const family phi3 = {"phi3", "Phi3ForCausalLM", "phi3", "rope.scaling.attn_factor", read_phi3, llama_find, NULL};
const family gemma2 = {"gemma2",    "Gemma2ForCausalLM", "gemma2", "attn_logit_softcapping " CAP,
                       read_gemma2, llama_find,          NULL};
const family gemma3 = {"gemma3_text", "Gemma3ForCausalLM", "gemma3", CAP, read_gemma3, llama_find, NULL};
