/* Refusals: see refusal.h. */
#include "serve/refusal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

refusal refusal_say(int status, const char *type, const char *format, ...) {
  char line[sizeof((refusal *)0)->message];
  refusal why = {.status = status, .type = type};
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  dtl_clean(why.message, sizeof why.message, line, n < 0 ? 0 : strlen(line));
  return why;
}

refusal refusal_of(const dt_error *err) {
  switch (err->status) {
  case DT_EINPUT:
  case DT_EPOLICY: return refusal_say(400, INVALID, "%s", err->message);
  case DT_ECONTEXT: return refusal_say(400, "exceed_context_size_error", "%s", err->message);
  default: return refusal_say(500, "server_error", "%s", err->message);
  }
}

static void hide(refusal *why, const char *text, const char *shown) {
  char line[sizeof why->message];
  const size_t n = strlen(text);
  for (char *from = why->message, *at; (at = strstr(from, text)); from = at + strlen(shown)) {
    snprintf(line, sizeof line, "%.*s%s%s", (int)(at - why->message), why->message, shown, at + n);
    size_t len = dtl_clean(why->message, sizeof why->message, line, strlen(line));
    if ((size_t)(at - why->message) + strlen(shown) > len) return; /* the message is full */
  }
}

void refusal_hide(refusal *why, const refusal_secret *secrets, int n) {
  for (int i = 0; i < n; i++)
    if (secrets[i].text) hide(why, secrets[i].text, secrets[i].shown);
}
