/* The cost of cache misses: how it is measured, learned and stored. */
#include "unit.h"

#include "dtrun_fake.h"

#include "measure/cache_miss.h"
#include "measure/learn.h"

#include <math.h>
#include <stdlib.h>

static void every_line_is_read_once(void **state) {
  (void)state;
  cache_miss_lines lines;
  bool seen[CACHE_MISS_LINES] = {false};
  cache_miss_begin(&lines);
  for (int i = 0, at = 0; i < CACHE_MISS_LINES; i++, at = lines.line[at].next) {
    assert_false(seen[at]);
    seen[at] = true;
  }
  assert_true(cache_miss_ms(&lines) > 0);
}

static void costs_are_medians_and_none_falls(void **state) {
  (void)state;
  cache_miss_times w = {.n = 3, .ms = {{3, 1, 9}, {2, 90, 1}, {4, 80, 5}}};
  double cache_miss[DTL_COST_MISSES];
  cache_miss_costs(&w, cache_miss);
  assert_true(cache_miss[0] == 3 && cache_miss[1] == 3 && cache_miss[2] == 5);
}

static lessons *begun(void) {
  lessons *l = malloc(sizeof *l);
  learned_begin(l, &(learned_guess){.target_bytes = 4e6, .speed = 1e6, .row = 0.06, .context = 400, .batch = 1});
  return l;
}

/* Checks the misses after a pass that takes twice the time, which makes new costs. */
static void assert_misses(lessons *l, double again, double after, double paused) {
  const double expected[] = {again, after, paused};
  for (int i = 0; i < 40; i++) learned_pass(l, LEARNED_TARGET, 1, 128, 0, 2 * l->shown.target[0][0]);
  learned_look(l);
  for (int i = 0; i < DTL_COST_MISSES; i++) assert_float_equal(l->shown.cache_miss[i], expected[i], 1e-4 * expected[i]);
}

static void the_cost_of_a_miss_is_learned(void **state) {
  (void)state;
  lessons *l = begun(), *back = begun();
  assert_misses(l, COSTS_CACHE_MISS[0], COSTS_CACHE_MISS[1], COSTS_CACHE_MISS[2]);
  for (int i = 0; i < 20; i++) { /* every third one is disturbed; 0, infinity and more than 0.25 ms never count */
    learned_cache_miss(l, 0, 0.004), learned_cache_miss(l, 1, i % 3 ? 0.02 : 0.2),
        learned_cache_miss(l, 2 + 7 * (i % 2), 0.05);
    learned_cache_miss(l, 1, 0), learned_cache_miss(l, 1, NAN), learned_cache_miss(l, 1, INFINITY),
        learned_cache_miss(l, 1, 0.2501);
  }
  assert_misses(l, 0.004, 0.02, 0.05);
  char *json = learned_json(l, "k");
  assert_null(learned_parse(back, json, "k"));
  assert_misses(back, 0.004, 0.02, 0.05);
  free(json);
  for (int i = 0; i < LEARNED_KEPT; i++) learned_cache_miss(l, 0, 0.25);
  assert_misses(l, 0.25, 0.25, 0.25);
  free(l), free(back);
}

static void a_measured_table_teaches_its_misses(void **state) {
  (void)state;
  lessons *l = begun();
  dtl_costs *t = calloc(1, sizeof *t);
  *t = (dtl_costs){
      .batch = 1, .n_contexts = 1, .n_rows = 1, .context = {128}, .rows = {1}, .cache_miss = {0.0625, 0.125, 0.25}};
  t->target[0][0] = 6;
  learned_table(l, t, false, false);
  assert_misses(l, 0.0625, 0.125, 0.25);
  free(l), free(t);
}

/* The cost of cache misses after this many more target passes and then passes that take twice the time, which make new
 * costs. */
static const double *misses_after(course *c, int passes, double *ms) {
  const int *revision;
  for (int i = 0; i < passes; i++) learn_cache_miss(c);
  for (int i = 0; i < 40; i++) learn_pass(c, LEARNED_TARGET, 1, 128, 0, *ms);
  *ms *= 2;
  learn_look(c);
  return learn_costs(c, &revision)->cache_miss;
}

/* Returns whether the reads after both passes were timed. One that is interrupted by another program is not counted. */
static bool times_two_reads(void) {
  dt_pair *pair;
  ok(dt_pair_open_fake(&(dt_fake_options){.vocab = 7, .context = 400, .eos = -1}, &pair, &err));
  dtl_learned *learning = dtl_learned_open(pair, &(dtl_learning){0});
  course *c;
  ok(learn_course(learning, 1, &(dt_seq_options){.max_tokens = 1}, false, &c, &err));
  double ms = 1, first[DTL_COST_MISSES], second[DTL_COST_MISSES];
  assert_memory_equal(misses_after(c, 7, &ms), COSTS_CACHE_MISS, sizeof first);
  memcpy(first, misses_after(c, 1, &ms), sizeof first);
  memcpy(second, misses_after(c, 1, &ms), sizeof second);
  const bool both = first[0] != COSTS_CACHE_MISS[0] && first[2] != COSTS_CACHE_MISS[2] && second[1] != first[1];
  if (both) {
    assert_true(first[1] == COSTS_CACHE_MISS[1] || first[1] == first[0]); /* they never decrease */
    assert_true(second[0] == first[0] && second[2] >= second[1]);
    assert_memory_equal(misses_after(c, 6, &ms), second, sizeof second);
  }
  dtl_learned_close(learning);
  dt_pair_close(pair);
  return both;
}

static void a_run_times_misses_after_its_8th_target_pass_and_the_next_and_none_up_to_the_16th(void **state) {
  (void)state;
  int tries = 0;
  while (!times_two_reads()) assert_true(++tries < 200);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_line_is_read_once),
      cmocka_unit_test(costs_are_medians_and_none_falls),
      cmocka_unit_test(the_cost_of_a_miss_is_learned),
      cmocka_unit_test(a_measured_table_teaches_its_misses),
      cmocka_unit_test(a_run_times_misses_after_its_8th_target_pass_and_the_next_and_none_up_to_the_16th),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
