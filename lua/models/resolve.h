/* Chooses the models to load. */
#ifndef DTL_RESOLVE_H
#define DTL_RESOLVE_H

#include "models/found.h"

/* As dtl_resolve_models; searches for drafts of that kind. *found: the draft was searched for, not named. */
dt_status models_resolve(const char *target_option, const char *draft_option, dtl_need need, found_kind kind,
                         char **target, char **draft, bool *found, dt_error *err);

/* The path of a draft by its name, or the name of a part of the target: malloc'd. NULL: no name, or "none". */
dt_status models_draft(const char *name, char **draft, dt_error *err);

#endif
