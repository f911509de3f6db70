/* The answer to a request that is refused. */
#ifndef SERVE_REFUSAL_H
#define SERVE_REFUSAL_H

#include "host.h"

#define INVALID "invalid_request_error"

typedef struct {
  int status;       /* 400, 401, 404, 503, .. */
  const char *type; /* "invalid_request_error", ..; static */
  char message[512];
  int prompt_tokens, context; /* if the prompt does not fit into the context, their numbers of tokens; otherwise 0 */
} refusal;

/* A text that messages to clients must not contain, and the text to show instead. */
typedef struct {
  char *text; /* NULL: none */
  const char *shown;
} refusal_secret;

/* Replaces secrets[n] in the message. */
void refusal_hide(refusal *why, const refusal_secret *secrets, int n);

refusal refusal_of(const dt_error *err); /* with status and type by the kind of the failure */
refusal refusal_say(int status, const char *type, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
