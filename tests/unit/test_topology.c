/* The processors of machines that people have, read from folders that the test creates. */
#include "fake_machine.h"
#include "system/topology.h"
#include "unit.h"

typedef struct {
  char *root;
  topology t;
} machine;

static machine machine_of(const char *const *files) {
  machine m = {.root = temp_folder()};
  for (; *files; files += 2) put(m.root, files[0], files[1]);
  return m;
}
#define MACHINE(...) machine_of((const char *const[]){__VA_ARGS__, NULL})

/* Processors first..last, in cores of `each` neighbours. */
static void put_cores(const machine *m, int first, int last, int each) {
  for (int cpu = first; cpu <= last; cpu++) {
    char list[64];
    int core = first + (cpu - first) / each * each;
    snprintf(list, sizeof list, "%d-%d\n", core, core + each - 1);
    put_of(m->root, "sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu, list);
  }
}

static void read(machine *m) {
  topology_read(m->root, &m->t);
  temp_remove(m->root);
}

static void is_group(const machine *m, int i, int capacity, int node, int cpus, int cores, int first_cpu) {
  const topology_group *g = &m->t.group[i];
  assert_true(i < m->t.groups);
  assert_int_equal(g->capacity, capacity);
  assert_int_equal(g->node, node);
  assert_int_equal(g->cpus, cpus);
  assert_int_equal(g->cores, cores);
  for (int cpu = 0; cpu < first_cpu; cpu++) assert_false(os_cpus_have(&g->set, cpu));
  assert_true(os_cpus_have(&g->set, first_cpu));
}

/* Checks how many of `threads` threads each group gets. */
static void seats_are(const machine *m, int threads, const int *expected, int groups) {
  int group[64], count[TOPOLOGY_GROUPS] = {0}, seated = topology_seat(&m->t, threads, group);
  assert_int_equal(m->t.groups, groups);
  for (int i = 0; i < seated; i++) {
    count[group[i]]++;
    assert_true(i == 0 || group[i] >= group[i - 1]);
  }
  for (int i = 0; i < groups; i++) assert_int_equal(count[i], expected[i]);
}
#define SEATS(m, threads, ...)                                                                                         \
  seats_are(m, threads, (int[]){__VA_ARGS__}, (int)(sizeof(int[]){__VA_ARGS__} / sizeof(int)))

/* i7-12700: eight fast cores of two processors each, four slow ones. */
static void a_hybrid_processor_has_fast_and_slow_cores(void **state) {
  (void)state;
  machine m =
      MACHINE(MASK("0-19"), ONLINE("0-19"), "sys/devices/cpu_core/cpus", "0-15\n", "sys/devices/cpu_atom/cpus",
              "16-19\n", "sys/devices/system/node/online", "0\n", "sys/devices/system/node/node0/cpulist", "0-19\n");
  put_cores(&m, 0, 15, 2), put_cores(&m, 16, 19, 1);
  read(&m);
  is_group(&m, 0, 1024, 0, 16, 8, 0);
  is_group(&m, 1, 512, 0, 4, 4, 16);
  assert_int_equal(topology_cpus(&m.t), 20);
  assert_int_equal(topology_threads(&m.t), 8);
  SEATS(&m, 1, 1, 0);
  SEATS(&m, 8, 8, 0);
  SEATS(&m, 10, 8, 2);
  SEATS(&m, 12, 8, 4);
  SEATS(&m, 20, 16, 4);
  SEATS(&m, 30, 16, 4); /* the others may run anywhere */
}

/* N100: Linux calls all of its cores slow ones. */
static void slow_cores_alone_are_equal(void **state) {
  (void)state;
  machine m = MACHINE(MASK("0-3"), ONLINE("0-3"), "sys/devices/cpu_atom/cpus", "0-3\n");
  put_cores(&m, 0, 3, 1);
  read(&m);
  is_group(&m, 0, 1024, 0, 4, 4, 0);
  assert_int_equal(topology_threads(&m.t), 4);
  SEATS(&m, 4, 4);
}

/* ARM with cores of three speeds, the slowest first; those of a quarter of the speed are left out. */
static void capacities_tell_the_speeds_on_arm(void **state) {
  (void)state;
  machine m = MACHINE(MASK("0-7"), ONLINE("0-7"));
  for (int cpu = 0; cpu < 8; cpu++)
    put_of(m.root, "sys/devices/system/cpu/cpu%d/cpu_capacity", cpu, cpu < 4 ? "250\n" : cpu < 7 ? "870\n" : "1024\n");
  put_cores(&m, 0, 7, 1);
  read(&m);
  is_group(&m, 0, 1024, 0, 1, 1, 7);
  is_group(&m, 1, 870, 0, 3, 3, 4);
  is_group(&m, 2, 250, 0, 4, 4, 0);
  assert_int_equal(topology_threads(&m.t), 4);
  SEATS(&m, 4, 1, 3, 0);
  SEATS(&m, 8, 1, 3, 4);
}

/* By default a core gets a thread if it is at least two thirds as fast as the fastest. */
static void much_slower_cores_get_no_thread_by_default(void **state) {
  (void)state;
  static const struct {
    const char *slow;
    int threads;
  } cases[] = {{"683\n", 4}, {"682\n", 2}};
  for (int i = 0; i < 2; i++) {
    machine m = MACHINE(MASK("0-3"), ONLINE("0-3"));
    for (int cpu = 0; cpu < 4; cpu++)
      put_of(m.root, "sys/devices/system/cpu/cpu%d/cpu_capacity", cpu, cpu < 2 ? "1024\n" : cases[i].slow);
    put_cores(&m, 0, 3, 1);
    read(&m);
    assert_int_equal(topology_threads(&m.t), cases[i].threads);
    SEATS(&m, 4, 2, 2);
  }
}

/* Two sockets with 32 cores of two processors each, numbered as Xeons are: the second processors come last. */
static machine two_sockets(const char *mask) {
  machine m =
      MACHINE(ONLINE("0-127"), "sys/devices/system/node/online", "0-1\n", "sys/devices/system/node/node0/cpulist",
              "0-31,64-95\n", "sys/devices/system/node/node1/cpulist", "32-63,96-127\n");
  put(m.root, "proc/thread-self/status", mask);
  for (int cpu = 0; cpu < 128; cpu++) {
    char list[32];
    snprintf(list, sizeof list, "%d,%d\n", cpu % 64, cpu % 64 + 64);
    put_of(m.root, "sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu, list);
  }
  read(&m);
  return m;
}

static void threads_are_distributed_over_two_sockets(void **state) {
  (void)state;
  machine m = two_sockets("Cpus_allowed_list:\t0-127\n");
  is_group(&m, 0, 1024, 0, 64, 32, 0);
  is_group(&m, 1, 1024, 1, 64, 32, 32);
  assert_int_equal(m.t.nodes, 2);
  assert_int_equal(topology_threads(&m.t), 64);
  SEATS(&m, 64, 32, 32);
  SEATS(&m, 7, 3, 4);
  assert_int_equal(topology_node_of(&m.t, 31), 0);
  assert_int_equal(topology_node_of(&m.t, 96), 1);
  assert_int_equal(topology_node_of(&m.t, 500), -1);
  topology_keep_node(&m.t, 5);
  assert_int_equal(m.t.groups, 2);
  topology_keep_node(&m.t, 1);
  SEATS(&m, 32, 32);
  is_group(&m, 0, 1024, 1, 64, 32, 32);
  assert_int_equal(topology_threads(&m.t), 32);
  assert_int_equal(m.t.nodes, 2); /* memory must still be kept on one of them */
}

static void a_mask_leaves_processors_out(void **state) {
  (void)state;
  machine m = two_sockets("Cpus_allowed_list:\t3,62-66\n"); /* 62 and 63 of node 1; 64, 65, 66 and 3 of node 0 */
  is_group(&m, 0, 1024, 0, 4, 4, 3);
  is_group(&m, 1, 1024, 1, 2, 2, 62);
  m = two_sockets("Cpus_allowed_list:\t2,66\n");
  is_group(&m, 0, 1024, 0, 2, 1, 2);
  assert_int_equal(m.t.nodes, 1);
}

/* Containers and virtual machines may allow processors that do not exist. */
static void absent_processors_do_not_count(void **state) {
  (void)state;
  machine m = MACHINE(MASK("0-127"), ONLINE("0-1"));
  read(&m);
  is_group(&m, 0, 1024, 0, 2, 2, 0);
}

static void missing_files_mean_equal_cores(void **state) {
  (void)state;
  machine m = MACHINE(MASK("1,4-5"));
  read(&m);
  is_group(&m, 0, 1024, 0, 3, 3, 1);
  m = MACHINE("proc/stat", "");
  read(&m);
  assert_int_equal(m.t.groups, 1);
  assert_true(topology_cpus(&m.t) >= 1);
  m = MACHINE(MASK(""), ONLINE("x"), "sys/devices/system/node/online", "0-\n", "sys/devices/cpu_core/cpus", "-1\n");
  read(&m);
  assert_int_equal(m.t.groups, 1);
  m = MACHINE(MASK("1000000000000000000000-2"), ONLINE("0-99999999999"));
  read(&m);
  assert_int_equal(m.t.groups, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_hybrid_processor_has_fast_and_slow_cores),
      cmocka_unit_test(slow_cores_alone_are_equal),
      cmocka_unit_test(capacities_tell_the_speeds_on_arm),
      cmocka_unit_test(much_slower_cores_get_no_thread_by_default),
      cmocka_unit_test(threads_are_distributed_over_two_sockets),
      cmocka_unit_test(a_mask_leaves_processors_out),
      cmocka_unit_test(absent_processors_do_not_count),
      cmocka_unit_test(missing_files_mean_equal_cores),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
