/* The summary of a run on standard error. */
#ifndef REPORT_H
#define REPORT_H

#include "cli/compare.h"

void report_summary(const dtl_result *result); /* of one text: a line */

/* "31 tokens/s, 1.9x": the speed of a text after its prompt, and the speedup over plain decoding, whose token takes
 * `plain` ms. No speedup is given if plain is 0 (unknown) or the text is too short to tell. */
void report_speedup(const dtl_result *result, double plain, char *out, size_t size);

/* The summary of one text (more lines with --verbose) or of several; status: how the run ended; disturbed: other
 * programs used the processors, so that the speed says nothing about plain decoding's. */
void report_outcome(const job *j, const outcome *out, int status, bool disturbed);

/* A line (not with --quiet) with the ratio of the two speeds, and one where the machine was busy. */
void report_comparison(const job *j, const outcome *out, const outcome *other, const comparison *c);

#endif
