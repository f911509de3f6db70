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

/* A text of messages that clients do not get, and what they get instead. */
typedef struct {
  char *text; /* NULL: none */
  const char *shown;
} refusal_secret;

/* Replaces each of n secrets in the message. */
void refusal_hide(refusal *why, const refusal_secret *secrets, int n);

refusal refusal_of(const dt_error *err); /* by the kind of the failure */
refusal refusal_say(int status, const char *type, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
