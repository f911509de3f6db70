/* Gemma 4's assistants that are not heads of their target, each refused with a message; and passes that the rows of a
 * cross-attention head cannot make. test_heads.c compares what assistants guess.
 *
 *   test_cross_attention                 runs the tests
 *   test_cross_attention write FOLDER    writes an assistant and its target, for the command line: FOLDER/assistant/,
 *       FOLDER/target/ */
#include "dtrun.h"
#include "head_faults.h"

static void each_fault_has_its_line(void **state) {
  (void)state;
  static const struct {
    bool of_text; /* the key is in text_config */
    const char *key, *value, *says;
  } faults[] = {
      {false, "use_ordered_embeddings", "true",
       "use_ordered_embeddings is not supported: the assistant would score only some clusters"},
      {false, "backbone_hidden_size", "59", "backbone_hidden_size is 59, expected the target's 60"},
      {false, "backbone_hidden_size", "61", "backbone_hidden_size is 61, expected the target's 60"},
      {false, "text_config", "3", "text_config: expected an object"},
      {true, "vocab_size", "108", "vocab_size is 108, expected the target's 107"},
      {true, "num_kv_shared_layers", "2", "num_kv_shared_layers is 2, expected all 3 layers"},
      {true, "num_kv_shared_layers", "4", "num_kv_shared_layers"},
      {true, "hidden_size_per_layer_input", "4", "layer_input"},
      {true, "enable_moe_block", "true", "num_experts is missing"},
      {true, "num_global_key_value_heads", "2",
       "head: layer 2 needs 2 key heads of 32 numbers, but the target's layer 5 has 1 of 32"},
      {true, "num_hidden_layers", "0", "num_hidden_layers"},
  };
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    cJSON *head = cJSON_Duplicate(cJSON_GetObjectItem(wanted, "head"), true), *of = cJSON_GetObjectItem(head, "config");
    if (faults[i].of_text) of = cJSON_GetObjectItem(of, "text_config");
    cJSON_ReplaceItemInObject(of, faults[i].key, cJSON_Parse(faults[i].value));
    expect_refused(head, NULL, faults[i].says);
    cJSON_Delete(head);
  }
  expect_refused(cJSON_GetObjectItem(wanted, "head"), "1,2",
                 "assistant head, which always reads the output of the final norm");
}

static void each_missing_tensor_has_its_line(void **state) {
  (void)state;
  expect_each_tensor(30, "model.");
}

/* Runs a pass of one row at `position`, whose path has `length` slots. */
static dt_status pass_at(const dt_pair *pair, dt_cache *cache, const dt_cache *features, int position, int length,
                         int distance) {
  const int32_t token = 1, sequence = 0, slot = 12, prefix = position + 1 - length,
                path[2] = {length > 1 ? 11 : 12, 12};
  int32_t p = position, n = length, row = 0, id[4];
  float logp[4], confidence, entropy;
  const dt_rows rows = {
      1, &token, &p, &sequence, &slot, &prefix, path, &n, 2, .features = features, .distance = distance};
  const dt_out out = {.want = DT_WANT_TOPK,
                      .n = 1,
                      .row = &row,
                      .k = 4,
                      .vocab = 107,
                      .top_id = id,
                      .top_logp = logp,
                      .confidence = &confidence,
                      .entropy = &entropy};
  return pair->ops->forward(pair->draft.weights, cache, &rows, &out, &why);
}

static void a_pass_keeps_to_the_targets_rows(void **state) {
  (void)state;
  dt_pair *pair;
  dt_cache *target, *cache;
  enum { SLOTS = 8 };
  assert_int_equal(open_pair(cJSON_GetObjectItem(wanted, "head"), NULL, &pair), DT_OK);
  ok(pair->ops->create_cache(pair->target, 1, SLOTS, &target, &err));
  ok(pair->ops->create_cache(pair->draft.weights, 2, 16, &cache, &err));
  assert_int_equal(pass_at(pair, cache, target, 1, 1, 0), DT_OK);
  assert_int_equal(pass_at(pair, cache, target, SLOTS, 1, 0), DT_OK);
  assert_int_equal(pass_at(pair, cache, target, SLOTS, 2, 1), DT_OK);
  static const struct {
    int position, length, distance;
    const char *says;
  } wrong[] = {{0, 1, 0, "sees 0 rows of sequence 0"},
               {SLOTS + 1, 1, 0, "sees 9 rows of sequence 0 of the target; the cache has 1 x 8 (sequences x slots)"},
               {SLOTS, 1, 1, "follows no row"},
               {SLOTS, 1, -1, "and a distance of at least 0, not -1"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(pass_at(pair, cache, target, wrong[i].position, wrong[i].length, wrong[i].distance), DT_EINPUT);
    if (!strstr(why.message, wrong[i].says)) fail_msg("'%s' does not say '%s'", why.message, wrong[i].says);
  }
  assert_int_equal(pass_at(pair, cache, NULL, 4, 1, 0), DT_EINPUT);
  assert_non_null(strstr(why.message, "a cross-attention head needs the target's cache"));
  pair->ops->free_cache(cache), pair->ops->free_cache(target);
  dt_pair_close(pair);
}

int main(int argc, char **argv) {
  size_t size;
  char *text = golden_bytes(SOURCE_DIR "/tests/golden/heads", "cross_attention.json", &size);
  cJSON *cases = cJSON_Parse(text);
  free(text);
  wanted = cases->child;
  if (argc == 3 && !strcmp(argv[1], "write")) return write_both(argv[2], "assistant"), cJSON_Delete(cases), 0;
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_fault_has_its_line),
                                     cmocka_unit_test(each_missing_tensor_has_its_line),
                                     cmocka_unit_test(a_pass_keeps_to_the_targets_rows)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  cJSON_Delete(cases);
  return failed;
}
