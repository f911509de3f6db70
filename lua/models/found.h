/* Searches the usual folders for a draft that fits a target. */
#ifndef DTL_FOUND_H
#define DTL_FOUND_H

#include "host.h"

/* What to search for: --head-layers needs a head. */
typedef enum { FOUND_ANY, FOUND_HEADS } found_kind;

/* Returns the path of a draft that fits this target (dt_draft_fits), malloc'd; NULL: there is none. It searches next to
 * the target, among dtrun's own models, and in Hugging Face's cache, and reads the headers of at most FOUND_MOST files.
 * It prefers heads to models, then small ones to large ones, then those found first. */
char *found_draft(const char *target, found_kind kind);

#define FOUND_MOST 256

#endif
