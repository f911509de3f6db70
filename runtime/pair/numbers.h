/* Searches weights for NaN and infinities. Called only after a model has given NaN, since it takes as long as
 * loading. */
#ifndef DT_NUMBERS_H
#define DT_NUMBERS_H

#include "system/status.h"

/* DT_EINPUT names file and tensor of the first number of the checkpoint at `path` that is NaN or infinite. DT_OK: there
 * is none. Otherwise as model_open and source_read fail. */
dt_status numbers_check(const char *path, dt_error *err);

#endif
