/* Requests that come and go in an engine: each gets the same text as when it is alone, whatever happens to other
 * requests. */
#include "wrong_arguments.h"

#include "dtrun_fake.h"
#include "host.h"

#include <math.h>
#include <stdlib.h>

#define REFUSED(call, part) HOST_REFUSES(call, DT_EINPUT, part)
#define NULL_REFUSED(call) REFUSED(call, "is NULL")

enum { REQUESTS = 48, SLOTS = 5, CONTEXT = 300 };

static const char *const POLICIES[] = {"ar", "linear", "rate", "dynatree", "cast", "suffix", "prompt_lookup", "echo"};
enum { N_POLICIES = sizeof POLICIES / sizeof *POLICIES };

#define LONG                                                                                                           \
  "The sun was over the hill and the man went down to the river to see the boat. The boat was old and red, and the "   \
  "man had a little dog that ran in the water. The sun was over the hill and in the boat was"

static const char *const TEXTS[] = {"It was a dark night, and the wind was in the trees, and the dog was in the house.",
                                    "It was a dark night, and the wind was in the trees, but",
                                    "It was a dark night, and",
                                    "Once upon a time there was a little girl who had a red ball and a blue ball.",
                                    "The cat sat on the mat. The cat sat on the mat. The cat",
                                    LONG " a bird",
                                    LONG " a ship that",
                                    LONG " the dog was a",
                                    "A"};

static dt_pair *bundled(void) {
  dt_pair *pair;
  dt_pair_options options = {
      .target = SOURCE_DIR "/models/mini-target", .draft = SOURCE_DIR "/models/mini-draft", .threads = 1};
  ok(dt_pair_open(&options, &pair, &err));
  return pair;
}

static dtl_policy *opened(const char *name) {
  dtl_policy *policy;
  ok(dtl_policy_open(&(dtl_policy_options){.policy = name}, &policy, &err));
  return policy;
}

/* A request, and how it ended. */
typedef struct {
  int policy, text, cancel_after; /* cancel_after: bytes of text after which it is cancelled; 0: never */
  dt_seq_options seq;
  char *got;
  size_t n_got;
  volatile sig_atomic_t interrupt;
  bool stop; /* it is ended by on_text, not by the flag */
  int ended;
  int32_t *tokens;
  int n_tokens;
  float *logps;
  const char *finish;
  bool failed;
} order;

static bool on_text(void *user, const char *bytes, size_t len) {
  order *o = user;
  o->got = realloc(o->got, o->n_got + len + 1);
  memcpy(o->got + o->n_got, bytes, len);
  o->n_got += len;
  bool enough = o->cancel_after && o->n_got >= (size_t)o->cancel_after;
  if (enough && !o->stop) o->interrupt = 1;
  return !(enough && o->stop);
}

static bool done(void *user, int prompt, dtl_result *r) {
  order *o = user;
  assert_int_equal(prompt, 0);
  o->ended++;
  o->n_tokens = r->n_tokens;
  o->tokens = malloc(sizeof *o->tokens * (size_t)(r->n_tokens + 1));
  memcpy(o->tokens, r->tokens, sizeof *o->tokens * (size_t)r->n_tokens);
  o->logps = calloc((size_t)r->n_tokens + 1, sizeof *o->logps);
  for (int i = 0; r->logprobs && i < r->n_tokens; i++) o->logps[i] = r->logprobs[i].logp;
  o->finish = r->finish_reason;
  o->failed = r->failed;
  assert_int_equal(o->n_got, r->text_len);
  assert_memory_equal(o->got, r->text, r->text_len);
  return true;
}

static dtl_request request_of(order *o, dtl_prompt *prompt, dtl_memory *memory) {
  *prompt = (dtl_prompt){.text = TEXTS[o->text], .len = strlen(TEXTS[o->text])};
  return (dtl_request){.prompts = prompt,
                       .n = 1,
                       .seq = o->seq,
                       .memory = memory,
                       .on_text = on_text,
                       .done = done,
                       .user = o,
                       .interrupt = &o->interrupt};
}

static order random_order(uint64_t *seed) {
  static const char *const stop[] = {" the"};
  static const dt_bias bias[] = {{261, 3}, {300, -INFINITY}};
  order o = {.policy = (int)(random_next(seed) % N_POLICIES),
             .text = (int)(random_next(seed) % (sizeof TEXTS / sizeof *TEXTS))};
  o.seq.max_tokens = 1 + (int)(random_next(seed) % 40);
  if (random_next(seed) % 2)
    o.seq.sampling =
        (dt_sampling){.temp = random_next(seed) % 2 ? 0.8f : 1.5f, .seed = random_next(seed) % 7, .top_k = 40};
  if (random_next(seed) % 4 == 0) o.seq.uncoupled = true;
  if (random_next(seed) % 4 == 0) o.seq.stop = stop, o.seq.n_stop = 1;
  if (random_next(seed) % 4 == 0)
    o.seq.adjustments = (dt_adjustments){.presence = 1, .repeat = 1.2f, .bias = bias, .n_bias = 2};
  if (random_next(seed) % 4 == 0) o.seq.logprobs = (dt_logprobs){.wanted = true, .top = 2};
  if (random_next(seed) % 5 == 0) o.seq.adjustments.grammar = "root ::= [a-z ]+ \".\"";
  if (random_next(seed) % 4 == 0) o.cancel_after = 1 + (int)(random_next(seed) % 30), o.stop = random_next(seed) % 2;
  return o;
}

static void forget(order *o) {
  free(o->got), free(o->tokens), free(o->logps);
  o->got = NULL, o->n_got = 0, o->interrupt = 0;
}

static void run_alone(dt_pair *pair, dtl_policy *const *policies, order *o, dtl_memory *memory) {
  dtl_prompt prompt;
  dtl_result result;
  dtl_request request = request_of(o, &prompt, memory);
  request.context = CONTEXT;
  ok(dtl_generate(pair, policies[o->policy], &request, &result, &err));
  dtl_result_free(&result);
}

/* Runs the requests, which come in random order and at random times, next to each other. */
static void come_and_go(dt_pair *pair, dtl_policy *const *policies, uint64_t seed, double piece_ms, int slots,
                        size_t kept) {
  order orders[REQUESTS], alone[REQUESTS];
  dtl_memory *memory = dtl_memory_open();
  dtl_engine *engine;
  for (int i = 0; i < REQUESTS; i++) {
    orders[i] = alone[i] = random_order(&seed);
    alone[i].cancel_after = 0;
    run_alone(pair, policies, &alone[i], memory);
    assert_false(alone[i].failed);
  }
  ok(dtl_engine_open(
      pair, &(dtl_engine_options){.slots = slots, .context = CONTEXT, .piece_ms = piece_ms, .prefix_cache_bytes = kept},
      &engine, &err));
  for (int begun = 0, busy = 0; begun < REQUESTS || busy;) {
    while (begun < REQUESTS && dtl_engine_room(engine) && random_next(&seed) % 3) {
      dtl_prompt prompt;
      order *o = &orders[begun++];
      dtl_request request = request_of(o, &prompt, memory);
      ok(dtl_engine_begin(engine, policies[o->policy], &request, &err));
    }
    busy = dtl_engine_step(engine);
    assert_int_equal(dtl_engine_room(engine), slots - busy);
  }
  int cancelled = 0;
  for (int i = 0; i < REQUESTS; i++) {
    const order *o = &orders[i], *a = &alone[i];
    assert_int_equal(o->ended, 1);
    assert_false(o->failed);
    bool whole = strcmp(o->finish, "interrupted") != 0;
    cancelled += !whole;
    if (whole) assert_string_equal(o->finish, a->finish);
    if (whole) assert_int_equal(o->n_tokens, a->n_tokens);
    assert_true(o->n_tokens <= a->n_tokens);
    assert_memory_equal(o->tokens, a->tokens, sizeof *o->tokens * (size_t)o->n_tokens);
    assert_memory_equal(o->logps, a->logps, sizeof *o->logps * (size_t)o->n_tokens);
  }
  assert_in_range(cancelled, 1, REQUESTS / 2);
  dtl_engine_close(engine);
  for (int i = 0; i < REQUESTS; i++) forget(&orders[i]), forget(&alone[i]);
  dtl_memory_close(memory);
}

static void each_gets_the_text_that_it_gets_alone(void **state) {
  (void)state;
  dt_pair *pair = bundled();
  dtl_policy *policies[N_POLICIES];
  for (int i = 0; i < N_POLICIES; i++) policies[i] = opened(POLICIES[i]);
  come_and_go(pair, policies, 1, 0, SLOTS, SIZE_MAX);
  come_and_go(pair, policies, 2, 1e-6, SLOTS, 1 << 20); /* the shortest pieces */
  come_and_go(pair, policies, 3, 0, 1, 0);
  for (int i = 0; i < N_POLICIES; i++) dtl_policy_close(policies[i]);
  dt_pair_close(pair);
}

/* ---- the prefix cache, prompts in pieces, failures --------------------------------------------------------------- */

typedef struct {
  int ended, n_prompt, cached, n_tokens;
  const char *finish;
  dt_status failure;
} outcome;

static bool note(void *user, int prompt, dtl_result *r) {
  outcome *o = user;
  assert_int_equal(prompt, 0);
  *o = (outcome){o->ended + 1, r->n_prompt,      r->stats.cached_tokens,
                 r->n_tokens,  r->finish_reason, r->failed ? r->failure.status : DT_OK};
  return false; /* nobody reads it */
}

static dt_pair *scripted(void) {
  dt_pair *pair;
  ok(dt_pair_open_fake(&(dt_fake_options){.vocab = 50, .context = CONTEXT, .eos = -1}, &pair, &err));
  return pair;
}

static dtl_engine *engine_of(dt_pair *pair, int slots) {
  dtl_engine *engine;
  ok(dtl_engine_open(pair, &(dtl_engine_options){.slots = slots, .piece_ms = 1e-6}, &engine, &err));
  return engine;
}

static int32_t prompt_ids[CONTEXT + 1];

static void begin(dtl_engine *engine, const dtl_policy *policy, int n, outcome *o) {
  for (int i = 0; i <= CONTEXT; i++) prompt_ids[i] = 1 + i % 40;
  dtl_prompt prompt = {.ids = prompt_ids, .n_ids = n};
  dtl_request request = {.prompts = &prompt, .n = 1, .seq = {.max_tokens = 6}, .done = note, .user = o};
  ok(dtl_engine_begin(engine, policy, &request, &err));
}

static void a_prompt_keeps_the_rows_of_an_earlier_one(void **state) {
  (void)state;
  outcome a = {0}, b = {0}, other = {0};
  dt_pair *pair = scripted();
  dtl_policy *policy = opened("linear");
  dtl_engine *engine = engine_of(pair, 3);
  begin(engine, policy, 100, &a);
  while (dtl_engine_step(engine)) {}
  assert_int_equal(a.cached, 0);
  begin(engine, policy, 5, &other); /* too little of it is cached, so it takes another slot */
  while (dtl_engine_step(engine)) {}
  begin(engine, policy, 120, &b);
  while (dtl_engine_step(engine)) {}
  assert_int_equal(b.cached, 100);
  assert_int_equal(b.n_tokens, 6);
  dtl_engine_close(engine);
  dtl_policy_close(policy);
  dt_pair_close(pair);
}

/* Runs a text of 100 ids, then one of 60 others in its slot, then the first one again. Returns how many of its rows
 * were cached. */
static int cached_of_a_displaced(dt_pair *pair, size_t prefix_cache_bytes, bool alone, size_t *bytes) {
  outcome o = {0};
  dtl_policy *policy = opened("linear");
  dtl_engine *engine;
  ok(dtl_engine_open(pair, &(dtl_engine_options){.slots = 1, .prefix_cache_bytes = prefix_cache_bytes}, &engine, &err));
  for (int turn = 0; turn < 3; turn++) {
    int32_t ids[100];
    for (int i = 0; i < 100; i++) ids[i] = turn == 1 ? 2 + i % 7 : 1 + i % 40;
    dtl_prompt prompt = {.ids = ids, .n_ids = turn == 1 ? 60 : 100};
    dtl_request request = {.prompts = &prompt, .n = 1, .seq = {.max_tokens = 6}, .done = note, .user = &o};
    request.alone = alone && turn != 1;
    ok(dtl_engine_begin(engine, policy, &request, &err));
    while (dtl_engine_step(engine)) {}
    assert_int_equal(o.failure, DT_OK);
    if (turn == 1) *bytes = dtl_engine_cached_bytes(engine);
    assert_true(dtl_engine_cached_bytes(engine) <= prefix_cache_bytes);
  }
  dtl_engine_close(engine);
  dtl_policy_close(policy);
  return o.cached;
}

static void the_prefix_cache_is_bounded(void **state) {
  (void)state;
  size_t bytes, same;
  dt_pair *pair = bundled();
  assert_int_equal(cached_of_a_displaced(pair, SIZE_MAX, false, &bytes), 99);
  assert_true(bytes > 0);
  assert_int_equal(cached_of_a_displaced(pair, bytes + 1, false, &same), 99);
  assert_int_equal(same, bytes);
  assert_int_equal(cached_of_a_displaced(pair, bytes, false, &same), 99);
  assert_int_equal(same, bytes);
  assert_int_equal(cached_of_a_displaced(pair, bytes - 1, false, &same), 0);
  assert_int_equal(same, 0);
  assert_int_equal(cached_of_a_displaced(pair, 0, false, &same), 0);
  assert_int_equal(cached_of_a_displaced(pair, SIZE_MAX, true, &same), 0); /* it caches nothing, and uses nothing */
  assert_int_equal(same, 0);
  dt_pair_close(pair);
}

/* The rows of a text that is still running serve another text with the same beginning. If two such texts come at once,
 * the second one waits for the first one's rows. */
static void rows_of_a_running_text_serve_others(void **state) {
  (void)state;
  outcome a = {0}, b = {0}, c = {0};
  dt_pair *pair = scripted();
  dtl_policy *policy = opened("linear");
  dtl_engine *engine;
  ok(dtl_engine_open(pair, &(dtl_engine_options){.slots = 3, .piece_ms = 1e-6, .prefix_cache_bytes = SIZE_MAX}, &engine,
                     &err));
  begin(engine, policy, 100, &a);
  begin(engine, policy, 120, &b);
  while (!a.ended) dtl_engine_step(engine);
  begin(engine, policy, 200, &c);
  while (dtl_engine_step(engine)) {}
  assert_int_equal(a.cached, 0);
  assert_in_range(b.cached, 32, 99);
  assert_in_range(c.cached, 100, 119);
  assert_int_equal(b.n_tokens + c.n_tokens, 12);
  dtl_engine_close(engine);
  dtl_policy_close(policy);
  dt_pair_close(pair);
}

static void a_long_prompt_lets_others_go_on(void **state) {
  (void)state;
  outcome text = {0}, prompt = {0};
  dt_pair *pair = scripted();
  dtl_policy *policy = opened("ar");
  dtl_engine *engine = engine_of(pair, 2);
  begin(engine, policy, 2, &text);
  dtl_engine_step(engine);
  begin(engine, policy, 290, &prompt); /* pieces of 32 rows first, then of 16 */
  for (int i = 0; i < 6; i++) assert_int_equal(dtl_engine_step(engine), i < 5 ? 2 : 1);
  assert_int_equal(text.ended, 1);
  while (dtl_engine_step(engine)) {}
  assert_int_equal(prompt.n_tokens, 6);
  dtl_engine_close(engine);
  dtl_policy_close(policy);
  dt_pair_close(pair);
}

/* Those that end within the time of a piece begin together; a long one waits for the next piece. */
static void short_prompts_begin_together(void **state) {
  (void)state;
  outcome a = {0}, b = {0}, long_one = {0};
  dt_pair *pair = scripted();
  dtl_policy *policy = opened("ar");
  dtl_engine *engine;
  ok(dtl_engine_open(pair, &(dtl_engine_options){.slots = 3, .piece_ms = 1e4}, &engine, &err)); /* some 128 rows */
  begin(engine, policy, 3, &a);
  begin(engine, policy, 30, &b);
  begin(engine, policy, 290, &long_one);
  while (!a.ended) assert_in_range(dtl_engine_step(engine), 1, 3);
  assert_int_equal(b.ended, 1);
  assert_int_equal(long_one.ended, 0);
  while (dtl_engine_step(engine)) {}
  assert_int_equal(long_one.n_tokens, 6);
  dtl_engine_close(engine);
  dtl_policy_close(policy);
  dt_pair_close(pair);
}

static void a_failure_is_in_its_result_and_a_close_ends_all(void **state) {
  (void)state;
  outcome long_one = {0}, waits = {0}, runs = {0}, bad = {0};
  dt_pair *pair = scripted();
  dtl_policy *policy = opened("ar"), *wrong;
  static const char source[] =
      "local P = require('dt.policy').define {name = 'wrong', doc = 'd'}\n"
      "function P:draft(tree) if tree.seq:length() > 4 then error('no more') end end\nreturn P";
  ok(dtl_policy_open(&(dtl_policy_options){.policy = "wrong.lua", .source = source, .source_len = sizeof source - 1},
                     &wrong, &err));
  dtl_engine *engine = engine_of(pair, 2);
  begin(engine, policy, CONTEXT, &long_one);
  begin(engine, wrong, 3, &bad);
  dtl_prompt prompt = {.ids = prompt_ids, .n_ids = 3};
  dtl_request request = {.prompts = &prompt, .n = 1, .seq = {.max_tokens = 6}};
  fails(dtl_engine_begin(engine, policy, &request, &err), DT_ESTATE, "all slots (2) are in use");
  while (dtl_engine_step(engine)) {}
  assert_int_equal(long_one.failure, DT_ECONTEXT);
  assert_int_equal(bad.failure, DT_EPOLICY);
  assert_string_equal(bad.finish, "policy");
  assert_int_equal(bad.n_tokens, 2);
  begin(engine, policy, 3, &runs);
  dtl_engine_step(engine), dtl_engine_step(engine);
  begin(engine, policy, 200, &waits);
  dtl_engine_close(engine);
  assert_int_equal(runs.ended + waits.ended, 2);
  assert_string_equal(runs.finish, "interrupted");
  assert_string_equal(waits.finish, "interrupted");
  dtl_policy_close(policy), dtl_policy_close(wrong);
  dt_pair_close(pair);
}

static void it_refuses_wrong_arguments(void **state) {
  (void)state;
  static const int WRONG_SLOTS[] = {INT_MIN, -1, 0, DTL_SLOTS + 1, INT_MAX};
  static const double PIECES[] = {NAN, -1, 1e6 + 1, INFINITY}, GOOD_PIECES[] = {0, 1e6 - 1, 1e6};
  static const int GOOD_SLOTS[] = {1, DTL_SLOTS - 1, DTL_SLOTS};
  const dtl_prompt prompt = {.ids = prompt_ids, .n_ids = 3};
  const dtl_request asked = {.prompts = &prompt, .n = 1, .seq = {.max_tokens = 6}};
  dt_pair *pair = scripted();
  dtl_engine *engine = NULL;
  dtl_policy *policy;
  NULL_REFUSED(dtl_engine_open(NULL, &(dtl_engine_options){.slots = 1}, &engine, err));
  NULL_REFUSED(dtl_engine_open(pair, NULL, &engine, err));
  NULL_REFUSED(dtl_engine_open(pair, &(dtl_engine_options){.slots = 1}, NULL, err));
  for
    EACH(n, WRONG_SLOTS) REFUSED(dtl_engine_open(pair, &(dtl_engine_options){.slots = *n}, &engine, err), "slots");
  for (int i = 0; i < 4; i++)
    REFUSED(dtl_engine_open(pair, &(dtl_engine_options){.slots = 1, .piece_ms = PIECES[i]}, &engine, err), "piece_ms");
  REFUSED(dtl_engine_open(pair, &(dtl_engine_options){.slots = 1, .context = -1}, &engine, err), "context");
  assert_null(engine);
  for (int i = 0; i < 3; i++) {
    dtl_engine_options good = {.slots = GOOD_SLOTS[i], .context = 64, .piece_ms = GOOD_PIECES[i]};
    ok(dtl_engine_open(pair, &good, &engine, &err));
    dtl_engine_close(engine);
  }
  dtl_engine_close(NULL);
  assert_int_equal(dtl_engine_step(NULL), 0);
  assert_int_equal(dtl_engine_room(NULL), 0);
  assert_int_equal(dtl_engine_cached_bytes(NULL), 0);

  assert_int_equal(dtl_engine_open(pair, &(dtl_engine_options){.slots = 1}, &engine, NULL), DT_OK);
  assert_int_equal(dtl_policy_open(&(dtl_policy_options){.policy = "ar"}, &policy, NULL), DT_OK);
  dtl_request r = asked;
  NULL_REFUSED(dtl_engine_begin(NULL, policy, &r, err));
  NULL_REFUSED(dtl_engine_begin(engine, NULL, &r, err));
  NULL_REFUSED(dtl_engine_begin(engine, policy, NULL, err));
  r.n = 2;
  REFUSED(dtl_engine_begin(engine, policy, &r, err), "one prompt");
  static const int WRONG_ANSWERS[] = {INT_MIN, -1, 2, INT_MAX};
  for
    EACH(n, WRONG_ANSWERS) {
      r = asked, r.answers = *n;
      REFUSED(dtl_engine_begin(engine, policy, &r, err), "one answer");
    }
  r = asked, r.prompts = NULL;
  NULL_REFUSED(dtl_engine_begin(engine, policy, &r, err));
  r = asked, r.seq.n_stop = 1;
  NULL_REFUSED(dtl_engine_begin(engine, policy, &r, err));
  r = asked, r.slots = 1;
  REFUSED(dtl_engine_begin(engine, policy, &r, err), "the engine does");
  r = asked, r.context = 9;
  REFUSED(dtl_engine_begin(engine, policy, &r, err), "the engine does");
  r = asked, r.window.last = 9;
  REFUSED(dtl_engine_begin(engine, policy, &r, err), "the engine does");
  const dtl_prompt bad[] = {{.len = 1}, {.ids = &(int32_t){1}, .n_ids = -1}};
  for (int i = 0; i < 2; i++) {
    r = asked, r.prompts = &bad[i];
    REFUSED(dtl_engine_begin(engine, policy, &r, err), "prompt");
  }
  assert_int_equal(dtl_engine_room(engine), 1);
  assert_int_equal(dtl_engine_begin(engine, policy, &asked, NULL), DT_OK);
  assert_int_equal(dtl_engine_room(engine), 0);
  dtl_engine_close(engine); /* closes with a request that never ran, which nobody gets to know */
  dtl_policy_close(policy);
  dt_pair_close(pair);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_gets_the_text_that_it_gets_alone),
      cmocka_unit_test(a_prompt_keeps_the_rows_of_an_earlier_one),
      cmocka_unit_test(the_prefix_cache_is_bounded),
      cmocka_unit_test(rows_of_a_running_text_serve_others),
      cmocka_unit_test(a_long_prompt_lets_others_go_on),
      cmocka_unit_test(short_prompts_begin_together),
      cmocka_unit_test(a_failure_is_in_its_result_and_a_close_ends_all),
      cmocka_unit_test(it_refuses_wrong_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
