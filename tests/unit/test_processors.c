/* The default number of threads. What a control group's files say is read from a folder that the test creates. */
#include "fake_machine.h"
#include "system/processors.h"
#include "unit.h"

#include <math.h>

static double quota_with(const char *const *files) {
  char *root = temp_folder();
  for (; *files; files += 2) put(root, files[0], files[1]);
  double quota = processors_quota(root);
  temp_remove(root);
  return quota;
}
#define QUOTA(...) quota_with((const char *const[]){__VA_ARGS__, NULL})

static void without_groups_there_is_no_quota(void **state) {
  (void)state;
  assert_true(isinf(QUOTA("proc/stat", "")));
  assert_true(isinf(QUOTA("proc/self/cgroup", "0::/\n")));
  assert_true(isinf(QUOTA("proc/self/cgroup", "0::/a\n", "sys/fs/cgroup/a/cpu.max", "max 100000\n")));
  assert_true(isinf(QUOTA("proc/self/cgroup", "2:cpu:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n",
                          "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")));
}

static void version_2_has_one_file(void **state) {
  (void)state;
  assert_float_equal(QUOTA("proc/self/cgroup", "0::/a\n", "sys/fs/cgroup/a/cpu.max", "150000 100000\n"), 1.5, 0);
}

static void version_1_has_two(void **state) {
  (void)state;
  assert_float_equal(QUOTA("proc/self/cgroup", "5:cpuset:/\n4:cpuacct,cpu:/a/b\n0::/\n",
                           "sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "300000\n",
                           "sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n"),
                     3, 0);
}

static void the_least_of_the_groups_above_holds(void **state) {
  (void)state;
  assert_float_equal(QUOTA("proc/self/cgroup", "0::/a/b/c\n", "sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n",
                           "sys/fs/cgroup/a/b/cpu.max", "400000 100000\n", "sys/fs/cgroup/a/cpu.max",
                           "200000 100000\n"),
                     2, 0);
}

static void a_path_from_outside_a_container_means_its_root(void **state) {
  (void)state;
  assert_float_equal(QUOTA("proc/self/cgroup", "3:cpu:/docker/0123\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n",
                           "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
                     0.5, 0);
}

/* Checks the counts of a machine with three processors, two of them allowed, with this quota. */
static void counts_are(const char *max, int usable, int threads) {
  char *root = temp_folder();
  put(root, MASK("0-1"));
  put(root, ONLINE("0-2"));
  put(root, "proc/self/cgroup", "0::/\n");
  put(root, "sys/fs/cgroup/cpu.max", max);
  topology t;
  topology_read(root, &t);
  assert_int_equal(processors_usable(root), usable);
  assert_int_equal(processors_threads(root, &t), threads);
  temp_remove(root);
}

static void threads_are_those_of_the_mask_within_the_quota(void **state) {
  (void)state;
  counts_are("max 100000", 2, 2);
  counts_are("149000 100000", 1, 1);
  counts_are("10000 100000", 1, 1);
  counts_are("150000 100000", 2, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_groups_there_is_no_quota),
      cmocka_unit_test(version_2_has_one_file),
      cmocka_unit_test(version_1_has_two),
      cmocka_unit_test(the_least_of_the_groups_above_holds),
      cmocka_unit_test(a_path_from_outside_a_container_means_its_root),
      cmocka_unit_test(threads_are_those_of_the_mask_within_the_quota),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
