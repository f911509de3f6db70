/* Early exits: the target's first layers as its draft. Their guesses are those of a model that has only these layers,
 * bit by bit, in each family. test_heads compares them with PyTorch. */
#include "dtrun.h"
#include "golden_logits.h"
#include "pair/pair.h"
#include "rig.h"
#include "small_tokenizer.h"

enum { NODES = 6, PROMPT = 30, TURNS = 3 };

static char *folder_of(const cJSON *files) {
  char *folder = temp_folder(), *tokenizer = small_json(NULL, NULL);
  formula_checkpoint(folder, files);
  temp_write(folder, "tokenizer.json", tokenizer, strlen(tokenizer));
  free(tokenizer);
  return folder;
}

/* The checkpoint of a family in tests/golden/logits; if `layers` is not 0, with only that many layers. */
static char *family_folder(const char *family, int layers) {
  char path[256];
  size_t size;
  snprintf(path, sizeof path, SOURCE_DIR "/tests/golden/logits/%s", family);
  char *text = golden_bytes(path, "golden.json", &size);
  cJSON *files = cJSON_Parse(text), *config = cJSON_GetObjectItem(files, "config");
  free(text);
  if (layers) {
    cJSON *types = cJSON_GetObjectItem(config, "layer_types"), *plain = cJSON_GetObjectItem(config, "mlp_only_layers");
    cJSON_ReplaceItemInObject(config, "num_hidden_layers", cJSON_CreateNumber(layers));
    while (types && cJSON_GetArraySize(types) > layers) cJSON_DeleteItemFromArray(types, layers);
    for (int i = cJSON_GetArraySize(plain) - 1; i >= 0; i--)
      if (cJSON_GetArrayItem(plain, i)->valueint >= layers) cJSON_DeleteItemFromArray(plain, i);
  }
  char *folder = folder_of(files);
  cJSON_Delete(files);
  return folder;
}

static dt_session *open_drafting(dt_pair_options how, const char *target, const char *draft, dt_pair **pair) {
  dt_session *session;
  how.target = target, how.draft = draft, how.threads = 2;
  ok(dt_pair_open(&how, pair, &err));
  ok(dt_session_open(*pair, &(dt_session_options){.sequences = 1, .context = 60, .use_draft = true}, &session, &err));
  int32_t prompt[PROMPT];
  for (int i = 0; i < PROMPT; i++) prompt[i] = (7 * i + 3) % 60;
  ok(dt_seq_start(session, 0, prompt, PROMPT, &(dt_seq_options){.max_tokens = -1, .ignore_eos = true}, &err));
  return session;
}

/* Adds two children of the root, two of the first child, and a chain below. All are drafted from, in two steps. */
static void grow(dt_session *session) {
  static const int parent[NODES] = {0, 0, 1, 1, 3, 5};
  dt_tree *tree = dt_seq_tree(session, 0);
  dt_node_ref refs[1 + NODES];
  int v;
  for (int i = 0; i < NODES; i++) ok(dt_tree_add(tree, parent[i], 11 * i + 2, 0, &v, &err));
  for (int i = 0; i <= NODES; i++) refs[i] = (dt_node_ref){.seq = 0, .node = i};
  ok(dt_draft_step(session, refs, 2, &err));
  ok(dt_draft_step(session, refs, 1 + NODES, &err));
}

static void commit(dt_session *session) {
  dt_verdict verdict;
  dt_committed block;
  int seq = 0;
  ok(dt_verify_tree(session, &seq, 1, &verdict, &err));
  ok(dt_commit(session, &seq, 1, 0, &block, &err));
}

/* Returns the number of layers of the whole model. */
static int expect_the_same(const char *family, int layers, dt_pair_options how) {
  char *folder = family_folder(family, 0), *cut = family_folder(family, layers), name[16];
  dt_pair *pair[2];
  dt_session *session[2];
  snprintf(name, sizeof name, "exit:%d", layers);
  session[0] = open_drafting(how, folder, name, &pair[0]);
  session[1] = open_drafting(how, folder, cut, &pair[1]);
  for (int turn = 0; turn < TURNS; turn++) {
    for (int i = 0; i < 2; i++) {
      ok(dt_rollback(session[i], 0, &err));
      grow(session[i]);
    }
    for (int u = 0; u <= NODES; u++) {
      const dt_tree_draft *x = dt_tree_draft_of(dt_seq_tree(session[0], 0), u);
      const dt_tree_draft *y = dt_tree_draft_of(dt_seq_tree(session[1], 0), u);
      if (!x || !y || !x->count || memcmp(x, y, sizeof *x))
        fail_msg("%s, %s, node %d: the guesses differ", family, name, u);
    }
    for (int i = 0; i < 2; i++) commit(session[i]);
  }
  int all = pair[0]->target_info.layers;
  for (int i = 0; i < 2; i++) dt_session_close(session[i]), dt_pair_close(pair[i]);
  temp_remove(folder), temp_remove(cut);
  return all;
}

static void an_exit_is_the_model_of_so_many_layers(void **state) {
  (void)state;
  static const char *const families[] = {"llama576", "llama_biases", "qwen3",     "gemma2",  "gemma3", "olmo3",
                                         "granite",  "phi3",         "qwen3_moe", "mixtral", "gpt_oss"};
  for (size_t i = 0; i < sizeof families / sizeof *families; i++)
    for (int layers = 1, all = 2; layers < all; layers++)
      all = expect_the_same(families[i], layers, (dt_pair_options){.backend = "cpu"});
  expect_the_same("gemma2", 3, (dt_pair_options){.backend = "cpu:scalar"});
}

/* Embeddings still come from the target, even where its output has copies of them. */
static void so_it_is_with_an_output_of_its_own(void **state) {
  (void)state;
  const int32_t some[] = {0, 2, 3, 11, 13, 24, 35, 46, 57, 58};
  const dt_draft_vocab ids = {.name = "some", .ids = some, .n_ids = 10};
  static const char *const families[] = {"llama576", "qwen3", "gemma2", "gemma3", "granite"};
  for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
    expect_the_same(families[i], 1, (dt_pair_options){.backend = "cpu", .draft_vocab = &ids});
    expect_the_same(families[i], 1, (dt_pair_options){.backend = "cpu", .draft_output = "q4"});
    expect_the_same(families[i], 1, (dt_pair_options){.backend = "cpu", .draft_vocab = &ids, .draft_output = "q8"});
  }
}

static void it_has_no_weights_of_its_own(void **state) {
  (void)state;
  char *folder = family_folder("gemma2", 0);
  dt_pair *with, *without;
  dt_pair_info a, b;
  ok(dt_pair_open(&(dt_pair_options){.target = folder, .draft = "exit:3", .threads = 1}, &with, &err));
  ok(dt_pair_open(&(dt_pair_options){.target = folder, .threads = 1}, &without, &err));
  dt_pair_describe(with, &a), dt_pair_describe(without, &b);
  assert_true(a.weight_bytes == b.weight_bytes && a.scratch_bytes == b.scratch_bytes);
  assert_int_equal(a.draft.weight_bytes, 0);
  assert_int_equal(a.draft.layers, 3);
  assert_int_equal(4 * a.draft.token_bytes, 3 * a.target.token_bytes);
  assert_string_equal(a.draft.path, "exit:3");
  assert_string_equal(a.draft_dtype, a.target_dtype);
  dt_pair_close(with), dt_pair_close(without);
  temp_remove(folder);
}

static void refused(const char *target, dt_pair_options with, const char *why) {
  dt_pair *pair;
  with.target = target, with.threads = 1;
  fails(dt_pair_open(&with, &pair, &err), DT_EINPUT, why);
}

static void a_wrong_number_is_refused(void **state) {
  (void)state;
  const char *mini = SOURCE_DIR "/models/mini-target"; /* 6 layers */
  dt_pair *pair;
  static const char *const good[] = {"exit:1", "exit:5", "exit:05"};
  for (int i = 0; i < 3; i++) {
    ok(dt_pair_open(&(dt_pair_options){.target = mini, .draft = good[i], .threads = 1}, &pair, &err));
    dt_pair_close(pair);
  }
  const char *range = "is out of range: exit:1 to exit:5 (" SOURCE_DIR "/models/mini-target has 6 layers)";
  static const char *const outside[] = {"exit:0", "exit:6", "exit:7", "exit:4294967297"};
  for (int i = 0; i < 4; i++) refused(mini, (dt_pair_options){.draft = outside[i]}, range);
  static const char *const no_number[] = {"exit:", "exit:-1", "exit:2.5", "exit:3 ", "exit:x"};
  for (int i = 0; i < 5; i++)
    refused(mini, (dt_pair_options){.draft = no_number[i]}, "a number of layers, as in exit:8");
}

static void options_of_other_drafts_are_refused(void **state) {
  (void)state;
  const char *mini = SOURCE_DIR "/models/mini-target";
  refused(mini, (dt_pair_options){.draft = "exit:3", .draft_weights = "q8"},
          "draft_weights: exit:3 uses the target's weights");
  refused(mini, (dt_pair_options){.draft = "exit:3", .draft_output = "q5"}, "draft_output: 'q5' is not supported");
  refused(mini, (dt_pair_options){.draft = "exit:3", .head_layers = "1"}, "head_layers: exit:3 is not a draft head");
}

static void layers_that_cannot_draft_are_refused(void **state) {
  (void)state;
  char *delta = family_folder("qwen35", 0), *inputs = family_folder("gemma4_inputs", 0);
  refused(delta, (dt_pair_options){.draft = "exit:1"}, "cannot draft: it has delta layers");
  refused(inputs, (dt_pair_options){.draft = "exit:1"}, "cannot draft: its layers read per-layer inputs");
  temp_remove(delta), temp_remove(inputs);
}

static void names_of_parts_of_the_target(void **state) {
  (void)state;
  assert_true(dt_draft_is_own("mtp") && dt_draft_is_own("exit:8") && dt_draft_is_own("exit:"));
  assert_false(dt_draft_is_own(NULL) || dt_draft_is_own("") || dt_draft_is_own("exit") || dt_draft_is_own("mtp/"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(an_exit_is_the_model_of_so_many_layers),
                                     cmocka_unit_test(so_it_is_with_an_output_of_its_own),
                                     cmocka_unit_test(it_has_no_weights_of_its_own),
                                     cmocka_unit_test(a_wrong_number_is_refused),
                                     cmocka_unit_test(options_of_other_drafts_are_refused),
                                     cmocka_unit_test(layers_that_cannot_draft_are_refused),
                                     cmocka_unit_test(names_of_parts_of_the_target)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
