/* Which models to load, and whether the draft was named or found. */
#ifndef DTL_MODELS_H
#define DTL_MODELS_H

#include "models/found.h"

/* As dtl_resolve_models; what may be found is of that kind. *found: nobody named the draft. */
dt_status models_resolve(const char *target_option, const char *draft_option, dtl_need need, found_kind kind,
                         char **target, char **draft, bool *found, dt_error *err);

#endif
