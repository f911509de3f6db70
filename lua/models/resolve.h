/* Decides which models to load. */
#ifndef DTL_RESOLVE_H
#define DTL_RESOLVE_H

#include "models/found.h"

/* Like dtl_resolve_models, but searches only for drafts of one kind. *found: the draft was searched for, not named. */
dt_status models_resolve(const char *target_option, const char *draft_option, dtl_need need, found_kind kind,
                         char **target, char **draft, bool *found, dt_error *err);

/* Finds a draft by its name: *draft is its path, or the name of a part of the target (exit:N, mtp), malloc'd. NULL:
 * there is no name, or it is "none". */
dt_status models_draft(const char *name, char **draft, dt_error *err);

#endif
