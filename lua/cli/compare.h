/* Compares two policies over the same prompts. They run in turns, so that a disturbance of the machine affects both. */
#ifndef COMPARE_H
#define COMPARE_H

#include "cli/outcome.h"

typedef struct {
  double speed, other, ratio; /* medians over rounds: tokens per second of each policy, and speed / other */
  int rounds, disturbed;      /* numbers of rounds that count (0: no comparison), and of disturbed ones */
  char why[DTL_WHY];          /* the cause of the last disturbance */
  bool rough;                 /* too few rounds were undisturbed, so disturbed ones count too */
} comparison;

/* Runs the job's policy and that of --compare, without printing their texts, until enough rounds were undisturbed:
 * --rounds, or at least 3 that took two seconds in all. On a busy machine it stops after twice that number of rounds,
 * or, without --rounds, when all rounds took six seconds. All rounds count if too few were undisturbed, or if fewer
 * than half were and those took less than two seconds. *other is the last outcome of the other policy. Every round must
 * give the same tokens as `mine`. A terminal shows the number of the current round. After Ctrl-C, the rounds that ended
 * are summed up, if there are any. Returns an exit status. */
int compare_policies(const job *j, const outcome *mine, outcome *other, comparison *out);

#endif
