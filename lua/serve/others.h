/* Fields of the interfaces of OpenAI, llama.cpp and vLLM that dtrun does not implement. It ignores those that would not
 * change the text, and refuses the others by name. */
#ifndef SERVE_OTHERS_H
#define SERVE_OTHERS_H

#include "request/fields.h"
#include "serve/refusal.h"

#include <cJSON.h>

/* Where a field occurs. */
enum {
  IN_MESSAGE = 1024,
  IN_PART = 2048,
  IN_STREAM = 4096,
  IN_TOOL = 8192,
  IN_TOKENS = 1 << 14,
  IN_RESPONSE = 1 << 16,       /* a body of /v1/responses, */
  IN_ITEM = 1 << 17,           /* an item of its input or a part of its `text`, */
  IN_REASONING = 1 << 18,      /* `reasoning` of such a body, `thinking` of the next */
  IN_ANTHROPIC = 1 << 19,      /* a body of /v1/messages */
  IN_INFILL = 1 << 20,         /* a body of /infill */
  IN_OLLAMA = 1 << 21,         /* a body of ollama's API, */
  IN_OLLAMA_OPTIONS = 1 << 22, /* its `options`, */
  IN_OLLAMA_MESSAGE = 1 << 23  /* one of its messages */
};                             /* in addition to the flags of request/fields.h */

/* Returns whether a field that dtrun does not implement may be ignored: always if it is null, otherwise if the table
 * has it with this value. False: *why names the field, with `path` before it ("messages[0]."). */
bool others_pass(const cJSON *field, const char *path, int where, refusal *why);

/* The same for all fields of an object except those in `taken`, a list of names that ends in NULL. */
bool others_pass_all(const cJSON *object, const char *const *taken, const char *path, int where, refusal *why);

#endif
