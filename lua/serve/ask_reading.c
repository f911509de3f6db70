/* What the readers of a request's fields share: see ask_reading.h. */
#include "serve/ask_reading.h"

bool ask_wrong(reading *r, const char *expected) {
  *r->why = refusal_say(400, INVALID, "%s: expected %s", r->name, expected);
  return false;
}

bool ask_failed(reading *r, const dt_error *err) {
  *r->why = refusal_of(err);
  return false;
}

/* Returns whether a step succeeded. */
bool ask_done(reading *r, dt_status status, const dt_error *err) { return !status || ask_failed(r, err); }

bool ask_starved(reading *r) {
  *r->why = refusal_say(500, "server_error", "out of memory: the request");
  return false;
}
