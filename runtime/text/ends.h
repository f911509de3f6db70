/* Tokens that are known to end a text. */
#ifndef DT_ENDS_H
#define DT_ENDS_H

#include "text/tokenizer_parts.h"

/* Adds the added tokens that are known to end a text to t->ends. This is needed because a file names at most one, and
 * chat models end their turns with others. */
dt_status add_known_ends(tok *t, dt_error *err);

#endif
