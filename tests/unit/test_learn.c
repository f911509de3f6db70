/* dt_tree_calibrate's numbers are learned: on a tree of one node whose draft scores and log-probabilities are random.
 * What follows is sampled from the same model with known numbers, which must be found. */
#include "unit.h"

#include "tree/tree.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { N = 3 };

typedef struct {
  int32_t id;
  double p;
} choice;

static int more_likely_first(const void *a, const void *b) {
  double x = ((const choice *)a)->p, y = ((const choice *)b)->p;
  return (x < y) - (x > y);
}

/* The two steps of tree.h, written in a simple way, for N ids with these scores and log-probabilities of the draft. */
static void probabilities(const double *score, const double *own, dt_tree_calibration s, choice *c) {
  double sum = 0;
  for (int i = 0; i < N; i++) c[i] = (choice){i, exp((score[i] + s.lean * own[i]) / 0.6)};
  qsort(c, N, sizeof *c, more_likely_first);
  for (int i = 0; i < N; i++) sum += c[i].p;
  double first = c[0].p, odds = pow(first / (sum - first), s.slope) * exp(s.shift);
  for (int i = 0; i < N; i++) c[i].p = i ? s.share * c[i].p / (sum - first) / (1 + odds) : odds / (1 + odds);
}

static double uniform(uint64_t *random) { return (random_next(random) + 0.5) / 2147483648.0; }

static void give(dt_tree *t, const choice *c, const double *own) {
  dt_tree_draft *d = dt_tree_new_draft(t, 0);
  d->count = N;
  for (int i = 0; i < N; i++) d->token[i] = c[i].id, d->logp[i] = (float)log(c[i].p), d->own[i] = (float)own[c[i].id];
}

/* NOBODY follows when none of the others does. */
enum { NOBODY = N };
static dt_tree_learner taught(dt_tree *t, dt_tree_calibration truth, int rounds, bool coupled) {
  dt_tree_learner l = dt_tree_learner_new(true);
  uint64_t random = 1;
  for (int k = 0; k < rounds; k++) {
    double own[N], score[N];
    choice said[N], real[N];
    for (int i = 0; i < N; i++) own[i] = -4 * uniform(&random), score[i] = 2 * uniform(&random);
    dt_tree_reset(t, 0, 4, N + 1);
    ok(dt_tree_calibrate_learned(&l, t, coupled, &err));
    assert_true(t->calibration.scale == 0.6);
    probabilities(score, own, t->calibration, said);
    give(t, said, own);
    probabilities(score, own, truth, real);
    double left = uniform(&random);
    int came = 0;
    while (came < N && left >= real[came].p) left -= real[came++].p;
    dt_tree_learn(&l, t, 0, came < N ? real[came].id : NOBODY, coupled);
  }
  return l;
}

static void near(double x, double expected, double most) {
  if (!(fabs(x - expected) <= most)) fail_msg("%g, expected %g", x, expected);
}

static void guesses_come_to_be_true_as_often_as_they_say(void **state) {
  const dt_tree_calibration truths[] = {{.slope = 1, .shift = 0.8, .share = 1},   {.slope = 0.6, .share = 1},
                                        {.lean = -0.2, .slope = 1, .share = 1},   {.lean = 0.2, .slope = 1, .share = 1},
                                        {.slope = 1, .shift = 0.8, .share = 0.4}, {.slope = 1, .share = 0.8}};
  for (size_t k = 0; k < sizeof truths / sizeof *truths; k++) {
    dt_tree_learner l = taught(*state, truths[k], 20000, true);
    near(l.lean, truths[k].lean, 0.03);
    near(l.slope, truths[k].slope, 0.1);
    near(l.shift, truths[k].shift, 0.1);
    near(l.share, truths[k].share, 0.03);
  }
}

static void without_noise_there_is_no_lean(void **state) {
  dt_tree_learner l = taught(*state, (dt_tree_calibration){.slope = 1, .shift = 0.8, .share = 1}, 20000, false);
  assert_true(l.lean == 0);
  near(l.slope, 1, 0.1);
  near(l.shift, 0.8, 0.1);
}

static void a_share_is_learned_if_that_is_wanted(void **state) {
  const choice c[N] = {{0, 0.5}, {1, 0.3}, {2, 0.2}};
  const double own[N] = {-1, -2, -3};
  for (int wanted = 0; wanted < 2; wanted++) {
    dt_tree_learner l = dt_tree_learner_new(wanted);
    dt_tree_reset(*state, 0, 4, N + 1);
    give(*state, c, own);
    dt_tree_learn(&l, *state, 0, NOBODY, true);
    assert_true(wanted ? l.share < 1 : l.share == 1);
  }
}

static void it_begins_less_sure_where_guesses_know_the_noise(void **state) {
  for (int coupled = 0; coupled < 2; coupled++) {
    dt_tree_learner l = dt_tree_learner_new(true);
    dt_tree *t = *state;
    dt_tree_reset(t, 0, 4, N);
    ok(dt_tree_calibrate_learned(&l, t, coupled, &err));
    assert_true(t->calibration.scale == 0.6 && t->calibration.lean == 0 && t->calibration.shift == 0);
    assert_true(t->calibration.slope == (coupled ? 0.7 : 1.0) && t->calibration.share == 1);
  }
}

static void a_learner_resumes_with_what_another_one_knew_and_less_evidence(void **state) {
  const dt_tree_calibration truth = {.slope = 0.6, .shift = 0.8, .share = 0.4};
  dt_tree_learner l = taught(*state, truth, 20000, true);
  double numbers[DT_TREE_LEARNER_STATE];
  dt_tree_learner_state(&l, numbers);
  dt_tree_learner again = dt_tree_learner_resume(true, numbers), fresh = dt_tree_learner_new(true);
  near(again.slope, l.slope, 1e-12);
  near(again.shift, l.shift, 1e-12);
  near(again.share, l.share, 1e-12);
  assert_true(again.slopes < l.slopes && again.shifts < l.shifts && again.shares < l.shares);
  assert_true(again.slopes >= fresh.slopes && again.shifts >= fresh.shifts && again.shares >= fresh.shares);
  dt_tree_reset(*state, 0, 4, N);
  ok(dt_tree_calibrate_learned(&again, *state, true, &err));
  near(((dt_tree *)*state)->calibration.slope, l.slope, 1e-12); /* and not of a new learner */
  assert_true(dt_tree_learner_resume(false, numbers).share == 1);
}

static void a_learner_takes_no_numbers_that_none_could_have(void **state) {
  const double wild[] = {-1e300, -1, 0, 1, 1e300, -DBL_MIN};
  uint64_t random = 5;
  for (int i = 0; i < 2000; i++) {
    double numbers[DT_TREE_LEARNER_STATE];
    for (int k = 0; k < DT_TREE_LEARNER_STATE; k++) numbers[k] = wild[random_next(&random) % 6];
    dt_tree_learner l = dt_tree_learner_resume(i % 2, numbers);
    dt_tree_reset(*state, 0, 4, N);
    ok(dt_tree_calibrate_learned(&l, *state, i % 3, &err));
    assert_true(l.slopes > 0 && l.shifts > 0 && l.leans > 0 && isfinite(l.came));
  }
}

/* Teaches the same guess of ids 0, 1 and 2, with the same token following, again and again. */
static dt_tree_learner told(dt_tree *t, double first, const double *own, int32_t came) {
  const choice c[N] = {{0, first}, {1, 0.8 * (1 - first)}, {2, 0.2 * (1 - first)}};
  dt_tree_learner l = dt_tree_learner_new(true);
  dt_tree_reset(t, 0, 4, N + 1);
  give(t, c, own);
  for (int k = 0; k < 10000; k++) {
    dt_tree_learn(&l, t, 0, came, true);
    assert_true(l.lean >= -0.5 && l.lean <= 0.5 && l.slope >= 0.1 && l.slope <= 3 && l.shift >= -6 && l.shift <= 6 &&
                l.share >= 0.05 && l.share <= 1);
  }
  return l;
}

static void what_is_learned_has_bounds(void **state) {
  const double falling[N] = {-1, -2, -5};
  assert_true(told(*state, 0.5, falling, 0).shift == 6);
  assert_true(told(*state, 0.5, falling, 1).shift == -6);
  assert_true(told(*state, 0.9, falling, 0).slope == 3);
  assert_true(told(*state, 0.9, falling, 1).slope == 0.1);
  assert_true(told(*state, 0.5, falling, 0).lean == 0.5);
  assert_true(told(*state, 0.5, falling, 2).lean == -0.5);
  assert_true(told(*state, 0.5, falling, NOBODY).share == 0.05);
  assert_true(told(*state, 0.5, falling, 1).share == 1);
}

/* A node that was not drafted from, or could not be, teaches nothing. A token that was not among the candidates teaches
 * only that the first candidate was wrong. */
static void what_was_not_guessed_teaches_little(void **state) {
  const double own[N] = {-1, -2, -3};
  const choice c[N] = {{0, 0.5}, {1, 0.3}, {2, 0.2}};
  dt_tree_learner l = dt_tree_learner_new(true), before = l;
  dt_tree *t = *state;
  dt_tree_reset(t, 0, 4, 9);
  dt_tree_learn(&l, t, 0, 0, true);
  assert_memory_equal(&l, &before, sizeof l);
  dt_tree_no_draft(t, 0);
  dt_tree_learn(&l, t, 0, 0, true);
  assert_memory_equal(&l, &before, sizeof l);
  dt_tree_reset(t, 0, 4, 9);
  give(t, c, own);
  dt_tree_learn(&l, t, 0, 8, true);
  assert_true(l.lean == 0 && l.leans == before.leans && l.shift < 0);
}

static int setup(void **state) { return dt_tree_open((dt_tree **)state, NULL); }

static int teardown(void **state) {
  dt_tree_close(*state);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(guesses_come_to_be_true_as_often_as_they_say),
      cmocka_unit_test(without_noise_there_is_no_lean),
      cmocka_unit_test(a_share_is_learned_if_that_is_wanted),
      cmocka_unit_test(it_begins_less_sure_where_guesses_know_the_noise),
      cmocka_unit_test(a_learner_resumes_with_what_another_one_knew_and_less_evidence),
      cmocka_unit_test(a_learner_takes_no_numbers_that_none_could_have),
      cmocka_unit_test(what_is_learned_has_bounds),
      cmocka_unit_test(what_was_not_guessed_teaches_little),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
