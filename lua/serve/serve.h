/* dtrun as a server: an OpenAI-compatible HTTP interface for one pair. */
#ifndef SERVE_H
#define SERVE_H

#include "host.h"

typedef struct {
  const char *host;           /* the address of this machine at which to listen */
  int port;                   /* 0: any free port */
  const char *key;            /* NULL: clients need no key */
  int slots;                  /* texts that are generated at once */
  int queue;                  /* maximum number of requests that wait */
  int seconds;                /* maximum time of a request; 0: no limit */
  size_t prefix_cache_bytes;  /* maximum size of the prefix cache */
  const char *const *origins; /* [n_origins] origins whose web pages may use the server; "*": all */
  int n_origins;
  void (*say)(const char *line); /* or NULL; gets a line for each refused request, from any thread, one at a time */
  bool says_all;                 /* lines for all requests, not only refused ones */
} serve_options;

/* Returns whether an address can be reached from this machine only. */
bool serve_is_local(const char *host);

/* The pair that answers requests, and how. */
typedef struct {
  dt_pair *pair;
  const char *const *models; /* [n_models] names of the model for clients, at least one */
  int n_models;
  const char *chat;         /* name or file of the chat template; NULL: the target's own */
  const char *think;        /* of conversations: on, off, or NULL (dtl_think) */
  const char *variables;    /* a JSON object of variables of the template; NULL: none */
  bool template_raw;        /* messages may contain control tokens */
  const dtl_policy *policy; /* for requests that name no policy */
  /* Defaults for what requests leave out: the options of sequences, except stop strings, biases and a grammar; memory,
   * corpus and begin_line. */
  dtl_request defaults;
  int context;
  dtl_learned *learned;
} serve_pair;

typedef struct server server;

/* Listens, and answers every request with "loading" until serve_run. The texts of the options must last until
 * serve_close. DT_EINPUT: it cannot listen at the address. */
dt_status serve_open(const serve_options *options, server **out, dt_error *err);
int serve_port(const server *s);

/* Serves requests until *stop is not zero. Running requests may then continue for ten seconds, and all others are
 * refused. `ready` is called when serving begins. */
dt_status serve_run(server *s, const serve_pair *what, const volatile sig_atomic_t *stop, void (*ready)(void *user),
                    void *user, dt_error *err);
void serve_close(server *s); /* NULL is allowed */

#endif
