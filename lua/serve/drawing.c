/* See drawing.h. A single bridge to Lua serves all requests, one at a time, which limits the memory for drawings. */
#include "serve/drawing.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MOST (1u << 20) /* maximum number of bytes of a body */

struct drawing {
  pthread_mutex_t lock;
  dtl_bridge *bridge;
};

drawing *drawing_open(void) {
  drawing *d = calloc(1, sizeof *d);
  if (!d) return NULL;
  pthread_mutex_init(&d->lock, NULL);
  d->bridge = dtl_bridge_open();
  if (d->bridge) return d;
  drawing_close(d);
  return NULL;
}

void drawing_close(drawing *d) {
  if (!d) return;
  dtl_bridge_close(d->bridge);
  pthread_mutex_destroy(&d->lock);
  free(d);
}

/* Returns the message of an answer that is an error. */
static refusal refusal_in(const char *answer) {
  cJSON *root = cJSON_Parse(answer);
  const cJSON *error = cJSON_GetObjectItemCaseSensitive(root, "error");
  const char *message = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(error, "message"));
  refusal why = refusal_say(400, "invalid_request_error", "%s", message ? message : "no trace");
  cJSON_Delete(root);
  return why;
}

bool drawing_run(drawing *d, const char *body, size_t len, json_text *out, refusal *why) {
  static const char drawn[] = "{\"value\":";
  if (len > MOST) {
    *why = refusal_say(413, "invalid_request_error", "the body is longer than 1 MiB: send fewer iterations at once");
    return false;
  }
  pthread_mutex_lock(&d->lock);
  char *answer = dtl_bridge_call(d->bridge, "draw", body, NULL, NULL);
  pthread_mutex_unlock(&d->lock);
  bool fine = answer && strncmp(answer, drawn, sizeof drawn - 1) == 0;
  if (fine)
    json_raw(out, answer);
  else
    *why = answer ? refusal_in(answer) : refusal_say(500, "server_error", "out of memory: the drawing");
  dtl_bridge_free(answer);
  return fine;
}
