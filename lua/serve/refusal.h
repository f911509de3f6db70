/* How a request is refused. */
#ifndef SERVE_REFUSAL_H
#define SERVE_REFUSAL_H

#include "host.h"

#define INVALID "invalid_request_error"

typedef struct {
  int status;       /* 400, 401, 404, 503, .. */
  const char *type; /* "invalid_request_error", ..; static */
  char message[512];
  int prompt_tokens, context; /* of a prompt that the context has no room for; 0: of no other refusal */
} refusal;

refusal refusal_of(const dt_error *err); /* by the kind of the failure */
refusal refusal_say(int status, const char *type, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
