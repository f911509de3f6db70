/* Every call of the host with every wrong argument: each is refused in one line and changes nothing. */
#include "wrong_arguments.h"

#include "dtrun_fake.h"
#include "host.h"
#include "temp_files.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

enum { VOCAB = 50, CONTEXT = 400, TOKENS = 12 };

#define REFUSED(call, part) HOST_REFUSES(call, DT_EINPUT, part)
#define NULL_REFUSED(call) REFUSED(call, "is NULL")

#define TARGET SOURCE_DIR "/models/mini-target"
#define DRAFT SOURCE_DIR "/models/mini-draft"
#define PROMPT " 1 2 3"

static const double NO_SECONDS[] = {NAN, -INFINITY, -1, -1e-300};
static dt_pair *pair, *other;

static int set_up(void **unused) {
  (void)unused;
  const dt_fake_options options = {.vocab = VOCAB, .context = CONTEXT, .eos = -1};
  ok(dt_pair_open_fake(&options, &pair, &err));
  ok(dt_pair_open_fake(&options, &other, &err));
  return 0;
}

static int tear_down(void **unused) {
  (void)unused;
  dt_pair_close(pair), dt_pair_close(other);
  return 0;
}

static bool never(void *user, const char *bytes, size_t len) {
  (void)user, (void)bytes, (void)len;
  return false;
}

/* ---- texts and names --------------------------------------------------------------------------------------------- */

static void texts_and_names(void **unused) {
  (void)unused;
  static const dt_status KINDS[] = {(dt_status)INT_MIN, (dt_status)-1,       DT_OK,
                                    DT_ESTATE,          DT_EINTERRUPTED + 1, (dt_status)INT_MAX};
  static const char *const names[] = {"apple", NULL, "pear"};
  const char *near[DTL_NEAR] = {0};
  char out[8] = "1234567";
  for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) assert_string_equal(dtl_kind_name(KINDS[i]), "device");
  assert_int_equal(dtl_clean(NULL, 8, "text", 4), 0);
  assert_int_equal(dtl_clean(out, 0, "text", 4), 0);
  assert_string_equal(out, "1234567");
  assert_int_equal(dtl_clean(out, sizeof out, NULL, 4), 0);
  assert_string_equal(out, "");
  assert_int_equal(dtl_clean(out, sizeof out, "more than fits", SIZE_MAX), 7);
  assert_int_equal(dtl_near(NULL, 5, names, 3, near, 1), 0);
  assert_int_equal(dtl_near("appel", 5, NULL, 3, near, 1), 0);
  assert_int_equal(dtl_near("appel", 5, names, 3, NULL, 1), 0);
  for
    EACH(n, NEGATIVE) {
      assert_int_equal(dtl_near("apple", 5, names, *n, near, 1), 0);
      assert_int_equal(dtl_near("apple", 5, names, 3, near, *n), 0);
    }
  assert_int_equal(dtl_near("apple", 5, names, 3, near, 0), 0);
  assert_int_equal(dtl_near("apples", SIZE_MAX, names, 3, near, 1), 0);
  assert_null(near[0]);
  assert_int_equal(dtl_near("apple", 5, names, 3, near, INT_MAX), 1);
  assert_string_equal(near[0], "apple");
}

static void files_of_the_user(void **unused) {
  (void)unused;
  char empty[] = "", root[] = "/", nowhere[] = "/dev/null/folder/file";
  char **names, *text;
  int n;
  NULL_REFUSED(dtl_read_grammar(NULL, "grammar.gbnf", &text, err));
  NULL_REFUSED(dtl_read_grammar("grammar", NULL, &text, err));
  NULL_REFUSED(dtl_read_grammar("grammar", "grammar.gbnf", NULL, err));
  REFUSED(dtl_read_grammar("grammar", nowhere, &text, err), "/dev/null/folder/file");
  assert_null(dtl_state_file(NULL));
  errno = 0;
  assert_false(dtl_make_folders(NULL));
  assert_int_equal(errno, EINVAL);
  errno = 0;
  assert_false(dtl_make_folders(empty));
  assert_int_equal(errno, EINVAL);
  assert_true(dtl_make_folders(root) && !dtl_make_folders(nowhere));
  assert_string_equal(nowhere, "/dev/null/folder/file");
  NULL_REFUSED(dtl_installed(NULL, &names, &n, err));
  NULL_REFUSED(dtl_installed("policies", NULL, &n, err));
  NULL_REFUSED(dtl_installed("policies", &names, NULL, err));
}

/* ---- policies and models ----------------------------------------------------------------------------------------- */

static void policies(void **unused) {
  (void)unused;
  dtl_policy *p = NULL;
  dtl_policy_options o = {.policy = "linear"};
  NULL_REFUSED(dtl_policy_open(NULL, &p, err));
  NULL_REFUSED(dtl_policy_open(&o, NULL, err));
  NULL_REFUSED(dtl_policy_open(&(dtl_policy_options){.source = "return 1", .source_len = 8}, &p, err));
  REFUSED(dtl_policy_open(&(dtl_policy_options){.policy = ""}, &p, err), "no policy ''");
  REFUSED(dtl_policy_open(&(dtl_policy_options){.policy = "/nowhere.lua"}, &p, err), "/nowhere.lua");
  REFUSED(dtl_policy_open(&(dtl_policy_options){.policy = "linear", .preset = "nonsense"}, &p, err), "nonsense");
  o = (dtl_policy_options){.policy = "long.lua", .source = "return 1", .source_len = SIZE_MAX};
  REFUSED(dtl_policy_open(&o, &p, err), "more than the maximum of 65536");
  o = (dtl_policy_options){.policy = "empty.lua", .source = "", .source_len = 0};
  HOST_REFUSES(dtl_policy_open(&o, &p, err), DT_EPOLICY, "empty.lua");
  for
    EACH(n, NEGATIVE) {
      o = (dtl_policy_options){.policy = "linear", .n_settings = *n};
      REFUSED(dtl_policy_open(&o, &p, err), "settings, expected 0 or more");
    }
  const dtl_setting wrong[] = {{NULL, "1"}, {"K", NULL}, {"", "1"}, {"K", ""}, {"K", "nan"}, {"nonsense", "1"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    o = (dtl_policy_options){.policy = "linear", .settings = &wrong[i], .n_settings = 1};
    REFUSED(dtl_policy_open(&o, &p, err), "");
  }
  o = (dtl_policy_options){.policy = "linear", .n_settings = 1};
  NULL_REFUSED(dtl_policy_open(&o, &p, err));
  for (size_t i = 0; i < sizeof NO_SECONDS / sizeof *NO_SECONDS; i++) {
    o = (dtl_policy_options){.policy = "linear", .seconds = NO_SECONDS[i]};
    REFUSED(dtl_policy_open(&o, &p, err), "expected 0 (no limit)");
    o = (dtl_policy_options){.policy = "linear", .call_seconds = NO_SECONDS[i]};
    REFUSED(dtl_policy_open(&o, &p, err), "call_seconds");
  }
  assert_null(p);
  o = (dtl_policy_options){.policy = "linear", .seconds = INFINITY};
  assert_int_equal(dtl_policy_open(&o, &p, NULL), DT_OK);
  dtl_policy_close(p);
  dtl_policy_close(NULL);
  assert_null(dtl_policy_describe(NULL));
  size_t len = 9;
  assert_null(dtl_policy_text(NULL, &len));
  assert_int_equal(len, 0);
  assert_null(dtl_policy_text(NULL, NULL));
}

static void models(void **unused) {
  (void)unused;
  static const dtl_need NEEDS[] = {(dtl_need)INT_MIN, (dtl_need)-1, DTL_NEEDS_DRAFT + 1, (dtl_need)INT_MAX};
  static const char *const IDS[] = {"", "0", "-1", "1.5", "2147483648", "99999999999999999999", "/nowhere"};
  static const int THREADS[] = {INT_MIN, -1, 1025, INT_MAX};
  const dt_text no_text[] = {{NULL, 1}};
  char *target = NULL, *draft = NULL;
  dt_draft_vocab vocab;
  dt_pair *p = NULL;
  bool found;
  NULL_REFUSED(dtl_resolve_models(TARGET, NULL, DTL_ANY_DRAFT, NULL, &draft, err));
  NULL_REFUSED(dtl_resolve_models(TARGET, NULL, DTL_ANY_DRAFT, &target, NULL, err));
  REFUSED(dtl_resolve_models("/nowhere", NULL, DTL_NEEDS_DRAFT, &target, &draft, err), "/nowhere");
  REFUSED(dtl_resolve_models(TARGET, "none", DTL_NEEDS_DRAFT, &target, &draft, err), "instead of --draft none");
  for (size_t i = 0; i < sizeof NEEDS / sizeof *NEEDS; i++) {
    dtl_load_options o = {.target = TARGET, .need = NEEDS[i], .how = {.threads = 1}};
    REFUSED(dtl_resolve_models(TARGET, NULL, NEEDS[i], &target, &draft, err), "need: ");
    REFUSED(dtl_load(&o, &p, &found, err), "need: ");
  }
  assert_null(target);
  assert_null(draft);

  int32_t id;
  dt_bias bias;
  NULL_REFUSED(dtl_token(NULL, "a", 1, &id, err));
  NULL_REFUSED(dtl_token(pair, NULL, 1, &id, err));
  NULL_REFUSED(dtl_token(pair, "a", 1, NULL, err));
  NULL_REFUSED(dtl_bias(NULL, "1+1", &bias, err));
  NULL_REFUSED(dtl_bias(pair, NULL, &bias, err));
  NULL_REFUSED(dtl_bias(pair, "1+1", NULL, err));
  NULL_REFUSED(dtl_draft_vocab_open(NULL, &vocab, err));
  NULL_REFUSED(dtl_draft_vocab_open("100", NULL, err));
  for (size_t i = 0; i < sizeof IDS / sizeof *IDS; i++) REFUSED(dtl_draft_vocab_open(IDS[i], &vocab, err), "");
  dtl_draft_vocab_close(NULL);
  vocab = (dt_draft_vocab){0};
  dtl_draft_vocab_close(&vocab);

  dtl_load_options o = {.target = TARGET, .draft = DRAFT, .how = {.threads = 1}};
  dt_needs needs;
  NULL_REFUSED(dtl_needs(NULL, &needs, err));
  NULL_REFUSED(dtl_needs(&o, NULL, err));
  NULL_REFUSED(dtl_load(NULL, &p, &found, err));
  NULL_REFUSED(dtl_load(&o, NULL, &found, err));
  NULL_REFUSED(dtl_load(&o, &p, NULL, err));
  o.target = "/nowhere";
  REFUSED(dtl_load(&o, &p, &found, err), "/nowhere");
  o.target = TARGET, o.draft = "/nowhere", o.need = DTL_ANY_DRAFT;
  REFUSED(dtl_load(&o, &p, &found, err), "/nowhere");
  for
    EACH(n, THREADS) {
      o = (dtl_load_options){.target = TARGET, .draft = DRAFT, .how = {.threads = *n}};
      REFUSED(dtl_load(&o, &p, &found, err), "threads");
    }
  for (int i = 0; i < 5; i++) {
    o = (dtl_load_options){.target = TARGET, .draft = DRAFT, .need = DTL_ANY_DRAFT, .how = {.threads = 1}};
    *(const char **[]){&o.how.backend, &o.how.target_weights, &o.how.draft_weights, &o.how.cache_dtype,
                       &o.how.head_layers}[i] = "nonsense";
    REFUSED(dtl_load(&o, &p, &found, err), "");
  }
  for
    EACH(n, NEGATIVE) {
      o = (dtl_load_options){.target = TARGET, .how = {.threads = 1}, .n_texts = *n};
      REFUSED(dtl_load(&o, &p, &found, err), "texts, expected 0 or more");
    }
  o = (dtl_load_options){.target = TARGET, .how = {.threads = 1}, .n_texts = 1};
  NULL_REFUSED(dtl_load(&o, &p, &found, err));
  o = (dtl_load_options){.target = TARGET, .draft = DRAFT, .need = DTL_ANY_DRAFT, .how = {.threads = 1}};
  o.draft_vocab = "100", o.texts = no_text, o.n_texts = 1;
  REFUSED(dtl_load(&o, &p, &found, err), "draft_vocab");
  o.draft_vocab = "nonsense", o.n_texts = 0;
  REFUSED(dtl_load(&o, &p, &found, err), "nonsense");
  assert_null(p);
}

static void conversations(void **unused) {
  (void)unused;
  const dt_conversation hi = {.messages = "[{\"role\": \"user\", \"content\": \"1\"}]"};
  const char *settings;
  dt_pair *p;
  dt_chat *chat;
  int32_t *ids;
  int n;
  dt_reasoning_state open;
  ok(dt_pair_open(&(dt_pair_options){.target = TARGET, .threads = 1}, &p, &err));
  ok(dt_chat_open(&(dt_chat_source){.name = "llama3"}, &chat, &err));
  for (int i = 0; i < 6; i++)
    ANSWERS(dtl_encode_chat(i ? p : NULL, i != 1 ? chat : NULL, i != 2 ? &hi : NULL, i != 3 ? &ids : NULL,
                            i != 4 ? &n : NULL, i != 5 ? &open : NULL, &err),
            DT_EINPUT, "is NULL");
  ANSWERS(dtl_think(NULL, "on", &settings, &err), DT_EINPUT, "is NULL");
  ANSWERS(dtl_think(chat, "on", NULL, &err), DT_EINPUT, "is NULL");
  dtl_chat_options(chat, DT_REASONING_OPEN, true, NULL), dtl_chat_options(NULL, 0, true, &(dtl_request){0});
  assert_true(!dtl_messages_json(NULL, 1) && !dtl_messages_json(&(dtl_message){0}, -1));
  char *grammar;
  for (int i = 0; i < 3; i++)
    ANSWERS(dtl_call_grammar(i ? p : NULL, i != 1 ? chat : NULL, NULL, "[]", 1, 1, 0, &grammar, &err), DT_EINPUT,
            "NULL");
  dt_chat_close(chat), dt_pair_close(p);
}

/* ---- times ------------------------------------------------------------------------------------------------------- */

static void usage_and_disturbance(void **unused) {
  (void)unused;
  const dtl_usage before = dtl_usage_now(true), now = dtl_usage_now(false),
                  strange[] = {{.wall_ms = NAN, .cpu_ms = NAN, .steal_ms = NAN},
                               {.wall_ms = INFINITY, .steal_ms = INFINITY},
                               {.wall_ms = -1e300, .cpu_ms = -1, .switches = LONG_MAX}};
  char why[DTL_WHY] = "";
  assert_false(dtl_disturbed(NULL, &now, true, why, sizeof why));
  assert_false(dtl_disturbed(&before, NULL, true, why, sizeof why));
  assert_false(dtl_disturbed(&before, &now, true, NULL, sizeof why));
  assert_string_equal(why, "");
  for (size_t i = 0; i < sizeof strange / sizeof *strange; i++)
    for (int computes = 0; computes < 2; computes++) {
      const dtl_usage zero = {0};
      dtl_disturbed(&zero, &strange[i], computes, why, sizeof why); /* any answer will do */
      *why = 0;
      dtl_disturbed(&strange[i], &zero, computes, why, 1);
      assert_string_equal(why, "");
      dtl_disturbed(&zero, &strange[i], computes, NULL, 0);
    }
}

static void calibration(void **unused) {
  (void)unused;
  static const int CONTEXTS[] = {INT_MIN, -1, CONTEXT + 1, INT_MAX}, BATCHES[] = {INT_MIN, -1, DTL_SLOTS + 1, INT_MAX};
  const dtl_cost_measuring how = dtl_cost_measuring_shown(NULL);
  dtl_costs costs;
  NULL_REFUSED(dtl_measure_costs(NULL, &how, &costs, err));
  NULL_REFUSED(dtl_measure_costs(pair, NULL, &costs, err));
  NULL_REFUSED(dtl_measure_costs(pair, &how, NULL, err));
  for
    EACH(n, CONTEXTS) REFUSED(dtl_measure_costs(pair, &(dtl_cost_measuring){.context = *n}, &costs, err), "context: ");
  for
    EACH(n, BATCHES) REFUSED(dtl_measure_costs(pair, &(dtl_cost_measuring){.batch = *n}, &costs, err), "batch: ");
  REFUSED(dtl_measure_costs(pair, &(dtl_cost_measuring){.context = 1}, &costs, err), "context");
  assert_true(isnan(dtl_median(NULL, 3)) && isnan(dtl_median((double[]){1}, 0)) &&
              isnan(dtl_median((double[]){1}, -1)));
  assert_true(dtl_median((double[]){3, 1, 2}, 3) == 2 && dtl_median((double[]){4, 1, 3, 2}, 4) == 2.5);
}

static void learning(void **unused) {
  (void)unused;
  static const int CONTEXTS[] = {INT_MIN, -1, 0, 1 << 30, INT_MAX};
  const dtl_learning how = dtl_learning_shown(NULL);
  assert_null(dtl_learned_open(NULL, &how));
  assert_null(dtl_learned_open(pair, NULL));
  dtl_learned_close(NULL);
  assert_true(dtl_learned_plain(NULL, 1) == 0 && dtl_learned_draft(NULL, 1) == 0);
  dtl_learned *learned = dtl_learned_open(pair, &how);
  assert_true(dtl_learned_plain(learned, 1) == 0 && dtl_learned_draft(learned, 1) == 0); /* no run yet */
  dtl_policy *policy;
  dtl_result result;
  assert_int_equal(dtl_policy_open(&(dtl_policy_options){.policy = "rate"}, &policy, NULL), DT_OK);
  const dtl_prompt prompt = {.text = PROMPT, .len = strlen(PROMPT)};
  const dtl_request request = {.prompts = &prompt, .n = 1, .seq = {.max_tokens = TOKENS}, .learned = learned};
  assert_int_equal(dtl_generate(pair, policy, &request, &result, NULL), DT_OK);
  assert_false(result.failed);
  for
    EACH(n, CONTEXTS) assert_true(dtl_learned_plain(learned, *n) > 0 && dtl_learned_draft(learned, *n) >= 0);
  dtl_result_free(&result);
  dtl_policy_close(policy);
  dtl_learned_close(learned);
}

/* ---- what lies between runs -------------------------------------------------------------------------------------- */

static void no_line(void *user, const char *line) { (void)user, (void)line; }

static void memories_corpora_and_traces(void **unused) {
  (void)unused;
  static const char *const none[] = {NULL}, *const nowhere[] = {"/nowhere"}, *const folder[] = {"/tmp"},
                           *const empty[] = {"/dev/null"};
  static const int TOO_FEW[] = {INT_MIN, -1, 0};
  dtl_corpus *corpus = NULL;
  dtl_trace *trace = NULL;
  dtl_memory_forget(NULL);
  dtl_memory_close(NULL);
  dtl_memory *memory = dtl_memory_open();
  assert_non_null(memory);
  dtl_memory_close(memory);
  NULL_REFUSED(dtl_corpus_open(NULL, nowhere, 1, &corpus, err));
  NULL_REFUSED(dtl_corpus_open(pair, NULL, 1, &corpus, err));
  NULL_REFUSED(dtl_corpus_open(pair, nowhere, 1, NULL, err));
  NULL_REFUSED(dtl_corpus_open(pair, none, 1, &corpus, err));
  for
    EACH(n, TOO_FEW) REFUSED(dtl_corpus_open(pair, nowhere, *n, &corpus, err), "at least one file");
  REFUSED(dtl_corpus_open(pair, nowhere, 1, &corpus, err), "/nowhere");
  REFUSED(dtl_corpus_open(pair, folder, 1, &corpus, err), "not a regular file");
  REFUSED(dtl_corpus_open(pair, empty, 1, &corpus, err), "not a regular file");
  assert_null(corpus);
  dtl_corpus_close(NULL);
  NULL_REFUSED(dtl_trace_open(NULL, &trace, err));
  NULL_REFUSED(dtl_trace_open_lines(NULL, NULL, &trace, err));
  NULL_REFUSED(dtl_trace_open_lines(no_line, NULL, NULL, err));
  NULL_REFUSED(dtl_trace_open("/tmp", NULL, err));
  REFUSED(dtl_trace_open("", &trace, err), "expected a file name");
  REFUSED(dtl_trace_open("/tmp", &trace, err), "trace /tmp: ");
  assert_null(trace);
  assert_int_equal(dtl_trace_close(NULL, NULL), DT_OK);
}

/* ---- generation -------------------------------------------------------------------------------------------------- */

/* Generates for one prompt, with the policy of that name if there is one. If the sequence fails, the call fails. */
static dt_status generates(const char *name, const dtl_request *request, dt_error *err) {
  dtl_policy *policy = NULL;
  dtl_result result = {0};
  assert_int_equal(dtl_policy_open(&(dtl_policy_options){.policy = name}, &policy, NULL), DT_OK);
  dt_status status = dtl_generate(pair, policy, request, &result, err);
  if (!status && result.failed) {
    if (err) *err = result.failure;
    status = result.failure.status;
  }
  dtl_result_free(&result);
  dtl_policy_close(policy);
  return status;
}

static const dtl_prompt prompt = {.text = PROMPT, .len = sizeof PROMPT - 1};

static dtl_request fine(void) { return (dtl_request){.prompts = &prompt, .n = 1, .seq = {.max_tokens = TOKENS}}; }

static void requests(void **unused) {
  (void)unused;
  static const int SLOTS[] = {INT_MIN, -1, DTL_SLOTS + 1, INT_MAX}, CONTEXTS[] = {INT_MIN, -1, 1, CONTEXT + 1, INT_MAX},
                   WINDOWS[] = {INT_MIN, -1}, TOKENS_WANTED[] = {INT_MIN, -2, 0};
  dtl_policy *policy;
  dtl_result result = {0};
  dtl_request r = fine();
  assert_int_equal(dtl_policy_open(&(dtl_policy_options){.policy = "ar"}, &policy, NULL), DT_OK);
  NULL_REFUSED(dtl_generate(NULL, policy, &r, &result, err));
  NULL_REFUSED(dtl_generate(pair, NULL, &r, &result, err));
  NULL_REFUSED(dtl_generate(pair, policy, NULL, &result, err));
  NULL_REFUSED(dtl_generate(pair, policy, &r, NULL, err));
  for
    EACH(n, NEGATIVE) {
      r = fine(), r.n = *n;
      REFUSED(dtl_generate(pair, policy, &r, &result, err), "expected 0 or more");
      r = fine(), r.seq.n_stop = *n;
      REFUSED(dtl_generate(pair, policy, &r, &result, err), "stop, expected 0 or more");
    }
  dtl_policy_close(policy);

  const dtl_prompt bad[] = {{.len = 1}, {.text = PROMPT, .len = SIZE_MAX}, {.text = "x", .len = 1}, {.len = 0}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    r = fine(), r.prompts = &bad[i];
    REFUSED(generates("ar", &r, err), "");
  }
  r = fine(), r.prompts = NULL;
  NULL_REFUSED(generates("ar", &r, err));
  NULL_REFUSED(dtl_request_check(NULL, err));
  for
    EACH(n, SLOTS) {
      r = fine(), r.slots = *n;
      REFUSED(generates("ar", &r, err), "slots: ");
      REFUSED(dtl_request_check(&r, err), "slots: ");
    }
  for
    EACH(n, CONTEXTS) {
      r = fine(), r.context = *n;
      REFUSED(generates("ar", &r, err), "context: ");
    }
  for
    EACH(n, WINDOWS) {
      r = fine(), r.window.last = *n;
      REFUSED(generates("ar", &r, err), "window");
      r = fine(), r.window = (dt_window){3, *n};
      REFUSED(generates("ar", &r, err), "sinks");
    }
  for
    EACH(n, TOKENS_WANTED) {
      r = fine(), r.seq.max_tokens = *n;
      REFUSED(generates("ar", &r, err), "tokens: ");
    }
  const char *const no_stop[] = {NULL}, *const empty_stop[] = {""};
  for (int i = 0; i < 3; i++) {
    r = fine(), r.seq.n_stop = 1, r.seq.stop = (const char *const *[]){NULL, no_stop, empty_stop}[i];
    REFUSED(generates("ar", &r, err), "stop");
  }
  static const float WRONG[] = {NAN, INFINITY, -INFINITY, -1, 1e30f};
  for (int i = 0; i < 5; i++)
    for (int field = 0; field < 3; field++) {
      r = fine(), r.seq.sampling.temp = 1;
      *(float *[]){&r.seq.sampling.temp, &r.seq.sampling.top_p, &r.seq.sampling.min_p}[field] = WRONG[i];
      REFUSED(generates("ar", &r, err), "out of range");
    }
  r = fine(), r.seq.sampling = (dt_sampling){.temp = 1, .top_k = -1};
  REFUSED(generates("ar", &r, err), "top_k");
  r = fine();
  REFUSED(generates("suffix", &r, err), "needs a memory");
}

static void never_told(void *user, const int32_t *ids, const dtl_logprob *logprobs, int n) {
  (void)user, (void)ids, (void)logprobs, (void)n;
  fail_msg("a listener was called for several prompts");
}

static void several_prompts(void **unused) {
  (void)unused;
  const dtl_prompt two[] = {prompt, prompt};
  dt_session *session;
  dtl_policy *policy;
  dtl_result results[2];
  ok(dt_session_open(pair, &(dt_session_options){.sequences = 1}, &session, &err));
  assert_int_equal(dtl_policy_open(&(dtl_policy_options){.policy = "ar"}, &policy, NULL), DT_OK);
  for (int i = 0; i < 3; i++) { /* options for a single text */
    dtl_request r = {.prompts = two, .n = 2, .slots = 2, .seq = {.max_tokens = TOKENS}};
    if (i == 0) r.on_text = never;
    if (i == 1) r.session = session;
    if (i == 2) r.on_logprobs = never_told;
    REFUSED(dtl_generate(pair, policy, &r, results, err), "one prompt");
  }
  for (int i = 0; i < 2; i++) {
    dtl_request r = {.prompts = two, .n = 1, .slots = 2, .seq = {.max_tokens = TOKENS}};
    r.answers = i ? DTL_ANSWERS + 1 : -1;
    REFUSED(dtl_generate(pair, policy, &r, results, err), "answers");
  }
  dtl_request many = {.prompts = two, .n = INT_MAX / 2 + 1, .answers = 2, .slots = 2};
  many.seq.max_tokens = TOKENS, many.seq.sampling.temp = 1;
  REFUSED(dtl_generate(pair, policy, &many, results, err), "too many");
  dtl_request alone = {.prompts = two, .n = 1, .answers = 2, .seq = {.max_tokens = TOKENS, .sampling = {.temp = 1}}};
  REFUSED(dtl_generate(pair, policy, &alone, results, err), "2 answers need slots");
  dtl_policy_close(policy);
  dt_session_close(session);
}

/* Objects made for one pair are refused for another pair. */
static void things_of_another_pair(void **unused) {
  (void)unused;
  dt_session *session;
  dt_prefix *prefix;
  dtl_request r = fine();
  ok(dt_session_open(other, &(dt_session_options){.sequences = 1}, &session, &err));
  r.session = session;
  REFUSED(generates("ar", &r, err), "another pair");
  ok(dt_seq_start(session, 0, (int32_t[]){1, 2, 3}, 3, &(dt_seq_options){.max_tokens = TOKENS}, &err));
  ok(dt_prefix_take(session, 0, &prefix, &err));
  dt_session_close(session);
  const dtl_prompt from = {.prefix = prefix};
  r = fine(), r.prompts = &from;
  REFUSED(generates("ar", &r, err), "another pair");
  dt_prefix_free(prefix);
  const dtl_learning how = {0};
  r = fine(), r.learned = dtl_learned_open(other, &how);
  REFUSED(generates("rate", &r, err), "another pair");
  dtl_learned_close(r.learned);
}

static void tables_of_costs(void **unused) {
  (void)unused;
  const dtl_costs table = {.batch = 1,
                           .n_contexts = 2,
                           .n_rows = 2,
                           .drafts = true,
                           .context = {128, 256},
                           .rows = {1, 2},
                           .target = {{1, 2}, {1, 2}},
                           .draft = {{1, 2}, {1, 2}},
                           .first = {1, 1}};
  static const int COUNTS[] = {INT_MIN, -1, 0, DTL_SLOTS + 1, INT_MAX};
  static const double TIMES[] = {NAN, INFINITY, -INFINITY, -1, 1e10};
  dtl_request r = fine();
  dtl_costs wrong;
  r.costs = &table;
  assert_int_equal(generates("cast", &r, NULL), DT_OK);
  r.costs = &wrong;
  for (int field = 0; field < 7; field++) {
    int *const place[] = {&wrong.batch,      &wrong.n_contexts, &wrong.n_rows, &wrong.context[0],
                          &wrong.context[1], &wrong.rows[0],    &wrong.rows[1]};
    for
      EACH(n, COUNTS) {
        if ((field == 4 || field == 6) && *n > 2) continue; /* the second of two ascending lists may be as large */
        if (field == 3 && *n == DTL_SLOTS + 1) continue;    /* 257 may be a context, but not the first one before 256 */
        wrong = table;
        *place[field] = *n;
        REFUSED(generates("cast", &r, err), "costs: ");
      }
  }
  for (int field = 0; field < 9; field++) {
    double *const place[] = {&wrong.draft[1][1],  &wrong.first[0],     &wrong.target[1][1],
                             &wrong.draft[0][0],  &wrong.first[1],     &wrong.target_sample,
                             &wrong.draft_sample, &wrong.target[0][0], &wrong.cache_miss[0]};
    for (size_t i = 0; i < sizeof TIMES / sizeof *TIMES; i++) {
      wrong = table;
      *place[field] = TIMES[i];
      REFUSED(generates("cast", &r, err), "costs: ");
    }
  }
}

static void results_of_nothing(void **unused) {
  (void)unused;
  const int32_t tokens[] = {1};
  dtl_result strange = {.n_tokens = 5, .n_prompt = -1, .text_len = 9, .load_ms = NAN, .stats = {.total_ms = NAN}};
  dtl_result_free(NULL);
  assert_null(dtl_result_json(NULL, 0));
  assert_null(dtl_result_json(&strange, DTL_JSON_LINE << 1));
  assert_null(dtl_result_json(&strange, UINT_MAX));
  for (int i = 0; i < 2; i++) {
    char *text = dtl_result_json(&strange, i ? DTL_JSON_LINE : 0);
    assert_non_null(text);
    assert_non_null(strstr(text, "\"text\":"));
    free(text);
    strange.n_tokens = INT_MIN;
  }
  assert_false(dtl_is_model_name(NULL));
  assert_true(dtl_tokens_per_second(NULL) == 0);
  assert_true(dtl_tokens_per_second(&strange) == 0);
  assert_true(dtl_output_hash(NULL, 1) == dtl_output_hash(tokens, 0));
  for
    EACH(n, NEGATIVE) assert_true(dtl_output_hash(tokens, *n) == dtl_output_hash(NULL, 0));
}

/* ---- drivers and other languages --------------------------------------------------------------------------------- */

static int quietly(const char *driver, int argc, char **argv) {
  int before = dup(STDERR_FILENO);
  FILE *file = freopen("/dev/null", "w", stderr);
  assert_non_null(file);
  int status = dtl_run_driver(driver, argc, argv, NULL);
  fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  return status;
}

static void drivers(void **unused) {
  (void)unused;
  char *none[] = {NULL, NULL};
  assert_int_equal(quietly(NULL, 0, NULL), 2);
  assert_int_equal(quietly("doctor", -1, none), 2);
  assert_int_equal(quietly("doctor", INT_MIN, none), 2);
  assert_int_equal(quietly("doctor", 1, NULL), 2);
  assert_int_equal(quietly("", 0, NULL), 2);
  assert_int_equal(quietly("/nowhere.lua", 0, NULL), 2);
}

static void answers(dtl_bridge *bridge, const char *function, const char *options, const char *part) {
  char *answer = dtl_bridge_call(bridge, function, options, NULL, NULL);
  assert_non_null(answer);
  if (!strstr(answer, "{\"error\": {") || !strstr(answer, part)) fail_msg("%s", answer);
  dtl_bridge_free(answer);
}

static void bridges(void **unused) {
  (void)unused;
  static const int SIGNALS[] = {INT_MIN, -1, 65, INT_MAX, SIGKILL};
  dtl_bridge *bridge = dtl_bridge_open();
  answers(NULL, "version", "{}", "needs a bridge");
  answers(bridge, NULL, "{}", "needs a bridge");
  answers(bridge, "version", NULL, "needs a bridge");
  answers(bridge, "nonsense", "{}", "nonsense");
  answers(bridge, "version", "", "");
  answers(bridge, "version", "[", "");
  answers(bridge, "generate", "{\"pair\": 1}", "");
  answers(bridge, "generate", "{\"pair\": -1e300}", "");
  dtl_bridge_free(NULL);
  dtl_bridge_interrupt(NULL, true);
  assert_false(dtl_bridge_catch(NULL, SIGUSR1));
  assert_true(dtl_bridge_catch(NULL, 0));
  for
    EACH(number, SIGNALS) assert_false(dtl_bridge_catch(bridge, *number));
  struct sigaction now;
  sigaction(SIGUSR1, NULL, &now);
  assert_true(now.sa_handler == SIG_DFL); /* no signal was caught */
  dtl_bridge_close(bridge);
  dtl_bridge_close(NULL);
}

static void no_function_is_forgotten(void **unused) {
  (void)unused;
  static const char *const tests[] = {"tests/unit/test_lua_wrong_arguments.c", "tests/unit/test_lua_models.c",
                                      "tests/unit/test_lua_engine.c", "tests/unit/test_lua_tools.c", NULL};
  assert_true(check_tested("lua/host.h", "dtl_", tests) >= 46);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  unsetenv("DTRUN_TARGET"), unsetenv("DTRUN_DRAFT");
  const struct CMUnitTest tests[] = {
      TEST(texts_and_names),
      TEST(files_of_the_user),
      TEST(policies),
      TEST(models),
      TEST(conversations),
      TEST(usage_and_disturbance),
      TEST(calibration),
      TEST(learning),
      TEST(memories_corpora_and_traces),
      TEST(requests),
      TEST(several_prompts),
      TEST(things_of_another_pair),
      TEST(tables_of_costs),
      TEST(results_of_nothing),
      TEST(drivers),
      TEST(bridges),
      TEST(no_function_is_forgotten),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
