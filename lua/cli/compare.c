/* Compares two policies: see compare.h. */
#include "cli/compare.h"

#include "cli/complain.h"

#include <stdlib.h>
#include <string.h>

#define ROUNDS 3
#define MOST_ROUNDS 64
#define ENOUGH_MS 2000.0   /* total time of undisturbed rounds that is enough */
#define PATIENCE_MS 6000.0 /* time limit if the machine is busy */

typedef struct {
  double speed, other, ms;
  bool disturbed;
} round_speeds;

/* Returns DT_EDEVICE unless both have the same tokens. A policy only proposes tokens, so a difference is the engine's
 * fault. */
static dt_status check_same(const job *j, int prompt, const dtl_result *a, const dtl_result *b, dt_error *err) {
  int n = a->n_tokens < b->n_tokens ? a->n_tokens : b->n_tokens, same = 0;
  while (same < n && a->tokens[same] == b->tokens[same]) same++;
  if (same == a->n_tokens && same == b->n_tokens) return DT_OK;
  return dt_fail(err, DT_EDEVICE,
                 "the engine failed: %s and %s differ%s%s from token %d on (they gave %d and %d tokens)", a->policy,
                 b->policy, j->several ? " in prompt " : "",
                 j->several ? j->prompts.list[prompt / j->answers].name : "", same + 1, a->n_tokens, b->n_tokens);
}

static dt_status check_all(const job *j, const outcome *a, const outcome *b, dt_error *err) {
  for (int i = 0; i < job_texts(j); i++) {
    dt_status status = check_same(j, i, &a->results[i], &b->results[i], err);
    if (status) return status;
  }
  return DT_OK;
}

/* Runs both policies, in the order of this round. */
static int run_round(const job *j, bool other_first, const outcome *mine, outcome *other, comparison *c,
                     round_speeds *r) {
  outcome again = {0};
  dt_error err;
  dtl_usage before = dtl_usage_now(false);
  int status = other_first ? outcome_run(j, j->other, true, other) : outcome_run(j, j->policy, true, &again);
  if (!status) status = other_first ? outcome_run(j, j->policy, true, &again) : outcome_run(j, j->other, true, other);
  dtl_usage after = dtl_usage_now(false);
  if (!status && (check_all(j, mine, other, &err) || check_all(j, mine, &again, &err))) status = complain_of(&err);
  if (!status) {
    bool computes = strncmp(mine->results->backend, "cpu", 3) == 0;
    *r = (round_speeds){.speed = outcome_speed(j, &again),
                        .other = outcome_speed(j, other),
                        .ms = after.wall_ms - before.wall_ms,
                        .disturbed = dtl_disturbed(&before, &after, computes, c->why, sizeof c->why)};
  }
  outcome_free(&again, j);
  return status;
}

/* Returns the number of undisturbed rounds; *ms is their total time. */
static int count_quiet(const round_speeds *all, int n, double *ms) {
  int quiet = 0;
  *ms = 0;
  for (int i = 0; i < n; i++)
    if (!all[i].disturbed) quiet++, *ms += all[i].ms;
  return quiet;
}

/* Computes the medians of the undisturbed rounds; or of all rounds if the undisturbed ones are too few, or few and
 * short. Each round measures both policies, so the median of many rounds is more accurate than that of three, even on a
 * busy machine. */
static void sum_up(const round_speeds *all, int n, int wanted, comparison *c) {
  double speed[MOST_ROUNDS], other[MOST_ROUNDS], ratio[MOST_ROUNDS], ms;
  int quiet = count_quiet(all, n, &ms);
  c->disturbed = n - quiet;
  c->rough = quiet < wanted || (2 * quiet < n && ms < ENOUGH_MS);
  for (int i = 0; i < n; i++) {
    if (all[i].disturbed && !c->rough) continue;
    speed[c->rounds] = all[i].speed, other[c->rounds] = all[i].other;
    ratio[c->rounds++] = all[i].other > 0 ? all[i].speed / all[i].other : 0;
  }
  c->speed = dtl_median(speed, c->rounds);
  c->other = dtl_median(other, c->rounds);
  c->ratio = dtl_median(ratio, c->rounds);
}

/* Returns whether enough rounds have run: the requested number (or, without one, enough time) was undisturbed, or too
 * many were disturbed. */
static bool is_enough(const round_speeds *all, int n, int wanted, bool asked, double lasted) {
  double ms;
  bool quiet = count_quiet(all, n, &ms) >= wanted;
  return n == MOST_ROUNDS || (quiet && (asked || ms >= ENOUGH_MS)) ||
         (n >= 2 * wanted && (asked || lasted >= PATIENCE_MS));
}

static void show_round(const job *j, int n, int wanted) {
  const char *name = dtl_policy_describe(j->other)->name;
  if (j->options->quiet) return;
  if (n < wanted)
    show_briefly("comparing with %s: round %d of %d ...", name, n + 1, wanted);
  else
    show_briefly("comparing with %s: round %d ...", name, n + 1);
}

static void tell_interrupted(int n) {
  if (n)
    say("interrupted in round %d of the comparison: the ratio is that of the %d round%s before", n + 1, n,
        n == 1 ? "" : "s");
  else
    say("interrupted in the first round of the comparison: there is no ratio");
}

int compare_policies(const job *j, const outcome *mine, outcome *other, comparison *out) {
  int asked = j->options->rounds, wanted = asked ? asked : ROUNDS, n = 0, status;
  round_speeds all[MOST_ROUNDS];
  double start = dt_clock_ms();
  *out = (comparison){0};
  show_round(j, 0, wanted);
  outcome_warm_up(j, j->other);
  do {
    outcome theirs = {0};
    show_round(j, n, wanted);
    status = run_round(j, n % 2, mine, &theirs, out, &all[n]);
    if (status) {
      outcome_free(&theirs, j);
      break;
    }
    outcome_free(other, j);
    *other = theirs;
    n++;
  } while (!is_enough(all, n, wanted, asked > 0, dt_clock_ms() - start));
  begin_line();
  if (status == EXIT_INTERRUPTED && !j->options->quiet) tell_interrupted(n);
  if (n && (!status || status == EXIT_INTERRUPTED)) sum_up(all, n, wanted, out);
  return status;
}
