/* GPT-NeoX: Pythia and its relatives. A parallel residual (or, if configured, a sequential one), LayerNorm, one matrix
 * for q, k and v. */
#include "model/family.h"

/* Keys and defaults are those of transformers' GPTNeoXConfig, in all versions. */
static dt_status read_config(const keys *k, config *c) {
  dt_shape *s = &c->shape;
  double part = 0, eps = 0;
  dt_status status = DT_OK;
  s->norm = DT_NORM_LAYER;
  if (!status) status = config_int(k, "vocab_size", "vocab_size", CONFIG_MAX_SIZE, &s->vocab);
  if (!status) status = config_int(k, "hidden_size", "embedding_length", CONFIG_MAX_SIZE, &s->hidden);
  if (!status) status = config_int(k, "num_hidden_layers", "block_count", CONFIG_MAX_LAYERS, &s->layers);
  if (!status) status = config_int(k, "num_attention_heads", "attention.head_count", CONFIG_MAX_SIZE, &s->heads);
  if (!status) status = config_int(k, "intermediate_size", "feed_forward_length", CONFIG_MAX_SIZE, &s->inter);
  if (!status) status = config_int(k, "max_position_embeddings", "context_length", CONFIG_MAX_SIZE, &s->context);
  if (!status) status = config_act(k, "hidden_act", NULL, "gelu", &s->act);
  if (!status) status = config_number(k, "layer_norm_eps", "attention.layer_norm_epsilon", 1e-5, 0, 1, &eps);
  if (!status) status = config_rotation(k, "rotary_emb_base|rope_theta|rope_parameters.rope_theta", 10000, c);
  if (!status)
    status = config_number(k, "rotary_pct|partial_rotary_factor|rope_parameters.partial_rotary_factor", NULL, 0.25, 0,
                           1, &part);
  if (!status) status = config_bool(k, "use_parallel_residual", "use_parallel_residual", true, &s->parallel_residual);
  if (!status) status = config_bool(k, "attention_bias", NULL, true, &c->attention_bias);
  if (!status) status = config_bool(k, "tie_word_embeddings", NULL, false, &c->tied);
  if (!status) status = config_eos(k, c);
  if (status) return status;
  s->norm_eps = (float)eps;
  if (s->hidden % s->heads)
    return dt_fail(k->err, DT_EINPUT, "%s: hidden_size %d, expected a multiple of num_attention_heads %d", k->path,
                   s->hidden, s->heads);
  s->kv_heads = s->heads;
  s->head_dim = s->hidden / s->heads;
  status = config_int_or(k, NULL, "rope.dimension_count", (int)(s->head_dim * part), s->head_dim, &s->rotary_dims);
  if (status) return status;
  if (s->rotary_dims % 2)
    return dt_fail(k->err, DT_EINPUT,
                   "%s: rotary_pct %g of head size %d gives %d rotary dimensions, expected an even number", k->path,
                   part, s->head_dim, s->rotary_dims);
  return config_pairs(k, c);
}

/* One of q, k and v, which share a matrix: Hugging Face's files interleave them by heads, GGUF's have them one after
 * the other. */
static dt_matrix third(const finder *f, dt_matrix fused, int part, int head_dim) {
  return f->from->gguf ? dt_part_of_rows(fused, 3, part) : dt_part_of_heads(fused, 3, part, head_dim);
}

static void find_layer(finder *f, const config *c, dt_layer *l) {
  int H = c->shape.hidden, I = c->shape.inter, hd = c->shape.head_dim;
  l->norm1 = find_vector(f, H, "layers.%d.input_layernorm.weight", "blk.%d.attn_norm.weight");
  l->norm1_bias = find_vector(f, H, "layers.%d.input_layernorm.bias", "blk.%d.attn_norm.bias");
  l->norm2 = find_vector(f, H, "layers.%d.post_attention_layernorm.weight", "blk.%d.ffn_norm.weight");
  l->norm2_bias = find_vector(f, H, "layers.%d.post_attention_layernorm.bias", "blk.%d.ffn_norm.bias");
  dt_matrix qkv = find_matrix(f, 3 * H, H, "layers.%d.attention.query_key_value.weight", "blk.%d.attn_qkv.weight");
  l->q = third(f, qkv, 0, hd);
  l->k = third(f, qkv, 1, hd);
  l->v = third(f, qkv, 2, hd);
  l->o = find_matrix(f, H, H, "layers.%d.attention.dense.weight", "blk.%d.attn_output.weight");
  if (c->attention_bias) {
    qkv = find_vector(f, 3 * H, "layers.%d.attention.query_key_value.bias", "blk.%d.attn_qkv.bias");
    l->q_bias = third(f, qkv, 0, hd);
    l->k_bias = third(f, qkv, 1, hd);
    l->v_bias = third(f, qkv, 2, hd);
    l->o_bias = find_vector(f, H, "layers.%d.attention.dense.bias", "blk.%d.attn_output.bias");
  }
  l->up = find_matrix(f, I, H, "layers.%d.mlp.dense_h_to_4h.weight", "blk.%d.ffn_up.weight");
  l->up_bias = find_vector(f, I, "layers.%d.mlp.dense_h_to_4h.bias", "blk.%d.ffn_up.bias");
  l->down = find_matrix(f, H, I, "layers.%d.mlp.dense_4h_to_h.weight", "blk.%d.ffn_down.weight");
  l->down_bias = find_vector(f, H, "layers.%d.mlp.dense_4h_to_h.bias", "blk.%d.ffn_down.bias");
}

static void find(finder *f, const config *c, dt_model_desc *d, dt_layer *layers) {
  int V = c->shape.vocab, H = c->shape.hidden;
  if (!find_is_there(f, "embed_in.weight", "token_embd.weight")) f->prefix = "gpt_neox.";
  d->embed = find_matrix(f, V, H, "embed_in.weight", "token_embd.weight");
  for (f->layer = 0; f->layer < c->shape.layers && f->status == DT_OK; f->layer++) find_layer(f, c, &layers[f->layer]);
  d->final_norm = find_vector(f, H, "final_layer_norm.weight", "output_norm.weight");
  d->final_norm_bias = find_vector(f, H, "final_layer_norm.bias", "output_norm.bias");
  f->prefix = "";
  bool newer = find_is_there(f, "lm_head.weight", NULL); /* both names are in use */
  const char *head = newer ? "lm_head.weight" : "embed_out.weight";
  bool own = newer || !c->tied || find_is_there(f, head, "output.weight");
  d->unembed = own ? find_matrix(f, V, H, head, "output.weight") : d->embed;
}

extern const family gpt_neox;
const family gpt_neox = {"gpt_neox", "GPTNeoXForCausalLM", "gptneox", "", read_config, find, NULL};
