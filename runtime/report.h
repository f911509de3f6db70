/* What main.c tells of a run: the summary, the comparison with another policy, the JSON file. */
#ifndef REPORT_H
#define REPORT_H

#include "host.h"
#include "several.h"

void report_summary(const dtl_result *result); /* one line on standard error */
void report_details(const dtl_result *result); /* more lines */

/* One line on standard error (not when `quiet`) with the ratio of the two speeds. DT_EDEVICE: their tokens differ. */
dt_status report_comparison(const dtl_result *result, const dtl_result *other, bool quiet, dt_error *err);

/* The same for several prompts, of which `places` ran at once. */
void report_sum(const several_sum *sum, int prompts, int places);
void report_sums(const char *policy, const several_sum *sum, const char *other, const several_sum *other_sum);

/* Refuses a --json PATH that could not be written after the run: DT_EINPUT or DT_EIO. "-" is standard output. */
dt_status report_check_path(const char *path, dt_error *err);

/* Writes the result, with `other` (or NULL) as its member "compare". A regular file appears whole or not at all. */
dt_status report_write(const char *path, const dtl_result *result, const dtl_result *other, dt_error *err);

#endif
