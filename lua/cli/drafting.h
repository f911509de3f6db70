/* What drafting brought to a run, and why there was little of it. */
#ifndef DRAFTING_H
#define DRAFTING_H

#include "cli/job.h"

/* Whether a run of one text verified few guesses, though its policy drafts and the text was long enough. */
bool drafted_little(const job *j, const dtl_result *result);

/* Then: one line that says why. */
void explain_pause(const job *j, const dtl_result *result);

/* A line for each source of guesses (a policy's tags; without any all guesses together): what it cost, what it was
 * expected to bring and what it brought. plain: milliseconds of plain decoding for a token. */
void explain_sources(const dtl_result *result, double plain);

#endif
