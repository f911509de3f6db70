/* Searches the usual folders for a target's draft. */
#ifndef DTL_FOUND_H
#define DTL_FOUND_H

#include "host.h"

/* The kinds to search for: a draft vocabulary needs a model, head_layers need a head. */
typedef enum { FOUND_ANY, FOUND_HEADS, FOUND_MODELS } found_kind;

/* The path of a draft that fits this target (dt_draft_fits), malloc'd; NULL: none. It searches next to the target,
 * among dtrun's own models, and in Hugging Face's cache, and reads the headers of at most FOUND_MOST files. It prefers
 * a head to a model, then the smaller one, then the first one. */
char *found_draft(const char *target, found_kind kind);

#define FOUND_MOST 256

#endif
