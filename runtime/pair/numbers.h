/* Searches weights for NaN and infinities. Called only after a model has returned NaN, since it takes as long as
 * loading the model. */
#ifndef DT_NUMBERS_H
#define DT_NUMBERS_H

#include "system/status.h"

/* Searches the checkpoint at `path`. DT_OK: all weights are finite. DT_EINPUT: the message names the file and tensor of
 * the first number that is NaN or infinite. It also fails as model_open and source_read do. */
dt_status numbers_check(const char *path, dt_error *err);

#endif
