/* The queue of requests, and the thread that owns the pair and serves them. A ticket is a request in it; any thread may
 * hold one. */
#ifndef SERVE_WORK_H
#define SERVE_WORK_H

#include "serve/answer.h"

typedef struct {
  const ask_server *server;
  int slots;   /* texts at once */
  int queue;   /* most requests that wait */
  int seconds; /* most that a request may take, its wait included; 0: any time */
  dtl_learned *learned;
  size_t prefix_cache_bytes; /* at most */
} work_options;

typedef struct work work;
typedef struct ticket ticket;

/* Counters since the start, for /metrics. */
typedef struct {
  long requests, prompt_tokens, cached_tokens, tokens, drafts, drafted, accepted, accepted_at[DT_TREE_VERIFY + 1];
  double prompt_ms, text_ms;
  int processing, deferred; /* texts that run, requests that wait */
  size_t cached_bytes;      /* of the prefix cache, in use */
} work_counts;

dt_status work_open(const work_options *options, work **out, dt_error *err); /* starts the thread */
/* Refuses what waits, lets what runs go on for `grace_ms`, ends the rest, and returns when all tickets have ended. */
void work_stop(work *w, double grace_ms);
void work_close(work *w); /* after work_stop, when nobody holds a ticket; NULL is allowed */
work_counts work_count(work *w);

/* Takes over *a, also when it refuses: NULL, and *why. */
ticket *work_submit(work *w, ask *a, refusal *why);

/* Waits for the first piece of a stream, or for the end of a whole answer, at most `ms`. */
typedef enum { TICKET_WAITS, TICKET_GOES, TICKET_FAILED } ticket_state;
ticket_state ticket_wait(ticket *t, double ms, refusal *why);

/* Waits for more of a stream, at most `ms`, and takes up to size bytes of it. 0: nothing came; -1: it is over. */
long ticket_read(ticket *t, char *bytes, size_t size, double ms);

/* The whole answer, once ticket_wait has said that it goes. */
void ticket_answer(ticket *t, json_text *out);
/* What its texts were, for a line: their tokens, and how the first one ended. False: they failed. */
bool ticket_say(ticket *t, char *out, size_t size);
const ask *ticket_ask(const ticket *t);

/* Nobody wants it any more: its texts end, and it is freed when they have. */
void ticket_leave(ticket *t);

#endif
