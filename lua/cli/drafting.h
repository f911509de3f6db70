/* Reports how much drafting helped in a run, and why there was little of it. */
#ifndef DRAFTING_H
#define DRAFTING_H

#include "cli/job.h"

/* Returns whether a run of one text verified few guesses although its policy drafts and the text was long enough. */
bool drafted_little(const job *j, const dtl_result *result);

/* In that case, prints one line that says why. */
void explain_pause(const job *j, const dtl_result *result);

/* Prints a line for each source of guesses: its cost, the number of right guesses that was expected, the actual number,
 * and the time that they saved; of sources that rate did not use, what it expected of them. A policy names sources by
 * tags; without tags all guesses are one source. plain: milliseconds per token of plain decoding. */
void explain_sources(const dtl_result *result, double plain);

#endif
