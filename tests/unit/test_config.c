#include "model/family.h"
#include "system/json_file.h"
#include "temp_files.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SIZES                                                                                                          \
  "\"vocab_size\":50304,\"hidden_size\":2560,\"num_hidden_layers\":32,\"num_attention_heads\":32,"                     \
  "\"intermediate_size\":10240,\"max_position_embeddings\":2048"
#define NEOX "\"architectures\":[\"GPTNeoXForCausalLM\"],\"model_type\":\"gpt_neox\"," SIZES

static dt_status read_text(const char *text, config *c, dt_error *err) {
  char *folder = temp_folder(), path[256];
  temp_write(folder, "config.json", text, strlen(text));
  snprintf(path, sizeof path, "%s/config.json", folder);
  cJSON *json = NULL;
  const family *kin;
  config read = {0};
  dt_status status = json_read_object(path, &json, err);
  keys k = {.path = path, .json = json, .err = err};
  if (status == DT_OK) status = family_find(&k, &kin);
  if (status == DT_OK) status = kin->read(&k, &read);
  if (status == DT_OK) *c = read;
  cJSON_Delete(json);
  temp_remove(folder);
  return status;
}

static config reads(const char *text) {
  config c;
  dt_error err = {0};
  dt_status status = read_text(text, &c, &err);
  if (status != DT_OK) print_error("%s\n", err.message);
  assert_int_equal(status, DT_OK);
  return c;
}

static void fails(const char *text, const char *part) {
  config c, before;
  memset(&c, 0x5a, sizeof c);
  memset(&before, 0x5a, sizeof before);
  dt_error err = {0};
  dt_status status = read_text(text, &c, &err);
  if (status != DT_EINPUT || !strstr(err.message, part)) print_error("message: %s\nlacks:   %s\n", err.message, part);
  assert_int_equal(status, DT_EINPUT);
  assert_non_null(strstr(err.message, part));
  assert_non_null(strstr(err.message, "/config.json: "));
  assert_null(strchr(err.message, '\n'));
  assert_memory_equal(&c, &before, sizeof c);
}

static void keys_that_are_absent_or_null_have_hugging_face_s_defaults(void **state) {
  (void)state;
  static const char *const text[] = {
      "{" NEOX "}",
      "{" NEOX
      ",\"hidden_act\":null,\"layer_norm_eps\":null,\"rotary_pct\":null,\"rotary_emb_base\":null,\"rope_scaling\":null,"
      "\"rope_parameters\":null,\"use_parallel_residual\":null,\"attention_bias\":null,\"tie_word_embeddings\":null,"
      "\"eos_token_id\":null}"};
  for (int i = 0; i < 2; i++) {
    config c = reads(text[i]);
    assert_int_equal(c.shape.vocab, 50304);
    assert_int_equal(c.shape.hidden, 2560);
    assert_int_equal(c.shape.layers, 32);
    assert_int_equal(c.shape.heads, 32);
    assert_int_equal(c.shape.kv_heads, 32);
    assert_int_equal(c.shape.head_dim, 80);
    assert_int_equal(c.shape.inter, 10240);
    assert_int_equal(c.shape.context, 2048);
    assert_int_equal(c.shape.rotary_dims, 20);
    assert_true(c.rotation.base == 10000 && c.shape.norm_eps == 1e-5f);
    assert_int_equal(c.shape.norm, DT_NORM_LAYER);
    assert_int_equal(c.shape.act, DT_ACT_GELU_ERF);
    assert_true(c.shape.parallel_residual && c.attention_bias && !c.tied);
    assert_int_equal(c.n_eos, 0);
  }
}

static void rotation_is_read_in_every_spelling(void **state) {
  (void)state;
  static const char *const text[] = {
      "{" NEOX ",\"rotary_emb_base\":5000,\"rotary_pct\":0.5}",
      "{" NEOX ",\"rope_theta\":5000.0,\"partial_rotary_factor\":0.5}",
      "{" NEOX ",\"rope_theta\":5000,\"partial_rotary_factor\":0.5,\"rotary_emb_base\":5000,\"rotary_pct\":0.5}",
      "{" NEOX ",\"rope_parameters\":{\"rope_theta\":5000,\"partial_rotary_factor\":0.5}}",
      "{" NEOX ",\"rope_parameters\":{\"rope_theta\":5000,\"partial_rotary_factor\":0.5,\"rope_type\":\"default\"}}",
      "{" NEOX ",\"rotary_emb_base\":5000,\"rotary_pct\":0.5,\"rope_scaling\":{\"type\":\"default\"}}"};
  for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
    config c = reads(text[i]);
    assert_true(c.rotation.base == 5000);
    assert_int_equal(c.shape.rotary_dims, 40);
  }
}

static void spellings_that_disagree_are_refused(void **state) {
  (void)state;
  fails("{" NEOX ",\"rotary_emb_base\":10000,\"rope_theta\":5000}",
        "rotary_emb_base is 10000 but rope_theta is 5000, expected the same value");
  fails("{" NEOX ",\"rotary_pct\":1,\"rope_parameters\":{\"partial_rotary_factor\":0.5}}",
        "rotary_pct is 1 but rope_parameters.partial_rotary_factor is 0.5, expected the same value");
}

static void stretched_positions_are_read(void **state) {
  (void)state;
  config c = reads("{" NEOX "}");
  assert_true(c.rotation.factor == 1 && c.rotation.original == 0);
  c = reads("{" NEOX ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.0}}");
  assert_true(c.rotation.factor == 2 && c.rotation.original == 0);
  c = reads("{" NEOX ",\"rope_parameters\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,"
            "\"high_freq_factor\":4,\"original_max_position_embeddings\":8192,\"rope_theta\":5e5}}");
  assert_true(c.rotation.factor == 8 && c.rotation.low == 1 && c.rotation.high == 4 && c.rotation.original == 8192);
  assert_true(c.rotation.base == 5e5);
  fails("{" NEOX ",\"rope_scaling\":{\"type\":\"linear\"}}", "rope_scaling.factor is missing");
  fails("{" NEOX ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":0.5}}",
        "rope_scaling.factor: expected a number from 1 to 1e+06");
  fails("{" NEOX ",\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":1,"
        "\"original_max_position_embeddings\":8192}}",
        "low_freq_factor is 1, expected less than high_freq_factor, 1");
}

static void rotations_that_are_not_computed_are_refused(void **state) {
  (void)state;
  fails(
      "{" NEOX ",\"rope_scaling\":{\"factor\":2.0}}",
      "rope_scaling of type \"(none)\" is not supported; supported: default, linear, dynamic, llama3, yarn, longrope, "
      "proportional, or null");
  fails("{" NEOX ",\"rope_scaling\":{\"rope_type\":\"yarn\"}}", "rope_scaling.factor is missing");
  fails("{" NEOX ",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4}}",
        "rope_scaling.original_max_position_embeddings is missing");
  fails("{" NEOX ",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4,\"original_max_position_embeddings\":32,"
        "\"beta_fast\":1,\"beta_slow\":2}}",
        "beta_slow is 2, expected at most beta_fast, 1");
  fails("{" NEOX ",\"rope_parameters\":{\"rope_type\":\"dynamic\"}}", "rope_scaling.factor is missing");
  fails("{" NEOX ",\"rope_scaling\":{\"type\":\"longrope\"}}",
        "rope_scaling.original_max_position_embeddings is missing");
  fails("{" NEOX ",\"rope_scaling\":{\"type\":\"mrope\"}}",
        "rope_scaling of type \"mrope\" (positions in images) is not supported");
  fails("{" NEOX
        ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2},\"rope_parameters\":{\"rope_type\":\"default\"}}",
        "rope_scaling of type \"linear\" but rope_parameters of \"default\", expected the same");
  fails("{" NEOX ",\"rope_scaling\":2}", "rope_scaling: expected an object or null");
}

#define MISTRAL                                                                                                        \
  "\"model_type\":\"mistral\",\"vocab_size\":32000,\"hidden_size\":96,\"num_hidden_layers\":2,"                        \
  "\"num_attention_heads\":6,\"intermediate_size\":130,\"max_position_embeddings\":32768"
#define QWEN(n)                                                                                                        \
  "\"model_type\":\"qwen" n "\",\"vocab_size\":32000,\"hidden_size\":96,\"num_hidden_layers\":2,"                      \
  "\"num_attention_heads\":6,\"intermediate_size\":130,\"max_position_embeddings\":32768"

static void scales_of_yarn_are_those_of_transformers(void **state) {
  (void)state;
#define YARN "\"rope_type\":\"yarn\",\"factor\":4,\"original_max_position_embeddings\":32"
  config c = reads("{" NEOX ",\"rope_scaling\":{" YARN "}}");
  assert_true(c.rotation.yarn && c.rotation.whole && c.rotation.low == 1 && c.rotation.high == 32);
  assert_true(fabs(c.rotation.scale - 1.1386294361119891) < 1e-12);
  c = reads("{" NEOX ",\"rope_scaling\":{" YARN ",\"mscale\":1,\"mscale_all_dim\":1,\"truncate\":false}}");
  assert_true(c.rotation.scale == 1 && !c.rotation.whole);
  c = reads("{" NEOX ",\"rope_scaling\":{" YARN ",\"attention_factor\":0.5}}");
  assert_true(c.rotation.scale == 0.5);
}

#define OF(type)                                                                                                       \
  "\"model_type\":\"" type "\",\"vocab_size\":100,\"hidden_size\":96,\"num_hidden_layers\":6,"                         \
  "\"num_attention_heads\":6,\"intermediate_size\":130,\"max_position_embeddings\":512"

/* NeoX: 20 rotary dimensions, so 10 pairs; a context of 2048. */
static void scales_of_longrope_are_those_of_its_models(void **state) {
  (void)state;
#define TENS "[1,1,1,1,1,1,1,1,1,10]"
#define LONGROPE "\"rope_type\":\"longrope\",\"short_factor\":[1,1,1,1,1,1,1,1,1,1],\"long_factor\":" TENS
#define AT(n) ",\"original_max_position_embeddings\":" n
  config c = reads("{" NEOX AT("512") ",\"rope_scaling\":{" LONGROPE "}}");
  assert_true(fabs(c.rotation.scale - sqrt(1 + log(4) / log(512))) < 1e-12 && c.rotation.by[9] == 10);
  c = reads("{" NEOX ",\"rope_parameters\":{\"factor\":8" AT("512") "," LONGROPE "}}");
  assert_true(fabs(c.rotation.scale - sqrt(1 + log(8) / log(512))) < 1e-12);
  c = reads("{" NEOX AT("2048") ",\"rope_scaling\":{" LONGROPE "}}");
  assert_true(c.rotation.scale == 0 && c.rotation.by[9] == 1 && c.rotation.context == 2048);
  c = reads("{" NEOX AT("4096") ",\"rope_scaling\":{" LONGROPE "}}");
  assert_true(c.rotation.scale == 0 && c.rotation.by[9] == 1);
  c = reads("{" NEOX AT("512") ",\"rope_scaling\":{" LONGROPE ",\"long_mscale\":1.5,\"short_mscale\":1.25}}");
  assert_true(c.rotation.scale == 1.5);
  c = reads("{" NEOX AT("2048") ",\"rope_scaling\":{" LONGROPE ",\"long_mscale\":1.5,\"short_mscale\":1.25}}");
  assert_true(c.rotation.scale == 1.25);
  c = reads("{" NEOX AT("512") ",\"rope_scaling\":{" LONGROPE ",\"long_mscale\":1.5,\"attention_factor\":0.5}}");
  assert_true(c.rotation.scale == 0.5);
}

static void layers_with_a_window_are_read(void **state) {
  (void)state;
  config c = reads("{" OF("gemma3_text") ",\"sliding_window\":7}");
  for (int i = 0; i < 6; i++) assert_true(c.local[i] == (i < 5));
  assert_true(c.window == 7 && c.shape.context == 512 && c.shape.window == 0 && c.two_rotations);
  assert_true(c.rotation.base == 1e6 && c.local_rotation.base == 10000 && c.norm_plus == 1 && c.tied);
  c = reads("{" OF("gemma2") "}");
  for (int i = 0; i < 6; i++) assert_true(c.local[i] == (i % 2 == 0));
  assert_true(c.window == 4096 && c.shape.score_cap == 50 && c.shape.logit_cap == 30 && c.shape.head_dim == 256);
  c = reads("{" OF("gemma2") ",\"attn_logit_softcapping\":null,\"final_logit_softcapping\":null}");
  assert_true(c.shape.score_cap == 0 && c.shape.logit_cap == 0);
  c = reads("{" OF("olmo3") ",\"sliding_window\":7,\"layer_types\":[\"full_attention\",\"sliding_attention\","
                            "\"full_attention\",\"full_attention\",\"full_attention\",\"sliding_attention\"]}");
  for (int i = 0; i < 6; i++) assert_true(c.local[i] == (i == 1 || i == 5));
  c = reads("{" OF("olmo2") "}");
  assert_true(c.window == 0 && !c.two_rotations && c.shape.wide_norms);
  c = reads("{" OF("phi3") ",\"sliding_window\":9}");
  for (int i = 0; i < 6; i++) assert_true(c.local[i]);
  c = reads("{" OF("smollm3") ",\"sliding_window\":9}");
  for (int i = 0; i < 6; i++) assert_true(c.still[i] == (i == 3) && !c.local[i]);
}

static void mistakes_in_lists_of_layers_are_named(void **state) {
  (void)state;
  fails("{" OF("olmo3") ",\"layer_types\":[\"full_attention\"]}",
        "layer_types: found 1 elements, expected one for each of 6");
  fails("{" OF("gemma3_text") ",\"layer_types\":[\"chunked_attention\"]}",
        "layer_types: layer 0: expected \"sliding_attention\" or \"full_attention\"");
  fails("{" OF("gemma2") ",\"layer_types\":[7]}", "layer_types: layer 0: expected");
  fails("{" OF("smollm3") ",\"no_rope_layers\":[1,1,1,1,1,1,1]}", "no_rope_layers: found 7 elements");
  fails("{" OF("smollm3") ",\"no_rope_layers\":[1,2]}", "no_rope_layers: layer 1: expected 1 (it rotates) or 0");
  fails("{" OF("smollm3") ",\"no_rope_layer_interval\":0}", "no_rope_layer_interval: expected a whole number from 1");
  fails("{" OF("gemma2") ",\"sliding_window\":-1}", "sliding_window: expected a whole number from 0");
  fails("{" OF("gemma2") ",\"attn_logit_softcapping\":-2}", "attn_logit_softcapping: expected a number from 0");
  fails("{" OF("gemma3_text") ",\"attn_logit_softcapping\":50}",
        "attn_logit_softcapping: a cap on attention is not supported");
  fails("{" OF("gemma2") ",\"query_pre_attn_scalar\":0}", "query_pre_attn_scalar: expected a number");
  fails("{" OF("gemma3_text") ",\"use_bidirectional_attention\":true}",
        "use_bidirectional_attention is not supported: a row can only see earlier rows");
  fails("{" OF("gemma3_text") ",\"rope_parameters\":{\"sliding_attention\":{\"rope_type\":\"dynamic\",\"factor\":2}}}",
        "rope_parameters.sliding_attention of type \"dynamic\" is not supported; supported: default, linear, llama3");
  fails("{" OF("gemma3_text") ",\"rope_parameters\":{\"sliding_attention\":{\"rope_type\":\"linear\"}}}",
        "rope_parameters.sliding_attention.factor is missing");
  fails("{" OF("phi3") ",\"rope_scaling\":{" YARN "}}", "the type \"yarn\" means \"longrope\" in this family");
  fails("{" OF("granite") ",\"embedding_multiplier\":\"twelve\"}", "embedding_multiplier: expected a number");
  fails("{" OF("granite") ",\"residual_multiplier\":0}", "residual_multiplier: expected a number from 1e-06 to 1e+06");
  fails("{" OF("granite") ",\"num_local_experts\":4}", "num_local_experts: a mixture of experts is not supported");
  fails("{" OF("llama") ",\"final_logit_softcapping\":30}",
        "final_logit_softcapping: a cap on logits is not supported");
}

#define MOE(more)                                                                                                      \
  "{" OF("qwen3_moe") ",\"num_experts\":8,\"num_experts_per_tok\":2,\"moe_intermediate_size\":20" more "}"
#define MIXTRAL(more) "{" OF("mixtral") more "}"

static void experts_are_read(void **state) {
  (void)state;
  config c = reads(MOE(""));
  assert_true(c.shape.experts == 8 && c.shape.chosen == 2 && c.shape.expert_inter == 20 && c.shape.inter == 130);
  assert_true(!c.shape.chosen_only && c.normed_heads && c.shape.head_dim == 16);
  for (int i = 0; i < 6; i++) assert_false(c.dense[i]);
  c = reads(MOE(",\"norm_topk_prob\":true,\"decoder_sparse_step\":2,\"mlp_only_layers\":[5,0]"));
  for (int i = 0; i < 6; i++) assert_true(c.dense[i] == (i % 2 == 0 || i == 5));
  assert_true(c.shape.chosen_only);
  c = reads(MIXTRAL(",\"num_local_experts\":512,\"num_experts_per_tok\":512"));
  assert_true(c.shape.experts == 512 && c.shape.chosen == 512 && c.shape.expert_inter == 130 && c.shape.chosen_only);
  assert_true(c.rotation.base == 1e6 && c.shape.norm_eps == 1e-5f && !c.normed_heads);
  assert_int_equal(reads(MIXTRAL(",\"num_local_experts\":1,\"num_experts_per_tok\":1")).shape.experts, 1);
}

static void mistakes_in_experts_are_named(void **state) {
  (void)state;
  fails(MIXTRAL(",\"num_experts_per_tok\":2"), "num_experts is missing");
  fails(MIXTRAL(",\"num_local_experts\":8"), "num_experts_per_tok is missing");
  fails(MIXTRAL(",\"num_local_experts\":0,\"num_experts_per_tok\":2"),
        "num_local_experts: expected a whole number from 1 to 512");
  fails(MIXTRAL(",\"num_local_experts\":513,\"num_experts_per_tok\":2"),
        "num_local_experts: expected a whole number from 1 to 512");
  fails(MIXTRAL(",\"num_local_experts\":8,\"num_experts_per_tok\":0"),
        "num_experts_per_tok: expected a whole number from 1 to 8");
  fails(MIXTRAL(",\"num_local_experts\":8,\"num_experts_per_tok\":9"),
        "num_experts_per_tok: expected a whole number from 1 to 8");
  fails(MIXTRAL(",\"num_local_experts\":8,\"num_experts_per_tok\":1.5"),
        "num_experts_per_tok: expected a whole number from 1 to 8");
  fails("{" OF("qwen3_moe") ",\"num_experts\":512,\"num_experts_per_tok\":2,\"moe_intermediate_size\":524289}",
        "512 experts of 524289 numbers, expected at most 268435456 numbers in total");
  reads("{" OF("qwen3_moe") ",\"num_experts\":512,\"num_experts_per_tok\":2,\"moe_intermediate_size\":524288}");
  fails(MOE(",\"norm_topk_prob\":1"), "norm_topk_prob: expected true or false");
  fails(MOE(",\"decoder_sparse_step\":0"), "decoder_sparse_step: expected a whole number from 1");
  fails(MOE(",\"mlp_only_layers\":3"), "mlp_only_layers: expected a list of layers");
  fails(MOE(",\"mlp_only_layers\":[6]"), "mlp_only_layers: expected layers from 0 to 5");
  fails(MOE(",\"mlp_only_layers\":[-1]"), "mlp_only_layers: expected layers from 0 to 5");
  fails(MOE(",\"mlp_only_layers\":[1.5]"), "mlp_only_layers: expected layers from 0 to 5");
  fails(MOE(",\"mlp_only_layers\":[\"0\"]"), "mlp_only_layers: expected layers from 0 to 5");
  fails(MOE(",\"n_shared_experts\":1"), "n_shared_experts: a shared expert is not supported");
}

#define GEMMA4 OF("gemma4_text") ",\"hidden_size_per_layer_input\":0,\"num_key_value_heads\":2"
/* Six layers. The default has five with a window and one without; here each kind has three. */
#define HALVES                                                                                                         \
  ",\"layer_types\":[\"sliding_attention\",\"full_attention\",\"sliding_attention\",\"full_attention\","               \
  "\"sliding_attention\",\"full_attention\"]"

static void layers_of_gemma_4_have_sizes_of_their_own(void **state) {
  (void)state;
  config c = reads("{" GEMMA4 "}");
  for (int i = 0; i < 6; i++)
    assert_true(c.local[i] == (i < 5) && c.head_dim[i] == (i < 5 ? 256 : 512) && c.kv_heads[i] == 2 && !c.keys_of[i] &&
                c.inter[i] == 130);
  assert_true(c.shape.head_dim == 512 && c.shape.rotary_dims == 512 && c.shape.local_dims == 256 && !c.shape.inputs);
  assert_true(c.rotation.base == 1e6 && c.rotation.part == 0.25 && c.local_rotation.base == 10000 && c.window == 512);
  assert_true(c.shape.normed_values && c.shape.attention_scale == 1 && c.norm_plus == 0 && !c.values_are_keys);
  assert_int_equal(reads("{" OF("gemma4_text") ",\"num_key_value_heads\":3}").shape.inputs, 256);
  assert_int_equal(
      reads("{" OF("gemma4_text") ",\"num_key_value_heads\":3,\"hidden_size_per_layer_input\":null}").shape.inputs, 0);
}

static void last_layers_of_gemma_4_read_keys_of_their_kind(void **state) {
  (void)state;
  config c = reads("{" GEMMA4 HALVES ",\"num_kv_shared_layers\":3,\"use_double_wide_mlp\":true}");
  const int of[6] = {0, 0, 0, 2, 3, 2};
  for (int i = 0; i < 6; i++) assert_true(c.keys_of[i] == of[i] && c.inter[i] == (i < 3 ? 130 : 260));
  assert_int_equal(c.shape.inter, 260);
  c = reads("{" GEMMA4 HALVES ",\"attention_k_eq_v\":true,\"num_global_key_value_heads\":1,\"global_head_dim\":32}");
  for (int i = 0; i < 6; i++) assert_true(c.kv_heads[i] == 2 - i % 2 && c.head_dim[i] == (i % 2 ? 32 : 256));
  c = reads("{" GEMMA4 HALVES ",\"num_global_key_value_heads\":1}");
  assert_int_equal(c.kv_heads[1], 2); /* without attention_k_eq_v the key has no effect */
  c = reads("{" GEMMA4 HALVES
            ",\"per_layer_config\":{\"1\":{\"head_dim\":8},\"3\":{\"head_dim\":8},\"5\":{\"head_dim\":8,"
            "\"num_key_value_heads\":1}}}");
  assert_true(c.head_dim[0] == 256 && c.head_dim[5] == 8 && c.kv_heads[3] == 2 && c.kv_heads[5] == 1);
}

static void mistakes_in_a_gemma_4_are_named(void **state) {
  (void)state;
  fails("{" GEMMA4 ",\"enable_moe_block\":true}", "num_experts is missing");
  fails("{" GEMMA4 ",\"enable_moe_block\":true,\"num_experts\":513}",
        "num_experts: expected a whole number from 1 to 512");
  fails("{" GEMMA4 ",\"use_bidirectional_attention\":\"all\"}",
        "use_bidirectional_attention is not supported: a row can only see earlier rows");
  fails("{\"model_type\":\"gemma4\",\"vision_config\":{}}", "text_config: expected an object");
  fails("{\"model_type\":\"gemma4\",\"text_config\":{" GEMMA4 ",\"enable_moe_block\":true,\"num_experts\":8}}",
        "num_experts_per_tok is missing");
  fails("{\"model_type\":\"gemma4\",\"text_config\":{}}", "vocab_size is missing");
  fails("{" GEMMA4 ",\"vision_config\":{}}", "vision_config: models that read images are not supported");
  fails("{" GEMMA4 ",\"sliding_window\":0}", "sliding_window: expected at least 1");
  fails("{" GEMMA4 ",\"num_kv_shared_layers\":6}", "num_kv_shared_layers: expected a whole number from 0 to 5");
  fails("{" GEMMA4 ",\"num_kv_shared_layers\":1}",
        "layer 5 reads the keys of an earlier layer of its kind, expected one that has its own keys");
  fails("{" GEMMA4 ",\"num_kv_shared_layers\":-1}", "num_kv_shared_layers: expected a whole number from 0 to 5");
  fails("{" GEMMA4 ",\"num_kv_shared_layers\":1.5}", "num_kv_shared_layers: expected a whole number from 0 to 5");
  fails("{" OF("gemma4_text") ",\"hidden_size_per_layer_input\":1.5}",
        "hidden_size_per_layer_input: expected a whole number from 0 to");
  fails("{" GEMMA4 ",\"global_head_dim\":2796204}",
        "6 heads of 2796204 numbers, expected at most 16777216 numbers in total");
  assert_int_equal(reads("{" GEMMA4 ",\"global_head_dim\":2796202}").shape.head_dim, 2796202);
  fails("{" GEMMA4 ",\"head_dim\":15}", "heads of 15 numbers, expected an even number");
  fails("{" GEMMA4 ",\"global_head_dim\":17}", "heads of 17 numbers, expected an even number");
  fails("{" OF("gemma4_text") ",\"num_key_value_heads\":4}", "6 heads, expected a multiple of 4 key heads");
  fails("{" OF("gemma4_text") ",\"num_key_value_heads\":[2]}", "num_key_value_heads: expected a whole number");
  fails("{" GEMMA4 HALVES ",\"per_layer_config\":{\"1\":{\"head_dim\":8}}}",
        "layer 3: heads of 256 numbers, expected 8 as in another layer of its kind");
  fails("{" GEMMA4 HALVES ",\"num_kv_shared_layers\":2,\"per_layer_config\":{\"5\":{\"num_key_value_heads\":1}}}",
        "layer 5 has 1 key heads, expected 2 as in layer 3, whose keys it reads");
  fails("{" OF("gemma4_text") ",\"num_key_value_heads\":2,\"vocab_size_per_layer_input\":99}",
        "vocab_size_per_layer_input is 99, expected vocab_size, 100");
  fails("{" GEMMA4 ",\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"proportional\",\"factor\":0}}}",
        "rope_parameters.full_attention.factor: expected a number");
  fails("{" GEMMA4 ",\"hidden_activation\":\"relu\"}", "hidden_activation \"relu\" is not supported");
}

static void heads_are_grouped_and_of_a_size_of_their_own(void **state) {
  (void)state;
  dt_shape s = reads("{" MISTRAL "}").shape;
  assert_true(s.kv_heads == 6 && s.head_dim == 16 && s.rotary_dims == 16 && s.gated && s.norm == DT_NORM_RMS);
  s = reads("{" MISTRAL ",\"num_key_value_heads\":2,\"head_dim\":28}").shape;
  assert_true(s.kv_heads == 2 && s.head_dim == 28 && s.rotary_dims == 28);
  assert_int_equal(reads("{" QWEN("3") "}").shape.head_dim, 128);
  assert_true(reads("{" QWEN("3") "}").normed_heads && !reads("{" QWEN("3") "}").qkv_bias);
  assert_true(reads("{" QWEN("2") "}").qkv_bias && !reads("{" QWEN("2") "}").attention_bias);
  fails("{" MISTRAL ",\"num_key_value_heads\":4}", "6 heads, expected a multiple of 4 key heads");
  fails("{" MISTRAL ",\"head_dim\":15}", "heads of 15 numbers, expected an even number");
}

static void a_window_is_the_most_that_a_context_may_be(void **state) {
  (void)state;
  config c = reads("{" MISTRAL ",\"sliding_window\":4096}");
  assert_true(c.shape.context == 4096 && c.shape.window == 4096);
  c = reads("{" MISTRAL ",\"sliding_window\":null}");
  assert_true(c.shape.context == 32768 && c.shape.window == 0);
  c = reads("{" MISTRAL ",\"sliding_window\":32768}");
  assert_true(c.shape.context == 32768 && c.shape.window == 0);
  assert_int_equal(reads("{" QWEN("2") ",\"sliding_window\":4096,\"use_sliding_window\":false}").shape.context, 32768);
  assert_int_equal(reads("{" QWEN("2") ",\"sliding_window\":4096,\"use_sliding_window\":true}").shape.context, 4096);
  fails("{" QWEN("3") ",\"layer_types\":[\"full_attention\",\"chunked_attention\"]}",
        "layer_types: expected \"sliding_attention\" or \"full_attention\"");
  assert_int_equal(reads("{" QWEN("3") ",\"sliding_window\":4096,\"layer_types\":[\"full_attention\"]}").shape.context,
                   32768);
  assert_int_equal(
      reads("{" QWEN("3") ",\"sliding_window\":4096,\"layer_types\":[\"full_attention\",\"sliding_attention\"]}")
          .shape.context,
      4096);
}

static void what_nobody_computes_is_refused_by_name(void **state) {
  (void)state;
  fails("{" MISTRAL ",\"quantization_config\":{\"quant_method\":\"gptq\"}}",
        "quantization_config: weights in another tool's format");
  fails("{" MISTRAL ",\"num_local_experts\":8}", "num_local_experts: a mixture of experts is not supported");
  fails("{" MISTRAL ",\"final_logit_softcapping\":30.0}", "final_logit_softcapping: a cap on logits is not supported");
  fails("{" MISTRAL ",\"vision_config\":{}}",
        "vision_config: models that read images are not supported, only text models");
  reads("{" MISTRAL ",\"quantization_config\":null,\"num_local_experts\":0}");
}

static void switches_and_activations_are_read(void **state) {
  (void)state;
  config c = reads("{" NEOX ",\"use_parallel_residual\":false,\"attention_bias\":false,\"tie_word_embeddings\":true,"
                   "\"layer_norm_eps\":1e-3}");
  assert_true(!c.shape.parallel_residual && !c.attention_bias && c.tied && c.shape.norm_eps == 1e-3f);
  static const struct {
    const char *name;
    dt_act_kind act;
  } known[] = {{"gelu", DT_ACT_GELU_ERF},
               {"gelu_new", DT_ACT_GELU_TANH},
               {"gelu_fast", DT_ACT_GELU_TANH},
               {"gelu_pytorch_tanh", DT_ACT_GELU_TANH},
               {"silu", DT_ACT_SILU}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    char text[512];
    snprintf(text, sizeof text, "{" NEOX ",\"hidden_act\":\"%s\"}", known[i].name);
    assert_int_equal(reads(text).shape.act, known[i].act);
  }
  fails("{" NEOX ",\"hidden_act\":\"relu\"}", "hidden_act \"relu\" is not supported; supported: gelu, gelu_new");
  fails("{" NEOX ",\"hidden_act\":3}", "hidden_act \"(not a string)\" is not supported");
  fails("{" NEOX ",\"attention_bias\":1}", "attention_bias: expected true or false");
}

static void end_of_text_is_an_id_or_a_list_of_ids(void **state) {
  (void)state;
  config c = reads("{" NEOX ",\"eos_token_id\":0}");
  assert_int_equal(c.n_eos, 1);
  assert_int_equal(c.eos[0], 0);
  c = reads("{" NEOX ",\"eos_token_id\":[5,0,7]}");
  assert_int_equal(c.n_eos, 3);
  assert_int_equal(c.eos[2], 7);
  assert_int_equal(reads("{" NEOX ",\"eos_token_id\":[]}").n_eos, 0);
  fails("{" NEOX ",\"eos_token_id\":\"0\"}", "eos_token_id: expected a token id, a list of them, or null");
  fails("{" NEOX ",\"eos_token_id\":[0,-1]}", "eos_token_id: expected a token id");
  fails("{" NEOX ",\"eos_token_id\":[1,2,3,4,5,6,7,8,9]}", "eos_token_id: expected at most 8 ids");
}

static void other_architectures_are_named_and_refused(void **state) {
  (void)state;
  fails("{\"model_type\":\"opt\"}", "model_type \"opt\" is not supported; supported: \"gpt_neox\", \"llama\"");
  fails("{\"architectures\":[\"OPTForCausalLM\"]}", "architecture \"OPTForCausalLM\" is not supported");
  fails("{\"architectures\":[\"GPTNeoXForTokenClassification\"],\"model_type\":\"gpt_neox\"," SIZES "}",
        "architecture \"GPTNeoXForTokenClassification\" is not supported; supported: \"gpt_neox\"");
  fails("{" SIZES "}", "model_type is missing; supported: \"gpt_neox\"");
  fails("{" SIZES "}", "\"qwen3_moe\", \"mixtral\""); /* the list is not cut off */
  reads("{\"model_type\":\"gpt_neox\"," SIZES "}");
  reads("{\"architectures\":[\"GPTNeoXForCausalLM\"]," SIZES "}");
}

static void sizes_that_make_no_model_are_refused(void **state) {
  (void)state;
#define WITHOUT_HEADS                                                                                                  \
  "\"model_type\":\"gpt_neox\",\"vocab_size\":7,\"hidden_size\":30,\"num_hidden_layers\":1,"                           \
  "\"intermediate_size\":3,\"max_position_embeddings\":9"
  fails("{" WITHOUT_HEADS "}", "num_attention_heads is missing");
  fails("{" WITHOUT_HEADS ",\"num_attention_heads\":4}",
        "hidden_size 30, expected a multiple of num_attention_heads 4");
  fails("{" WITHOUT_HEADS ",\"num_attention_heads\":0}",
        "num_attention_heads: expected a whole number from 1 to 16777216");
  fails("{" WITHOUT_HEADS ",\"num_attention_heads\":1e99}", "num_attention_heads: expected a whole number");
  fails("{" WITHOUT_HEADS ",\"num_attention_heads\":2.5}", "num_attention_heads: expected a whole number");
  fails("{" WITHOUT_HEADS ",\"num_attention_heads\":\"3\"}", "num_attention_heads: expected a whole number");
  fails("{" WITHOUT_HEADS ",\"num_attention_heads\":3,\"rotary_pct\":0.5}",
        "rotary_pct 0.5 of head size 10 gives 5 rotary dimensions, expected an even number");
  fails("{" WITHOUT_HEADS ",\"num_attention_heads\":3,\"rotary_pct\":1.5}",
        "rotary_pct: expected a number from 0 to 1");
  fails("{" WITHOUT_HEADS ",\"num_attention_heads\":3,\"layer_norm_eps\":\"x\"}",
        "layer_norm_eps: expected a number from 0 to 1");
}

static void files_that_are_no_json_object_are_refused(void **state) {
  (void)state;
  fails("", "not valid JSON");
  fails("{", "not valid JSON");
  fails("[]", "expected one JSON object and nothing after it");
  fails("{} {}", "expected one JSON object and nothing after it");
  cJSON *json;
  dt_error err = {0};
  assert_int_equal(json_read_object("/nowhere/config.json", &json, &err), DT_EINPUT);
  assert_string_equal(err.message, "/nowhere/config.json: no such file");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keys_that_are_absent_or_null_have_hugging_face_s_defaults),
      cmocka_unit_test(rotation_is_read_in_every_spelling),
      cmocka_unit_test(spellings_that_disagree_are_refused),
      cmocka_unit_test(stretched_positions_are_read),
      cmocka_unit_test(rotations_that_are_not_computed_are_refused),
      cmocka_unit_test(scales_of_yarn_are_those_of_transformers),
      cmocka_unit_test(scales_of_longrope_are_those_of_its_models),
      cmocka_unit_test(layers_with_a_window_are_read),
      cmocka_unit_test(mistakes_in_lists_of_layers_are_named),
      cmocka_unit_test(experts_are_read),
      cmocka_unit_test(mistakes_in_experts_are_named),
      cmocka_unit_test(layers_of_gemma_4_have_sizes_of_their_own),
      cmocka_unit_test(last_layers_of_gemma_4_read_keys_of_their_kind),
      cmocka_unit_test(mistakes_in_a_gemma_4_are_named),
      cmocka_unit_test(heads_are_grouped_and_of_a_size_of_their_own),
      cmocka_unit_test(a_window_is_the_most_that_a_context_may_be),
      cmocka_unit_test(what_nobody_computes_is_refused_by_name),
      cmocka_unit_test(switches_and_activations_are_read),
      cmocka_unit_test(end_of_text_is_an_id_or_a_list_of_ids),
      cmocka_unit_test(other_architectures_are_named_and_refused),
      cmocka_unit_test(sizes_that_make_no_model_are_refused),
      cmocka_unit_test(files_that_are_no_json_object_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
