/* Reports how much drafting helped: see drafting.h. */
#include "cli/drafting.h"

#include "cli/complain.h"

#include <math.h>
#include <string.h>

#define FEWEST 16   /* tokens; a shorter text is not judged */
#define LITTLE 0.25 /* verified guesses per iteration; a run with fewer gets a line */

/* Prints the cost of a draft pass and how often first guesses were right. */
static void tell_draft(const job *j, const dtl_result *r) {
  const dt_stats *s = &r->stats;
  int context = s->prompt_tokens + s->generated;
  double plain = dtl_learned_plain(j->learned, context), first = dtl_learned_draft(j->learned, context);
  char cost[100] = "";
  if (plain > 0 && first > 0)
    snprintf(cost, sizeof cost, "a draft pass takes %.2f times as long as a target pass, ", first / plain);
  if (s->draft_passes && s->verified_at[1])
    say("drafting paused: %sfirst guesses were right in %ld of %ld", cost, s->accepted_at[1], s->verified_at[1]);
  else if (s->draft_passes)
    say("drafting paused: %sno guess was likely enough to be worth verifying (draft passes: %ld)", cost,
        s->draft_passes);
  else
    say("drafting paused: %sits guesses were not expected to pay before the text ends", cost);
}

bool drafted_little(const job *j, const dtl_result *r) {
  const dt_stats *s = &r->stats;
  bool enough = (double)s->drafted >= LITTLE * (double)s->iterations;
  return !j->several && s->generated >= FEWEST && !enough && strcmp(r->policy, "ar") != 0;
}

void explain_pause(const job *j, const dtl_result *r) {
  const dt_stats *s = &r->stats;
  if (!drafted_little(j, r)) return;
  if (r->draft && dtl_policy_describe(j->policy)->draft != DTL_NO_DRAFT)
    tell_draft(j, r);
  else
    say("%s was drafted: %sthe text repeats itself too little to copy from it", s->drafted ? "little" : "nothing",
        r->draft ? "" : "there is no draft model, and ");
}

static void tell_source(const char *name, long verified, double expected, long accepted, double passes, double row,
                        double plain) {
  double rows = row * (double)verified;
  char hoped[60] = "";
  if (expected >= 0) snprintf(hoped, sizeof hoped, "%.1f expected to be right, ", expected);
  say("%s: %ld guesses verified, %s%ld were; cost %.1f ms (drafting %.1f, rows %.1f), saved %.1f ms", name, verified,
      hoped, accepted, passes + rows, passes, rows, (double)accepted * plain);
}

/* Returns the mean of a number that the policy logged; negative: it logged none. */
static double logged(const dtl_notes *notes, const char *name) {
  for (int i = 0; i < notes->n_logged; i++)
    if (strcmp(notes->logged[i].name, name) == 0) return notes->logged[i].sum / (double)notes->logged[i].n;
  return -1;
}

/* Prints what rate expected of the draft if it did not use it. */
static void tell_unused_draft(const dtl_notes *notes) {
  char first[80] = "";
  double costs = logged(notes, "draft_costs"), reads = logged(notes, "draft_reads");
  if (costs < 0) return;
  if (reads > 0) snprintf(first, sizeof first, ", after %.1f ms for the tokens before it", reads);
  say("draft: not used; a draft pass was expected to cost %.3f ms and to save %.3f ms%s", costs,
      logged(notes, "draft_saves"), first);
}

/* Prints what was expected of sources that were not used, as far as the policy logged it. */
static void tell_unused(const dtl_result *r, bool copied) {
  const dtl_notes *notes = &r->notes;
  double needs = ceil(logged(notes, "copy_needs"));
  if (!r->stats.draft_passes) tell_unused_draft(notes);
  if (!copied && needs > 0)
    say("copy: not used; a copy was expected to pay after %.0f repeated token%s", needs, needs > 1 ? "s" : "");
}

void explain_sources(const dtl_result *r, double plain) {
  const dt_stats *s = &r->stats;
  double row = s->drafted ? (s->verify_ms - (double)s->iterations * plain) / (double)s->drafted : 0;
  long verified = 0, accepted = 0;
  bool drafts = s->draft_passes > 0, copied = false;
  if (row < 0) row = 0;
  for (int i = 0; i < r->notes.n_tags; i++) {
    const dtl_tag *t = &r->notes.tag[i];
    bool is_draft = strcmp(t->name, "draft") == 0;
    tell_source(t->name, t->verified, t->expected, t->accepted, is_draft ? s->draft_ms : 0, row, plain);
    verified += t->verified, accepted += t->accepted;
    copied |= strcmp(t->name, "copy") == 0;
    if (is_draft) drafts = false;
  }
  if (s->drafted > verified || drafts)
    tell_source(r->notes.n_tags ? "others" : "all guesses", s->drafted - verified, -1, s->accepted - accepted,
                drafts ? s->draft_ms : 0, row, plain);
  tell_unused(r, copied);
}
