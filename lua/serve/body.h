/* Reads a request's body as JSON, strictly. cJSON accepts more than a client should rely on: it ends a text at a NUL
 * character, reads 01 as 1, keeps the first of two members with the same name, and ignores what follows the value. All
 * of this is refused here. */
#ifndef SERVE_BODY_H
#define SERVE_BODY_H

#include "serve/raw.h"
#include "serve/refusal.h"

#include <cJSON.h>

/* Reads a body, which must be a single JSON object (RFC 8259). Its texts must have no NUL character and no lone
 * surrogate, and no object may have a name twice. *body is narrowed to the object, without the white space around it.
 * False: *why names the place (such as messages[0].content), the byte and the cause. Free *out with cJSON_Delete. */
bool body_read(raw_json *body, cJSON **out, refusal *why);

#endif
