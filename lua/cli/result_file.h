/* Writes the file of --json; "-" is standard output. */
#ifndef RESULT_FILE_H
#define RESULT_FILE_H

#include "cli/compare.h"

/* Refuses a path that could not be written after the run: DT_EINPUT or DT_EIO. */
dt_status json_check_path(const char *path, dt_error *err);

/* Writes the result. `other` (or NULL) and the comparison become its member "compare". A regular file is written
 * completely or not at all. */
dt_status json_write(const char *path, const dtl_result *result, const dtl_result *other, const comparison *compared,
                     dt_error *err);

#endif
