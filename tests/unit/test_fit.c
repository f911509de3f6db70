/* What model files say about the models that they belong to (dt_model_look, dt_draft_fits), and a draft that need not
 * be loaded. */
#include "dtrun.h"
#include "unit.h"

#define MODELS SOURCE_DIR "/models/"

static dt_model_facts facts_of(const char *path) {
  dt_model_facts facts;
  dt_error err;
  if (dt_model_look(path, &facts, &err)) fail_msg("%s", err.message);
  return facts;
}

static void a_model_says_what_it_is(void **state) {
  (void)state;
  dt_model_facts target = facts_of(MODELS "mini-target"), draft = facts_of(MODELS "mini-draft");
  assert_string_equal(target.family, "gpt_neox");
  assert_true(target.norm == 0x58e879de7b11f8e3u); /* as models/mini-head/config.json has it */
  assert_true(draft.norm != target.norm);
  assert_true(draft.tokenizer == target.tokenizer && target.tokenizer);
  assert_true(draft.bytes > 2000000 && draft.bytes < target.bytes / 2);
  dt_error err;
  assert_int_equal(dt_model_look(MODELS "mini-head", &target, &err), DT_EINPUT);
}

static void a_model_says_what_its_passes_read(void **state) {
  (void)state;
  const uint64_t layer = 12 * 256 * 256 + 13 * 256, output = 4096 * 256; /* matrices, biases and norms */
  dt_model_facts target = facts_of(MODELS "mini-target");
  assert_int_equal(target.output, 2 * output);
  assert_int_equal(target.pass, 2 * (6 * layer + output)); /* all of it but the embeddings and the final norm */
  assert_int_equal(target.all_experts, 0);
  assert_string_equal(target.name, "");
  dt_model_facts mixture = facts_of(SOURCE_DIR "/tests/golden/logits/gguf_qwen3moe/model.gguf");
  assert_true(mixture.chosen_experts > 0 && mixture.chosen_experts < mixture.experts);
  assert_true(mixture.all_experts > mixture.bytes / 2 && mixture.pass + mixture.all_experts < mixture.bytes);
}

static void a_model_with_a_layer_that_drafts_says_so(void **state) {
  (void)state;
  assert_true(dt_has_mtp(SOURCE_DIR "/tests/golden/heads/mtp.gguf"));
  assert_false(dt_has_mtp(MODELS "mini-target"));
  assert_false(dt_has_mtp(MODELS "nowhere"));
  assert_false(dt_has_mtp(NULL));
}

static dt_fit fit(dt_model_facts target, const char *path) {
  uint64_t bytes;
  return dt_draft_fits(&target, path, &bytes);
}

static void a_head_fits_the_target_that_it_names(void **state) {
  (void)state;
  dt_model_facts target = facts_of(MODELS "mini-target");
  assert_int_equal(fit(target, MODELS "mini-head"), DT_FITS_HEAD);
  assert_int_equal(fit(target, MODELS "smollm2-head"), DT_FITS_NOT);
  target.bytes = 0; /* this does not matter */
  assert_int_equal(fit(target, MODELS "mini-head"), DT_FITS_HEAD);
  target.norm++;
  assert_int_equal(fit(target, MODELS "mini-head"), DT_FITS_NOT);
}

static void a_model_fits_if_it_is_small_kin(void **state) {
  (void)state;
  dt_model_facts target = facts_of(MODELS "mini-target"), draft = facts_of(MODELS "mini-draft");
  assert_int_equal(fit(target, MODELS "mini-draft"), DT_FITS_MODEL);
  assert_int_equal(fit(draft, MODELS "mini-target"), DT_FITS_NOT);
  assert_int_equal(fit(target, MODELS "mini-target"), DT_FITS_NOT);
  for (int more = -1; more <= 1; more++) { /* a draft may have half of its bytes */
    dt_model_facts t = target;
    t.bytes = 2 * draft.bytes + (uint64_t)more;
    assert_int_equal(fit(t, MODELS "mini-draft"), more < 0 ? DT_FITS_NOT : DT_FITS_MODEL);
  }
  dt_model_facts family = target, tokenizer = target, itself = target;
  family.family = "llama", tokenizer.tokenizer++, itself.norm = draft.norm;
  assert_int_equal(fit(family, MODELS "mini-draft"), DT_FITS_NOT);
  assert_int_equal(fit(tokenizer, MODELS "mini-draft"), DT_FITS_NOT);
  assert_int_equal(fit(itself, MODELS "mini-draft"), DT_FITS_NOT); /* with fewer bits */
}

static void what_is_no_draft_fits_nothing(void **state) {
  (void)state;
  dt_model_facts target = facts_of(MODELS "mini-target");
  uint64_t bytes = 1;
  assert_int_equal(dt_draft_fits(&target, MODELS "nowhere", &bytes), DT_FITS_NOT);
  assert_int_equal(fit(target, MODELS "prompt.txt"), DT_FITS_NOT);
  assert_int_equal(fit(target, MODELS), DT_FITS_NOT);
}

static void an_optional_draft_that_cannot_be_loaded_is_left_out(void **state) {
  (void)state;
  dt_pair *pair;
  dt_error err;
  dt_pair_info info;
  dt_pair_options options = {
      .target = MODELS "mini-target", .draft = MODELS "smollm2-head", .backend = "cpu", .threads = 1};
  assert_int_equal(dt_pair_open(&options, &pair, &err), DT_EINPUT);
  options.draft_optional = true;
  assert_int_equal(dt_pair_open(&options, &pair, &err), DT_OK);
  dt_pair_describe(pair, &info);
  assert_null(info.draft.path);
  assert_null(info.draft_head);
  assert_non_null(strstr(info.draft_left_out, "smollm2-head"));
  assert_true(info.load_ms > 0);
  dt_pair_close(pair);
  options.draft = MODELS "mini-head";
  assert_int_equal(dt_pair_open(&options, &pair, &err), DT_OK);
  dt_pair_describe(pair, &info);
  assert_non_null(info.draft.path);
  assert_null(info.draft_left_out);
  dt_pair_close(pair);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_model_says_what_it_is),
      cmocka_unit_test(a_model_says_what_its_passes_read),
      cmocka_unit_test(a_model_with_a_layer_that_drafts_says_so),
      cmocka_unit_test(a_head_fits_the_target_that_it_names),
      cmocka_unit_test(a_model_fits_if_it_is_small_kin),
      cmocka_unit_test(what_is_no_draft_fits_nothing),
      cmocka_unit_test(an_optional_draft_that_cannot_be_loaded_is_left_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
