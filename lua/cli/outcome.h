/* One policy over all prompts of a job: what is shown and written while it runs, and what it gave. */
#ifndef OUTCOME_H
#define OUTCOME_H

#include "cli/job.h"

typedef struct {
  const char *policy;  /* its name; the policy's */
  dtl_result *results; /* [prompts] */
  bool *ended;         /* [prompts] */
  int n_ended, n_failed;
  long tokens;
  double ms; /* of all of it */
} outcome;

/* Runs the policy. One text is shown as it comes; of several each when it has ended, in the
 * prompts' order, and lines of --json are written as they end. `silent`: but for what fails. Returns an exit
 * status: the first failure's, or 0. outcome_free also after a failure. */
int outcome_run(const job *j, const dtl_policy *policy, bool silent, outcome *out);
void outcome_free(outcome *out, const job *j);

/* Tokens per second: of several, all that was generated over all the time. */
double outcome_speed(const job *j, const outcome *out);

/* A short run of this policy before it is measured: the first one pays for cold caches, pages and threads. A failure is left to
 * the run itself. */
void outcome_warm_up(const job *j, const dtl_policy *policy);

#endif
