/* Which models have their packed weights kept: those of 32 MB and more. tests/cli/packed.sh tests all else. */
#include "dtrun.h"
#include "golden_logits.h"
#include "rig.h"
#include "small_tokenizer.h"

#include <dirent.h>

/* Writes a Llama of one layer with this many ids, each of which has 260 bytes of packed weights. */
static char *model_of(int ids) {
  enum { H = 64 };
  static const char *const names[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                                      "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj"};
  char text[4096];
  int n = snprintf(text, sizeof text,
                   "{\"config\": {\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", "
                   "\"hidden_size\": %d, \"intermediate_size\": %d, \"num_hidden_layers\": 1, "
                   "\"num_attention_heads\": 2, \"num_key_value_heads\": 2, \"vocab_size\": %d, "
                   "\"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-6, \"rope_theta\": 10000.0, "
                   "\"hidden_act\": \"silu\", \"tie_word_embeddings\": true}, \"shards\": 1, \"tensors\": ["
                   "[\"model.embed_tokens.weight\", \"F32\", [%d, %d], 127, 0, 6], "
                   "[\"model.norm.weight\", \"F32\", [%d], 63, 128, 7], "
                   "[\"model.layers.0.input_layernorm.weight\", \"F32\", [%d], 63, 128, 7], "
                   "[\"model.layers.0.post_attention_layernorm.weight\", \"F32\", [%d], 63, 128, 7]",
                   H, H, ids, ids, H, H, H, H);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    n += snprintf(text + n, sizeof text - (size_t)n, ", [\"model.layers.0.%s.weight\", \"F32\", [%d, %d], 127, 0, 8]",
                  names[i], H, H);
  snprintf(text + n, sizeof text - (size_t)n, "]}");
  cJSON *of = cJSON_Parse(text);
  assert_non_null(of);
  char *folder = temp_folder(), *tokenizer = small_json(NULL, NULL);
  formula_checkpoint(folder, of);
  temp_write(folder, "tokenizer.json", tokenizer, strlen(tokenizer));
  free(tokenizer), cJSON_Delete(of);
  return folder;
}

/* Whether the weights of such a model are kept, or begin to be. */
static bool is_kept(int ids) {
  char *model = model_of(ids), *packed = temp_folder();
  dt_pair *pair;
  ok(dt_pair_open(&(dt_pair_options){.target = model, .backend = "cpu", .threads = 1, .packed = packed}, &pair, &err));
  dt_pair_close(pair);
  bool kept = false;
  DIR *d = opendir(packed);
  for (const struct dirent *e; (e = readdir(d));) kept |= e->d_name[0] != '.';
  closedir(d);
  temp_remove(model), temp_remove(packed);
  return kept;
}

static void models_of_32_mb_are_kept(void **state) {
  (void)state;
  assert_false(is_kept(122400)); /* 31.94 MB */
  assert_true(is_kept(122800));  /* 32.04 MB */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(models_of_32_mb_are_kept)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
