/* The shares of a team: learned speeds make unequal members finish together, and leave equal ones alone. */
#include "cpu/shares.h"
#include "unit.h"

#include <math.h>

enum { MOST = 128 };

static int share(const uint64_t *bound, int i, int count) {
  return shares_first(count, bound[i + 1]) - shares_first(count, bound[i]);
}

/* Lets members of these true speeds make passes over many items, and learns from each. */
static void learn(const float *real, int n, int passes, float *speed) {
  uint64_t bound[MOST + 1];
  float rate[MOST];
  for (int pass = 0; pass < passes; pass++) {
    shares_divide(speed, n, bound);
    for (int i = 0; i < n; i++) rate[i] = share(bound, i, 1000) ? real[i] : 0;
    shares_learn(speed, rate, n);
  }
}

static void equal_shares_differ_by_one_item_at_most(void **state) {
  (void)state;
  const int counts[] = {0, 1, 2, 3, 64, 100, 4751, 152064, INT32_MAX};
  for (int n = 1; n <= MOST; n++) {
    uint64_t bound[MOST + 1];
    shares_divide(NULL, n, bound);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
      for (int i = 0; i < n; i++) assert_in_range(share(bound, i, counts[c]) - counts[c] / n, 0, counts[c] % n != 0);
  }
}

static void the_fastest_member_takes_a_single_item(void **state) {
  (void)state;
  uint64_t bound[4];
  const float speed[] = {1, 0.5f, 0.25f};
  shares_divide(speed, 3, bound);
  assert_int_equal(share(bound, 0, 1), 1);
}

static void a_member_of_half_the_speed_gets_half_as_much(void **state) {
  (void)state;
  uint64_t bound[4];
  float speed[] = {1, 1, 1};
  learn((float[]){30, 30, 15}, 3, 40, speed);
  shares_divide(speed, 3, bound);
  assert_int_equal(share(bound, 0, 100), 40);
  assert_int_equal(share(bound, 1, 100), 40);
  assert_int_equal(share(bound, 2, 100), 20);
  learn((float[]){30, 30, 30}, 3, 40, speed); /* it is fast again */
  shares_divide(speed, 3, bound);
  for (int i = 0; i < 3; i++) assert_int_equal(share(bound, i, 300), 100);
}

/* Until then, waiting says nothing about other processes. */
static void learning_ends(void **state) {
  (void)state;
  float speed[] = {1, 1};
  int passes = 0;
  while (shares_learn(speed, (float[]){20, 10}, 2)) assert_true(++passes < 16);
  assert_in_range(passes, 4, 15);
  assert_false(shares_learn(speed, (float[]){0, 0}, 2));
}

static void small_differences_change_nothing(void **state) {
  (void)state;
  uint64_t bound[3];
  float speed[] = {1, 1};
  learn((float[]){10, 9}, 2, 100, speed);
  shares_divide(speed, 2, bound);
  assert_int_equal(share(bound, 0, 1000), 500);
}

/* Up to 15 % count as small. */
static void a_larger_difference_counts(void **state) {
  (void)state;
  uint64_t bound[3];
  shares_divide((float[]){1, 0.851f}, 2, bound);
  assert_int_equal(share(bound, 0, 1000), 500);
  shares_divide((float[]){1, 0.849f}, 2, bound);
  assert_int_equal(share(bound, 0, 1000), 541);
}

/* One pass in four is interrupted for much longer than it takes. */
static void interrupted_passes_change_little(void **state) {
  (void)state;
  uint64_t bound[3];
  float speed[] = {1, 1};
  for (int pass = 0; pass < 200; pass++) {
    shares_learn(speed, (float[]){10, pass % 4 ? 10 : 0.1f}, 2);
    shares_divide(speed, 2, bound);
    assert_int_equal(share(bound, 0, 1000), 500);
  }
}

static void a_member_without_work_gets_some_again(void **state) {
  (void)state;
  uint64_t bound[3];
  float speed[] = {1, 1};
  learn((float[]){10, 0.001f}, 2, 200, speed);
  assert_float_equal(speed[1], 1.0f / 16, 1e-6);
  shares_divide(speed, 2, bound);
  assert_int_equal(share(bound, 1, 10), 0);
  for (int pass = 0; pass < 200; pass++) shares_learn(speed, (float[]){10, 0}, 2);
  assert_float_equal(speed[1], 1, 1e-3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equal_shares_differ_by_one_item_at_most),
      cmocka_unit_test(the_fastest_member_takes_a_single_item),
      cmocka_unit_test(a_member_of_half_the_speed_gets_half_as_much),
      cmocka_unit_test(learning_ends),
      cmocka_unit_test(small_differences_change_nothing),
      cmocka_unit_test(a_larger_difference_counts),
      cmocka_unit_test(interrupted_passes_change_little),
      cmocka_unit_test(a_member_without_work_gets_some_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
