/* Runs a policy over all prompts of a job, and shows and writes the results as they come. */
#ifndef OUTCOME_H
#define OUTCOME_H

#include "cli/job.h"

typedef struct {
  const char *policy;  /* the policy's name, owned by the policy */
  dtl_result *results; /* [prompts] */
  bool *ended;         /* [prompts] */
  int n_ended, n_failed;
  long tokens;
  double ms; /* time of the whole run */
} outcome;

/* Runs the policy. A single text is shown as it comes; several texts are shown as each ends, in the order of the
 * prompts. Lines of --json are written as texts end. `silent`: only failures are shown. Returns an exit status: the
 * first failure's, or 0. Call outcome_free after a failure too. */
int outcome_run(const job *j, const dtl_policy *policy, bool silent, outcome *out);
void outcome_free(outcome *out, const job *j);

/* Returns tokens per second; for several texts, all generated tokens divided by the time of the whole run. */
double outcome_speed(const job *j, const outcome *out);

/* Makes a short run before a measurement, since the first run is slowed down by cold caches, page faults and starting
 * threads. It ignores failures, which the measured run reports. */
void outcome_warm_up(const job *j, const dtl_policy *policy);

#endif
