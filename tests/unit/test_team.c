/* The CPU backend's threads: phases end together, and threads that mostly wait are paused for a while. */
#include "cpu/team.h"
#include "unit.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { MOST = 64, PHASES = 20 };

typedef struct {
  int written[2][MOST];
  int wrong[MOST];
} relay;

/* In each phase a thread writes its own number and reads the numbers that all threads wrote in the phase before. */
static void pass_on(const cpu_member *me, void *context) {
  relay *r = context;
  for (int phase = 0; phase < PHASES; phase++) {
    r->written[phase % 2][me->thread] = phase;
    cpu_wait(me);
    for (int i = 0; i < me->threads; i++) r->wrong[me->thread] += r->written[phase % 2][i] != phase;
  }
}

static void nobody_goes_on_before_all_are_there(void **state) {
  (void)state;
  for (int threads = 1; threads <= MOST; threads = threads < 4 ? threads + 1 : 4 * threads) {
    cpu_team *team;
    relay r = {0};
    ok(cpu_team_open(threads, NULL, &team, &err));
    for (int i = 0; i < 50; i++) cpu_team_run(team, pass_on, &r);
    cpu_team_close(team);
    for (int i = 0; i < threads; i++) assert_int_equal(r.wrong[i], 0);
  }
}

static void share_out(const cpu_member *me, void *context) {
  int *taken = context, first, last;
  cpu_share(me, MOST, &first, &last);
  for (int i = first; i < last; i++) taken[i]++;
}

static void a_share_is_somebodys_and_only_his(void **state) {
  (void)state;
  for (int threads = 1; threads <= 5; threads++) {
    cpu_team *team;
    int taken[MOST] = {0};
    ok(cpu_team_open(threads, NULL, &team, &err));
    for (int i = 0; i < 100; i++) cpu_team_run(team, share_out, taken);
    cpu_team_close(team);
    for (int i = 0; i < MOST; i++) assert_int_equal(taken[i], 100);
  }
}

static atomic_int elsewhere;

static void sleep_ms(int ms) { nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL); }

/* The last thread is late, as a thread is whose processor is used by another process. */
static void be_late(const cpu_member *me, void *context) {
  if (me->thread == 0) *(int *)context = me->threads;
  if (me->threads > 1 && me->thread == me->threads - 1) sleep_ms(5);
  cpu_wait(me);
}

static void count(const cpu_member *me, void *context) {
  if (me->thread == 0) *(int *)context = me->threads;
}

static void threads_that_only_wait_rest_for_a_while(void **state) {
  (void)state;
  cpu_team *team;
  int ran_on = 8;
  ok(cpu_team_open(8, NULL, &team, &err));
  for (int calls = 0; ran_on > 1 && calls < 100; calls++) cpu_team_run(team, be_late, &ran_on);
  assert_int_equal(ran_on, 1);
  for (int wait = 0; ran_on < 8 && wait < 200; wait++) {
    sleep_ms(10);
    cpu_team_run(team, count, &ran_on);
  }
  assert_int_equal(ran_on, 8);
  cpu_team_close(team);
}

/* Works for 2 ms for each of its items, the last member for 6 ms. */
static void work_at_two_speeds(const cpu_member *me, void *context) {
  int first, last, *items = context;
  cpu_share(me, 12, &first, &last);
  if (me->threads == 2) items[me->thread] = last - first; /* otherwise one of them rests */
  int64_t began = cpu_work_begins(me);
  sleep_ms((last - first) * (me->thread == me->threads - 1 ? 6 : 2));
  cpu_work_ends(me, began, last - first);
  cpu_wait(me);
}

/* Runs a pass with both members. On a busy machine one of them may have to rest first. */
static void pass_of_both(cpu_team *team, int rows, int items[2]) {
  items[0] = items[1] = 0;
  for (int tries = 0; items[0] == 0 && tries < 500; tries++) {
    if (tries) sleep_ms(10);
    cpu_team_run_pass(team, rows, work_at_two_speeds, items);
  }
}

/* Passes over up to four rows have speeds of their own. */
static void a_slow_member_gets_less(void **state) {
  (void)state;
  cpu_team *team;
  int items[2];
  ok(cpu_team_open(2, NULL, &team, &err));
  pass_of_both(team, 1, items);
  assert_int_equal(items[0], 6);
  for (int pass = 0; pass < 60; pass++) pass_of_both(team, 1, items);
  assert_in_range(items[0], 7, 11); /* 9 if the machine is idle */
  assert_int_equal(items[1], 12 - items[0]);
  pass_of_both(team, 5, items);
  assert_int_equal(items[0], 6);
  pass_of_both(team, 4, items);
  assert_in_range(items[0], 7, 11);
  cpu_team_close(team);
}

static void count_on_its_group(const cpu_member *me, void *context) {
  const topology *t = context;
  int here = sched_getcpu();
  if (me->thread > 0 && !os_cpus_have(&t->group[1].set, here)) atomic_fetch_add(&elsewhere, 1);
}

/* Each of two processors is a group: the second member must stay on the second processor. */
static void members_stay_in_their_groups(void **state) {
  (void)state;
  topology t, two = {.groups = 2, .nodes = 2};
  topology_read("", &t);
  int found = 0;
  for (int cpu = 0; cpu < OS_CPUS && found < 2; cpu++) {
    if (topology_node_of(&t, cpu) < 0) continue;
    two.group[found] = (topology_group){1024 >> found, found, 1, 1, {{0}}};
    os_cpus_add(&two.group[found++].set, cpu);
  }
  if (found < 2) skip();
  cpu_team *team;
  ok(cpu_team_open(2, &two, &team, &err));
  for (int i = 0; i < 100; i++) cpu_team_run(team, count_on_its_group, &two);
  assert_int_equal(atomic_load(&elsewhere), 0);
  assert_true(os_cpus_have(cpu_team_nodes(team), 0) && os_cpus_have(cpu_team_nodes(team), 1));
  cpu_team_close(team);
  two.nodes = 1;
  ok(cpu_team_open(2, &two, &team, &err));
  assert_null(cpu_team_nodes(team));
  cpu_team_close(team);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nobody_goes_on_before_all_are_there),
      cmocka_unit_test(a_share_is_somebodys_and_only_his),
      cmocka_unit_test(threads_that_only_wait_rest_for_a_while),
      cmocka_unit_test(a_slow_member_gets_less),
      cmocka_unit_test(members_stay_in_their_groups),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
