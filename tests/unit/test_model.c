#include "golden_logits.h"
#include "model/model.h"
#include "reference_forward.h"
#include "temp_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

/* ---- a small checkpoint that a test may spoil -------------------------------------------------------------------- */

#define MAX_TENSORS 40
#define CONFIG                                                                                                         \
  "{\"model_type\":\"gpt_neox\",\"vocab_size\":7,\"hidden_size\":8,\"num_hidden_layers\":1,\"num_attention_heads\":2," \
  "\"intermediate_size\":5,\"max_position_embeddings\":16,\"rotary_pct\":0.5,\"eos_token_id\":[0,3]"

typedef struct {
  char name[64];
  const char *dtype;
  int shape[2], rank;
} entry;

typedef struct {
  entry tensor[MAX_TENSORS];
  int n;
  const char *config;
} checkpoint;

static void add(checkpoint *c, const char *prefix, const char *name, int rows, int cols) {
  entry *t = &c->tensor[c->n++];
  *t = (entry){.dtype = "F16", .shape = {rows, cols}, .rank = cols ? 2 : 1};
  snprintf(t->name, sizeof t->name, "%s%s", prefix, name);
}

static checkpoint complete(const char *prefix) {
  checkpoint c = {.config = CONFIG "}"};
  add(&c, prefix, "embed_in.weight", 7, 8);
  add(&c, prefix, "layers.0.input_layernorm.weight", 8, 0);
  add(&c, prefix, "layers.0.input_layernorm.bias", 8, 0);
  add(&c, prefix, "layers.0.post_attention_layernorm.weight", 8, 0);
  add(&c, prefix, "layers.0.post_attention_layernorm.bias", 8, 0);
  add(&c, prefix, "layers.0.attention.query_key_value.weight", 24, 8);
  add(&c, prefix, "layers.0.attention.query_key_value.bias", 24, 0);
  add(&c, prefix, "layers.0.attention.dense.weight", 8, 8);
  add(&c, prefix, "layers.0.attention.dense.bias", 8, 0);
  add(&c, prefix, "layers.0.mlp.dense_h_to_4h.weight", 5, 8);
  add(&c, prefix, "layers.0.mlp.dense_h_to_4h.bias", 5, 0);
  add(&c, prefix, "layers.0.mlp.dense_4h_to_h.weight", 8, 5);
  add(&c, prefix, "layers.0.mlp.dense_4h_to_h.bias", 8, 0);
  add(&c, prefix, "final_layer_norm.weight", 8, 0);
  add(&c, prefix, "final_layer_norm.bias", 8, 0);
  add(&c, "", "embed_out.weight", 7, 8);
  return c;
}

static entry *named(checkpoint *c, const char *name) {
  for (int i = 0; i < c->n; i++)
    if (!strcmp(c->tensor[i].name, name)) return &c->tensor[i];
  fail_msg("no tensor %s to change", name);
  return NULL;
}

static void drop(checkpoint *c, const char *name) {
  entry *t = named(c, name);
  *t = c->tensor[--c->n];
}

static int element_size(const char *dtype) { return !strcmp(dtype, "U8") ? 1 : !strcmp(dtype, "F32") ? 4 : 2; }

static char *write_checkpoint(const checkpoint *c) {
  char *folder = temp_folder();
  temp_write(folder, "config.json", c->config, strlen(c->config));
  static unsigned char file[16384];
  char *header = (char *)file + 8;
  int used = sprintf(header, "{"), at = 0;
  for (int i = 0; i < c->n; i++) {
    const entry *t = &c->tensor[i];
    int size = t->shape[0] * (t->rank == 2 ? t->shape[1] : 1) * element_size(t->dtype);
    used += sprintf(header + used, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%d", i ? "," : "", t->name, t->dtype,
                    t->shape[0]);
    if (t->rank == 2) used += sprintf(header + used, ",%d", t->shape[1]);
    used += sprintf(header + used, "],\"data_offsets\":[%d,%d]}", at, at + size);
    at += size;
  }
  used += sprintf(header + used, "}");
  for (int i = 0; i < 8; i++) file[i] = (unsigned char)((uint64_t)used >> 8 * i);
  memset(header + used, 0, (size_t)at);
  temp_write(folder, "model.safetensors", file, (size_t)(8 + used + at));
  return folder;
}

static model *opens(const checkpoint *c) {
  char *folder = write_checkpoint(c);
  model *m = NULL;
  dt_error err = {0};
  dt_status status = model_open(folder, &m, &err);
  if (status != DT_OK) print_error("%s\n", err.message);
  assert_int_equal(status, DT_OK);
  temp_remove(folder); /* an open file can still be read after it has been removed */
  return m;
}

static void folder_fails(const char *folder, const char *part) {
  model *m = NULL;
  dt_error err = {0};
  dt_status status = model_open(folder, &m, &err);
  if (status != DT_EINPUT || !strstr(err.message, part)) print_error("message: %s\nlacks:   %s\n", err.message, part);
  assert_int_equal(status, DT_EINPUT);
  assert_non_null(strstr(err.message, part));
  assert_null(strchr(err.message, '\n'));
  assert_null(m);
}

static void fails(const checkpoint *c, const char *part) {
  char *folder = write_checkpoint(c);
  folder_fails(folder, part);
  temp_remove(folder);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void fused_query_key_value_becomes_views_by_head(void **state) {
  (void)state;
  checkpoint c = complete("gpt_neox.");
  model *m = opens(&c);
  const dt_model_desc *d = model_desc(m);
  const dt_layer *l = &d->layer[0];
  const dt_matrix *part[] = {&l->q, &l->k, &l->v}, *bias[] = {&l->q_bias, &l->k_bias, &l->v_bias};
  for (int p = 0; p < 3; p++) {
    /* head_dim 4, 8 columns of 2 bytes: head 0 of part p begins 4p rows in, and head 1 12 rows later */
    assert_int_equal(part[p]->offset, l->q.offset + (uint64_t)p * 4 * 8 * 2);
    assert_int_equal(bias[p]->offset, l->q_bias.offset + (uint64_t)p * 4 * 2);
    assert_int_equal(part[p]->rows, 8);
    assert_int_equal(part[p]->cols, 8);
    assert_int_equal(part[p]->group, 4);
    assert_int_equal(part[p]->stride, 12);
    assert_int_equal(bias[p]->rows, 8);
    assert_int_equal(bias[p]->cols, 1);
    assert_int_equal(bias[p]->group, 4);
    assert_int_equal(bias[p]->stride, 12);
  }
  assert_int_equal(l->o.group, 8);
  assert_int_equal(l->o.stride, 8);
  assert_null(l->gate.source);
  model_close(m);
}

static void the_description_carries_what_config_says(void **state) {
  (void)state;
  checkpoint c = complete("gpt_neox.");
  model *m = opens(&c);
  const dt_model_desc *d = model_desc(m);
  int32_t eos[MODEL_MAX_EOS];
  assert_int_equal(model_eos(m, eos), 2);
  assert_int_equal(eos[0], 0);
  assert_int_equal(eos[1], 3);
  assert_int_equal(d->shape.vocab, 7);
  assert_int_equal(d->shape.context, 16);
  assert_int_equal(d->shape.kv_heads, 2);
  assert_int_equal(d->shape.head_dim, 4);
  assert_int_equal(d->shape.rotary_dims, 2);
  assert_true(d->inv_freq[0] == 1.0f && d->shape.norm_eps == 1e-5f);
  model_close(m);
}

static void inverse_frequencies_are_those_of_transformers(void **state) {
  (void)state;
  /* torch 2.15: 1.0 / (10000 ** (torch.arange(0, 16, 2, dtype=torch.float) / 16)) */
  static const float expected[] = {1.0f,
                                   0.3162277638912201f,
                                   0.10000000149011612f,
                                   0.0316227749090194914f,
                                   0.009999999776482582f,
                                   0.0031622778624296188f,
                                   0.0010000000474974513f,
                                   0.0003162277862429619f};
  model *m;
  dt_error err = {0};
  assert_int_equal(model_open(SOURCE_DIR "/models/mini-target", &m, &err), DT_OK);
  for (int j = 0; j < 8; j++) assert_true(fabsf(model_desc(m)->inv_freq[j] / expected[j] - 1) < 2e-7f);
  model_close(m);
}

static void names_may_lack_the_prefix(void **state) {
  (void)state;
  checkpoint c = complete("");
  model_close(opens(&c));
}

static void other_tensors_are_ignored(void **state) {
  (void)state;
  checkpoint c = complete("gpt_neox.");
  add(&c, "gpt_neox.layers.0.attention.", "bias", 16, 16);
  c.tensor[c.n - 1].dtype = "U8";
  add(&c, "gpt_neox.layers.0.attention.", "masked_bias", 1, 0);
  add(&c, "gpt_neox.layers.0.attention.", "rotary_emb.inv_freq", 1, 0);
  c.tensor[c.n - 1].dtype = "F32";
  model_close(opens(&c));
}

static void a_missing_unembedding_is_the_embedding_only_when_tied(void **state) {
  (void)state;
  checkpoint c = complete("gpt_neox.");
  drop(&c, "embed_out.weight");
  fails(&c, ": tensor embed_out.weight is missing");
  c.config = CONFIG ",\"tie_word_embeddings\":true}";
  model *m = opens(&c);
  assert_ptr_equal(model_desc(m)->unembed.source, model_desc(m)->embed.source);
  assert_int_equal(model_desc(m)->unembed.offset, model_desc(m)->embed.offset);
  model_close(m);
}

static void attention_biases_are_read_unless_config_says_there_are_none(void **state) {
  (void)state;
  checkpoint c = complete("gpt_neox.");
  drop(&c, "gpt_neox.layers.0.attention.dense.bias");
  fails(&c, ": tensor gpt_neox.layers.0.attention.dense.bias is missing");
  drop(&c, "gpt_neox.layers.0.attention.query_key_value.bias");
  c.config = CONFIG ",\"attention_bias\":false}";
  model *m = opens(&c);
  const dt_layer *l = &model_desc(m)->layer[0];
  assert_true(!l->q_bias.source && !l->k_bias.source && !l->v_bias.source && !l->o_bias.source && l->up_bias.source);
  model_close(m);
}

static void a_missing_tensor_is_named_whichever_it_is(void **state) {
  (void)state;
  checkpoint whole = complete("gpt_neox.");
  for (int i = 0; i < whole.n; i++) {
    checkpoint c = complete("gpt_neox.");
    char part[96];
    snprintf(part, sizeof part, ": tensor %s is missing", whole.tensor[i].name);
    drop(&c, whole.tensor[i].name);
    fails(&c, part);
  }
}

static void a_tensor_of_the_wrong_shape_is_named_with_both_shapes(void **state) {
  (void)state;
  checkpoint c = complete("gpt_neox.");
  named(&c, "gpt_neox.layers.0.mlp.dense_h_to_4h.weight")->shape[0] = 6;
  fails(&c,
        "/model.safetensors: tensor gpt_neox.layers.0.mlp.dense_h_to_4h.weight: found shape [6, 8], expected [5, 8]");
  c = complete("gpt_neox.");
  named(&c, "gpt_neox.final_layer_norm.bias")->rank = 2;
  named(&c, "gpt_neox.final_layer_norm.bias")->shape[1] = 1;
  fails(&c, "tensor gpt_neox.final_layer_norm.bias: found shape [8, 1], expected [8]");
}

static void the_vocabulary_of_the_tensor_must_be_that_of_config(void **state) {
  (void)state;
  checkpoint c = complete("gpt_neox.");
  named(&c, "gpt_neox.embed_in.weight")->shape[0] = 9;
  fails(&c, "tensor gpt_neox.embed_in.weight: found shape [9, 8], expected [7, 8] by config.json");
}

static void a_tensor_of_another_type_is_refused_where_it_is_needed(void **state) {
  (void)state;
  checkpoint c = complete("gpt_neox.");
  named(&c, "gpt_neox.embed_in.weight")->dtype = "U8";
  fails(&c, "/model.safetensors: tensor gpt_neox.embed_in.weight: found type U8, expected F32, F16 or BF16");
}

static void missing_folders_and_files_are_named(void **state) {
  (void)state;
  folder_fails("/nowhere/at-all", "no such folder: /nowhere/at-all");
  folder_fails("", "no such folder: ");
  char *folder = temp_folder(), path[256];
  folder_fails(folder, "no config.json in /tmp/");
  temp_write(folder, "config.json", CONFIG "}", strlen(CONFIG "}"));
  folder_fails(folder, "no model.safetensors or model.safetensors.index.json in /tmp/");
  snprintf(path, sizeof path, "%s/config.json", folder);
  folder_fails(path, "config.json: not a GGUF file: it does not begin with");
  temp_write(folder, "model.safetensors", "x", 1);
  folder_fails(folder, "/model.safetensors: found 1 bytes");
  temp_write(folder, "config.json", "{\"model_type\":\"opt\"}", 20);
  folder_fails(folder, "/config.json: model_type \"opt\" is not supported");
  temp_remove(folder);
}

/* The views are right: the formulas, applied to them, give transformers' logits. */
static void the_formulas_over_the_views_give_transformers_logits(void **state) {
  golden g = golden_read(*state);
  model *m;
  dt_error err = {0};
  if (model_open(g.model, &m, &err) != DT_OK) fail_msg("%s", err.message);
  const dt_model_desc *d = model_desc(m);
  assert_int_equal(d->shape.vocab, g.vocab);
  bool large = d->shape.vocab > 2000; /* for the bundled pair, which is slow, two cases up to their second position */
  for (int i = 0; i < (large ? 2 : g.n); i++) {
    const golden_case *c = &g.cases[i];
    int n = large ? c->positions[1] + 1 : c->n + c->n_greedy;
    int32_t *tokens = malloc(sizeof *tokens * (size_t)(c->n + c->n_greedy));
    memcpy(tokens, c->ids, sizeof *tokens * (size_t)c->n);
    memcpy(tokens + c->n, c->greedy, sizeof *tokens * (size_t)c->n_greedy);
    double *logits = reference_forward(d, tokens, n), worst = 0;
    for (int p = 0; p < c->n_positions && c->positions[p] < n; p++)
      for (int v = 0; v < g.vocab; v++)
        worst = fmax(worst, fabs(logits[c->positions[p] * g.vocab + v] - c->logits[p * g.vocab + v]));
    if (worst >= 2e-4) print_error("%s, %s: largest difference %g\n", (char *)*state, c->name, worst);
    assert_true(worst < 2e-4);
    for (int j = 0; j < c->n_greedy && c->n - 1 + j < n; j++) {
      const double *row = logits + (size_t)(c->n - 1 + j) * (size_t)g.vocab;
      int best = 0;
      for (int v = 1; v < g.vocab; v++)
        if (row[v] > row[best]) best = v;
      if (c->margins[j] > 2e-4f) assert_int_equal(best, c->greedy[j]);
    }
    free(tokens);
    free(logits);
  }
  model_close(m);
  golden_free(&g);
}

#define GOLDEN(name)                                                                                                   \
  {                                                                                                                    \
    "the_formulas_give_transformers_logits: " name, the_formulas_over_the_views_give_transformers_logits, NULL, NULL,  \
        name                                                                                                           \
  }

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fused_query_key_value_becomes_views_by_head),
      cmocka_unit_test(the_description_carries_what_config_says),
      cmocka_unit_test(inverse_frequencies_are_those_of_transformers),
      cmocka_unit_test(names_may_lack_the_prefix),
      cmocka_unit_test(other_tensors_are_ignored),
      cmocka_unit_test(a_missing_unembedding_is_the_embedding_only_when_tied),
      cmocka_unit_test(attention_biases_are_read_unless_config_says_there_are_none),
      cmocka_unit_test(a_missing_tensor_is_named_whichever_it_is),
      cmocka_unit_test(a_tensor_of_the_wrong_shape_is_named_with_both_shapes),
      cmocka_unit_test(the_vocabulary_of_the_tensor_must_be_that_of_config),
      cmocka_unit_test(a_tensor_of_another_type_is_refused_where_it_is_needed),
      cmocka_unit_test(missing_folders_and_files_are_named),
      GOLDEN("head80"),
      GOLDEN("sequential"),
      GOLDEN("vocab1031"),
      GOLDEN("nobias"),
      GOLDEN("mini-draft"),
      GOLDEN("mini-target"),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
