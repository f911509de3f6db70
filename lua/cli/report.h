/* The summary of a run on standard error. */
#ifndef REPORT_H
#define REPORT_H

#include "cli/compare.h"

void report_summary(const dtl_result *result); /* prints one line about one text */

/* Writes a text such as "31 tokens/s, 1.9x" into out[size]: the speed of a text after its prompt, and the speedup over
 * plain decoding, which takes `plain` ms per token. The speedup is left out if plain is 0 (unknown) or the text is too
 * short. */
void report_speedup(const dtl_result *result, double plain, char *out, size_t size);

/* Prints the summary of one text (more lines with --verbose) or of several. status: how the run ended. disturbed: other
 * programs used the processors, so the speed cannot be compared with plain decoding's. */
void report_outcome(const job *j, const outcome *out, int status, bool disturbed);

/* Prints a line with the ratio of the two speeds, and another one if the machine was busy; nothing with --quiet. */
void report_comparison(const job *j, const outcome *out, const outcome *other, const comparison *c);

#endif
