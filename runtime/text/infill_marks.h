/* Finds the tokens of fill-in-the-middle when a tokenizer is loaded. */
#ifndef DT_INFILL_MARKS_H
#define DT_INFILL_MARKS_H

#include "text/tokenizer_parts.h"

/* Sets t->infill to the ids that the file names (named[INFILL_MARKS], -1: none; NULL: no file names any), and otherwise
 * to added tokens with known spellings. If prefix, suffix and middle are found, the tokens for padding, repositories
 * and files also end a text, since they would begin another one. */
dt_status add_infill(tok *t, const int32_t *named, dt_error *err);

#endif
