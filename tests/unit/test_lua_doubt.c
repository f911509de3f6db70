/* What happens to times that were learned from disturbed passes and prompts. */
#include "unit.h"

#include "measure/learned.h"

#include <math.h>
#include <stdlib.h>

/* Starts with an estimate of 4 ms for a pass of the target, 1 ms for a pass of the draft, and 6 % of these for each
 * further row. */
static lessons *begun(void) {
  lessons *l = malloc(sizeof *l);
  learned_begin(l, &(learned_guess){.target_bytes = 4e6,
                                    .draft_bytes = 1e6,
                                    .target_token = 10,
                                    .draft_token = 1,
                                    .speed = 1e6,
                                    .row = 0.06,
                                    .many = 0.06,
                                    .context = 4096,
                                    .batch = 1,
                                    .drafts = true});
  return l;
}

static double shown(const lessons *l, learned_kind kind, double rows, int context) {
  return costs_pass(&l->shown, kind == LEARNED_TARGET ? l->shown.target : l->shown.draft, rows, context);
}

static double apart(double a, double b) { return fabs(a / b - 1); }

/* Such a file is left by a first run on a busy machine. When nothing else runs, a target's pass over one row takes 9.6
 * ms. */
static void a_file_of_a_busy_machine_is_doubted_at_once_and_mended_by_the_first_passes(void **state) {
  (void)state;
  static const char file[] =
      "{\"schema\":\"dtrun.learned/"
      "2\",\"key\":\"k\",\"target\":[[1,128,63.9,16],[4,128,136.1,1]],\"draft\":[[4,128,30.8,1]],"
      "\"first\":[[1,128,1.89,1]],\"cache_miss\":[[0.004,8],[40,1],[0.07,3]]}";
  lessons *l = malloc(sizeof *l);
  learned_begin(l, &(learned_guess){.target_bytes = 9.8e7,
                                    .draft_bytes = 1.2e7,
                                    .target_token = 1e4,
                                    .draft_token = 1e3,
                                    .speed = 2e7,
                                    .row = 0.06,
                                    .many = 0.06,
                                    .context = 2048,
                                    .batch = 1,
                                    .drafts = true});
  assert_null(learned_parse(l, file, "k"));
  learned_look(l);
  double plain = shown(l, LEARNED_TARGET, 1, 128);
  assert_true(plain > 5 && plain < 11);
  assert_true(shown(l, LEARNED_DRAFT, 4, 128) < plain / 2);
  assert_true(l->shown.cache_miss[2] < 0.1);
  for (int i = 0; i < 2; i++) learned_pass(l, LEARNED_TARGET, 1, 128, 0, 9.6);
  learned_look(l);
  assert_true(apart(shown(l, LEARNED_TARGET, 1, 128), 9.6) < 0.02);
  assert_true(shown(l, LEARNED_TARGET, 4, 128) < 1.5 * 9.6); /* 136 ms is more than four passes take */
  assert_true(shown(l, LEARNED_DRAFT, 4, 128) < 0.5 * 9.6);
  free(l);
}

/* A draft that stays expensive is believed after a few passes, doubted after many iterations without one, and believed
 * again at once. */
static void an_expensive_draft_is_tried_again_after_a_while(void **state) {
  (void)state;
  lessons *l = begun();
  for (int i = 0; i < 40; i++) learned_pass(l, LEARNED_TARGET, 1, 128, 0, 4);
  learned_pass(l, LEARNED_DRAFT, 1, 128, 0, 20);
  learned_look(l);
  assert_true(shown(l, LEARNED_DRAFT, 1, 128) < 2.1); /* twice what its size lets expect */
  for (int i = 0; i < 4; i++) learned_pass(l, LEARNED_DRAFT, 1, 128, 0, 20);
  learned_look(l);
  assert_true(apart(shown(l, LEARNED_DRAFT, 1, 128), 20) < 0.02);
  for (int i = 0; i < 60; i++) learned_pass(l, LEARNED_TARGET, 1, 128, 0, 4);
  learned_look(l);
  assert_true(apart(shown(l, LEARNED_DRAFT, 1, 128), 20) < 0.02);
  for (int i = 0; i < 200; i++) learned_pass(l, LEARNED_TARGET, 1, 128, 0, 4);
  learned_look(l);
  assert_true(shown(l, LEARNED_DRAFT, 1, 128) < 1.5);
  learned_pass(l, LEARNED_DRAFT, 1, 128, 0, 20);
  for (int i = 0; i < 50; i++) learned_pass(l, LEARNED_TARGET, 1, 128, 0, 4);
  learned_look(l);
  assert_true(apart(shown(l, LEARNED_DRAFT, 1, 128), 20) < 0.02);
  free(l);
}

static void a_plain_iteration_is_due_after_many_trees(void **state) {
  (void)state;
  lessons *l = begun();
  learned_pass(l, LEARNED_TARGET, 1, 128, 0, 5);
  for (int i = 0; i < 64; i++) learned_pass(l, LEARNED_TARGET, 5, 128, 0, 6);
  assert_false(learned_wants_plain(l));
  learned_pass(l, LEARNED_TARGET, 5, 128, 0, 6);
  assert_true(learned_wants_plain(l));
  learned_pass(l, LEARNED_TARGET, 1, 128, 0, 5);
  assert_false(learned_wants_plain(l));
  free(l);
}

/* A pass over one row cannot take longer than a pass over five rows, and a pass over five rows not longer than five
 * passes. */
static void passes_of_one_size_show_that_others_were_disturbed(void **state) {
  (void)state;
  lessons *l = begun();
  for (int i = 0; i < 8; i++) learned_pass(l, LEARNED_TARGET, 1, 128, 0, 40);
  learned_pass(l, LEARNED_TARGET, 5, 128, 0, 8);
  learned_look(l);
  assert_true(shown(l, LEARNED_TARGET, 1, 128) < 8);
  learned_pass(l, LEARNED_TARGET, 1, 128, 0, 5);
  for (int i = 0; i < 8; i++) learned_pass(l, LEARNED_TARGET, 10, 128, 0, 80);
  learned_pass(l, LEARNED_TARGET, 1, 128, 0, 5);
  learned_look(l);
  assert_true(shown(l, LEARNED_TARGET, 10, 128) < 50);
  free(l);
}

static void prompts_that_a_draft_reads_teach(void **state) {
  (void)state;
  lessons *l = begun();
  lessons *shortest = begun();
  learned_read(shortest, 32, 16);
  assert_true(learned_look(shortest) && apart(shortest->shown.read, 0.5) < 1e-6);
  free(shortest);
  learned_read(l, 31, 1e3); /* too short */
  assert_false(learned_look(l));
  assert_true(l->shown.read == 0);
  for (int i = 0; i < 9; i++) learned_read(l, 100, i % 3 ? 50 : 400); /* a third is disturbed */
  assert_true(learned_look(l));
  assert_true(apart(l->shown.read, 0.5) < 1e-6);
  assert_true(costs_read_text(&l->shown, 1000) > 499 && costs_read_text(&l->shown, 1000) < 501);
  learned_read(l, 100, 51);
  assert_false(learned_look(l)); /* nothing of importance has changed */
  char *text = learned_json(l, "k");
  assert_non_null(strstr(text, "\"read\":[["));
  lessons *back = begun();
  assert_null(learned_parse(back, text, "k"));
  learned_look(back);
  assert_true(apart(back->shown.read, 0.5) < 0.05);
  free(text), free(back), free(l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_file_of_a_busy_machine_is_doubted_at_once_and_mended_by_the_first_passes),
      cmocka_unit_test(an_expensive_draft_is_tried_again_after_a_while),
      cmocka_unit_test(a_plain_iteration_is_due_after_many_trees),
      cmocka_unit_test(passes_of_one_size_show_that_others_were_disturbed),
      cmocka_unit_test(prompts_that_a_draft_reads_teach),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
