/* Two policies over the same prompts, one after the other in rounds, so that what the machine does meanwhile falls on both. */
#ifndef COMPARE_H
#define COMPARE_H

#include "cli/outcome.h"

typedef struct {
  double speed, other, ratio; /* medians over rounds: tokens per second of each, and speed / other */
  int rounds, disturbed;      /* that count; of all that were made, those the machine was busy in */
  char why[DTL_WHY];          /* of the last disturbed one */
  bool rough;                 /* too few were quiet: disturbed ones count too */
} comparison;

/* Runs the job's policy and that of --compare in silence until enough rounds were quiet: as many as --rounds says, else 3, and
 * more while those took less than two seconds in all. On a busy machine at most twice as many are made, and more only while
 * they took less than six seconds; where the quiet ones are few and took less than two, all count. *other is the other's last
 * outcome. Every round must give the tokens of `mine`. Returns an exit status. */
int compare_policies(const job *j, const outcome *mine, outcome *other, comparison *out);

double median(double *list, int n); /* of n >= 1; sorts them */

#endif
