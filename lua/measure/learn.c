/* Learns the costs of passes from run to run: see learn.h. */
#include "measure/learn.h"

#include "measure/bench.h"
#include "measure/cache_miss.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Assumptions until passes have been measured. */
#define CPU_SPEED 2e7    /* bytes that a pass reads per ms */
#define DEVICE_SPEED 1e9 /* the same on a GPU */
#define CPU_ROW 0.06     /* cost of another row / cost of the first: low, since trying it shows the true cost */
#define CPU_MANY 0.25    /* the same beyond LEARNED_FEW rows: AVX2 takes 0.28, VNNI 0.12 to 0.19 */
#define DEVICE_ROW 0.003
#define LOOK_MS 250.0    /* time for the first measurement */
#define LONG_MS 60.0     /* it is left out if a pass may take this long */
#define LOOK_CONTEXT 512 /* context of its session, tokens */
#define LOOK_ROUNDS 8
#define READ_MS 6.0         /* a text is read if a pass is estimated to take less than this */
#define CACHED_MS 10.0      /* a longer pass hardly depends on what the caches contain */
#define MUCH 512            /* passes that justify writing the file before the end */
#define REVISIONS (1 << 20) /* more than any course has: courses of other numbers of sequences use other ranges */

struct course {
  course *next;
  int batch;
  bool sampled, coupled;
  ledger *ledger;           /* shared by all courses with this way of sampling */
  bool failed;              /* the latest run failed */
  bool seen[LEARNED_KINDS]; /* which kinds of passes the current run has made */
  long kept;                /* number of passes that the file has; -1: no file */
  dtl_usage since;          /* when the file was last written or read */
  costs_place place;
  lessons l;
  cache_miss_lines lines;
  long passes, misses_at; /* target passes of all runs; the number of them after which cache misses are timed next */
};

enum { GREEDY, SAMPLED, UNCOUPLED, WAYS }; /* ways of sampling */

static const char *const WAY[WAYS] = {"greedy", "sampled", "sampled without the noise"};

static int way_of(const course *c) { return !c->sampled ? GREEDY : c->coupled ? SAMPLED : UNCOUPLED; }

struct dtl_learned {
  dt_pair *pair;
  dtl_learning how;
  ledger *ledger[WAYS];   /* NULL: not used yet */
  course *courses, *last; /* last: the course of the latest run */
};

dtl_learned *dtl_learned_open(dt_pair *pair, const dtl_learning *how) {
  dtl_learned *learned = pair && how ? calloc(1, sizeof *learned) : NULL;
  if (learned) *learned = (dtl_learned){.pair = pair, .how = *how};
  return learned;
}

const dt_pair *learn_pair(const dtl_learned *learned) { return learned->pair; }

static void note(const dtl_learned *learned, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(const dtl_learned *learned, const char *format, ...) {
  char line[1024];
  va_list args;
  if (!learned->how.note) return;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  learned->how.note(learned->how.user, line);
}

/* ---- the first costs --------------------------------------------------------------------------------------------- */

static void estimate(const dtl_learned *learned, course *c) {
  dt_pair_info info;
  dt_pair_describe(learned->pair, &info);
  learned_guess guess = {.target_bytes = (double)info.target.weight_bytes,
                         .draft_bytes = (double)info.draft.weight_bytes,
                         .target_token = (double)info.target.token_bytes,
                         .draft_token = (double)info.draft.token_bytes,
                         .speed = info.on_device ? DEVICE_SPEED : CPU_SPEED,
                         .row = info.on_device ? DEVICE_ROW : CPU_ROW,
                         .many = info.on_device ? DEVICE_ROW : CPU_MANY,
                         .context = info.target.context,
                         .batch = c->batch,
                         .drafts = info.draft.path != NULL,
                         .block = info.draft.block};
  learned_begin(&c->l, &guess);
}

static bool interrupted(const dtl_learned *learned) { return learned->how.interrupt && *learned->how.interrupt; }

/* Runs iterations with trees of a few sizes in turn, until there are enough or the time is over. */
static void sample_sizes(const dtl_learned *learned, course *c, bench *b, int context, double end) {
  static const int sizes[] = {BENCH_PLAIN, 4, 16, 2, 8};
  for (int round = 0; round < LOOK_ROUNDS; round++)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      int n = sizes[i], rows = n == BENCH_PLAIN ? 1 : n;
      if (interrupted(learned) || dt_clock_ms() > end || bench_sample(b, n, NULL)) return;
      /* the first pass after one of another size takes longer than in a run, so its time is not used */
      if ((n == BENCH_PLAIN || b->target_ms < CACHED_MS) && bench_sample(b, n, NULL)) return;
      learned_pass(&c->l, LEARNED_TARGET, rows, context, b->experts, b->target_ms);
      if (n == BENCH_PLAIN || !b->drafts) continue;
      if (!b->block) learned_pass(&c->l, LEARNED_FIRST, 1, context, 0, b->first_ms);
      learned_pass(&c->l, LEARNED_DRAFT, rows, context, 0, b->draft_ms);
    }
}

/* Times how the draft processes a text, if the target probably processes it in a short time. */
static void sample_reading(const dtl_learned *learned, course *c, const bench *b, int most) {
  double ms;
  if (b->drafts && c->l.shown.target[0][0] < READ_MS && !interrupted(learned) && !bench_read(b, most, &ms, NULL))
    learned_read(&c->l, BENCH_READ, BENCH_READ * ms);
}

/* Measures a few passes, if they are short. A failure is not reported here, since the run will fail in the same way. */
static void look_first(const dtl_learned *learned, course *c) {
  dt_pair_info info;
  dt_pair_describe(learned->pair, &info);
  const dt_sampling sampled = {.temp = 1};
  int room = bench_context(&info, info.context < LOOK_CONTEXT ? info.context : LOOK_CONTEXT);
  bench b;
  if (c->l.shown.target[0][0] > LONG_MS || bench_open(&b, learned->pair, room, c->batch, NULL)) return;
  int longest = bench_longest(&b, room, 16), context = longest < COSTS_STEP ? longest : COSTS_STEP;
  double end = dt_clock_ms() + LOOK_MS;
  if (longest >= BENCH_READ) sample_reading(learned, c, &b, longest);
  if (context >= 1 && !bench_start(&b, context, c->sampled ? &sampled : NULL, NULL))
    sample_sizes(learned, c, &b, context, end);
  bench_close(&b);
}

/* Learns from a measured table as from passes. */
static void take_table(const dtl_learned *learned, course *c) {
  dt_pair_info info;
  dt_pair_describe(learned->pair, &info);
  costs_place place;
  dtl_costs *t = malloc(sizeof *t);
  if (t && !costs_find(learned->pair, info.context, c->batch, &place, NULL)) {
    const char *wrong = costs_load(&place, t);
    if (!wrong) learned_table(&c->l, t, c->sampled, c->sampled && c->coupled);
    if (wrong && *wrong && wrong != COSTS_STARVED)
      note(learned,
           "the table of costs %s is ignored: %s; costs are learned from runs instead; measure again with 'dtrun run "
           "costs'",
           place.path, wrong);
    costs_leave(&place);
  }
  free(t);
}

/* Reads the course's file. Fails if memory runs out, since the file must not be overwritten with less than it has. */
static dt_status read_file(const dtl_learned *learned, course *c, dt_error *err) {
  char *text;
  dt_status status = costs_read(&c->place, &text, NULL);
  const char *wrong = text ? learned_parse(&c->l, text, c->place.key) : NULL;
  if (wrong == COSTS_STARVED || status == DT_ENOMEM) {
    free(text);
    return dtl_fail(err, DT_ENOMEM, "out of memory: the learned costs in %s", c->place.path);
  }
  if (text && !wrong) c->kept = c->l.passes;
  if (wrong) note(learned, "the learned costs in %s are ignored and replaced: %s", c->place.path, wrong);
  free(text);
  return DT_OK;
}

static dt_status find_ledger(dtl_learned *learned, course *c, dt_error *err) {
  ledger **known = &learned->ledger[way_of(c)];
  ledger_faults faults = {0};
  dt_status status = *known ? DT_OK : ledger_open(learned->pair, WAY[way_of(c)], known, &faults, err);
  if (status) return status;
  if (faults.file)
    note(learned, "what was learned about this pair in %s is ignored and replaced: %s", ledger_path(*known),
         faults.file);
  if (faults.calibration) note(learned, "the draft's calibration.json is ignored: %s", faults.calibration);
  c->ledger = *known;
  return DT_OK;
}

static dt_status begin(dtl_learned *learned, course *c, dt_error *err) {
  dt_status status = find_ledger(learned, c, err);
  if (!status) status = costs_find_learned(learned->pair, WAY[way_of(c)], c->batch, &c->place, err);
  if (status) return status;
  c->kept = -1;
  estimate(learned, c);
  c->l.revision = (c->batch - 1) * REVISIONS;
  if ((status = read_file(learned, c, err))) return costs_leave(&c->place), status;
  if (c->kept < 0) take_table(learned, c);
  c->since = dtl_usage_now(false);
  return DT_OK;
}

dt_status learn_course(dtl_learned *learned, int batch, const dt_seq_options *options, bool first, course **out,
                       dt_error *err) {
  bool sampled = options->sampling.temp > 0, coupled = !options->uncoupled;
  course *c = learned->courses;
  while (c && !(c->batch == batch && c->sampled == sampled && (!sampled || c->coupled == coupled))) c = c->next;
  if (!c) {
    c = calloc(1, sizeof *c);
    if (!c) return dtl_fail_memory(err, "the costs of passes");
    *c = (course){.batch = batch, .sampled = sampled, .coupled = coupled, .misses_at = CACHE_MISS_PAUSE};
    cache_miss_begin(&c->lines);
    dt_status status = begin(learned, c, err);
    if (status) {
      free(c);
      return status;
    }
    c->next = learned->courses;
    learned->courses = c;
  }
  if (first && !c->l.passes) look_first(learned, c);
  learned_look(&c->l);
  memset(c->seen, 0, sizeof c->seen);
  *out = learned->last = c;
  return DT_OK;
}

/* ---- passes of runs ---------------------------------------------------------------------------------------------- */

void learn_pass(course *c, learned_kind kind, int rows, int context, int experts, double ms) {
  bool cold = !c->seen[kind]; /* a run's first pass finds empty caches */
  c->seen[kind] = true;
  if (!cold) learned_pass(&c->l, kind, (double)rows / c->batch, context, experts, ms);
}

void learn_read(course *c, int n, double ms) { learned_read(&c->l, n, ms); }

/* Reads are timed rarely, since each takes as long as a policy does: after CACHE_MISS_PAUSE passes and the pass after
 * that, then after twice that number, and so on. */
void learn_cache_miss(course *c) {
  long late = ++c->passes - c->misses_at;
  if (late < 0) return;
  learned_cache_miss(&c->l, late ? 1 : CACHE_MISS_PAUSE, cache_miss_ms(&c->lines));
  if (late)
    c->misses_at *= 2;
  else
    learned_cache_miss(&c->l, 0, cache_miss_ms(&c->lines));
}

bool learn_wants_plain(const course *c) { return learned_wants_plain(&c->l); }

void learn_look(course *c) { learned_look(&c->l); }

const dtl_costs *learn_costs(const course *c, const int **revision) {
  *revision = &c->l.revision;
  return &c->l.shown;
}

ledger_book *learn_book(const course *c, const char *digest) { return ledger_of(c->ledger, digest); }

double dtl_learned_plain(const dtl_learned *learned, int context) {
  const course *c = learned ? learned->last : NULL;
  bool known = c && c->l.seen_at[CLASS_PLAIN] > 0; /* even if learned_doubt.c has dropped its times since */
  if (!c) return 0;
  for (int k = 0; k < c->l.estimated.n_contexts; k++) known |= c->l.place[LEARNED_TARGET][k][0].n > 0;
  return known ? costs_pass(&c->l.shown, c->l.shown.target, 1, context) / c->batch : 0;
}

double dtl_learned_draft(const dtl_learned *learned, int context) {
  const course *c = learned ? learned->last : NULL;
  return c && c->l.shown.drafts ? costs_first(&c->l.shown, c->batch, context) / c->batch : 0;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

/* Writes the course. Costs from a busy machine are kept only if there is nothing better. */
static void keep(const dtl_learned *learned, course *c) {
  char why[DTL_WHY];
  dtl_usage now = dtl_usage_now(false);
  bool busy = dtl_disturbed(&c->since, &now, false, why, sizeof why);
  if (c->l.passes == c->kept || !c->l.passes || (busy && c->kept >= 0)) return;
  char *text = learned_json(&c->l, c->place.key);
  const char *lost = costs_write(&c->place, text);
  free(text);
  if (lost && !c->failed) note(learned, "the learned costs cannot be written to %s: %s", c->place.path, lost);
  c->kept = c->l.passes;
  c->since = now;
}

static void keep_ledger(const dtl_learned *learned, ledger *l, bool quiet) {
  const char *lost = l ? ledger_store(l) : NULL;
  if (lost && !quiet)
    note(learned, "what was learned about this pair cannot be written to %s: %s", ledger_path(l), lost);
}

void learn_keep(dtl_learned *learned, course *c, bool failed) {
  c->failed = failed;
  if (c->kept >= 0 && c->l.passes - c->kept < MUCH) return;
  keep(learned, c);
  keep_ledger(learned, c->ledger, failed);
}

void dtl_learned_close(dtl_learned *learned) {
  if (!learned) return;
  bool failed = learned->last && learned->last->failed;
  for (course *c = learned->courses, *next; c; c = next) {
    next = c->next;
    keep(learned, c);
    costs_leave(&c->place);
    free(c);
  }
  for (int i = 0; i < WAYS; i++) {
    keep_ledger(learned, learned->ledger[i], failed);
    ledger_close(learned->ledger[i]);
  }
  free(learned);
}
