/* Llama and its relatives Mistral, Qwen2, Qwen3: a sequential residual, RMS norms, a gated MLP, grouped heads. They
 * differ in biases, norms of the heads, windows and one or two defaults. */
#include "model/family.h"

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
  if (s->heads % s->kv_heads)
    return dt_fail(k->err, DT_EINPUT, "%s: %d heads cannot share %d key heads", k->path, s->heads, s->kv_heads);
  if (s->head_dim % 2 || s->head_dim < 2)
    return dt_fail(k->err, DT_EINPUT, "%s: heads of %d numbers, expected an even number", k->path, s->head_dim);
  if (values != s->head_dim)
    return dt_fail(k->err, DT_EINPUT, "%s: keys of %d numbers but values of %d, expected the same", k->path,
                   s->head_dim, values);
  return DT_OK;
}

/* Reads the keys that all four have, with the same defaults. */
static dt_status read_common(const keys *k, int usual_head_dim, config *c) {
  dt_shape *s = &c->shape;
  double part = 0, eps = 0;
  s->norm = DT_NORM_RMS;
  s->gated = true;
  dt_status status = config_int(k, "vocab_size", "vocab_size", CONFIG_MAX_SIZE, &s->vocab);
  if (!status) status = config_int(k, "hidden_size", "embedding_length", CONFIG_MAX_SIZE, &s->hidden);
  if (!status) status = config_int(k, "num_hidden_layers", "block_count", CONFIG_MAX_LAYERS, &s->layers);
  if (!status) status = config_int(k, "intermediate_size", "feed_forward_length", CONFIG_MAX_SIZE, &s->inter);
  if (!status) status = config_int(k, "max_position_embeddings", "context_length", CONFIG_MAX_SIZE, &s->context);
  if (!status) status = read_heads(k, usual_head_dim, s);
  if (!status) status = config_act(k, "hidden_act", NULL, "silu", &s->act);
  if (!status) status = config_number(k, "rms_norm_eps", "attention.layer_norm_rms_epsilon", 1e-6, 0, 1, &eps);
  if (!status) status = config_rotation(k, "rope_theta|rope_parameters.rope_theta", &c->rotation);
  if (!status)
    status = config_number(k, "partial_rotary_factor|rope_parameters.partial_rotary_factor", NULL, 1, 0, 1, &part);
  if (!status)
    status = config_int_or(k, NULL, "rope.dimension_count", (int)(s->head_dim * part), s->head_dim, &s->rotary_dims);
  if (!status) status = config_bool(k, "tie_word_embeddings", NULL, k->gguf, &c->tied);
  if (!status) status = config_eos(k, c);
  s->norm_eps = (float)eps;
  if (!status && s->rotary_dims % 2)
    status = dt_fail(k->err, DT_EINPUT, "%s: %d rotary dimensions of %d, expected an even number", k->path,
                     s->rotary_dims, s->head_dim);
  return status;
}

static dt_status read_llama(const keys *k, config *c) {
  dt_status status = read_common(k, 0, c);
  if (!status) status = config_bool(k, "attention_bias", NULL, false, &c->attention_bias);
  if (!status) status = config_bool(k, "mlp_bias", NULL, false, &c->mlp_bias);
  c->qkv_bias = c->attention_bias;
  c->zipped_heads = k->gguf;
  return status ? status : config_window(k, NULL, false, c);
}

static dt_status read_mistral(const keys *k, config *c) {
  dt_status status = read_common(k, 0, c);
  return status ? status : config_window(k, NULL, true, c);
}

static dt_status read_qwen2(const keys *k, config *c) {
  c->qkv_bias = true;
  dt_status status = read_common(k, 0, c);
  return status ? status : config_window(k, "use_sliding_window", true, c);
}

static dt_status read_qwen3(const keys *k, config *c) {
  c->normed_heads = true;
  dt_status status = read_common(k, k->gguf ? 0 : 128, c);
  if (!status) status = config_bool(k, "attention_bias", NULL, false, &c->attention_bias);
  c->qkv_bias = c->attention_bias;
  return status ? status : config_window(k, "use_sliding_window", true, c);
}

/* A vector that only some models have; a GGUF file has it or not. */
static dt_matrix find_some(finder *f, bool wanted, int n, const char *hf, const char *in_gguf) {
  if (f->from->gguf) wanted = find_is_there(f, hf, in_gguf);
  return wanted ? find_vector(f, n, hf, in_gguf) : (dt_matrix){0};
}

/* Rows of queries or keys; see dt_matrix. */
static dt_matrix of_heads(const config *c, dt_matrix m) {
  return m.source && c->zipped_heads ? dt_zipped_heads(m, c->shape.head_dim) : m;
}

static void find_layer(finder *f, const config *c, dt_layer *l) {
  const dt_shape *s = &c->shape;
  int H = s->hidden, I = s->inter, hd = s->head_dim, A = s->heads * hd, G = s->kv_heads * hd;
  l->norm1 = find_vector(f, H, "layers.%d.input_layernorm.weight", "blk.%d.attn_norm.weight");
  l->q = of_heads(c, find_matrix(f, A, H, "layers.%d.self_attn.q_proj.weight", "blk.%d.attn_q.weight"));
  l->k = of_heads(c, find_matrix(f, G, H, "layers.%d.self_attn.k_proj.weight", "blk.%d.attn_k.weight"));
  l->v = find_matrix(f, G, H, "layers.%d.self_attn.v_proj.weight", "blk.%d.attn_v.weight");
  l->q_bias = of_heads(c, find_some(f, c->qkv_bias, A, "layers.%d.self_attn.q_proj.bias", "blk.%d.attn_q.bias"));
  l->k_bias = of_heads(c, find_some(f, c->qkv_bias, G, "layers.%d.self_attn.k_proj.bias", "blk.%d.attn_k.bias"));
  l->v_bias = find_some(f, c->qkv_bias, G, "layers.%d.self_attn.v_proj.bias", "blk.%d.attn_v.bias");
  if (c->normed_heads) {
    l->q_norm = find_vector(f, hd, "layers.%d.self_attn.q_norm.weight", "blk.%d.attn_q_norm.weight");
    l->k_norm = find_vector(f, hd, "layers.%d.self_attn.k_norm.weight", "blk.%d.attn_k_norm.weight");
  }
  l->o = find_matrix(f, H, A, "layers.%d.self_attn.o_proj.weight", "blk.%d.attn_output.weight");
  l->o_bias = find_some(f, c->attention_bias, H, "layers.%d.self_attn.o_proj.bias", "blk.%d.attn_output.bias");
  l->norm2 = find_vector(f, H, "layers.%d.post_attention_layernorm.weight", "blk.%d.ffn_norm.weight");
  l->gate = find_matrix(f, I, H, "layers.%d.mlp.gate_proj.weight", "blk.%d.ffn_gate.weight");
  l->up = find_matrix(f, I, H, "layers.%d.mlp.up_proj.weight", "blk.%d.ffn_up.weight");
  l->down = find_matrix(f, H, I, "layers.%d.mlp.down_proj.weight", "blk.%d.ffn_down.weight");
  l->gate_bias = find_some(f, c->mlp_bias, I, "layers.%d.mlp.gate_proj.bias", "blk.%d.ffn_gate.bias");
  l->up_bias = find_some(f, c->mlp_bias, I, "layers.%d.mlp.up_proj.bias", "blk.%d.ffn_up.bias");
  l->down_bias = find_some(f, c->mlp_bias, H, "layers.%d.mlp.down_proj.bias", "blk.%d.ffn_down.bias");
}

static void find(finder *f, const config *c, dt_model_desc *d, dt_layer *layers) {
  int V = c->shape.vocab, H = c->shape.hidden;
  if (!find_is_there(f, "embed_tokens.weight", "token_embd.weight")) f->prefix = "model.";
  d->embed = find_matrix(f, V, H, "embed_tokens.weight", "token_embd.weight");
  for (f->layer = 0; f->layer < c->shape.layers && f->status == DT_OK; f->layer++) find_layer(f, c, &layers[f->layer]);
  d->final_norm = find_vector(f, H, "norm.weight", "output_norm.weight");
  f->prefix = "";
  bool own = !c->tied || find_is_there(f, "lm_head.weight", "output.weight");
  d->unembed = own ? find_matrix(f, V, H, "lm_head.weight", "output.weight") : d->embed;
}

/* A Mistral model is called llama in a GGUF file. */
extern const family llama, mistral, qwen2, qwen3;
const family llama = {"llama", "LlamaForCausalLM", "llama", read_llama, find};
const family mistral = {"mistral", "MistralForCausalLM", NULL, read_mistral, find};
const family qwen2 = {"qwen2", "Qwen2ForCausalLM", "qwen2", read_qwen2, find};
const family qwen3 = {"qwen3", "Qwen3ForCausalLM", "qwen3", read_qwen3, find};
