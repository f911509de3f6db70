/* Limits on reasoning under policies: a limited text is that of plain decoding, which follows the definition. */
#include "unit.h"

#include "host.h"
#include "reasoning_reference.h"

#include <math.h>
#include <stdlib.h>

enum { TOKENS = 30, CONTEXT = 160 };

static const char *const POLICIES[] = {"ar",
                                       "linear",
                                       "dynatree",
                                       "fixed_tree",
                                       "rate",
                                       "suffix",
                                       SOURCE_DIR "/tests/exact/hostile/random_trees.lua",
                                       SOURCE_DIR "/tests/exact/hostile/rollbacks.lua",
                                       SOURCE_DIR "/tests/exact/hostile/forced.lua"};
enum { N_POLICIES = sizeof POLICIES / sizeof *POLICIES };

static const char PROMPT[] = "It was a dark night, and the wind was in the trees, and the dog was in the house.";

static dt_pair *pair;
static dtl_policy *policies[N_POLICIES];
static dtl_memory *memory;

static int set_up(void **state) {
  (void)state;
  dt_pair_options options = {
      .target = SOURCE_DIR "/models/mini-target", .draft = SOURCE_DIR "/models/mini-draft", .threads = 1};
  ok(dt_pair_open(&options, &pair, &err));
  for (int i = 0; i < N_POLICIES; i++)
    ok(dtl_policy_open(&(dtl_policy_options){.policy = POLICIES[i]}, &policies[i], &err));
  memory = dtl_memory_open();
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  for (int i = 0; i < N_POLICIES; i++) dtl_policy_close(policies[i]);
  dtl_memory_close(memory);
  dt_pair_close(pair);
  return 0;
}

/* Generates from the prompt and the ids that follow it. */
static dtl_result generated(int policy, const dt_seq_options *seq, const int32_t *more, int n) {
  int32_t *ids;
  int n_ids;
  ok(dt_encode(pair, PROMPT, strlen(PROMPT), &ids, &n_ids, &err));
  ids = realloc(ids, sizeof *ids * (size_t)(n_ids + n));
  if (n) memcpy(ids + n_ids, more, sizeof *ids * (size_t)n);
  dtl_prompt prompt = {.ids = ids, .n_ids = n_ids + n};
  dtl_request request = {.prompts = &prompt, .n = 1, .seq = *seq, .memory = memory, .context = CONTEXT};
  dtl_result result;
  ok(dtl_generate(pair, policies[policy], &request, &result, &err));
  if (result.failed) fail_msg("%s: %s", POLICIES[policy], result.failure.message);
  free(ids);
  return result;
}

static void is_same(const dtl_result *is, const dtl_result *plain, const char *policy) {
  if (is->n_tokens != plain->n_tokens || memcmp(is->tokens, plain->tokens, sizeof *is->tokens * (size_t)is->n_tokens))
    fail_msg("%s: other tokens than plain decoding", policy);
  assert_string_equal(is->text, plain->text);
  assert_string_equal(is->finish_reason, plain->finish_reason);
  for (int i = 0; plain->logprobs && i < plain->n_tokens; i++)
    assert_memory_equal(&is->logprobs[i].logp, &plain->logprobs[i].logp, sizeof(float));
}

/* Compares every second policy, in turn, with plain decoding. Returns the plain result. */
static dtl_result under_policies(const dt_seq_options *seq) {
  static int turn;
  dtl_result plain = generated(0, seq, NULL, 0);
  for (int i = 1 + turn++ % 2; i < N_POLICIES; i += 2) {
    dtl_result result = generated(i, seq, NULL, 0);
    is_same(&result, &plain, POLICIES[i]);
    dtl_result_free(&result);
  }
  return plain;
}

static int32_t *ids_of(const char *text, int *n) {
  int32_t *ids;
  ok(dt_encode_whole(pair, text, strlen(text), &ids, n, &err));
  return ids;
}

/* The limited text is the free one up to the limit; then come the forced ids; then what follows them in any text.
 * Returns where the forced ids begin, or -1. */
static int check_limited(const dt_seq_options *seq, const dtl_result *free_text) {
  const dt_reasoning_limit *limit = &seq->adjustments.reasoning;
  dtl_result r = under_policies(seq);
  int n_forced, at = reasoning_reached(pair, limit, free_text->tokens, free_text->n_tokens);
  int32_t *forced = ids_of(limit->end, &n_forced);
  int same = at < 0 || at >= TOKENS ? free_text->n_tokens : at;
  assert_true(r.n_tokens >= same);
  assert_memory_equal(r.tokens, free_text->tokens, sizeof *r.tokens * (size_t)same);
  if (same < at || at < 0 || at >= TOKENS) {
    assert_int_equal(r.n_tokens, free_text->n_tokens);
  } else {
    int come = n_forced < TOKENS - at ? n_forced : TOKENS - at, rest = TOKENS - at - come;
    assert_memory_equal(r.tokens + at, forced, sizeof *forced * (size_t)come);
    if (rest) {
      dt_seq_options after = *seq;
      after.max_tokens = rest, after.adjustments = (dt_adjustments){0};
      dtl_result unlimited = generated(0, &after, r.tokens, at + come);
      assert_int_equal(r.n_tokens, at + come + unlimited.n_tokens);
      assert_memory_equal(r.tokens + at + come, unlimited.tokens, sizeof *forced * (size_t)unlimited.n_tokens);
      dtl_result_free(&unlimited);
    }
  }
  free(forced);
  dtl_result_free(&r);
  return at < 0 || at >= TOKENS ? -1 : at;
}

/* The text of the first tokens, at least two, of which the last is not white space. */
static char *beginning(const dtl_result *r, int *n) {
  char buffer[16];
  size_t len;
  const char *bytes;
  for (*n = 2, bytes = NULL; !bytes || reasoning_white(bytes, len) == len; ++*n)
    bytes = dt_token_bytes(pair, r->tokens[*n - 1], false, buffer, &len);
  return dt_decode(pair, r->tokens, --*n, true, NULL);
}

static void limited_texts_are_those_of_plain_decoding(void **state) {
  (void)state;
  static const int BUDGETS[] = {0, 5, 17, 1000};
  static const char *const ENDS[] = {"</think>\n\n", "\n\nzz", ".", " was"};
  int forced_open = 0, forced_later = 0, never = 0, single = 0, several = 0;
  for (int e = 0; e < 4; e++) {
    int n;
    free(ids_of(ENDS[e], &n));
    single += n == 1, several += n > 1;
    for (int t = 0; t < 2; t++) {
      dt_seq_options seq = {.max_tokens = TOKENS, .sampling = {.temp = t ? 0.8f : 0, .seed = (uint64_t)e}};
      dtl_result free_text = generated(0, &seq, NULL, 0);
      int n_begin;
      char *begin = beginning(&free_text, &n_begin);
      const char *const begins[] = {begin, begin, "<think>"};
      for (int b = 0; b < 3; b++)
        for (int k = 0; k < (b < 2 ? 4 : 1); k++) {
          seq.adjustments.reasoning =
              (dt_reasoning_limit){.begin = begins[b], .end = ENDS[e], .open = b == 0, .tokens = BUDGETS[k]};
          int at = check_limited(&seq, &free_text);
          forced_open += b == 0 && at >= 0, forced_later += b && at >= 0, never += at < 0;
          if (b == 2) assert_int_equal(at, -1);
          if (b < 2 && !k) assert_int_equal(at, b ? n_begin : 0);
        }
      free(begin);
      dtl_result_free(&free_text);
    }
  }
  if (forced_open < 16 || forced_later < 16 || never < 24 || !single || !several)
    fail_msg("forced: %d open, %d later; never %d; marks of one token %d, of several %d", forced_open, forced_later,
             never, single, several);
}

/* With the other options, the forced ids stand where the definition says, whatever they are. */
static void the_limit_goes_with_other_options(void **state) {
  (void)state;
  static const char end[] = "</think>\n\n";
  static const char *const stop[] = {" the", "k>\n"};
  int n_forced;
  int32_t *forced = ids_of(end, &n_forced);
  const dt_bias ban[] = {{forced[0], -INFINITY}, {261, 3}, {forced[n_forced - 1], -INFINITY}}, eos[] = {{0, 1000}};
  const dt_seq_options of[] = {
      {.adjustments = {.repeat = 1.3f, .presence = 0.5f, .frequency = 0.3f}},
      {.adjustments = {.bias = ban, .n_bias = 3}},
      {.adjustments = {.min_tokens = 25}},
      {.adjustments = {.min_tokens = 5, .bias = eos, .n_bias = 1}},
      {.ignore_eos = true, .adjustments = {.bias = eos, .n_bias = 1}},
      {.stop = stop, .n_stop = 2},
      {.uncoupled = true},
      {.logprobs = {.wanted = true, .top = 3}},
      {.logprobs = {.wanted = true}, .adjustments = {.presence = 1, .bias = ban, .n_bias = 3, .min_tokens = 20}},
  };
  for (size_t i = 0; i < sizeof of / sizeof *of; i++)
    for (int t = 0; t < 2; t++)
      for (int budget = 0; budget < 20; budget += 9) {
        dt_seq_options seq = of[i];
        seq.max_tokens = TOKENS;
        seq.sampling = (dt_sampling){.temp = t ? 0.8f : 0, .seed = i, .top_k = t ? 50 : 0, .top_p = t ? 0.95f : 0};
        dtl_result free_text = generated(0, &seq, NULL, 0);
        seq.adjustments.reasoning = (dt_reasoning_limit){.end = end, .open = true, .tokens = budget};
        dtl_result r = under_policies(&seq);
        int same = budget < free_text.n_tokens ? budget : free_text.n_tokens;
        assert_memory_equal(r.tokens, free_text.tokens, sizeof *forced * (size_t)same);
        for (int k = 0; k < n_forced && budget + k < r.n_tokens; k++) assert_int_equal(r.tokens[budget + k], forced[k]);
        if (strcmp(r.finish_reason, "length") == 0) assert_int_equal(r.n_tokens, TOKENS);
        if (!seq.n_stop && budget < free_text.n_tokens) assert_true(r.n_tokens >= budget + n_forced);
        dtl_result_free(&free_text), dtl_result_free(&r);
      }
  free(forced);
}

/* Several limited texts share passes. */
static void limited_texts_share_passes(void **state) {
  (void)state;
  enum { ANSWERS = 6 };
  dtl_prompt prompt = {.text = PROMPT, .len = strlen(PROMPT)};
  dtl_request request = {.prompts = &prompt,
                         .n = 1,
                         .answers = ANSWERS,
                         .slots = 4,
                         .memory = memory,
                         .context = CONTEXT,
                         .seq = {.max_tokens = TOKENS,
                                 .sampling = {.temp = 0.9f},
                                 .adjustments.reasoning = {.end = "</think>\n", .open = true, .tokens = 11}}};
  dtl_result plain[ANSWERS], result[ANSWERS];
  ok(dtl_generate(pair, policies[0], &request, plain, &err));
  for (int p = 1; p < N_POLICIES; p++) {
    ok(dtl_generate(pair, policies[p], &request, result, &err));
    for (int i = 0; i < ANSWERS; i++) is_same(&result[i], &plain[i], POLICIES[p]), dtl_result_free(&result[i]);
  }
  for (int i = 0; i < ANSWERS; i++) dtl_result_free(&plain[i]);
}

/* The end mark is long enough for a chain of drafts to reach it. */
static void forced_tokens_are_verified_together(void **state) {
  (void)state;
  static const char end[] = "</think>\n\n";
  int n_forced;
  free(ids_of(end, &n_forced));
  assert_true(n_forced >= 4);
  const dt_seq_options seq = {.max_tokens = n_forced, .adjustments.reasoning = {.end = end, .open = true}};
  dtl_result r = generated(1, &seq, NULL, 0);
  assert_int_equal(r.n_tokens, n_forced);
  assert_true(r.stats.accepted == r.stats.drafted && r.stats.iterations < n_forced && r.stats.drafted > 0);
  dtl_result_free(&r);
}

static void the_result_says_that_there_was_a_limit(void **state) {
  (void)state;
  dt_seq_options seq = {.max_tokens = 4, .adjustments.reasoning = {.begin = "<think>", .end = "</think>", .tokens = 3}};
  dtl_result r = generated(0, &seq, NULL, 0);
  char *json = dtl_result_json(&r, DTL_JSON_LINE);
  assert_non_null(strstr(json, "\"think_tokens\":3"));
  assert_ptr_not_equal(r.adjustments.reasoning.end, seq.adjustments.reasoning.end);
  assert_string_equal(r.adjustments.reasoning.begin, "<think>");
  free(json), dtl_result_free(&r);
  seq.adjustments.reasoning.tokens = -1;
  r = generated(0, &seq, NULL, 0);
  json = dtl_result_json(&r, DTL_JSON_LINE);
  assert_non_null(strstr(json, "\"adjustments\":null"));
  free(json), dtl_result_free(&r);
  seq.adjustments.presence = 1;
  r = generated(0, &seq, NULL, 0);
  json = dtl_result_json(&r, DTL_JSON_LINE);
  assert_non_null(strstr(json, "\"think_tokens\":null"));
  free(json), dtl_result_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(limited_texts_are_those_of_plain_decoding),
      cmocka_unit_test(the_limit_goes_with_other_options),
      cmocka_unit_test(limited_texts_share_passes),
      cmocka_unit_test(forced_tokens_are_verified_together),
      cmocka_unit_test(the_result_says_that_there_was_a_limit),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
