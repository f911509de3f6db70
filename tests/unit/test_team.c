/* The CPU backend's threads: phases end together, and threads that mostly wait are paused for a while. */
#include "cpu/team.h"
#include "unit.h"

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
    ok(cpu_team_open(threads, &team, &err));
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
    ok(cpu_team_open(threads, &team, &err));
    for (int i = 0; i < 100; i++) cpu_team_run(team, share_out, taken);
    cpu_team_close(team);
    for (int i = 0; i < MOST; i++) assert_int_equal(taken[i], 100);
  }
}

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
  ok(cpu_team_open(8, &team, &err));
  for (int calls = 0; ran_on > 1 && calls < 100; calls++) cpu_team_run(team, be_late, &ran_on);
  assert_int_equal(ran_on, 1);
  for (int wait = 0; ran_on < 8 && wait < 200; wait++) {
    sleep_ms(10);
    cpu_team_run(team, count, &ran_on);
  }
  assert_int_equal(ran_on, 8);
  cpu_team_close(team);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nobody_goes_on_before_all_are_there),
      cmocka_unit_test(a_share_is_somebodys_and_only_his),
      cmocka_unit_test(threads_that_only_wait_rest_for_a_while),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
