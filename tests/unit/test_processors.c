/* The default number of threads. What a control group's files say is read from a folder that the test creates. */
#include "system/processors.h"
#include "temp_files.h"
#include "unit.h"

#include <math.h>
#include <sched.h>
#include <sys/stat.h>

/* Writes a file of the fake machine, and creates the folders above it. */
static void put(const char *root, const char *name, const char *text) {
  char path[512];
  snprintf(path, sizeof path, "%s", root);
  for (const char *end = strchr(name, '/'); end; end = strchr(end + 1, '/')) {
    snprintf(path, sizeof path, "%s/%.*s", root, (int)(end - name), name);
    mkdir(path, 0700);
  }
  temp_write(root, name, text, strlen(text));
}

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

/* Checks the counts with this quota of processors. */
static void counts_are(const char *max, int usable, int cores) {
  char *root = temp_folder();
  put(root, "proc/self/cgroup", "0::/\n");
  put(root, "sys/fs/cgroup/cpu.max", max);
  assert_int_equal(processors_usable(root), usable);
  assert_int_equal(processors_cores(root), cores);
  temp_remove(root);
}

static void threads_are_those_of_the_mask_within_the_quota(void **state) {
  (void)state;
  cpu_set_t set;
  assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
  int n = CPU_COUNT(&set);
  counts_are("max 100000", n, n); /* cores without numbers count as different cores */
  counts_are("149000 100000", 1, 1);
  counts_are("10000 100000", 1, 1);
  counts_are("150000 100000", n < 2 ? n : 2, n < 2 ? n : 2);
}

static void processors_of_one_core_count_once(void **state) {
  (void)state;
  char *root = temp_folder(), name[128];
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%d/topology/core_id", cpu);
    put(root, name, "7\n");
    snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
    put(root, name, "0\n");
  }
  assert_int_equal(processors_cores(root), 1);
  temp_remove(root);
}

static void only_cores_that_keep_up_count(void **state) {
  (void)state;
#define WORTH(...) processors_worth((int[]){__VA_ARGS__}, (int)(sizeof(int[]){__VA_ARGS__} / sizeof(int)))
  assert_int_equal(WORTH(1024), 1);
  assert_int_equal(WORTH(1024, 1024, 1024, 1024), 4);
  assert_int_equal(WORTH(446, 446, 446, 446, 1024, 1024, 1024, 1024), 4); /* four small cores before four large ones */
  assert_int_equal(WORTH(1024, 870, 870, 870, 300, 300, 300, 300), 4);    /* one of the large ones is faster */
  assert_int_equal(WORTH(1024, 511), 1); /* half as fast: two do no more than one in the same time */
  assert_int_equal(WORTH(1024, 512), 2);
  assert_int_equal(WORTH(1024, 513), 2);
  cpu_set_t set;
  assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
  int first = 0, n = CPU_COUNT(&set);
  while (!CPU_ISSET(first, &set)) first++;
  char *root = temp_folder(), name[128];
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    snprintf(name, sizeof name, "sys/devices/system/cpu/cpu%d/cpu_capacity", cpu);
    put(root, name, cpu == first ? "1024\n" : "1\n");
  }
  assert_int_equal(processors_cores(root), n <= 1024 ? 1 : n);
  assert_int_equal(processors_usable(root), n);
  temp_remove(root);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_groups_there_is_no_quota),
      cmocka_unit_test(version_2_has_one_file),
      cmocka_unit_test(version_1_has_two),
      cmocka_unit_test(the_least_of_the_groups_above_holds),
      cmocka_unit_test(a_path_from_outside_a_container_means_its_root),
      cmocka_unit_test(threads_are_those_of_the_mask_within_the_quota),
      cmocka_unit_test(processors_of_one_core_count_once),
      cmocka_unit_test(only_cores_that_keep_up_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
