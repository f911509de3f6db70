/* Compares two policies over the same prompts, in turns, so that a disturbance of the machine affects both. */
#ifndef COMPARE_H
#define COMPARE_H

#include "cli/outcome.h"

typedef struct {
  double speed, other, ratio; /* medians over rounds: tokens per second of each, and speed / other */
  int rounds, disturbed;      /* rounds that count, 0: there is no comparison; disturbed rounds among all */
  char why[DTL_WHY];          /* the reason of the last disturbance */
  bool rough;                 /* too few rounds were quiet: disturbed ones count too */
} comparison;

/* Runs the job's policy and the one of --compare without their text until enough rounds were quiet: --rounds, or 3, and
 * more until they took two seconds in all. On a busy machine there are at most twice as many rounds, or more until all
 * took six seconds; if the quiet ones are too few and took less than two seconds, all rounds count. *other is the other
 * policy's last outcome. Every round must give the tokens of `mine`. A terminal shows which round runs. Ctrl-C ends it:
 * the rounds that ended are summed up, if there are any. Returns an exit status. */
int compare_policies(const job *j, const outcome *mine, outcome *other, comparison *out);

#endif
