/* The choice behind dtl_resolve_models, without its demand for a draft. */
#ifndef DTL_MODELS_H
#define DTL_MODELS_H

#include "fail.h"

/* *target and *draft are malloc'd; *draft is NULL where only a target was named. */
bool models_choose(const char *target_option, const char *draft_option, char **target, char **draft, dtl_error *err);

#endif
