/* Builds a tokenizer: both loaders add its parts with these. */
#ifndef DT_STEPS_H
#define DT_STEPS_H

#include "text/tokenizer_parts.h"

/* Add a step. Strings are copied; NULL if the kind does not use them. */
dt_status add_normalize(tok *t, normalize_kind kind, const char *from, const char *to, dt_error *err);
dt_status add_decode(tok *t, decode_kind kind, const char *from, const char *to, const char *to_first, dt_error *err);

dt_status add_split(tok *t, split_step step, dt_error *err); /* takes over the step's pattern, even if it fails */
dt_status add_pattern(tok *t, const char *pattern, split_keep keep, dt_error *err);

dt_status add_before(tok *t, int32_t id, dt_error *err);
dt_status add_end(tok *t, int32_t id, dt_error *err); /* does nothing if it is there already */

#endif
