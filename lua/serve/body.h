/* A request's body as JSON. cJSON forgives more than a client should rely on: it ends a text at a NUL character, reads
 * 01 as 1, keeps the first of two members with one name, and ignores what follows the value. Here all that is refused.
 */
#ifndef SERVE_BODY_H
#define SERVE_BODY_H

#include "serve/raw.h"
#include "serve/refusal.h"

#include <cJSON.h>

/* Reads a body that must be one JSON object (RFC 8259), whose texts have no NUL character and no lone surrogate, and
 * whose objects have no name twice. *body becomes the object's text, without the white space around it. False: *why
 * names the place (messages[0].content), the byte and the cause. Free *out with cJSON_Delete. */
bool body_read(raw_json *body, cJSON **out, refusal *why);

#endif
