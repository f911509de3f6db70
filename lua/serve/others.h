/* The fields of OpenAI's, llama.cpp's and vLLM's interfaces that dtrun does not take: those that it ignores, since they
 * change no text here, and those that it refuses by name, since they would. */
#ifndef SERVE_OTHERS_H
#define SERVE_OTHERS_H

#include "request/fields.h"
#include "serve/refusal.h"

#include <cJSON.h>

/* Where a field stands. */
enum {
  IN_MESSAGE = 1024,
  IN_PART = 2048,
  IN_STREAM = 4096,
  IN_TOKENS = 8192
}; /* in addition to those of request/fields.h */

/* Whether a field that is not taken may be there: null always, a field of the table unless its value would change the
 * text. False: *why names it, with `path` before it ("messages[0]."). */
bool others_pass(const cJSON *field, const char *path, int where, refusal *why);

/* The same for all fields of an object but those that are taken: names, NULL at the end. */
bool others_pass_all(const cJSON *object, const char *const *taken, const char *path, int where, refusal *why);

#endif
