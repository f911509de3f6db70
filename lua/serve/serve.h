/* dtrun as a server: an OpenAI-compatible address for one pair. */
#ifndef SERVE_H
#define SERVE_H

#include "host.h"

typedef struct {
  const char *host;           /* an address of this machine */
  int port;                   /* 0: any that is free */
  const char *key;            /* NULL: none is asked for */
  int slots;                  /* texts at once */
  int queue;                  /* requests that may wait */
  int seconds;                /* that a request may take; 0: any time */
  size_t prefix_cache_bytes;  /* most bytes of the prefix cache */
  const char *const *origins; /* [n_origins] of pages of other sites that may ask; "*": of any */
  int n_origins;
  void (*say)(const char *line); /* or NULL; gets a line for each refused request, one at a time, from any thread */
  bool says_all;                 /* and for all others */
} serve_options;

/* Whether only this machine reaches an address. */
bool serve_is_local(const char *host);

/* What answers requests. */
typedef struct {
  dt_pair *pair;
  const char *const *models; /* [n_models] its names for clients, at least one */
  int n_models;
  const char *chat;         /* the name of a layout of conversations; NULL: the target's own */
  const dtl_policy *policy; /* for requests that name none */
  /* What requests do not say: options of sequences but for stop strings, biases and a grammar; memory, corpus,
   * begin_line. */
  dtl_request defaults;
  int context;
  dtl_learned *learned;
} serve_pair;

typedef struct server server;

/* Listens, and answers "loading" until serve_run. The texts of options must last until serve_close. DT_EINPUT: the
 * address cannot be had. */
dt_status serve_open(const serve_options *options, server **out, dt_error *err);
int serve_port(const server *s);

/* Serves until *stop is not zero; then what runs may go on for ten seconds, and the rest is refused. `ready` is called
 * when it begins. */
dt_status serve_run(server *s, const serve_pair *what, const volatile sig_atomic_t *stop, void (*ready)(void *user),
                    void *user, dt_error *err);
void serve_close(server *s); /* NULL is allowed */

#endif
