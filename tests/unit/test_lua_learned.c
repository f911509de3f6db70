/* How pass costs are learned: from synthetic passes, stored and read, and in runs of a scripted pair. */
#include "unit.h"

#include "dtrun_fake.h"

#include "measure/learn.h"
#include "temp_files.h"

#include <cJSON.h>
#include <errno.h>
#include <math.h>
#include <unistd.h>

/* An estimate of 4 ms for a pass of the target, 1 ms for a pass of the draft, and 6 % of these for each further row.
 */
static const learned_guess GUESS = {.target_bytes = 4e6,
                                    .draft_bytes = 1e6,
                                    .target_token = 10,
                                    .draft_token = 1,
                                    .speed = 1e6,
                                    .row = 0.06,
                                    .many = 0.06,
                                    .context = 4096,
                                    .batch = 1,
                                    .drafts = true};

static lessons *begun(void) {
  lessons *l = malloc(sizeof *l);
  learned_begin(l, &GUESS);
  return l;
}

/* The true costs of passes: higher than estimated at every size, with another dependence on rows and context. */
static double truth(learned_kind kind, double rows, int context) {
  if (kind == LEARNED_TARGET) return 5 + 0.7 * (rows - 1) + 0.001 * context;
  return (kind == LEARNED_FIRST ? 1.9 : 1.2) + 0.15 * (rows - 1);
}

/* The number of rows, which is always 1 for a first pass. */
static int rows_of(int kind, int rows) { return kind == LEARNED_FIRST ? 1 : rows; }

static uint64_t state_of_chance;
static double chance(void) { return random_next(&state_of_chance) / 2147483648.0; }

/* Feeds as many runs of passes as a text has, with noise. A share `bad` of them is disturbed and takes up to forty
 * times as long. */
static void feed(lessons *l, int iterations, double bad) {
  static const int sizes[] = {1, 3, 5, 9, 17, 24};
  for (int i = 0; i < iterations; i++) {
    int rows = sizes[i % 6], context = 100 + i % 200;
    for (int kind = 0; kind < LEARNED_KINDS; kind++) {
      double ms = truth((learned_kind)kind, rows_of(kind, rows), context) * (0.98 + 0.04 * chance());
      if (chance() < bad) ms *= 1.5 + 40 * chance();
      learned_pass(l, (learned_kind)kind, rows_of(kind, rows), context, 0, ms);
    }
    learned_look(l);
  }
}

static double apart(double a, double b) { return fabs(a / b - 1); }

static double shown(const lessons *l, learned_kind kind, double rows, int context) {
  if (rows_of(kind, 0)) return costs_first(&l->shown, 1, context);
  return costs_pass(&l->shown, kind == LEARNED_TARGET ? l->shown.target : l->shown.draft, rows, context);
}

static void an_estimate_grows_with_bytes_rows_and_context(void **state) {
  (void)state;
  lessons *l = begun();
  assert_true(apart(l->shown.target[0][0], 4) < 0.01 && apart(l->shown.draft[0][0], 1) < 0.02);
  assert_true(apart(l->shown.target[0][7], 4 * 1.42) < 0.01);
  assert_true(l->shown.target[3][0] > l->shown.target[0][0] && l->shown.first[0] > l->shown.draft[0][0]);
  assert_int_equal(l->revision, 0);
  assert_false(learned_look(l));
  free(l);
}

static void a_hundred_iterations_teach_the_truth_though_a_third_is_disturbed(void **state) {
  (void)state;
  for (int busy = 0; busy < 2; busy++) {
    lessons *l = begun();
    state_of_chance = 7;
    feed(l, 150, busy ? 0.3 : 0);
    assert_true(l->revision > 0);
    for (int rows = 1; rows <= 24; rows++)
      for (int kind = 0; kind < LEARNED_KINDS; kind++)
        if (apart(shown(l, (learned_kind)kind, rows, 128), truth((learned_kind)kind, rows_of(kind, rows), 128)) >
            (busy ? 0.1 : 0.05))
          fail_msg("kind %d, %d rows: %g", kind, rows, shown(l, (learned_kind)kind, rows, 128));
    free(l);
  }
}

static void one_pass_that_was_put_off_changes_nothing(void **state) {
  (void)state;
  lessons *l = begun();
  feed(l, 300, 0);
  int revision = l->revision;
  double before = shown(l, LEARNED_TARGET, 5, 128);
  learned_pass(l, LEARNED_TARGET, 5, 128, 0, 5000);
  for (int i = 0; i < 60; i++) learned_pass(l, LEARNED_TARGET, 1, 128, 0, truth(LEARNED_TARGET, 1, 128));
  learned_look(l);
  assert_int_equal(l->revision, revision);
  assert_true(shown(l, LEARNED_TARGET, 5, 128) == before);
  free(l);
}

static void what_slows_down_for_good_is_seen(void **state) {
  (void)state;
  lessons *l = begun();
  feed(l, 300, 0);
  for (int i = 0; i < 300; i++) {
    int rows = 1 + i % 9;
    learned_pass(l, LEARNED_TARGET, rows, 128, 0, 2 * truth(LEARNED_TARGET, rows, 128));
    learned_look(l);
  }
  assert_true(apart(l->shown.target[0][0], 2 * truth(LEARNED_TARGET, 1, 128)) < 0.05);
  free(l);
}

/* A first look of eight rounds, as learn.c takes it. */
static void look(lessons *l) {
  static const int sizes[] = {1, 2, 4, 8, 16};
  for (int i = 0; i < 40; i++)
    learned_pass(l, LEARNED_TARGET, sizes[i % 5], 128, 0, truth(LEARNED_TARGET, sizes[i % 5], 128));
  learned_look(l);
}

static void a_run_of_passes_of_one_size_bends_nothing(void **state) {
  (void)state;
  lessons *l = begun();
  look(l);
  /* the machine became faster; a size that comes only once comes with cold caches */
  for (int i = 0; i < 32; i++) learned_pass(l, LEARNED_TARGET, 4, 500, 0, 0.9 * truth(LEARNED_TARGET, 4, 500));
  learned_pass(l, LEARNED_TARGET, 5, 500, 0, truth(LEARNED_TARGET, 5, 500));
  learned_look(l);
  for (int rows = 1; rows < 16; rows++) {
    double more = shown(l, LEARNED_TARGET, rows + 1, 500) - shown(l, LEARNED_TARGET, rows, 500);
    if (apart(more, 0.9 * 0.7) > 0.4) fail_msg("the row after %d costs %g, expected %g", rows, more, 0.9 * 0.7);
    assert_true(apart(shown(l, LEARNED_TARGET, rows, 500), 0.9 * truth(LEARNED_TARGET, rows, 500)) < 0.05);
  }
  free(l);
}

static void larger_passes_than_were_seen_go_on_as_the_last(void **state) {
  (void)state;
  lessons *l = begun();
  look(l);
  for (int rows = 16; rows <= 257; rows++)
    assert_true(apart(shown(l, LEARNED_TARGET, rows, 128), truth(LEARNED_TARGET, rows, 128)) < 0.03);
  free(l);
}

static void costs_stay_the_same_between_revisions(void **state) {
  (void)state;
  lessons *l = begun();
  dtl_costs before = l->shown;
  for (int i = 0; i < 4000; i++) {
    int revision = l->revision;
    learned_pass(l, (learned_kind)(i % 3), 1 + i % 30, i, 0, 1 + chance());
    bool told = learned_look(l);
    assert_int_equal(told, l->revision != revision);
    if (!told) assert_memory_equal(&l->shown, &before, sizeof before);
    before = l->shown;
  }
  free(l);
}

/* Checks that costs strictly increase with rows, do not decrease with the context, and are finite. */
static void check(const lessons *l) {
  const dtl_costs *c = &l->shown;
  for (int k = 0; k < c->n_contexts; k++)
    for (int i = 0; i < c->n_rows; i++) {
      assert_true(c->target[k][i] >= 1e-6 && c->target[k][i] <= 1e9 && c->draft[k][i] >= 1e-6 && c->draft[k][i] <= 1e9);
      if (i) assert_true(c->target[k][i] > c->target[k][i - 1] && c->draft[k][i] > c->draft[k][i - 1]);
      if (k) assert_true(c->target[k][i] >= c->target[k - 1][i] && c->draft[k][i] >= c->draft[k - 1][i]);
      assert_true(c->first[k] >= c->draft[k][0] && c->first[k] <= 1e9);
    }
}

static void whatever_is_fed_costs_can_be_counted_with(void **state) {
  (void)state;
  static const double times[] = {1e-6, 1e8, 1, 1e-3, 3e5},
                      none[] = {0, -1, NAN, INFINITY, -INFINITY, 1e9, 9.9e-7, 1.1e8};
  static const double rows[] = {1, 1e6, 0.003, 257, 258, 4096}, no_rows[] = {0, -1, NAN, INFINITY, 1000001};
  static const int contexts[] = {0, 1, 1 << 30, 131072, 500};
  lessons *l = begun();
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) learned_pass(l, LEARNED_TARGET, 1, 1, 0, none[i]);
  for (size_t i = 0; i < sizeof no_rows / sizeof *no_rows; i++) learned_pass(l, LEARNED_DRAFT, no_rows[i], 1, 0, 1);
  learned_pass(l, LEARNED_TARGET, 1, -1, 0, 1);
  assert_int_equal(l->passes, 0);
  for (int i = 0; i < 3000; i++) {
    learned_pass(l, (learned_kind)(i % 3), rows[i % 6], contexts[i / 6 % 5], 0, times[i / 7 % 5]);
    learned_look(l);
    if (i % 50 == 0) check(l);
  }
  check(l);
  assert_int_equal(l->passes, 3000);
  free(l);
}

static void without_a_draft_nothing_is_learned_of_one(void **state) {
  (void)state;
  learned_guess guess = GUESS;
  guess.drafts = false;
  lessons *l = malloc(sizeof *l);
  learned_begin(l, &guess);
  learned_pass(l, LEARNED_DRAFT, 1, 1, 0, 1);
  learned_pass(l, LEARNED_FIRST, 1, 1, 0, 1);
  assert_int_equal(l->passes, 0);
  learned_pass(l, LEARNED_TARGET, 1, 1, 0, 8);
  assert_true(learned_look(l));
  free(l);
}

static void a_pass_of_fewer_sequences_is_a_part_of_a_row(void **state) {
  (void)state;
  learned_guess guess = GUESS;
  guess.batch = 8;
  lessons *l = malloc(sizeof *l);
  learned_begin(l, &guess);
  assert_int_equal(l->shown.rows[l->shown.n_rows - 1], 64); /* 512 rows in all */
  for (int i = 0; i < 20; i++)
    learned_pass(l, LEARNED_TARGET, 0.25, 128, 0, 3 * costs_pass(&l->estimated, l->estimated.target, 0.25, 128));
  learned_look(l);
  assert_true(apart(l->shown.target[0][0], 3 * l->estimated.target[0][0]) < 0.01);
  free(l);
}

static void what_was_learned_is_kept_and_read(void **state) {
  (void)state;
  lessons *l = begun(), *back = begun();
  feed(l, 150, 0.1);
  char *json = learned_json(l, "this machine");
  assert_null(learned_parse(back, json, "this machine"));
  learned_look(back);
  for (int rows = 1; rows <= 24; rows++)
    for (int kind = 0; kind < LEARNED_KINDS; kind++)
      assert_true(apart(shown(back, (learned_kind)kind, rows, 128), shown(l, (learned_kind)kind, rows, 128)) < 0.06);
  free(json), free(l), free(back);
}

static void a_file_that_is_none_is_left_aside_whole(void **state) {
  (void)state;
#define HEAD "{\"schema\":\"dtrun.learned/2\",\"key\":\"k\","
#define REST "\"draft\":[],\"first\":[]}"
#define REST_OF "\"draft\":[],\"first\":[],"
#define EXPERTS "experts is not a list of [rows, mean, passes], or expert is not a list of two sums"
#define MISSES "cache_miss is not a list of three [ms, times]"
#define READ "read is not a list with [ms, times]"
#define TARGET "target is not a list of [rows, context, ms, times]"
  static const char *const cases[][2] = {
      {"", "it is not a JSON object"},
      {"{\"schema\":\"dtrun.learned/2\",\"key\":\"k\",\"target\":[[1,128,0.2", "it is not a JSON object"}, /* torn */
      {"{\"schema\":\"dtrun.costs/2\"}", "its schema is not dtrun.learned/2"},
      {"{\"schema\":\"dtrun.learned/2\",\"key\":\"other\"}", "it was learned on another machine or model"},
      {"{\"schema\":\"dtrun.learned/2\"}", "it was learned on another machine or model"},
      {HEAD REST, TARGET},
      {HEAD "\"target\":[[1,128,1,1],[1,128,1]]," REST, TARGET},
      {HEAD "\"target\":[[1,128,1,1],[1,128,1,0]]," REST, TARGET},
      {HEAD "\"target\":[[1,128,1,1],[1,128,1,33]]," REST, TARGET},
      {HEAD "\"target\":[[1,128,1,1],[1,128,0,1]]," REST, TARGET},
      {HEAD "\"target\":[[1,128,1,1],[1,128,1e9,1]]," REST, TARGET},
      {HEAD "\"target\":[[1,128,1,1],[0,128,1,1]]," REST, TARGET},
      {HEAD "\"target\":[[1,128,1,1],[1,-1,1,1]]," REST, TARGET},
      {HEAD "\"target\":[[1,128,1,1],[1,1e300,1,1]]," REST, TARGET},
      {HEAD "\"target\":[[1,128,1,\"1\"]]," REST, TARGET},
      {HEAD "\"target\":[],\"draft\":{},\"first\":[]}", "draft is not a list of [rows, context, ms, times]"},
      {HEAD "\"target\":[]," REST_OF "\"experts\":[[1,8,1]]}", EXPERTS},
      {HEAD "\"target\":[]," REST_OF "\"expert\":[0,0]}", EXPERTS},
      {HEAD "\"target\":[]," REST_OF "\"experts\":[[1,8]],\"expert\":[0,0]}", EXPERTS},
      {HEAD "\"target\":[]," REST_OF "\"experts\":[[1,0.99,1]],\"expert\":[0,0]}", EXPERTS},
      {HEAD "\"target\":[]," REST_OF "\"experts\":[[1,1000000001,1]],\"expert\":[0,0]}", EXPERTS},
      {HEAD "\"target\":[]," REST_OF "\"experts\":[[1,8,0]],\"expert\":[0,0]}", EXPERTS},
      {HEAD "\"target\":[]," REST_OF "\"experts\":[[1,8,33]],\"expert\":[0,0]}", EXPERTS},
      {HEAD "\"target\":[]," REST_OF "\"experts\":[[1,\"8\",1]],\"expert\":[0,0]}", EXPERTS},
      {HEAD "\"target\":[]," REST_OF "\"experts\":[[1,8,1]],\"expert\":[0,1.01]}", EXPERTS},
      {HEAD "\"target\":[]," REST_OF "\"experts\":[[1,8,1]],\"expert\":[0,-0.01]}", EXPERTS},
      {HEAD "\"target\":[]," REST_OF "\"experts\":[[1,8,1]],\"expert\":[1e10,1]}", EXPERTS},
      {HEAD "\"target\":[]," REST_OF "\"cache_miss\":[[1,1],[1,1]]}", MISSES},
      {HEAD "\"target\":[]," REST_OF "\"cache_miss\":[[1,1],[1,1],[1]]}", MISSES},
      {HEAD "\"target\":[]," REST_OF "\"cache_miss\":[[1,1],[1,1],[1,33]]}", MISSES},
      {HEAD "\"target\":[]," REST_OF "\"cache_miss\":[[1,1],[1,1],[1001,1]]}", MISSES},
      {HEAD "\"target\":[]," REST_OF "\"cache_miss\":[[1,1],[1,1],[0,1]]}", MISSES},
      {HEAD "\"target\":[]," REST_OF "\"cache_miss\":[[1,1],[1,1],[1,\"1\"]]}", MISSES},
      {HEAD "\"target\":[]," REST_OF "\"read\":[]}", READ},
      {HEAD "\"target\":[]," REST_OF "\"read\":[[1,33]]}", READ},
      {HEAD "\"target\":[]," REST_OF "\"read\":[[0,1]]}", READ},
      {HEAD "\"target\":[]," REST_OF "\"read\":[[1000001,1]]}", READ},
      {HEAD "\"target\":[]," REST_OF "\"read\":[[1,1],[1,1]]}", READ},
      {HEAD "\"target\":[],\"draft\":[]}", "first is not a list of [rows, context, ms, times]"},
  };
  lessons *l = begun();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *wrong = learned_parse(l, cases[i][0], "k");
    assert_non_null(wrong);
    assert_string_equal(wrong, cases[i][1]);
    assert_int_equal(l->passes, 0);
  }
  assert_null(learned_parse(l, HEAD "\"target\":[[1,128,8,32],[1000000,0,1e8,1]]," REST, "k"));
  assert_int_equal(l->passes, 2);
  assert_null(learned_parse(l, HEAD "\"target\":[]," REST_OF "\"cache_miss\":[[1e-6,0],[0.25,32],[1e3,1]]}", "k"));
  assert_true(l->cache_miss[0].n == 0 && l->cache_miss[1].n == 8 &&
              l->cache_miss[2].n == 0); /* the last one was interrupted */
  assert_null(learned_parse(l, HEAD "\"target\":[]," REST_OF "\"read\":[[0,0]]}", "k"));
  assert_int_equal(l->read.n, 0);
  assert_null(learned_parse(l, HEAD "\"target\":[]," REST_OF "\"read\":[[0.5,32]]}", "k"));
  assert_int_equal(l->read.n, 8);
  assert_null(learned_parse(
      l, HEAD "\"target\":[]," REST_OF "\"experts\":[[1,1,32],[8,1e9,1],[9,8,1]],\"expert\":[-1e9,1]}", "k"));
  assert_true(l->count[0].mean == 1 && l->count[0].n == 8 && l->count[7].mean == 1e9 &&
              l->more == 1); /* 9 rows is not a size of the table */
  free(l);
}

static void a_measured_table_teaches(void **state) {
  (void)state;
  dtl_costs *t = calloc(1, sizeof *t);
  lessons *l = begun();
  *t = (dtl_costs){.batch = 1, .n_contexts = 1, .n_rows = 2, .drafts = true, .context = {128}, .rows = {1, 8}};
  t->target[0][0] = 6, t->target[0][1] = 13, t->draft[0][0] = 2, t->draft[0][1] = 3, t->first[0] = 4;
  t->target_sample = 0.5, t->draft_sample = 0.25;
  learned_table(l, t, true, true);
  learned_look(l);
  assert_true(apart(shown(l, LEARNED_TARGET, 1, 128), 6.5) < 0.01 &&
              apart(shown(l, LEARNED_TARGET, 8, 128), 17) < 0.01);
  assert_true(apart(shown(l, LEARNED_DRAFT, 8, 128), 5) < 0.01 && apart(shown(l, LEARNED_FIRST, 1, 128), 4.25) < 0.01);
  t->batch = 2; /* not a valid table */
  learned_begin(l, &GUESS);
  learned_table(l, t, false, false);
  assert_int_equal(l->passes, 0);
  free(t), free(l);
}

/* Feeds passes of a target after 128 tokens, each of `ms` and 0.02 ms for each expert. A row chooses 8 experts, some of
 * which other rows also choose. */
static void feed_experts(lessons *l, int passes, double each) {
  static const int rows[] = {1, 2, 4, 8};
  for (int i = 0; i < passes; i++) {
    int n = rows[i % 4], experts = n == 1 ? 8 : (int)(8 * pow(n, 0.8) * (0.8 + 0.4 * chance()));
    learned_pass(l, LEARNED_TARGET, n, 128, experts, (3 + 0.2 * n + each * experts) * (0.98 + 0.04 * chance()));
    learned_look(l);
  }
}

static void what_experts_cost_is_learned_from_passes_that_read_more_or_fewer(void **state) {
  (void)state;
  for (int expensive = 0; expensive < 2; expensive++) {
    lessons *l = begun();
    state_of_chance = 7;
    assert_true(l->shown.experts[0] == 0);
    double each = expensive ? 0.1 : 0.01;
    feed_experts(l, 1200, each);
    const dtl_costs *c = &l->shown;
    assert_null(costs_wrong(c));
    assert_true(c->experts[0] == 8);
    for (int rows = 1; rows <= 16; rows *= 2) {
      double usual = 8 * pow(rows, 0.8), found = costs_target(c, rows, 128, usual);
      if (apart(found, 3 + 0.2 * rows + each * usual) > 0.06) fail_msg("%d rows: %g", rows, found);
      if (rows > 1 && expensive) /* if it is a small part of a pass, it is lost in the noise */
        assert_true(apart(costs_target(c, rows, 128, usual + 20) - found, 20 * each) < 0.25);
    }
    free(l);
  }
}

static void without_experts_nothing_is_learned_of_them(void **state) {
  (void)state;
  lessons *l = begun();
  feed(l, 100, 0);
  assert_true(l->shown.experts[0] == 0 && l->shown.expert[1] == 0 && l->more == 0);
  char *json = learned_json(l, "k");
  assert_null(strstr(json, "expert"));
  free(json), free(l);
}

static void what_was_learned_of_experts_is_kept_and_read(void **state) {
  (void)state;
  lessons *l = begun(), *back = begun();
  state_of_chance = 11;
  feed_experts(l, 600, 0.1);
  char *json = learned_json(l, "k");
  assert_null(learned_parse(back, json, "k"));
  learned_look(back);
  for (int rows = 1; rows <= 16; rows++) {
    double usual = 8 * pow(rows, 0.8);
    assert_true(apart(costs_target(&back->shown, rows, 128, usual), costs_target(&l->shown, rows, 128, usual)) < 0.06);
    assert_true(apart(costs_target(&back->shown, rows, 128, 40), costs_target(&l->shown, rows, 128, 40)) < 0.1);
  }
  free(json), free(l), free(back);
}

/* ---- in runs ----------------------------------------------------------------------------------------------------- */

static char noted[300];
static void keep_note(void *user, const char *line) {
  (void)user;
  snprintf(noted, sizeof noted, "%s", line);
}

static const char SOURCE[] =
    "local P = require('dt.policy').define { name = 'p', uses = { costs = true } }\n"
    "function P:draft(tree)\n"
    "  local c = self.costs\n"
    "  assert(c:target(1, 1) < c:target(2, 1) and c:draft(3, 5) > 0 and c:first(1) >= c:draft(1, 1))\n"
    "  assert(math.type(c:revision()) == 'integer')\n"
    "  tree:draft_step(0) tree:branch(0, 2)\n"
    "end\n"
    "return P";

static dtl_result generated(dt_pair *pair, const char *source, dtl_learned *learning, const dtl_costs *table) {
  dtl_policy *policy;
  dtl_result result;
  dt_error why = {0};
  dtl_policy_options how = {.policy = "p", .source = source, .source_len = strlen(source)};
  if (dtl_policy_open(&how, &policy, &why)) fail_msg("%s", why.message);
  dtl_request request = {.prompts = &(dtl_prompt){.text = " 1 2", .len = 4}, .n = 1, .seq = {.max_tokens = 40}};
  request.learned = learning, request.costs = table;
  if (dtl_generate(pair, policy, &request, &result, &why)) fail_msg("%s", why.message);
  if (result.failed) fail_msg("%s", result.failure.message);
  dtl_policy_close(policy);
  return result;
}

static dt_pair *scripted(void) {
  dt_pair *pair;
  ok(dt_pair_open_fake(&(dt_fake_options){.vocab = 7, .context = 400, .eos = -1}, &pair, &err));
  return pair;
}

static void a_run_learns_and_says_so(void **state) {
  (void)state;
  dt_pair *pair = scripted();
  dtl_learned *learning = dtl_learned_open(pair, &(dtl_learning){.note = keep_note});
  assert_true(dtl_learned_plain(learning, 10) == 0);
  dtl_result result = generated(pair, SOURCE, learning, NULL);
  assert_string_equal(result.costs, "learn");
  double plain = dtl_learned_plain(learning, 10);
  assert_true(plain > 0 && plain < 1000);
  dtl_result_free(&result);
  dtl_learned_close(learning);
  result = generated(pair, SOURCE, NULL, NULL); /* for this request only */
  assert_string_equal(result.costs, "learn");
  dtl_result_free(&result);
  dtl_costs table = {.batch = 1,
                     .n_contexts = 1,
                     .n_rows = 2,
                     .drafts = true,
                     .context = {128},
                     .rows = {1, 9},
                     .target = {{1, 2}},
                     .draft = {{1, 2}},
                     .first = {1}};
  result = generated(pair, SOURCE, NULL, &table);
  assert_string_equal(result.costs, "table");
  dtl_result_free(&result);
  result = generated(pair, "local P = require('dt.policy').define { name = 'p' } function P:draft() end return P", NULL,
                     &table);
  assert_null(result.costs);
  dtl_result_free(&result);
  dt_pair_close(pair);
}

static course *course_of(dtl_learned *learning, int batch, const dt_seq_options *options) {
  course *c = NULL;
  ok(learn_course(learning, batch, options, false, &c, &err));
  return c;
}

static void runs_of_one_kind_share_a_course(void **state) {
  (void)state;
  dt_pair *pair = scripted();
  dtl_learned *learning = dtl_learned_open(pair, &(dtl_learning){0});
  const dt_seq_options greedy = {.max_tokens = 1}, sampled = {.sampling = {.temp = 1}},
                       uncoupled = {.sampling = {.temp = 1}, .uncoupled = true}, plain = {.uncoupled = true};
  course *c = course_of(learning, 1, &greedy);
  assert_ptr_equal(course_of(learning, 1, &greedy), c);
  assert_ptr_equal(course_of(learning, 1, &plain), c); /* without sampling there is no noise that could be known */
  assert_ptr_not_equal(course_of(learning, 2, &greedy), c);
  course *noise = course_of(learning, 1, &sampled);
  assert_ptr_not_equal(noise, c);
  assert_ptr_not_equal(course_of(learning, 1, &uncoupled), noise);
  dtl_learned_close(learning);
  dt_pair_close(pair);
}

/* The bundled draft as a target of its own; it is small. */
static dt_pair *bundled(void) {
  dt_pair *pair;
  ok(dt_pair_open(&(dt_pair_options){.target = SOURCE_DIR "/models/mini-draft", .threads = 1, .backend = "cpu"}, &pair,
                  &err));
  return pair;
}

static const char PLAIN[] =
    "local P = require('dt.policy').define { name = 'p', uses = { costs = true, draft = false } } "
    "function P:draft() end return P";

static dtl_result bundled_run(dtl_learned *learning, dt_pair *pair) {
  dtl_policy *policy;
  dtl_result result;
  dt_error why = {0};
  dtl_policy_options how = {.policy = "p", .source = PLAIN, .source_len = sizeof PLAIN - 1};
  if (dtl_policy_open(&how, &policy, &why)) fail_msg("%s", why.message);
  dtl_request request = {.prompts = &(dtl_prompt){.text = "The", .len = 3}, .n = 1, .seq = {.max_tokens = 8}};
  request.learned = learning;
  if (dtl_generate(pair, policy, &request, &result, &why)) fail_msg("%s", why.message);
  dtl_policy_close(policy);
  return result;
}

/* The only file in folder/dtrun. */
static char *only_file(const char *folder) {
  char *path, command[400];
  if (asprintf(&path, "%s/found", folder) < 0) fail_msg("no memory");
  snprintf(command, sizeof command, "ls %s/dtrun/learned-* > %s", folder, path);
  if (system(command)) fail_msg("%s", command);
  FILE *file = fopen(path, "r");
  char *name = calloc(1, 400), more[400];
  assert_non_null(fgets(name, 400, file));
  assert_null(fgets(more, sizeof more, file));
  fclose(file);
  free(path);
  name[strcspn(name, "\n")] = '\0';
  return name;
}

static void what_was_learned_is_found_again_and_a_torn_file_left_aside(void **state) {
  (void)state;
  char *folder = temp_folder();
  setenv("XDG_CACHE_HOME", folder, 1);
  dt_pair *pair = bundled();
  const dt_seq_options greedy = {0};
  *noted = '\0';
  for (int turn = 0; turn < 3; turn++) {
    dtl_learned *learning = dtl_learned_open(pair, &(dtl_learning){.note = keep_note});
    const int *revision;
    course *c = course_of(learning, 1, &greedy);
    assert_int_equal(learn_costs(c, &revision)->batch, 1);
    assert_int_equal(dtl_learned_plain(learning, 1) > 0, turn == 1); /* known from the file before any pass */
    dtl_result result = bundled_run(learning, pair);
    dtl_result_free(&result);
    assert_int_equal(strstr(noted, "are ignored and replaced: it is not a JSON object") != NULL, turn == 2);
    dtl_learned_close(learning);
    char *name = only_file(folder);
    if (turn == 1 && truncate(name, 100)) fail_msg("truncate");
    free(name);
  }
  dt_pair_close(pair);
  unsetenv("XDG_CACHE_HOME");
  temp_remove(folder);
}

/* An allocator that makes cJSON's next allocation fail. */
static void *no_memory(size_t size) {
  (void)size;
  errno = ENOMEM;
  return NULL;
}

static void without_memory_no_file_is_taken_for_a_torn_one(void **state) {
  (void)state;
  char *folder = temp_folder();
  setenv("XDG_CACHE_HOME", folder, 1);
  dt_pair *pair = bundled();
  const dt_seq_options greedy = {0};
  dtl_learned *learning = dtl_learned_open(pair, &(dtl_learning){.note = keep_note});
  dtl_result result = bundled_run(learning, pair);
  dtl_result_free(&result);
  dtl_learned_close(learning);
  *noted = '\0';
  learning = dtl_learned_open(pair, &(dtl_learning){.note = keep_note});
  cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = no_memory, .free_fn = free});
  dt_error why;
  course *c;
  assert_int_equal(learn_course(learning, 1, &greedy, false, &c, &why), DT_ENOMEM);
  cJSON_InitHooks(NULL);
  assert_int_equal(why.status, DT_ENOMEM);
  assert_non_null(strstr(why.message, "out of memory: the learned costs in "));
  assert_string_equal(noted, "");
  assert_int_equal(learn_course(learning, 1, &greedy, false, &c, &why), DT_OK);
  assert_true(dtl_learned_plain(learning, 1) > 0); /* the file has not changed */
  dtl_learned_close(learning);
  dt_pair_close(pair);
  unsetenv("XDG_CACHE_HOME");
  temp_remove(folder);
}

static void where_nothing_can_be_kept_it_is_told_and_the_run_goes_on(void **state) {
  (void)state;
  char *folder = temp_folder(), path[300];
  temp_write(folder, "file", "", 0);
  snprintf(path, sizeof path, "%s/file", folder);
  setenv("XDG_CACHE_HOME", path, 1);
  dt_pair *pair = bundled();
  dtl_learned *learning = dtl_learned_open(pair, &(dtl_learning){.note = keep_note});
  *noted = '\0';
  dtl_result result = bundled_run(learning, pair);
  assert_int_equal(result.n_tokens, 8);
  assert_non_null(strstr(noted, "the learned costs cannot be written to "));
  dtl_result_free(&result);
  dtl_learned_close(learning);
  dt_pair_close(pair);
  unsetenv("XDG_CACHE_HOME");
  temp_remove(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_estimate_grows_with_bytes_rows_and_context),
      cmocka_unit_test(a_hundred_iterations_teach_the_truth_though_a_third_is_disturbed),
      cmocka_unit_test(one_pass_that_was_put_off_changes_nothing),
      cmocka_unit_test(what_slows_down_for_good_is_seen),
      cmocka_unit_test(a_run_of_passes_of_one_size_bends_nothing),
      cmocka_unit_test(larger_passes_than_were_seen_go_on_as_the_last),
      cmocka_unit_test(costs_stay_the_same_between_revisions),
      cmocka_unit_test(whatever_is_fed_costs_can_be_counted_with),
      cmocka_unit_test(without_a_draft_nothing_is_learned_of_one),
      cmocka_unit_test(a_pass_of_fewer_sequences_is_a_part_of_a_row),
      cmocka_unit_test(what_was_learned_is_kept_and_read),
      cmocka_unit_test(a_file_that_is_none_is_left_aside_whole),
      cmocka_unit_test(a_measured_table_teaches),
      cmocka_unit_test(what_experts_cost_is_learned_from_passes_that_read_more_or_fewer),
      cmocka_unit_test(without_experts_nothing_is_learned_of_them),
      cmocka_unit_test(what_was_learned_of_experts_is_kept_and_read),
      cmocka_unit_test(a_run_learns_and_says_so),
      cmocka_unit_test(runs_of_one_kind_share_a_course),
      cmocka_unit_test(what_was_learned_is_found_again_and_a_torn_file_left_aside),
      cmocka_unit_test(without_memory_no_file_is_taken_for_a_torn_one),
      cmocka_unit_test(where_nothing_can_be_kept_it_is_told_and_the_run_goes_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
