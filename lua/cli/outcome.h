/* Runs one policy over all prompts of a job; shows and writes the results meanwhile. */
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

/* Runs the policy. Shows one text as it comes, several ones as each ends, in the prompts' order; writes lines of --json
 * as texts end. `silent`: shows failures only. Returns an exit status: the first failure's, or 0. Call outcome_free
 * after a failure too. */
int outcome_run(const job *j, const dtl_policy *policy, bool silent, outcome *out);
void outcome_free(outcome *out, const job *j);

/* Tokens per second; of several texts: all generated tokens over the whole time. */
double outcome_speed(const job *j, const outcome *out);

/* A short run before a measurement, since the first run pays for cold caches, pages and threads. Ignores failures: the
 * measured run reports them. */
void outcome_warm_up(const job *j, const dtl_policy *policy);

#endif
