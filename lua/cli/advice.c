/* Advice after a slow run: see advice.h. */
#include "cli/advice.h"

#include "cli/complain.h"
#include "cli/drafting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FEWEST_TOKENS 16   /* a shorter run gives no advice */
#define SHORTEST_MS 50     /* time after the prompt; in a shorter run the first passes weigh too much */
#define SLOWER 0.98        /* part of plain decoding's speed; a smaller difference is ignored */
#define LOW_ACCEPTANCE 0.4 /* part of first guesses that are right; below it no tree pays */
#define PASSES 5           /* number of passes over one row that are measured, */
#define PATIENCE 0.03      /* in at most this part of the run's time, after the first two passes */

/* Milliseconds of an iteration, by what they are used for. */
typedef struct {
  double draft, verify, rest; /* rest: commit, the policy itself and the loop */
  double rows, committed;     /* rows and committed tokens per iteration */
  double plain;               /* a token of plain decoding, which is a pass over one row */
  double speed;               /* tokens per millisecond / those of plain decoding */
  const char *counts;         /* says whether these times include the prompt */
  bool brief;                 /* it took less than SHORTEST_MS and did not run in turns with plain decoding */
  bool busy; /* the machine was busy while it ran; false if both ran in turns, since it does not matter then */
  char why[DTL_WHY];
} account;

typedef enum { BUSY, GUESSES, DRAFTING, ROWS, POLICY } cause;

/* Returns the median time of a few passes over one row, with the context that the run had at its end; 0: they
 * failed. */
static double measure_plain(const job *j, const dtl_result *r) {
  const dt_stats *s = &r->stats;
  double ms[PASSES], start = dt_clock_ms();
  int n = -1, seq = 0; /* the first pass is slow because of cold caches */
  dt_session_options options = {.sequences = 1, .context = j->options->in.request.context};
  dt_session *session;
  dt_verdict verdict;
  if (dt_session_open(j->pair, &options, &session, NULL)) return 0;
  bool ok = !dt_seq_start_blank(session, 0, s->prompt_tokens + s->generated / 2, NULL, NULL);
  while (ok && n < PASSES && (n < 1 || dt_clock_ms() - start < PATIENCE * s->total_ms)) {
    ok = !dt_rollback(session, 0, NULL);
    double begin = dt_clock_ms();
    ok = ok && !dt_verify_tree(session, &seq, 1, &verdict, NULL);
    if (n >= 0) ms[n] = dt_clock_ms() - begin;
    n++;
  }
  dt_session_close(session);
  return ok ? dtl_median(ms, n) : 0;
}

static bool is_plain(const dtl_policy *policy) { return strcmp(dtl_policy_describe(policy)->name, "ar") == 0; }

static bool settle(const job *j, const dtl_result *r, const dtl_usage *before, const dtl_usage *after,
                   const comparison *compared, account *a) {
  const dt_stats *s = &r->stats;
  double n = (double)s->iterations;
  if (s->generated < FEWEST_TOKENS || !s->drafted) return false;
  *a = (account){.draft = s->draft_ms / n,
                 .verify = s->verify_ms / n,
                 .rest = (s->commit_ms + r->policy_ms + r->other_ms) / n,
                 .rows = 1 + (double)s->drafted / n,
                 .committed = (double)s->committed / n};
  bool known = compared && is_plain(j->other);
  a->counts = known ? "prompt included" : "after the prompt";
  a->brief = !known && (a->draft + a->verify + a->rest) * n < SHORTEST_MS;
  a->busy = !known && dtl_disturbed(before, after, strncmp(r->backend, "cpu", 3) == 0, a->why, sizeof a->why);
  a->plain = known ? 1000 / compared->other : measure_plain(j, r);
  double token = (a->draft + a->verify + a->rest) / a->committed;
  a->speed = known ? compared->ratio : a->plain / token;
  return a->plain > 0 && token > 0;
}

static double accepted_at(const dt_stats *s, int depth) {
  return s->verified_at[depth] ? (double)s->accepted_at[depth] / (double)s->verified_at[depth] : 0;
}

static cause find_cause(const dt_stats *s, const account *a) {
  double rows = a->verify - a->plain;
  if (a->busy) return BUSY;
  if (accepted_at(s, 1) < LOW_ACCEPTANCE) return GUESSES;
  if (a->rest > a->draft && a->rest > rows) return POLICY;
  return a->draft > rows ? DRAFTING : ROWS;
}

static void tell_cause(char *out, size_t size, cause c, const dt_stats *s, const account *a) {
  switch (c) {
  case BUSY: snprintf(out, size, "the machine was busy (%s), so this says little", a->why); break;
  case GUESSES: snprintf(out, size, "only %.0f %% of the first guesses were right", 100 * accepted_at(s, 1)); break;
  case DRAFTING:
    snprintf(out, size, "drafting takes %.2f ms per iteration, plain decoding %.2f ms per token", a->draft, a->plain);
    break;
  case ROWS:
    snprintf(out, size, "a pass over %.*f rows takes %.1f times as long as one over a single row", a->rows < 2, a->rows,
             a->verify / a->plain);
    break;
  case POLICY: snprintf(out, size, "the policy itself takes %.2f ms per iteration", a->rest); break;
  }
}

/* Returns the policy to try instead; never the one that ran. */
static const char *find_remedy(const job *j, cause c) {
  const dtl_policy_info *policy = dtl_policy_describe(j->policy);
  bool rates = strcmp(policy->name, "rate") == 0, copies = strcmp(policy->name, "prompt_lookup") == 0;
  if (c == BUSY) return j->options->policy;
  if (c == GUESSES) return copies ? "ar" : "prompt_lookup";
  return rates ? "ar" : "rate"; /* rate weighs the tokens that its guesses add against the cost of passes */
}

/* Appends a word, quoted for the shell if necessary; a word that one line cannot show becomes a placeholder. */
static void append_word(char *line, size_t size, const char *word) {
  static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  size_t n = strlen(line), len = strlen(word);
  bool bare = len > 0 && strspn(word, harmless) == len, shown = len < 200 && !strpbrk(word, "\n\t\r\033");
  if (n + 4 * len + 4 > size) return;
  if (bare || !shown) {
    snprintf(line + n, size - n, " %s", shown ? word : "...");
    return;
  }
  n += (size_t)sprintf(line + n, " '");
  for (; *word; word++) n += (size_t)sprintf(line + n, *word == '\'' ? "'\\''" : "%c", *word);
  sprintf(line + n, "'");
}

/* Appends the settings of the policy that ran. */
static void append_settings(char *line, size_t size, const cli_options *o) {
  char setting[256];
  if (o->preset) append_word(line, size, "--preset"), append_word(line, size, o->preset);
  for (int i = 0; i < o->n_settings; i++) {
    snprintf(setting, sizeof setting, "%s=%s", o->settings[i].name, o->settings[i].value);
    append_word(line, size, "--set"), append_word(line, size, setting);
  }
}

/* Writes the user's own command, with another policy. */
static void write_command(char *line, size_t size, const cli_options *o, const char *policy) {
  snprintf(line, size, "%s", o->program);
  append_word(line, size, policy);
  if (policy == o->policy) append_settings(line, size, o);
  for (int i = 0; i < o->n_common; i++) append_word(line, size, o->common[i]);
  if (strcmp(policy, "ar") != 0) append_word(line, size, "--compare"), append_word(line, size, "ar");
}

static void explain(const dtl_result *r, const account *a) {
  const dt_stats *s = &r->stats;
  double all = a->draft + a->verify + a->rest;
  say("plain decoding takes %.3f ms per token, this run %.3f ms: %.2fx, %s", a->plain, all / a->committed, a->speed,
      a->counts);
  say("an iteration takes %.3f ms: draft %.3f, verify %.3f (%.1f rows, %.2f times one row), policy and other %.3f", all,
      a->draft, a->verify, a->rows, a->verify / a->plain, a->rest);
  say("drafting pays from %.2f tokens per iteration; this run had %.2f", all / a->plain, a->committed);
  char depths[400] = "";
  for (int d = 1; d <= 12 && s->verified_at[d]; d++)
    snprintf(depths + strlen(depths), sizeof depths - strlen(depths), "%s%d: %.0f %%", d > 1 ? ", " : "", d,
             100 * accepted_at(s, d));
  say("iterations with a right guess, of those whose tree was deep enough, by depth: %s", depths);
  explain_sources(r, a->plain);
  static const char *const help[] = {
      [BUSY] = "a busy machine: --compare ar, which runs both in turns",
      [GUESSES] = "guesses: a draft model trained with the target, or text that repeats itself (prompt_lookup)",
      [DRAFTING] =
          "drafting: a smaller draft, --draft-weights q4, --draft-vocab N, fewer levels (--set; POLICY --help)",
      [ROWS] = "rows: fewer nodes (--preset narrow, linear --set K=3), or a policy that weighs them (rate, cast)",
      [POLICY] = "the policy: less work for each node; rate and linear do little"};
  cause c = find_cause(s, a);
  if (c == BUSY) say("the machine was busy: %s", a->why);
  say("what may help with %s%s", help[c], c == BUSY ? "" : "; dtrun run tune POLICY searches");
}

/* Says why there is nothing to explain: the run had no guesses or was too short to measure. */
static void explain_nothing(const job *j, const dtl_result *r) {
  if (r->stats.generated < FEWEST_TOKENS)
    say("nothing to explain: too few tokens: %d (at least %d: -n)", r->stats.generated, FEWEST_TOKENS);
  else if (is_plain(j->policy))
    say("nothing to explain: plain decoding drafts nothing");
  else
    explain_sources(r, dtl_learned_plain(j->learned, r->stats.prompt_tokens + r->stats.generated));
}

void advise(const job *j, const outcome *mine, const dtl_usage *before, const dtl_usage *after,
            const comparison *compared) {
  const dtl_result *r = mine->results;
  account a;
  if (j->several || j->options->quiet) return;
  if (!settle(j, r, before, after, compared, &a)) {
    if (j->options->explain) explain_nothing(j, r);
    return;
  }
  if (j->options->explain) explain(r, &a);
  if (a.speed >= SLOWER || a.brief) return;
  char why[200], command[2000];
  cause c = find_cause(&r->stats, &a);
  tell_cause(why, sizeof why, c, &r->stats, &a);
  write_command(command, sizeof command, j->options, find_remedy(j, c));
  say("slower than plain decoding (%.2fx, %s): %s; try: %s", a.speed, a.counts, why, command);
}
