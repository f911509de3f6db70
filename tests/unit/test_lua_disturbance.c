/* When a measurement counts as disturbed. */
#include "unit.h"

#include "host.h"

#include <unistd.h>

static char why[DTL_WHY];

/* Judges a measurement from 0 to these numbers. */
static bool disturbed(double wall, double cpu, long switches, double steal, bool computes) {
  dtl_usage before = {0}, after = {.wall_ms = wall, .cpu_ms = cpu, .switches = switches, .steal_ms = steal};
  return dtl_disturbed(&before, &after, computes, why, sizeof why);
}

static void less_than_nine_tenths_on_a_processor_disturb(void **state) {
  (void)state;
  assert_false(disturbed(1000, 900, 0, 0, true));
  assert_true(disturbed(1000, 899, 0, 0, true));
  assert_string_equal(why, "it had a processor for only 90 % of the time");
  assert_false(disturbed(1000, 10, 0, 0, false)); /* it waits for a device */
}

static void more_than_25_switches_a_second_disturb_but_never_two(void **state) {
  (void)state;
  assert_false(disturbed(1000, 1000, 25, 0, true));
  assert_true(disturbed(1000, 1000, 26, 0, true));
  assert_string_equal(why, "it was preempted 26 times in 1.00 s");
  assert_false(disturbed(1000, 2000, 50, 0, true)); /* two threads, each a second */
  assert_true(disturbed(1000, 2000, 51, 0, true));
  assert_false(disturbed(10, 10, 2, 0, true));
  assert_true(disturbed(10, 10, 3, 0, true));
}

static void more_than_two_hundredths_stolen_disturb(void **state) {
  (void)state;
  double n = (double)sysconf(_SC_NPROCESSORS_ONLN);
  assert_false(disturbed(2000, 2000, 0, 40 * n, true));
  assert_true(disturbed(2000, 2000, 0, 41 * n, true));
  assert_string_equal(why, "2 % of the processors' time was stolen");
  assert_false(disturbed(100, 100, 0, 25, true)); /* too short to tell */
}

static void what_a_process_uses_is_counted(void **state) {
  (void)state;
  dtl_usage before = dtl_usage_now(false), after = before;
  while (after.cpu_ms - before.cpu_ms < 20) after = dtl_usage_now(false);
  assert_true(after.wall_ms - before.wall_ms >= 19);
  assert_true(after.switches >= before.switches && after.steal_ms >= before.steal_ms);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(less_than_nine_tenths_on_a_processor_disturb),
      cmocka_unit_test(more_than_25_switches_a_second_disturb_but_never_two),
      cmocka_unit_test(more_than_two_hundredths_stolen_disturb),
      cmocka_unit_test(what_a_process_uses_is_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
