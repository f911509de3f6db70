/* Reports of a run: see report.h. */
#include "cli/report.h"
#include "dtrun_ranks.h"

#include "cli/complain.h"
#include "cli/drafting.h"

#include <inttypes.h>
#include <string.h>

#define FEWEST 16 /* tokens; the speedup of a shorter text is not shown */

static double ratio(double a, double b) { return b > 0 ? a / b : 0; }

/* Prints the speed and the speedup. The speed of plain decoding is that of its passes as they were learned. */
static void sum_up_one(const job *j, const dtl_result *r, bool disturbed) {
  const dt_stats *s = &r->stats;
  char reason[40] = "", speedup[60] = "";
  double plain = dtl_learned_plain(j->learned, s->prompt_tokens + s->generated), ms = s->total_ms - s->ttft_ms;
  bool is_plain = strcmp(r->policy, "ar") == 0;
  if (strcmp(r->finish_reason, "length") != 0) snprintf(reason, sizeof reason, " (%s)", r->finish_reason);
  if (plain > 0 && ms > 0 && s->generated >= FEWEST && !is_plain && !disturbed && !drafted_little(j, r))
    snprintf(speedup, sizeof speedup, ", speedup %.1fx (estimated)", plain * (s->generated - 1) / ms);
  say("%d token%s%s, %.1f tokens/s, %.2f per pass%s", r->n_tokens, r->n_tokens == 1 ? "" : "s", reason,
      dtl_tokens_per_second(r), ratio((double)s->committed, (double)s->iterations), speedup);
}

void report_summary(const dtl_result *r) {
  const dt_stats *s = &r->stats;
  char drafted[80] = "nothing drafted", reason[40] = "";
  if (s->drafted > 0)
    snprintf(drafted, sizeof drafted, "%.0f %% of %ld drafted accepted",
             100 * ratio((double)s->accepted, (double)s->drafted), s->drafted);
  if (strcmp(r->finish_reason, "length") != 0) snprintf(reason, sizeof reason, " (%s)", r->finish_reason);
  char cached[60] = "";
  if (s->cached_tokens)
    snprintf(cached, sizeof cached, ", %d of %d prompt tokens cached", s->cached_tokens, s->prompt_tokens);
  double all = s->prompt_ms + s->draft_ms + s->verify_ms + s->commit_ms + r->policy_ms + r->other_ms;
  say("%d token%s%s, %.1f tokens/s, prompt included, %.2f per iteration, %s%s; time: prompt %.0f %%, draft %.0f %%, "
      "verify %.0f %%, commit %.0f %%, policy %.0f %%, other %.0f %%",
      r->n_tokens, r->n_tokens == 1 ? "" : "s", reason, dtl_tokens_per_second(r),
      ratio((double)s->committed, (double)s->iterations), drafted, cached, 100 * ratio(s->prompt_ms, all),
      100 * ratio(s->draft_ms, all), 100 * ratio(s->verify_ms, all), 100 * ratio(s->commit_ms, all),
      100 * ratio(r->policy_ms, all), 100 * ratio(r->other_ms, all));
}

void report_speedup(const dtl_result *r, double plain, char *out, size_t size) {
  double ms = r->stats.total_ms - r->stats.ttft_ms;
  double speed = dtl_tokens_per_second(r);
  int n = snprintf(out, size, speed < 9.95 ? "%.1f tokens/s" : "%.0f tokens/s", speed);
  if (plain > 0 && r->stats.generated >= FEWEST && ms > 0)
    snprintf(out + n, size - (size_t)n, ", %.1fx", plain * (r->stats.generated - 1) / ms);
}

/* Writes for the summary that the draft was found, not named. */
static const char *tell_found(const job *j, char text[300]) {
  *text = '\0';
  if (j->found && j->draft) snprintf(text, 300, "; draft: %s, found", j->draft);
  return text;
}

static void detail(const dtl_result *r) {
  const dt_stats *s = &r->stats;
  say("target %s, draft %s, backend %s, threads %d", r->target, r->draft ? r->draft : "none", r->backend, r->threads);
  say("policy %s %s, %d prompt token%s", r->policy, r->params, s->prompt_tokens, s->prompt_tokens == 1 ? "" : "s");
  say("ms: load %.2f, prompt %.2f, draft %.2f, verify %.2f, commit %.2f, policy %.2f, other %.2f; first token after "
      "%.2f, total %.2f",
      r->load_ms, s->prompt_ms, s->draft_ms, s->verify_ms, s->commit_ms, r->policy_ms, r->other_ms, s->ttft_ms,
      s->total_ms);
  say("%ld iterations, mean tree of %.1f nodes and depth %.1f, %ld draft passes of %.1f rows", s->iterations,
      ratio((double)s->drafted, (double)s->iterations), ratio((double)s->depth_sum, (double)s->iterations),
      s->draft_passes, ratio((double)s->draft_rows, (double)s->draft_passes));
  if (r->ids_without_row)
    say("ids of the tokenizer that the target's vocabulary lacks: %d; a text with one of them is refused",
        r->ids_without_row);
  char device[40] = "";
  if (r->device_memory) snprintf(device, sizeof device, ", on the device %.1f", (double)r->device_memory / 1e6);
  say("memory in MB: peak %.1f, weights %.1f, caches %.1f%s; output hash %016" PRIx64, (double)r->peak_memory / 1e6,
      (double)r->weight_bytes / 1e6, (double)r->cache_bytes / 1e6, device, dtl_output_hash(r->tokens, r->n_tokens));
}

/* Reports the memory of each rank that shares the target. */
static void report_ranks(const dt_pair *pair) {
  dt_rank_info info[DT_RANKS];
  int ranks = dt_pair_ranks(pair, info);
  for (int i = 0; i < ranks; i++)
    say("rank %d on %s, %s, in MB: weights %.1f, caches %.1f, scratch %.1f, resident %.1f", i, info[i].host,
        info[i].kernels, (double)info[i].weights / 1e6, (double)info[i].caches / 1e6, (double)info[i].scratch / 1e6,
        (double)info[i].resident / 1e6);
}

static void sum_up(const job *j, const outcome *out) {
  char failed[40] = "", found[300];
  if (out->n_failed) snprintf(failed, sizeof failed, " (%d failed)", out->n_failed);
  say("%d of %d sequences%s, %d at once, %ld tokens in %.2f s: %.1f tokens/s, prompt included%s", out->n_ended,
      job_texts(j), failed, j->slots, out->tokens, out->ms / 1000, outcome_speed(j, out), tell_found(j, found));
}

void report_outcome(const job *j, const outcome *out, int status, bool disturbed) {
  char found[300];
  if (j->options->quiet) return;
  if (j->several) {
    sum_up(j, out);
  } else if (!status || status == EXIT_INTERRUPTED) {
    if (j->options->verbose) {
      report_summary(out->results);
      if (*tell_found(j, found)) say("%s", found + 2); /* skips its "; " */
      detail(out->results), report_ranks(j->pair);
    }
    sum_up_one(j, out->results, disturbed);
    if (!status) explain_pause(j, out->results);
  }
}

void report_comparison(const job *j, const outcome *a, const outcome *b, const comparison *c) {
  if (j->options->quiet) return;
  say("%s %.1f tokens/s, %s %.1f tokens/s, prompt included: %.2fx, same %ld tokens, median of %d round%s", a->policy,
      c->speed, b->policy, c->other, c->ratio, a->tokens, c->rounds, c->rounds == 1 ? "" : "s");
  if (c->disturbed)
    say("the machine was busy in %d of the rounds (%s): %s", c->disturbed, c->why,
        c->rough ? "they count too, so the ratio is rough" : "these do not count");
}
