/* The routes, as the HTTP side sees them: what a request asks for, and its answer. */
#ifndef SERVE_HTTP_H
#define SERVE_HTTP_H

#include "serve/serve.h"
#include "serve/work.h"

typedef struct route route;
typedef struct routes routes; /* the state from which routes answer */

typedef struct {
  const char *url; /* the requested URL */
  int status;
  const char *type; /* static */
  json_text text;
  ticket *ticket; /* or NULL; instead of a text: the caller waits for the ticket, and leaves it in the end */
} route_answer;

dt_status routes_open(const serve_options *options, const serve_pair *what, routes **out, dt_error *err);
void routes_stop(routes *r, double grace_ms); /* see work_stop */
void routes_close(routes *r);

/* Finds the route of a request; NULL: there is none, and *why says so. */
const route *route_find(const char *method, const char *url, refusal *why);
bool route_is_public(const route *r); /* it is served without a key */
/* Writes a refusal in the form of the API that the URL belongs to: that of the route with the most similar one. */
void route_refuse(const char *url, const refusal *why, json_text *out);
bool route_run(const route *r, routes *all, const char *body, size_t len, route_answer *out, refusal *why);

#endif
