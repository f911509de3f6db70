/* Block heads that are not heads of their target, each refused with a message; and passes that the rows of a block
 * cannot make. test_heads.c compares what block heads guess.
 *
 *   test_block_heads                 runs the tests
 *   test_block_heads write FOLDER CASE
 *                                    writes a head and its target, for the command line: FOLDER/block/, FOLDER/target/
 */
#include "dtrun.h"
#include "head_faults.h"

static cJSON *cases;

/* Sets a key of the head's config, at the top or in dflash_config; NULL: removes it. */
static cJSON *with(bool inner, const char *key, const char *value) {
  cJSON *head = cJSON_Duplicate(cJSON_GetObjectItem(wanted, "head"), true), *of = cJSON_GetObjectItem(head, "config");
  if (inner) of = cJSON_GetObjectItem(of, "dflash_config");
  cJSON_DeleteItemFromObject(of, key);
  if (value) cJSON_AddItemToObject(of, key, cJSON_Parse(value));
  return head;
}

static void each_fault_has_its_line(void **state) {
  (void)state;
  static const struct {
    bool inner; /* the key is in dflash_config */
    const char *key, *value, *says;
  } faults[] = {
      {false, "block_size", NULL, "block_size is missing"},
      {false, "block_size", "1", "block_size is 1, expected 2 to 16"},
      {false, "block_size", "17", "block_size"},
      {false, "block_size", "\"8\"", "block_size"},
      {true, "mask_token_id", NULL, "mask_token_id is missing: the token of the places that a block fills in"},
      {true, "mask_token_id", "97", "mask_token_id"},
      {true, "mask_token_id", "-1", "mask_token_id"},
      {true, "mask_token_id", "null", "mask_token_id"},
      {true, "target_layer_ids", "[]", "target_layer_ids: expected up to 8 layers from 0 to 7 whose outputs"},
      {true, "target_layer_ids", "[1,3,8]", "target_layer_ids: expected up to 8 layers from 0 to 7"},
      {true, "target_layer_ids", "[1,2,3,4,5,6,7,0,1]", "target_layer_ids: expected up to 8 layers"},
      {true, "target_layer_ids", "[1,-1,4]", "target_layer_ids: expected"},
      {true, "target_layer_ids", "[1,3.5,4]", "target_layer_ids: expected"},
      {true, "target_layer_ids", "{}", "target_layer_ids: expected"},
      {true, "target_layer_ids", "[1,3]", "fc.weight"},
      {true, "target_layer_ids", "[0,1,2,3,4,5,6,7]", "fc.weight"},
      {true, "causal", "\"yes\"", "causal"},
      {true, "use_swa", "true", "swa_window_size is missing"},
      {true, "conv_kernel_size", "3", "conv_group_size is missing"},
      {true, "markov_rank", "64", "tensor markov_head.markov_w1.weight is missing"},
      {true, "markov_head_type", "\"gated\"", "markov_head_type \"gated\" is not supported, only \"vanilla\" is"},
      {true, "dspark_backbone_conv_enabled", "true", "dspark_backbone_conv_enabled is not supported in a block head"},
      {true, "attention_sink_bias", "true", "attention_sink_bias is not supported in a block head"},
      {true, "output_multiplier", "0.5", "output_multiplier is not supported in a block head"},
      {true, "target_hidden_size", "44", "target_hidden_size is 44, expected the target's 40"},
      {false, "architectures", "[\"DFlash2DraftModel\"]", "conv_kernel_size is missing"},
      {false, "sample_from_anchor", "1", "sample_from_anchor"},
      {false, "aux_hidden_state_layer_ids", "[1,9]", "aux_hidden_state_layer_ids: expected up to 8 layers from 0 to 8"},
      {false, "hidden_size", "41", "hidden_size is 41, expected the target's 40: the head belongs to another model"},
      {false, "vocab_size", "98", "vocab_size is 98, expected the target's 97: the head belongs to another model"},
      {false, "num_hidden_layers", "0", "num_hidden_layers"},
      {false, "num_hidden_layers", "4", "layers.3."},
      {false, "num_key_value_heads", "3", "4 heads, expected a multiple of 3 key heads"},
      {false, "head_dim", "21", "heads of 21 numbers, expected an even number"},
      {false, "model_type", "\"gemma4_text\"", "not supported in a draft head"},
  };
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    cJSON *head = with(faults[i].inner, faults[i].key, faults[i].value);
    expect_refused(head, NULL, faults[i].says);
    cJSON_Delete(head);
  }
  expect_refused(cJSON_GetObjectItem(wanted, "head"), "1,9", "head_layers: expected up to 8 layers from 0 to 8");
}

/* Makes the case of this name the wanted one; returns the one before. */
static cJSON *want(const char *name) {
  cJSON *before = wanted;
  for (wanted = cases->child; strcmp(cJSON_GetObjectItem(wanted, "name")->valuestring, name);) wanted = wanted->next;
  return before;
}

static void each_fault_of_successors_has_its_line(void **state) {
  (void)state;
  static const struct {
    const char *name;
    bool inner;
    const char *key, *value, *says;
  } faults[] = {
      {"dspark, from the anchor", false, "markov_rank", "6",
       "markov_head.markov_w1.weight: found shape [103, 5], expected [103, 6]"},
      {"dspark, from the anchor", false, "markov_rank", "-1", "markov_rank"},
      {"dspark, from the anchor", false, "markov_head_type", "\"rnn\"", "markov_head_type \"rnn\""},
      {"dspark, from the anchor", false, "block_size", "1", "block_size is 1, expected 2 to 16"},
      {"dflash2", true, "conv_kernel_size", NULL, "conv_kernel_size is missing"},
      {"dflash2", true, "conv_kernel_size", "17", "conv_kernel_size"},
      {"dflash2", true, "conv_kernel_size", "16", "layers.0.attention_conv.kernel_projection.weight"},
      {"dflash2", true, "conv_kernel_size", "3", "layers.0.attention_conv.kernel_projection.weight"},
      {"dflash2", true, "conv_group_size", "7", "conv_group_size is 7, expected a divisor of hidden_size 48"},
      {"dflash2", true, "conv_group_size", "24", "layers.0.attention_conv.kernel_projection.weight"},
      {"dflash2", true, "selector_top_k", "0", "selector_top_k"},
      {"dflash2", true, "selector_top_k", "129", "selector_top_k"},
      {"dflash2", true, "selector_rank", "7", "candidate_selector.predecessor_codebook"},
      {"dflash2", true, "output_multiplier", "0.5", "output_multiplier is not supported in a block head"},
  };
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    cJSON *before = want(faults[i].name), *head = with(faults[i].inner, faults[i].key, faults[i].value);
    expect_refused(head, NULL, faults[i].says);
    cJSON_Delete(head);
    wanted = before;
  }
  cJSON *before = want("dflash2"), *most = with(true, "selector_top_k", "128");
  dt_pair *pair;
  assert_int_equal(open_pair(most, NULL, &pair), DT_OK);
  dt_pair_close(pair);
  cJSON_Delete(most);
  wanted = before;
}

static void each_missing_tensor_has_its_line(void **state) {
  (void)state;
  expect_each_tensor(30, "");
  static const char *const others[] = {"dspark, from the anchor", "dflash2"};
  for (int i = 0; i < 2; i++) {
    cJSON *before = want(others[i]);
    expect_each_tensor(20, "");
    wanted = before;
  }
}

/* Runs a pass of two rows at 5 and 6, whose block has the slots 5, 6 .. and `width` rows. */
static dt_status pass_of(const dt_pair *pair, dt_cache *cache, int width, int second, bool blocks) {
  const int32_t token[] = {1, 96}, position[] = {5, second}, sequence[] = {0, 0}, slot[] = {5, second},
                prefix[] = {5, 5}, path[] = {5, 6, 7, 5, 6, 7}, length[] = {width, width}, row[] = {1};
  int32_t id[4];
  float logp[4], confidence, entropy;
  const dt_rows rows = {2, token, position, sequence, slot, prefix, path, length, 3, .blocks = blocks};
  const dt_out out = {.want = DT_WANT_TOPK,
                      .n = 1,
                      .row = row,
                      .k = 4,
                      .vocab = 97,
                      .top_id = id,
                      .top_logp = logp,
                      .confidence = &confidence,
                      .entropy = &entropy};
  return pair->ops->forward(pair->draft.weights, cache, &rows, &out, &why);
}

static void a_row_is_in_its_block(void **state) {
  (void)state;
  dt_pair *pair;
  dt_cache *cache;
  assert_int_equal(open_pair(cJSON_GetObjectItem(wanted, "head"), NULL, &pair), DT_OK);
  ok(pair->ops->create_cache(pair->draft.weights, 1, 16, &cache, &err));
  assert_int_equal(pass_of(pair, cache, 2, 6, true), DT_OK);
  assert_int_equal(pass_of(pair, cache, 2, 6, false), DT_EINPUT); /* the first row is not the last of its path */
  assert_int_equal(pass_of(pair, cache, 2, 7, true), DT_EINPUT);
  assert_non_null(strstr(why.message, "do not end at position 7 in slot 7"));
  pair->ops->free_cache(cache);
  dt_pair_close(pair);
}

/* Adds a chain of three nodes, asks the head about all of them with this width, and copies what it says. */
static void draft_chain(dt_session *session, int width, dt_tree_draft said[4]) {
  dt_tree *tree = dt_seq_tree(session, 0);
  ok(dt_rollback(session, 0, &err));
  for (int u = 0, v; u < 3; u++) ok(dt_tree_add(tree, u, 5 + u, 0, &v, &err));
  for (int u = 0; u < 4; u++) {
    ok(dt_draft_step(session, &(dt_node_ref){.node = u, .width = width}, 1, &err));
    said[u] = *dt_tree_draft_of(tree, u);
  }
}

/* Rows of a causal head do not see later ones, so a narrow block says what the beginning of a wide one says. */
static void a_narrow_block_guesses_less_far(void **state) {
  (void)state;
  dt_pair *pair;
  dt_session *session;
  dt_tree_draft wide[4], narrow[4];
  dt_stats stats[2];
  cJSON *const first = want("jetspec");
  assert_int_equal(open_pair(cJSON_GetObjectItem(wanted, "head"), NULL, &pair), DT_OK);
  ok(dt_session_open(pair, &(dt_session_options){.sequences = 1, .context = 64, .use_draft = true}, &session, &err));
  ok(dt_seq_start(session, 0, (const int32_t[]){3, 1, 4, 1, 5}, 5, &(dt_seq_options){.max_tokens = 40}, &err));
  draft_chain(session, 0, wide);
  dt_seq_stats(session, 0, &stats[0]);
  draft_chain(session, 2, narrow);
  dt_seq_stats(session, 0, &stats[1]);
  assert_int_equal(stats[0].draft_rows, 8); /* without the row of the text that was missing */
  assert_int_equal(stats[1].draft_rows, 8 + 3);
  assert_int_equal(stats[1].draft_passes, 2);
  for (int u = 0; u < 4; u++) {
    assert_int_equal(wide[u].count, 32);
    assert_int_equal(narrow[u].count, u < 2 ? 32 : 0);
    if (u < 2) assert_memory_equal(narrow[u].token, wide[u].token, sizeof wide[u].token);
    if (u < 2) assert_memory_equal(narrow[u].logp, wide[u].logp, sizeof wide[u].logp);
  }
  assert_int_equal(dt_draft_step(session, &(dt_node_ref){.width = -1}, 1, &why), DT_EINPUT);
  assert_non_null(strstr(why.message, "width: -1 is out of range: at least 0"));
  dt_session_close(session);
  dt_pair_close(pair);
  wanted = first;
}

/* What the head of the case says after the root, with a window of this many tokens in the layers that have one. */
static dt_tree_draft said_with_window(int window) {
  char text[16];
  dt_pair *pair;
  dt_session *session;
  dt_tree_draft said[4];
  snprintf(text, sizeof text, "%d", window);
  cJSON *head = with(false, "sliding_window", text);
  assert_int_equal(open_pair(head, NULL, &pair), DT_OK);
  ok(dt_session_open(pair, &(dt_session_options){.sequences = 1, .context = 64, .use_draft = true}, &session, &err));
  ok(dt_seq_start(session, 0, (const int32_t[]){3, 1, 4, 1, 5}, 5, &(dt_seq_options){.max_tokens = 40}, &err));
  draft_chain(session, 0, said);
  dt_session_close(session);
  dt_pair_close(pair);
  cJSON_Delete(head);
  return said[0];
}

/* The head has 128 positions. Its layers with a window look backward, however wide it is. */
static void a_window_as_long_as_the_context_still_looks_backward(void **state) {
  (void)state;
  cJSON *const first = wanted;
  while (!strstr(cJSON_GetObjectItem(wanted, "name")->valuestring, "seen backward")) wanted = wanted->next;
  const dt_tree_draft below = said_with_window(127), as_long = said_with_window(128), above = said_with_window(129);
  assert_memory_equal(below.token, as_long.token, sizeof below.token);
  assert_memory_equal(below.logp, as_long.logp, sizeof below.logp);
  assert_memory_equal(below.logp, above.logp, sizeof below.logp);
  wanted = first;
}

int main(int argc, char **argv) {
  size_t size;
  char *text = golden_bytes(SOURCE_DIR "/tests/golden/heads", "blocks.json", &size);
  cases = cJSON_Parse(text);
  free(text);
  wanted = cases->child;
  if (argc == 4 && !strcmp(argv[1], "write")) {
    want(argv[3]);
    write_both(argv[2], "block");
    cJSON_Delete(cases);
    return 0;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_fault_has_its_line),
                                     cmocka_unit_test(each_fault_of_successors_has_its_line),
                                     cmocka_unit_test(each_missing_tensor_has_its_line),
                                     cmocka_unit_test(a_row_is_in_its_block),
                                     cmocka_unit_test(a_narrow_block_guesses_less_far),
                                     cmocka_unit_test(a_window_as_long_as_the_context_still_looks_backward)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  cJSON_Delete(cases);
  return failed;
}
