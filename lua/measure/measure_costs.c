/* Measures the costs of a pair's passes on this machine: see dtl_measure_costs in host.h.
 *
 * Each sample is an iteration like those of policies, for all sequences that run at once: for each draft a step over
 * the roots and a step over n nodes, and then a verify pass over n rows; or, for plain decoding, a verify pass over one
 * row. The sizes take turns, so that a slow moment of the machine affects all of them, and the median of each size
 * counts. A turn begins with a sample that does not count, since passes of another size leave other contents in the
 * processor's caches than passes of a run.
 *
 * The cost of sampling is the difference per row between turns with and without it. The cost of an expert is the
 * difference between passes whose rows select few distinct experts and passes over the same number of rows that select
 * many. Reads of memory, which give the cost of cache misses, are spread over the whole measurement, since the contents
 * of caches depend on what else runs. */
#include "measure/bench.h"
#include "measure/cache_miss.h"
#include "measure/costs.h"
#include "measure/median.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DISTURBED 1.2
#define TRIES 2
#define MOST_SAMPLES 40
#ifdef __SANITIZE_ADDRESS__ /* passes take much longer, and their times have no meaning */
#define LEAST_SAMPLES 1
#define POINT_MS 1.0
#else
#define LEAST_SAMPLES 3
#define POINT_MS 80.0 /* a size has enough samples after this time in all */
#endif
#define LONG_MS 1e3 /* and after this time even if they are few: small disturbances average out in long passes */
#define TURN_MS 3.0

#define SAMPLING_ROWS 8 /* rows of passes with and without sampling */
#define READINGS 3      /* texts that a draft processes */
#define EXPERTS_ROWS 16 /* maximum rows of passes that read few experts */

static void note(const dtl_cost_measuring *how, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(const dtl_cost_measuring *how, const char *format, ...) {
  char line[1024];
  va_list args;
  if (!how->note) return;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  how->note(how->user, line);
}

typedef struct {
  double target[MOST_SAMPLES], first[MOST_SAMPLES], draft[MOST_SAMPLES];
  int n, experts; /* experts: number that a pass read, which is the same in every sample */
  double spent;   /* ms */
} samples;

/* The median of the undisturbed times: those below DISTURBED times the fastest. Counts the others in *disturbed. */
static double undisturbed_median(double *list, int n, int *disturbed) {
  sort_ascending(list, n);
  for (; list[n - 1] > DISTURBED * list[0]; n--) ++*disturbed;
  return dtl_median(list, n);
}

static bool enough(const samples *s) {
  return s->n == MOST_SAMPLES || (s->n >= LEAST_SAMPLES && s->spent >= POINT_MS) || s->spent >= LONG_MS;
}

/* Takes one turn of a size. A first sample that is long counts, too, since the caches matter little to it. */
static dt_status take_turn(bench *b, samples *s, int n, dt_error *err) {
  double spent = 0;
  for (bool first = true; !enough(s) && spent < TURN_MS; first = false) {
    dt_status status = bench_sample(b, n, err);
    if (status) return status;
    if (first && b->target_ms < POINT_MS) continue;
    s->target[s->n] = b->target_ms;
    s->experts = b->experts;
    s->first[s->n] = b->first_ms;
    s->draft[s->n] = b->draft_ms;
    double ms = b->target_ms + b->draft_ms;
    s->n++;
    s->spent += ms, spent += ms;
  }
  return DT_OK;
}

/* The number of points measured at each context: plain decoding, and each row count. */
static int points(const dtl_costs *c) { return 1 + c->n_rows; }
static int rows_at(const dtl_costs *c, int point) { return point ? c->rows[point - 1] : BENCH_PLAIN; }

/* One round: a turn of each point, at each context, that does not have enough samples. Counts these points in *left. */
static dt_status take_round(bench *b, samples of[][1 + COSTS_ROWS], const dtl_cost_measuring *how, const dtl_costs *c,
                            int *left, dt_error *err) {
  for (int k = 0; k < c->n_contexts; k++) {
    bool started = false;
    for (int i = 0; i < points(c); i++) {
      samples *s = &of[k][i];
      if (enough(s)) continue;
      if (how->interrupt && *how->interrupt) return dtl_fail(err, DT_EDEVICE, "interrupted");
      dt_status status = started ? DT_OK : bench_start(b, c->context[k], NULL, err);
      started = true;
      if (!status) status = take_turn(b, s, rows_at(c, i), err);
      if (status) return status;
      if (!enough(s)) continue;
      --*left;
      if (how->progress) how->progress(how->user, c->n_contexts * points(c) - *left, c->n_contexts * points(c));
    }
  }
  return DT_OK;
}

/* Measures turns with and without sampling. */
static dt_status measure_sampling(bench *b, const dtl_cost_measuring *how, dtl_costs *c, dt_error *err) {
  static const dt_sampling sampled = {.temp = 1};
  samples of[2] = {{.n = 0}};
  int n = 1, disturbed = 0;
  for (int i = 0; i < c->n_rows && c->rows[i] <= SAMPLING_ROWS; i++) n = c->rows[i];
  while (!enough(&of[0]) || !enough(&of[1]))
    for (int i = 0; i < 2; i++) {
      if (how->interrupt && *how->interrupt) return dtl_fail(err, DT_EDEVICE, "interrupted");
      dt_status status = bench_start(b, c->context[0], i ? &sampled : NULL, err);
      if (!status) status = take_turn(b, &of[i], n, err);
      if (status) return status;
    }
  double target[2], draft[2], rows = (double)n * b->batch;
  for (int i = 0; i < 2; i++) {
    target[i] = undisturbed_median(of[i].target, of[i].n, &disturbed);
    draft[i] = undisturbed_median(of[i].draft, of[i].n, &disturbed);
  }
  c->target_sample = fmax(0, (target[1] - target[0]) / rows);
  c->draft_sample = fmax(0, (draft[1] - draft[0]) / rows);
  return DT_OK;
}

/* Measures how long the draft takes to process a text. */
static dt_status measure_reading(const bench *b, const dtl_cost_measuring *how, dtl_costs *c, dt_error *err) {
  double ms[READINGS];
  for (int i = 0; i < READINGS; i++) {
    if (how->interrupt && *how->interrupt) return dtl_fail(err, DT_EDEVICE, "interrupted");
    dt_status status = bench_read(b, c->context[0], &ms[i], err);
    if (status) return status;
  }
  c->read = dtl_median(ms, READINGS);
  return DT_OK;
}

/* Measures passes whose rows select few experts and passes whose rows select many, for the sizes with several rows
 * whose chains fit. */
static dt_status measure_few_and_many(bench *b, const dtl_cost_measuring *how, const dtl_costs *c,
                                      samples of[2][COSTS_ROWS], dt_error *err) {
  dt_status status = bench_start_varied(b, c->context[0], err);
  int room = dt_tree_depth_room(dt_seq_tree(b->session, 0));
  for (int i = 1; i < c->n_rows && c->rows[i] <= EXPERTS_ROWS && c->rows[i] <= room; i++)
    while (!(enough(&of[0][i]) && enough(&of[1][i])) && !status)
      for (int many = 0; many < 2 && !status; many++) {
        b->alike = !many;
        status = how->interrupt && *how->interrupt ? dtl_fail(err, DT_EDEVICE, "interrupted")
                                                   : take_turn(b, &of[many][i], c->rows[i], err);
      }
  b->alike = false;
  return status;
}

/* Estimates the cost of an expert from these passes. usual: the usual passes of the first context, by row count. */
static void estimate_experts(dtl_costs *c, const samples *usual, samples of[2][COSTS_ROWS]) {
  int read[COSTS_ROWS], more[COSTS_ROWS] = {0}, ignored = 0;
  double longer[COSTS_ROWS] = {0};
  for (int i = 0; i < c->n_rows; i++) {
    samples *few = &of[0][i], *many = &of[1][i];
    read[i] = usual[i].experts;
    if (!few->n || !many->n) continue;
    more[i] = many->experts - few->experts;
    longer[i] = undisturbed_median(many->target, many->n, &ignored) - undisturbed_median(few->target, few->n, &ignored);
  }
  costs_estimate_experts(c, read, more, longer);
}

/* Computes the medians of all points. */
static void sum_up(samples of[][1 + COSTS_ROWS], dtl_costs *c, int *all, int *disturbed) {
  for (int k = 0; k < c->n_contexts; k++) {
    samples *plain = of[k], *s = plain + 1;
    for (int i = 0; i < c->n_rows; i++) {
      samples *target = i ? &s[i] : plain; /* for one row: plain decoding, not a pass after a draft pass */
      *all += (1 + c->drafts) * s[i].n;
      c->target[k][i] = undisturbed_median(target->target, target->n, disturbed);
      c->draft[k][i] = undisturbed_median(s[i].draft, s[i].n, disturbed);
    }
    samples *usual = &s[c->n_rows > 1]; /* first passes after an iteration with one guess */
    c->first[k] = undisturbed_median(usual->first, usual->n, disturbed);
  }
  costs_straighten(c, c->target);
  costs_straighten(c, c->draft);
  for (int k = 0; k < c->n_contexts; k++) c->first[k] = fmax(c->first[k], c->draft[k][0]);
}

/* Measures everything. why[DTL_WHY] is filled if the measurement was disturbed. */
static dt_status measure(bench *b, const dtl_cost_measuring *how, dtl_costs *c, char *why, dt_error *err) {
  samples(*of)[1 + COSTS_ROWS] = calloc((size_t)c->n_contexts, sizeof *of);
  if (!of) return dtl_fail_memory(err, "times of passes");
  c->block = b->block;
  samples few_and_many[2][COSTS_ROWS] = {{{.n = 0}}};
  cache_miss_times misses = {.n = 0};
  cache_miss_begin(&misses.lines);
  dt_status status = measure_sampling(b, how, c, err); /* first, since progress is reported for the rest */
  if (!status && c->drafts) status = measure_reading(b, how, c, err);
  if (!status && b->experts) status = measure_few_and_many(b, how, c, few_and_many, err);
  int left = c->n_contexts * points(c), all = 0, disturbed = 0;
  while (left > 0 && !status) {
    status = take_round(b, of, how, c, &left, err);
    if (!status) status = cache_miss_measure(&misses, b, c->context[0], err);
  }
  if (!status) sum_up(of, c, &all, &disturbed);
  if (!status) cache_miss_costs(&misses, c->cache_miss);
  if (!status && b->experts) estimate_experts(c, &of[0][1], few_and_many);
  if (!status && all > 0 && disturbed > all / 3) {
    c->disturbed = true;
    snprintf(why, DTL_WHY, "%d %% of the passes took much longer than the others", 100 * disturbed / all);
  }
  if (status && how->progress) how->progress(how->user, 1, 1); /* ends the progress line after a failure */
  free(of);
  return status;
}

/* Chooses the contexts to measure at; the last is the longest after which the largest tree fits. */
static void choose_contexts(dtl_costs *c, int longest) {
  const int lengths[] = {COSTS_STEP, 4 * COSTS_STEP};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
    if (lengths[i] < longest) c->context[c->n_contexts++] = lengths[i];
  c->context[c->n_contexts++] = longest;
}

/* Measures, and repeats the measurement if the machine was busy. */
static dt_status measure_quietly(bench *b, const dt_pair_info *info, const dtl_cost_measuring *how, dtl_costs *c,
                                 dt_error *err) {
  dtl_usage (*usage)(bool) = how->usage ? how->usage : dtl_usage_now;
  bool computes = strncmp(info->backend, "cpu", 3) == 0;
  char why[DTL_WHY] = "";
  for (int tries = 0; tries < TRIES; tries++) {
    dtl_usage before = usage(false);
    c->disturbed = false;
    dt_status status = measure(b, how, c, why, err);
    if (status) return status;
    dtl_usage after = usage(false);
    if (dtl_disturbed(&before, &after, computes, why, sizeof why)) c->disturbed = true;
    if (!c->disturbed) return DT_OK;
  }
  note(how,
       "the machine was busy in all %d measurements of costs (%s): the table is valid for ten minutes; "
       "measure again with 'dtrun run costs --fresh'",
       TRIES, why);
  return DT_OK;
}

static dt_status measure_all(dt_pair *pair, const dtl_cost_measuring *how, int context, int batch, dtl_costs *c,
                             dt_error *err) {
  dt_pair_info info;
  dt_pair_describe(pair, &info);
  *c = (dtl_costs){.batch = batch, .drafts = info.draft.path != NULL};
  costs_choose_rows(c);
  bench b;
  dt_status status = bench_open(&b, pair, context, batch, err);
  if (status) return status;
  int longest = bench_longest(&b, bench_context(&info, context), DT_TREE_VERIFY);
  if (longest >= 1) {
    choose_contexts(c, longest);
    status = measure_quietly(&b, &info, how, c, err);
  } else {
    status = dtl_fail(err, DT_EINPUT, "a context of %d tokens is too short to measure costs", context);
  }
  bench_close(&b);
  return status;
}

dt_status dtl_measure_costs(dt_pair *pair, const dtl_cost_measuring *how, dtl_costs *costs, dt_error *err) {
  NEED(pair, "pair");
  NEED(how, "how");
  NEED(costs, "costs");
  dt_pair_info info;
  dt_pair_describe(pair, &info);
  int context = how->context ? how->context : info.context, batch = how->batch ? how->batch : 1;
  costs_place place;
  if (context < 1 || context > info.target.context)
    return dtl_fail(err, DT_EINPUT, "context: %d is out of range: 1..%d", context, info.target.context);
  if (batch < 1 || batch > DTL_SLOTS)
    return dtl_fail(err, DT_EINPUT, "batch: %d is out of range: 1..%d", batch, DTL_SLOTS);
  dt_status status = costs_find(pair, context, batch, &place, err);
  if (status) return status;
  const char *wrong = how->fresh ? "" : costs_load(&place, costs);
  if (wrong) {
    if (*wrong) note(how, "the table of costs %s is replaced: %s", place.path, wrong);
    status = measure_all(pair, how, context, batch, costs, err);
    const char *lost = status ? NULL : costs_store(&place, costs);
    if (lost) note(how, "the table of costs cannot be written to %s: %s", place.path, lost);
  }
  costs_leave(&place);
  return status;
}
