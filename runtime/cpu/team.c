/* The threads of a backend: see team.h. Each worker sleeps on a word of its own, so that a call wakes only the workers
 * that it needs. A barrier is one counter, and one word on which all members wait.
 *
 * Memory may be ordered weakly (ARM). What a member wrote before a barrier is visible to the others after it: members
 * count their arrival with acquire and release in one chain, the last of them releases the word, and the others acquire
 * it. Whoever sees the new word also sees that the counter is 0 again. A worker acquires its turn, and with it
 * everything that the caller wrote before: `body`, and also the phase, which the caller itself had seen. A relaxed load
 * of the phase therefore never returns an older one. The caller reads what workers wrote (`waited`) after the last
 * barrier. */
#include "team.h"

#include "system/os.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MICROSECOND = 1000, MILLISECOND = 1000 * MICROSECOND };
enum { SPIN = 50 * MICROSECOND, LOOKS = 64 /* LOOKS: tests of the awaited word between two readings of the clock */ };
enum { STACK = 1 << 20 };

/* A number, and how many threads sleep until it changes. */
typedef struct {
  _Alignas(64) atomic_int value;
  atomic_int asleep; /* threads that stopped spinning */
} word;

typedef struct {
  word turn;            /* changes when the worker has something to do */
  atomic_int processor; /* the processor on which it began its last turn; -1: unknown */
  cpu_team *team;
  pthread_t id;
  int index;
  os_cpus allowed; /* processors that it may use; empty: unknown */
} worker;

/* What a member measured in this call. */
typedef struct {
  _Alignas(64) int64_t waited; /* ns */
  int64_t busy;                /* ns, in which it did `work` */
  double work, rates;          /* rates: of the phases, each times its work */
} tally;

/* How many threads run a function. If other processes use our processors, threads mostly wait for each other, and fewer
 * threads are faster. Half of the threads then pause. The pause is doubled if the remaining threads soon wait again. */
typedef struct {
  int threads;
  int64_t ran, waited; /* ns that the last calls took; ns of them that the member that waited longest spent waiting */
  int64_t until, pause;
} crew;

enum {
  LEAST = 2 * MILLISECOND, /* ns that calls must have taken before they are judged */
  MOST = 8 * MILLISECOND,  /* ns after which earlier calls count half */
  SHORTEST_PAUSE = 40 * MILLISECOND,
  LONGEST_PAUSE = 1280 * MILLISECOND
};

enum {
  FEW_ROWS = 4,                 /* passes over at most this number of rows are memory-bound */
  LEAST_BUSY = 50 * MICROSECOND /* shorter passes say nothing about speeds */
};

struct cpu_team {
  _Alignas(64) atomic_int arrived;
  atomic_int processor; /* the caller's processor */
  word phase;
  void (*body)(const cpu_member *, void *); /* NULL: workers must end */
  void *context;
  crew crew;
  int threads;
  os_cpus nodes;     /* NUMA nodes on which members run */
  bool placed;       /* whether memory is placed on these nodes */
  float *few, *many; /* [threads] speeds in passes over few rows, and over many: see shares.h */
  float *rate;       /* [threads] */
  uint64_t *bound;   /* [threads + 1] the shares in this call */
  tally *tally;      /* [threads] */
  worker *workers;   /* [threads - 1] */
};

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 * MILLISECOND + t.tv_nsec;
}

static bool is_still(word *w, int value) { return atomic_load_explicit(&w->value, memory_order_acquire) == value; }

static bool changes_soon(word *w, int value) {
  for (int i = 0; i < LOOKS; i++) {
    if (!is_still(w, value)) return true;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* pauses about as long; "yield" does nothing on most of these processors */
#endif
  }
  return false;
}

/* Waits until the word changes. Returns for how many nanoseconds if it slept, otherwise 0. */
static int64_t wait_while(word *w, int value) {
  if (changes_soon(w, value)) return 0;
  int64_t start = now();
  while (now() - start < SPIN)
    if (changes_soon(w, value)) return 0;
  atomic_fetch_add(&w->asleep, 1);
  while (atomic_load(&w->value) == value) /* sequentially consistent: see `change` */
    os_wait(&w->value, value);
  atomic_fetch_sub(&w->asleep, 1);
  return now() - start;
}

static void change(word *w, int value) {
  atomic_store(&w->value, value); /* seq_cst like the sleeper's: we see it asleep or it sees the value */
  if (atomic_load(&w->asleep)) os_wake(&w->value);
}

static int phase_of(cpu_team *t) { return atomic_load_explicit(&t->phase.value, memory_order_relaxed); }

/* Counts a member that reached the barrier. Returns false if other members have not arrived yet. */
static bool arrive(const cpu_member *member, int phase) {
  cpu_team *t = member->team;
  if (atomic_fetch_add_explicit(&t->arrived, 1, memory_order_acq_rel) + 1 < member->threads) return false;
  atomic_store_explicit(&t->arrived, 0, memory_order_relaxed);
  change(&t->phase, phase + 1);
  return true;
}

/* Waits at a barrier. Returns the time as wait_while does. */
static int64_t wait_for_all(const cpu_member *member) {
  if (member->threads == 1) return 0;
  cpu_team *t = member->team;
  int phase = phase_of(t);
  return arrive(member, phase) ? 0 : wait_while(&t->phase, phase);
}

void cpu_wait(const cpu_member *member) {
  int64_t waited = wait_for_all(member);
  if (waited) member->team->tally[member->thread].waited += waited;
}

void cpu_wait_for_ranks(const cpu_member *member) { wait_for_all(member); }

int64_t cpu_work_begins(const cpu_member *member) { return member->threads > 1 ? now() : 0; }

void cpu_work_ends(const cpu_member *member, int64_t began, double work) {
  if (member->threads == 1) return;
  tally *own = &member->team->tally[member->thread];
  const int64_t took = now() - began;
  own->busy += took;
  if (took > 0) own->work += work, own->rates += work * work / (double)took;
}

/* Moves a worker away from a processor that another member uses. The system may wake a worker on the processor of the
 * thread that wakes it, even if another processor is idle, and let both alternate there for many milliseconds. A worker
 * that finds itself in this situation therefore excludes the processors of the members before it from its own affinity
 * mask. */
static void move_apart(worker *me) {
  cpu_team *t = me->team;
  int here = os_cpu();
  os_cpus others = me->allowed;
  bool shared = false;
  for (int i = 0; i < me->index; i++) {
    int taken = atomic_load_explicit(i ? &t->workers[i - 1].processor : &t->processor, memory_order_relaxed);
    shared |= taken == here;
    if (taken >= 0) os_cpus_drop(&others, taken);
  }
  if (shared && os_cpus_count(&others) > 0 && os_restrict(&others)) here = os_cpu();
  atomic_store_explicit(&me->processor, here, memory_order_relaxed);
}

static cpu_member member_of(cpu_team *t, int thread) {
  return (cpu_member){t, thread, t->crew.threads, t->bound[thread], t->bound[thread + 1]};
}

static void *work(void *context) {
  worker *me = context;
  cpu_team *t = me->team;
  if (os_cpus_count(&me->allowed) > 0) os_restrict(&me->allowed);
  for (int turn = 0;; turn++) {
    wait_while(&me->turn, turn);
    if (!t->body) return NULL;
    cpu_member member = member_of(t, me->index);
    move_apart(me);
    t->body(&member, t->context);
    arrive(&member, phase_of(t)); /* does not wait: the caller waits for all members, a worker for its turn */
  }
}

static void call(cpu_team *t, int workers) {
  for (int i = 0; i < workers; i++) {
    word *turn = &t->workers[i].turn;
    change(turn, atomic_load_explicit(&turn->value, memory_order_relaxed) + 1);
  }
}

/* Adjusts the number of threads after a call that took `ran` nanoseconds and ended at the time `end`. While the shares
 * are being learned, waiting does not mean that other processes use our processors. */
static void judge(cpu_team *t, bool learning, int64_t ran, int64_t end) {
  crew *c = &t->crew;
  int64_t most = 0;
  for (int i = 0; i < c->threads; i++) {
    most = t->tally[i].waited > most ? t->tally[i].waited : most;
    t->tally[i].waited = 0;
  }
  if (learning) return;
  c->ran += ran, c->waited += most;
  if (c->ran >= LEAST && c->waited > c->ran / 3) {
    if (end - c->until > SHORTEST_PAUSE)
      c->pause = SHORTEST_PAUSE;
    else if (c->pause < LONGEST_PAUSE)
      c->pause *= 2;
    c->threads = (c->threads + 1) / 2;
    c->until = end + c->pause;
    c->ran = c->waited = 0;
  } else if (c->ran > MOST) {
    c->ran /= 2, c->waited /= 2;
  }
}

/* Learns the speeds of the members that made a pass. A member's rate is the mean of its phases' rates, not all of its
 * work by all of its time: another process that interrupts it makes few phases much longer, and a slow core makes all
 * of them slower. Returns whether the shares do not fit the members yet. */
static bool learn(cpu_team *t, float *speed) {
  int64_t longest = 0;
  for (int i = 0; i < t->crew.threads; i++) {
    tally *own = &t->tally[i];
    longest = own->busy > longest ? own->busy : longest;
    t->rate[i] = own->work > 0 ? (float)(own->rates / own->work) : 0;
    own->busy = 0, own->work = own->rates = 0;
  }
  return longest >= LEAST_BUSY && shares_learn(speed, t->rate, t->crew.threads);
}

/* speed: the members' speeds, which this call corrects; NULL: it is no pass, and shares are equal. */
static void run(cpu_team *t, float *speed, void (*body)(const cpu_member *, void *), void *context) {
  crew *c = &t->crew;
  int64_t start = t->threads > 1 ? now() : 0;
  if (c->threads < t->threads && start >= c->until)
    c->threads = 2 * c->threads < t->threads ? 2 * c->threads : t->threads;
  if (c->threads == 1) {
    body(&(cpu_member){t, 0, 1, 0, SHARES_WHOLE}, context);
    return;
  }
  t->body = body;
  t->context = context;
  shares_divide(speed, c->threads, t->bound);
  atomic_store_explicit(&t->processor, os_cpu(), memory_order_relaxed);
  call(t, c->threads - 1);
  cpu_member member = member_of(t, 0);
  body(&member, context);
  int phase = phase_of(t);
  if (!arrive(&member, phase)) wait_while(&t->phase, phase);
  int64_t end = now();
  const bool learning = speed && learn(t, speed);
  judge(t, learning, end - start, end);
}

void cpu_team_run(cpu_team *t, void (*body)(const cpu_member *, void *), void *context) { run(t, NULL, body, context); }

void cpu_team_run_pass(cpu_team *t, int rows, void (*body)(const cpu_member *, void *), void *context) {
  run(t, rows <= FEW_ROWS ? t->few : t->many, body, context);
}

/* Starts the workers. They block all signals, so that the program's own threads handle these. */
static int start_workers(cpu_team *t) {
  sigset_t all, before;
  pthread_attr_t attributes;
  int started = 0;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK);
  for (; started < t->threads - 1; started++) {
    worker *w = &t->workers[started];
    w->team = t, w->index = started + 1;
    if (pthread_create(&w->id, &attributes, work, w)) break;
  }
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return started;
}

static void end_workers(cpu_team *t, int workers) {
  t->body = NULL;
  call(t, workers);
  for (int i = 0; i < workers; i++) pthread_join(t->workers[i].id, NULL);
}

static void *take(size_t count, size_t size) {
  void *p = aligned_alloc(64, (count * size + 63) & ~(size_t)63);
  if (p) memset(p, 0, count * size);
  return p;
}

static void free_team(cpu_team *t) {
  free(t->workers);
  free(t->tally);
  free(t->bound);
  free(t->rate);
  free(t->few);
  free(t->many);
  free(t);
}

/* Distributes the members over the groups, and begins with the speeds of these. The caller's thread stays where it is:
 * it belongs to the program. */
static void place(cpu_team *t, const topology *p, int *group) {
  int seated = topology_seat(p, t->threads, group);
  t->placed = p->nodes > 1;
  for (int i = 0; i < seated; i++) {
    const topology_group *g = &p->group[group[i]];
    os_cpus_add(&t->nodes, g->node);
    if (i > 0 && (p->groups > 1 || p->nodes > 1)) t->workers[i - 1].allowed = g->set;
    t->few[i] = t->many[i] = (float)g->capacity / (float)p->group[0].capacity;
  }
}

/* All members may run wherever the caller may, and count as equally fast. */
static void place_anywhere(cpu_team *t) {
  os_cpus allowed;
  os_allowed(&allowed);
  for (int i = 0; i < t->threads - 1; i++) t->workers[i].allowed = allowed;
  for (int i = 0; i < t->threads; i++) t->few[i] = t->many[i] = 1;
}

dt_status cpu_team_open(int threads, const topology *processors, cpu_team **out, dt_error *err) {
  size_t n = (size_t)threads;
  cpu_team *t = take(1, sizeof *t);
  int *group = calloc(n, sizeof *group);
  if (t) {
    *t = (cpu_team){.threads = threads, .crew = {.threads = threads, .pause = SHORTEST_PAUSE}};
    t->workers = take(n, sizeof *t->workers);
    t->tally = take(n, sizeof *t->tally);
    t->bound = calloc(n + 1, sizeof *t->bound);
    t->rate = calloc(n, sizeof *t->rate);
    t->few = calloc(n, sizeof *t->few);
    t->many = calloc(n, sizeof *t->many);
  }
  if (!t || !group || !t->workers || !t->tally || !t->bound || !t->rate || !t->few || !t->many) {
    if (t) free_team(t);
    free(group);
    return dt_fail_memory(err, "a team", n * sizeof *t->workers);
  }
  place_anywhere(t);
  if (processors) place(t, processors, group);
  free(group);
  int started = start_workers(t);
  if (started < threads - 1) {
    end_workers(t, started);
    free_team(t);
    return dt_fail(err, DT_EDEVICE, "threads: cannot start %d threads, the system allows only %d more; use fewer",
                   threads, started);
  }
  *out = t;
  return DT_OK;
}

const os_cpus *cpu_team_nodes(const cpu_team *t) { return t->placed ? &t->nodes : NULL; }

void cpu_team_close(cpu_team *t) {
  if (!t) return;
  end_workers(t, t->threads - 1);
  free_team(t);
}
