/* The queue of requests, and the thread that owns the pair and serves them. A ticket stands for a request in the queue;
 * any thread may hold one. */
#ifndef SERVE_WORK_H
#define SERVE_WORK_H

#include "serve/answer.h"

typedef struct {
  const ask_server *server;
  int slots;   /* texts that are generated at once */
  int queue;   /* maximum number of requests that wait */
  int seconds; /* maximum time of a request, waiting included; 0: no limit */
  dtl_learned *learned;
  size_t prefix_cache_bytes; /* maximum size of the prefix cache */
} work_options;

typedef struct work work;
typedef struct ticket ticket;

/* Counters since the start, for the route /metrics. */
typedef struct {
  long requests, prompt_tokens, cached_tokens, tokens, drafts, drafted, accepted, accepted_at[DT_TREE_VERIFY + 1];
  double prompt_ms, text_ms;
  int processing, deferred; /* running texts, waiting requests */
  size_t cached_bytes;      /* present size of the prefix cache */
} work_counts;

dt_status work_open(const work_options *options, work **out, dt_error *err); /* starts the thread */
/* Refuses waiting requests, lets running ones continue for `grace_ms`, ends the rest, and returns when all tickets have
 * ended. */
void work_stop(work *w, double grace_ms);
void work_close(work *w); /* call it after work_stop, when nobody holds a ticket; NULL is allowed */
work_counts work_count(work *w);

/* Adds a request to the queue and takes ownership of *a. NULL: the request is refused, and *why says why; *a is freed
 * then too. */
ticket *work_submit(work *w, ask *a, refusal *why);

/* Waits for the first piece of a stream or for the end of a whole answer, at most `ms`. TICKET_GOES: it is there. */
typedef enum { TICKET_WAITS, TICKET_GOES, TICKET_FAILED } ticket_state;
ticket_state ticket_wait(ticket *t, double ms, refusal *why);

/* Waits for more of a stream, at most `ms`, and reads up to size bytes of it. 0: nothing came; -1: the stream is
 * over. */
long ticket_read(ticket *t, char *bytes, size_t size, double ms);

/* Writes the whole answer, after ticket_wait has returned TICKET_GOES. */
void ticket_answer(ticket *t, json_text *out);
/* Writes a summary of its texts for the log: the number of tokens, and how the first text ended. False: they failed. */
bool ticket_say(ticket *t, char *out, size_t size);
const ask *ticket_ask(const ticket *t);

/* Gives up a ticket. Its texts end, and it is freed when they have ended. */
void ticket_leave(ticket *t);

#endif
