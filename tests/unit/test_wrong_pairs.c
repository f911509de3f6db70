/* Pairs, their texts and functions that need no pair, with every wrong argument: each call is refused in one line. Also
 * checks that no function of the engine's headers is missing here and in test_wrong_arguments.c. */
#include "wrong_arguments.h"

#include "dtrun.h"
#include "dtrun_fake.h"
#include "dtrun_ranks.h"

enum { VOCAB = 100, CONTEXT = 600 };

#define REFUSED ANSWERS
#define NULL_REFUSED(call) ANSWERS(call, DT_EINPUT, "is NULL")

static dt_pair *open_fake(void) {
  dt_pair *pair;
  ok(dt_pair_open_fake(&(dt_fake_options){.vocab = VOCAB, .context = CONTEXT, .eos = -1}, &pair, &err));
  return pair;
}

static void pairs_refuse_wrong_options(void **unused) {
  (void)unused;
  static const char *const target = SOURCE_DIR "/models/mini-target", *const draft = SOURCE_DIR "/models/mini-draft";
  static const int THREADS[] = {INT_MIN, -1, 1025, INT_MAX};
  dt_pair *p = NULL;
  dt_pair_options o = {.target = target, .threads = 1};
  NULL_REFUSED(dt_pair_open(NULL, &p, &err));
  NULL_REFUSED(dt_pair_open(&o, NULL, &err));
  NULL_REFUSED(dt_pair_open(&(dt_pair_options){.draft = draft}, &p, &err));
  for
    EACH(n, THREADS)
  REFUSED(dt_pair_open(&(dt_pair_options){.target = target, .threads = *n}, &p, &err), DT_EINPUT, "threads");
  static const int GPUS[] = {INT_MIN, -1, 17, INT_MAX}, EXPERTS[] = {INT_MIN, -1};
  dt_needs needs;
  for
    EACH(n, GPUS) {
      o = (dt_pair_options){.target = target, .threads = 1, .gpus = *n};
      REFUSED(dt_pair_open(&o, &p, &err), DT_EINPUT, "gpus");
      REFUSED(dt_pair_needs(&o, &needs, &err), DT_EINPUT, "gpus");
    }
  for
    EACH(n, EXPERTS) {
      o = (dt_pair_options){.target = target, .cpu_experts = *n};
      REFUSED(dt_pair_open(&o, &p, &err), DT_EINPUT, "cpu_experts");
      o = (dt_pair_options){.target = target, .draft = draft, .draft_window = *n};
      REFUSED(dt_pair_open(&o, &p, &err), DT_EINPUT, "draft_window");
    }
  for (int i = 0; i < 5; i++)
    REFUSED(dt_pair_open(&(dt_pair_options){.target = target,
                                            .gpu_layers = (const char *[]){"", "0", "-1", "4x", "99999999999"}[i]},
                         &p, &err),
            DT_EINPUT, "gpu_layers");
  NULL_REFUSED(dt_pair_needs(NULL, &needs, &err));
  NULL_REFUSED(dt_pair_needs(&(dt_pair_options){.target = target}, NULL, &err));
  NULL_REFUSED(dt_pair_needs(&(dt_pair_options){.draft = draft}, &needs, &err));
  for (int i = 0; i < 5; i++) {
    o = (dt_pair_options){.target = target, .draft = draft, .threads = 1};
    *(const char **[]){&o.backend, &o.target_weights, &o.draft_weights, &o.cache_dtype, &o.numa}[i] = "nonsense";
    REFUSED(dt_pair_open(&o, &p, &err), DT_EINPUT, "nonsense");
  }
  for (int i = 0; i < 3; i++)
    REFUSED(dt_pair_open(&(dt_pair_options){.target = (const char *[]){"", "/nowhere", "/dev/null"}[i], .threads = 1},
                         &p, &err),
            DT_EINPUT, "");
  const int32_t bad_ids[] = {-1};
  const dt_text no_text[] = {{NULL, 1}};
  const dt_draft_vocab wrong[] = {{.lowest = -2},
                                  {.lowest = INT_MIN},
                                  {.lowest = INT_MAX},
                                  {.n_ids = -1},
                                  {.n_ids = 1},
                                  {.n_texts = -1},
                                  {.n_texts = 1},
                                  {.n_texts = 1, .texts = no_text},
                                  {.n_ids = 1, .ids = bad_ids},
                                  {.n_ids = INT_MIN, .ids = bad_ids}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    o = (dt_pair_options){.target = target, .draft = draft, .threads = 1, .draft_vocab = &wrong[i]};
    REFUSED(dt_pair_open(&o, &p, &err), DT_EINPUT, "draft_vocab");
  }
  o = (dt_pair_options){.target = target, .draft = "/nowhere", .threads = 1};
  REFUSED(dt_pair_open(&o, &p, &err), DT_EINPUT, "/nowhere");
  assert_null(p);
  NULL_REFUSED(dt_model_look(NULL, NULL, &err));
  REFUSED(dt_model_look("/nowhere", NULL, &err), DT_EINPUT, "/nowhere");
  assert_false(dt_has_mtp(NULL));
  assert_false(dt_has_mtp("/nowhere"));
  uint64_t bytes = 9;
  const dt_model_facts facts = {.family = "llama", .bytes = 1 << 30};
  assert_int_equal(dt_draft_fits(NULL, draft, &bytes), DT_FITS_NOT);
  assert_int_equal(bytes, 0);
  assert_int_equal(dt_draft_fits(&facts, NULL, &bytes), DT_FITS_NOT);
  assert_int_equal(dt_draft_fits(&facts, draft, NULL), DT_FITS_NOT);
  assert_int_equal(dt_draft_fits(&facts, "/nowhere", &bytes), DT_FITS_NOT);
  assert_false(dt_draft_is_own(NULL));
  assert_false(dt_model_fits(NULL, &facts));
  assert_false(dt_model_fits(&facts, NULL));
  bool head = true;
  NULL_REFUSED(dt_head_look(NULL, &head, &bytes, &err));
  NULL_REFUSED(dt_head_look(draft, NULL, &bytes, &err));
  NULL_REFUSED(dt_head_look(draft, &head, NULL, &err));
  ok(dt_head_look("/nowhere", &head, &bytes, &err));
  assert_false(head);
  dt_pair_close(NULL);
}

static void scripted_pairs_refuse_wrong_rules(void **unused) {
  (void)unused;
  static const int32_t id[] = {1}, bad[] = {VOCAB};
  static const float half[] = {0.5f}, much[] = {1.5f}, below[] = {-0.1f};
  dt_pair *p = NULL;
  static const char *const SIDES[] = {"target", "draft"};
  const dt_fake_options fine = {.vocab = VOCAB, .context = CONTEXT, .eos = -1};
  const dt_fake_rule rules[] = {
      {.context_len = -1},
      {.context_len = 1},
      {.context = id, .context_len = INT_MIN},
      {.count = -1},
      {.count = 1, .p = half},
      {.count = 1, .token = id},
      {.count = INT_MIN, .token = id, .p = half},
      {.count = 1, .token = bad, .p = half},
      {.count = 1, .token = id, .p = much},
      {.count = 1, .token = id, .p = below},
  };
  NULL_REFUSED(dt_pair_open_fake(NULL, &p, &err));
  NULL_REFUSED(dt_pair_open_fake(&fine, NULL, &err));
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    for (int side = 0; side < 2; side++) {
      dt_fake_options o = fine;
      *(const dt_fake_rule **[]){&o.target, &o.draft}[side] = &rules[i];
      *(int *[]){&o.n_target, &o.n_draft}[side] = 1;
      REFUSED(dt_pair_open_fake(&o, &p, &err), DT_EINPUT, SIDES[side]);
    }
  for
    EACH(n, NEGATIVE) {
      dt_fake_options o[7] = {fine, fine, fine, fine, fine, fine, fine};
      o[0].vocab = o[1].context = o[2].draft_context = o[3].n_target = o[4].n_draft = *n;
      o[5].eos = *n == -1 ? VOCAB : *n;
      o[6].n_target = 1; /* no list */
      for (int i = 0; i < 7; i++) REFUSED(dt_pair_open_fake(&o[i], &p, &err), DT_EINPUT, "");
    }
  for
    EACH(n, NEGATIVE) {
      dt_fake_options o = fine;
      o.experts = 4, o.chosen = 2, o.layers = 1;
      dt_fake_options wrong[] = {o, o, o, o};
      wrong[0].experts = wrong[1].chosen = wrong[2].layers = *n, wrong[3].kept = (float)*n;
      for (int i = 0; i < 4; i++) REFUSED(dt_pair_open_fake(&wrong[i], &p, &err), DT_EINPUT, "");
    }
  assert_null(p);
}

static void what_is_asked_of_pairs(void **unused) {
  (void)unused;
  dt_pair *pair = open_fake();
  dt_pair_info info, zeros = {0};
  dt_rank_info ranks[DT_RANKS];
  int32_t *ids, bad[] = {-1};
  int n;
  char *text;
  size_t len;
  dt_chat *chat;
  memset(&info, 1, sizeof info);
  dt_pair_describe(NULL, &info);
  assert_memory_equal(&info, &zeros, sizeof info);
  dt_pair_describe(pair, NULL);
  assert_int_equal(dt_pair_ranks(NULL, ranks), 0);
  assert_int_equal(dt_pair_ranks(pair, NULL), 0);
  assert_true(dt_pair_bandwidth(NULL) == 0);
  for (int whole = 0; whole < 2; whole++) {
    dt_status (*encode)(const dt_pair *, const char *, size_t, int32_t **, int *, dt_error *) =
        whole ? dt_encode_whole : dt_encode;
    NULL_REFUSED(encode(NULL, "1", 1, &ids, &n, &err));
    NULL_REFUSED(encode(pair, NULL, 1, &ids, &n, &err));
    NULL_REFUSED(encode(pair, "1", 1, NULL, &n, &err));
    NULL_REFUSED(encode(pair, "1", 1, &ids, NULL, &err));
    REFUSED(encode(pair, "1", SIZE_MAX, &ids, &n, &err), DT_EINPUT, "more than 2147483647 bytes");
    REFUSED(encode(pair, "1", (size_t)INT_MAX + 1, &ids, &n, &err), DT_EINPUT, "more than 2147483647 bytes");
    ok(encode(pair, NULL, 0, &ids, &n, &err));
    free(ids);
  }
  assert_null(dt_decode(NULL, bad, 1, true, &len));
  assert_null(dt_decode(pair, NULL, 1, true, &len));
  for
    EACH(i, NEGATIVE) assert_null(dt_decode(pair, bad, *i, true, &len));
  free(text = dt_decode(pair, NULL, 0, true, NULL));
  assert_non_null(text);
  char buffer[16];
  len = 1;
  assert_int_equal(dt_token_at(NULL, "<m>", 3, &len), -1);
  assert_int_equal(dt_token_at(pair, NULL, 3, &len), -1);
  assert_int_equal(dt_token_at(pair, "<m>", 3, NULL), -1);
  assert_int_equal(dt_token_at(pair, "<m>", 3, &len), -1); /* a scripted pair has no control tokens */
  assert_string_equal(dt_token_bytes(NULL, 1, false, buffer, &len), "");
  assert_int_equal(len, 0);
  assert_string_equal(dt_token_bytes(pair, 1, false, NULL, &len), "");
  assert_string_equal(dt_token_bytes(pair, 1, false, buffer, NULL), "");
  assert_null(dt_utf8(NULL, 1, &len));
  free(text = dt_utf8(NULL, 0, NULL));
  assert_non_null(text);
  NULL_REFUSED(dt_pair_chat(NULL, "chatml", &chat, &err));
  NULL_REFUSED(dt_pair_chat(pair, "chatml", NULL, &err));
  REFUSED(dt_pair_chat(pair, "nonsense", &chat, &err), DT_EINPUT, "nonsense");
  REFUSED(dt_pair_chat(pair, NULL, &chat, &err), DT_EINPUT, "");
  NULL_REFUSED(dt_model_chat(NULL, "chatml", &chat, &err));
  NULL_REFUSED(dt_model_chat("nowhere", "chatml", NULL, &err));
  REFUSED(dt_model_chat("nowhere", "nonsense", &chat, &err), DT_EINPUT, "nonsense");
  const dt_chat_prompt prompt = {.text = (char[]){"1"}, .len = 1}, no_prompt = {.len = 1},
                       plain = {.text = (char[]){"1"}, .len = 1, .plain = &(dt_range){0, 1}, .n_plain = 1};
  NULL_REFUSED(dt_encode_chat(NULL, &prompt, &ids, &n, &err));
  NULL_REFUSED(dt_encode_chat(pair, NULL, &ids, &n, &err));
  NULL_REFUSED(dt_encode_chat(pair, &no_prompt, &ids, &n, &err));
  NULL_REFUSED(dt_encode_chat(pair, &prompt, NULL, &n, &err));
  NULL_REFUSED(dt_encode_chat(pair, &prompt, &ids, NULL, &err));
  ok(dt_encode_chat(pair, &plain, &ids, &n, &err));
  free(ids);
  dt_infill marks;
  assert_false(dt_pair_infill(NULL, &marks) || dt_pair_infill(pair, NULL) || dt_pair_infill(pair, &marks));
  assert_int_equal(marks.prefix, -1);
  REFUSED(dt_model_chat("nowhere", NULL, &chat, &err), DT_EINPUT, "nowhere has no chat template");
  assert_false(dt_adjustments_wanted(NULL));
  dt_clock_skip(-1), dt_clock_skip(NAN), dt_clock_skip(INFINITY); /* these are not times */
  dt_pair_close(pair);
}

static void ids_that_a_tokenizer_lacks_have_no_text(void **unused) {
  (void)unused;
  dt_pair *p;
  const int32_t ids[] = {INT32_MIN, -1, 4096, 4097, INT32_MAX};
  dt_pair_options o = {.target = SOURCE_DIR "/models/mini-target", .threads = 1};
  ok(dt_pair_open(&o, &p, &err));
  for (int i = 0; i < 5; i++) {
    char *text = dt_decode(p, &ids[i], 1, true, NULL);
    assert_string_equal(text, "");
    free(text);
    size_t len = 1;
    dt_token_bytes(p, ids[i], false, (char[16]){0}, &len);
    assert_int_equal(len, 0);
  }
  dt_pair_close(p);
}

static void conversations_refuse_wrong_arguments(void **unused) {
  (void)unused;
  static const int NEGATIVE_OR_MANY[] = {INT_MIN, -1, 9, INT_MAX};
  const dt_conversation hi = {.messages = "[{\"role\": \"user\", \"content\": \"hi\"}]"};
  const char *const settings[] = {"{}", "[]"};
  dt_conversation q = {0};
  dt_chat *chat;
  dt_reasoning *reasoning;
  dt_chat_prompt out = {0};
  const char *mark;
  NULL_REFUSED(dt_chat_open(NULL, &chat, &err));
  NULL_REFUSED(dt_chat_open(&(dt_chat_source){.name = "chatml"}, NULL, &err));
  NULL_REFUSED(dt_chat_open(&(dt_chat_source){0}, &chat, &err));
  REFUSED(dt_chat_open(&(dt_chat_source){.name = ""}, &chat, &err), DT_EINPUT, "no chat template");
  ok(dt_chat_open(&(dt_chat_source){.name = "chatml"}, &chat, &err));
  NULL_REFUSED(dt_chat_write(NULL, &hi, &out, &err));
  NULL_REFUSED(dt_chat_write(chat, NULL, &out, &err));
  NULL_REFUSED(dt_chat_write(chat, &q, &out, &err));
  NULL_REFUSED(dt_chat_write(chat, &hi, NULL, &err));
  q = hi;
  for
    EACH(n, NEGATIVE_OR_MANY) {
      q.n_settings = *n, q.settings = settings;
      REFUSED(dt_chat_write(chat, &q, &out, &err), DT_EINPUT, "settings");
    }
  q.n_settings = 2;
  REFUSED(dt_chat_write(chat, &q, &out, &err), DT_EINPUT, "expected a JSON object");
  const char *const most[DT_CHAT_SETTINGS] = {"{}", "{}", "{}", "{}", "{}", "{}", "{}", "{}"};
  q.n_settings = DT_CHAT_SETTINGS, q.settings = most;
  ok(dt_chat_write(chat, &q, &out, &err));
  dt_chat_prompt_free(&out);
  q.n_settings = DT_CHAT_SETTINGS + 1;
  REFUSED(dt_chat_write(chat, &q, &out, &err), DT_EINPUT, "settings");
  q.settings = NULL;
  NULL_REFUSED(dt_chat_write(chat, &q, &out, &err));
  q = (dt_conversation){.messages = "nonsense"};
  REFUSED(dt_chat_write(chat, &q, &out, &err), DT_EINPUT, "expected a JSON list");
  q = hi, q.tools = "[";
  REFUSED(dt_chat_write(chat, &q, &out, &err), DT_EINPUT, "tools");
  dt_chat_prompt_free(NULL), dt_chat_prompt_free(&out);
  assert_false(dt_chat_reasoning(NULL, &mark, &mark));
  assert_false(dt_chat_reasoning(chat, NULL, &mark));
  assert_false(dt_chat_reasoning(chat, &mark, NULL));
  assert_false(dt_chat_mentions(NULL, "x"));
  assert_false(dt_chat_mentions(chat, NULL));
  assert_null(dt_chat_text(NULL));
  NULL_REFUSED(dt_reasoning_open(NULL, false, &reasoning, &err));
  NULL_REFUSED(dt_reasoning_open(chat, false, NULL, &err));
  assert_true(dt_reasoning_add(NULL, "a", 1, NULL, NULL));
  assert_true(dt_reasoning_end(NULL, NULL, NULL));
  dt_reasoning_close(NULL);
  dt_chat_close(chat);
  dt_chat_close(NULL);
  assert_null(dt_chat_name(NULL));
  assert_null(dt_chat_end(NULL));
}

static void the_rest(void **unused) {
  (void)unused;
  int rank, ranks, n;
  char *path, **homes, *grammar;
  NULL_REFUSED(dt_schema_grammar(NULL, NULL, &grammar, NULL, &err));
  NULL_REFUSED(dt_schema_grammar("{}", NULL, NULL, NULL, &err));
  NULL_REFUSED(dt_regex_grammar(NULL, &grammar, &err));
  NULL_REFUSED(dt_regex_grammar("a", NULL, &err));
  NULL_REFUSED(dt_check_grammar(NULL, &err));
  NULL_REFUSED(dt_ranks_join(NULL, &ranks, NULL, &err));
  NULL_REFUSED(dt_ranks_join(&rank, NULL, NULL, &err));
  NULL_REFUSED(dt_find(NULL, &path, &err));
  NULL_REFUSED(dt_find("policies/ar.lua", NULL, &err));
  NULL_REFUSED(dt_homes(NULL, &n, &err));
  NULL_REFUSED(dt_homes(&homes, NULL, &err));
  assert_false(dt_adjustments_wanted(NULL));
  dt_clock_skip(-1), dt_clock_skip(NAN), dt_clock_skip(INFINITY); /* these are not times */
  dt_error why;
  dt_clean(NULL);
  const char *no_format = NULL;
  assert_int_equal(dt_fail(NULL, DT_EIO, "%d", 1), DT_EIO);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-security"
  assert_int_equal(dt_fail(&why, DT_EIO, no_format), DT_EIO);
#pragma GCC diagnostic pop
  assert_string_equal(why.message, "");
  assert_int_equal(dt_fail_memory(NULL, NULL, 0), DT_ENOMEM);
  assert_int_equal(dt_fail_memory(&why, NULL, ULLONG_MAX), DT_ENOMEM);
  assert_true(dt_processors() >= 1 && dt_version() && dt_clock_ms() > 0 &&
              isfinite(dt_clock_ms())); /* which take no arguments, as */
  (void)dt_ranks_possible();
}

static void calls_refuse_wrong_arguments(void **unused) {
  (void)unused;
  dt_chat *chat;
  dt_call_format *format;
  dt_calls *calls;
  dt_called called = {0};
  char *text;
  ok(dt_chat_open(&(dt_chat_source){.name = "chatml"}, &chat, &err));
  NULL_REFUSED(dt_call_format_open(NULL, &format, &err));
  NULL_REFUSED(dt_call_format_open(chat, NULL, &err));
  ok(dt_call_format_open(chat, &format, &err));
  assert_false(dt_call_format_learned(NULL));
  NULL_REFUSED(dt_call_format_text(NULL, &text, &err));
  NULL_REFUSED(dt_call_format_text(format, NULL, &err));
  NULL_REFUSED(dt_calls_open(NULL, NULL, &calls, &err));
  NULL_REFUSED(dt_calls_open(format, NULL, NULL, &err));
  REFUSED(dt_calls_open(format, "nonsense", &calls, &err), DT_EINPUT, "tools");
  assert_true(dt_calls_add(NULL, "a", 1, NULL, NULL));
  assert_true(dt_calls_end(NULL, NULL, NULL));
  dt_calls_close(NULL);
  NULL_REFUSED(dt_calls_read(NULL, NULL, "a", 1, &called, &err));
  NULL_REFUSED(dt_calls_read(format, NULL, NULL, 1, &called, &err));
  NULL_REFUSED(dt_calls_read(format, NULL, "a", 1, NULL, &err));
  REFUSED(dt_calls_read(format, NULL, "a", SIZE_MAX, &called, &err), DT_EINPUT, "answer has more than");
  REFUSED(dt_calls_read(format, "1", "a", 1, &called, &err), DT_EINPUT, "tools");
  dt_called_free(NULL), dt_called_free(&called);
  const dt_call_options how = {.required = true};
  NULL_REFUSED(dt_call_grammar(format, "[]", NULL, &text, &err));
  NULL_REFUSED(dt_call_grammar(NULL, "[]", &how, &text, &err));
  NULL_REFUSED(dt_call_grammar(format, NULL, &how, &text, &err));
  NULL_REFUSED(dt_call_grammar(format, "[]", &how, NULL, &err));
  REFUSED(dt_call_grammar(format, "[]", &how, &text, &err), DT_EINPUT, "tools: the list is empty");
  dt_call_format_close(format), dt_call_format_close(NULL);
  dt_chat_close(chat);
}

static void no_function_is_forgotten(void **unused) {
  (void)unused;
  static const char *const tests[] = {"tests/unit/test_wrong_arguments.c", "tests/unit/test_wrong_pairs.c", NULL};
  static const struct {
    const char *header;
    int functions;
  } headers[] = {{"runtime/dtrun.h", 44},      {"runtime/dtrun_fake.h", 1},     {"runtime/dtrun_ranks.h", 3},
                 {"runtime/tree/tree.h", 30},  {"runtime/system/status.h", 3},  {"runtime/chat/chat.h", 10},
                 {"runtime/chat/calls.h", 11}, {"runtime/system/version.h", 1}, {"runtime/system/paths.h", 2},
                 {"runtime/system/clock.h", 2}};
  for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
    assert_true(check_tested(headers[i].header, "dt_", tests) >= headers[i].functions);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pairs_refuse_wrong_options),
      cmocka_unit_test(scripted_pairs_refuse_wrong_rules),
      cmocka_unit_test(what_is_asked_of_pairs),
      cmocka_unit_test(ids_that_a_tokenizer_lacks_have_no_text),
      cmocka_unit_test(conversations_refuse_wrong_arguments),
      cmocka_unit_test(the_rest),
      cmocka_unit_test(calls_refuse_wrong_arguments),
      cmocka_unit_test(no_function_is_forgotten),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
