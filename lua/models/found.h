/* Drafts that belong to a target and lie where models lie. */
#ifndef DTL_FOUND_H
#define DTL_FOUND_H

#include "host.h"

/* Which kinds may be found: a head takes no draft vocabulary, a model reads no layers. */
typedef enum { FOUND_ANY, FOUND_HEADS, FOUND_MODELS } found_kind;

/* The path of the draft whose files say that it belongs to this target (dt_draft_fits), malloc'd; NULL: there is none. Looked for
 * beside the target, among the models that come with us, and in Hugging Face's cache. Of several: a head before a model, then
 * the smaller one, then the one seen first. Headers are read, of FOUND_MOST files at most. */
char *found_draft(const char *target, found_kind kind);

#define FOUND_MOST 256

#endif
