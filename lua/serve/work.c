/* The queue and the engine's thread: see work.h. One lock protects all tickets; the engine's passes run without it. */
#include "serve/work.h"
#include "serve/api.h"
#include "system/os.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
  ticket *of;
  int index;
  dtl_prompt prompt;
  volatile sig_atomic_t interrupt;
  answer_logprobs kept; /* of a stream: not sent yet */
  answer_parts *parts;  /* of a chat's stream; or NULL */
  dtl_trace *trace;     /* NULL: not wanted */
  answer_offset offset;
  line_state lines;
} text;

struct ticket {
  work *work;
  pthread_cond_t changed; /* signals a change of the ticket */
  ticket *next;           /* the list of all tickets that have not ended, the oldest first */
  ask ask;
  answer_head head;
  dtl_memory *memory; /* its own memory; NULL: the server's, which has texts of other requests */
  text *texts;        /* [n] */
  dtl_result *results;
  json_text *traces; /* [n] of a whole answer: the lines of each trace, separated by commas */
  size_t traced;     /* bytes of all traces */
  int n, begun, ended;
  bool held;     /* a client waits for it */
  bool fails;    /* it has failed, for the reason in `why` */
  bool opened;   /* part of its stream may have been sent */
  json_text out; /* a stream's bytes, */
  size_t taken;  /* and how many of them have been read */
  refusal why;
  double deadline; /* time limit in ms; 0: none */
};

struct work {
  work_options how;
  dtl_engine *engine;
  pthread_t thread;
  bool has_thread;
  pthread_mutex_t lock;
  pthread_cond_t asked; /* signals that there is work */
  ticket *first;
  bool stopping;
  double end; /* in ms: when running texts are ended after work_stop */
  unsigned long numbers;
  work_counts counts;
};

static void free_ticket(ticket *t) {
  for (int i = 0; i < t->n; i++) {
    answer_drop(&t->texts[i].kept);
    parts_close(t->texts[i].parts);
    dtl_trace_close(t->texts[i].trace, NULL);
    dtl_result_free(&t->results[i]);
    free(json_finish(&t->traces[i]));
  }
  if (t->ask.api->close) t->ask.api->close(&t->head);
  ask_free(&t->ask);
  dtl_memory_close(t->memory);
  pthread_cond_destroy(&t->changed);
  free(json_finish(&t->out));
  free(t->texts), free(t->results), free(t->traces), free(t);
}

/* Waits for a change, at most ms. The lock must be held. */
static void wait_told(ticket *t, double ms) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  long long at = until.tv_nsec + (long long)(ms * 1e6);
  until.tv_sec += at / 1000000000, until.tv_nsec = at % 1000000000;
  pthread_cond_timedwait(&t->changed, &t->work->lock, &until);
}

/* ---- in the engine's thread: what texts say ---------------------------------------------------------------------- */

static void fail_ticket(ticket *t, const refusal *why) {
  if (!t->fails) {
    t->why = *why;
    refusal_hide(&t->why, t->head.server->secrets, ASK_SECRETS);
  }
  if (!t->fails && t->ask.stream && t->opened) { t->ask.api->fails(&t->out, &t->head, &t->why); }
  t->fails = true;
  for (int i = 0; i < t->n; i++) t->texts[i].interrupt = 1; /* the other texts are not needed any more */
}

static void open_stream(ticket *t) {
  for (int i = 0; i < t->n && !t->opened; i++) t->ask.api->begins(&t->out, &t->head, i);
  t->opened = true;
}

/* The lock must be held. */
static void on_part(void *user, part_kind kind, int call, const char *bytes, size_t len) {
  text *x = user;
  x->of->ask.api->piece(&x->of->out, &x->of->head, x->index, kind, call, bytes, len, &x->kept, &x->offset);
}

static bool on_text(void *user, const char *bytes, size_t len) {
  text *x = user;
  ticket *t = x->of;
  pthread_mutex_lock(&t->work->lock);
  len = lines_take(&x->lines, &t->ask.lines, bytes, len, dt_clock_ms());
  if (x->lines.ended) x->interrupt = 1;
  if (t->ask.stream && t->held) {
    open_stream(t);
    if (x->parts)
      parts_add(x->parts, bytes, len, on_part, x);
    else
      on_part(x, PART_CONTENT, 0, bytes, len);
    pthread_cond_signal(&t->changed);
  }
  const bool goes_on = !x->interrupt;
  pthread_mutex_unlock(&t->work->lock);
  return goes_on;
}

static void on_logprobs(void *user, const int32_t *ids, const dtl_logprob *list, int n) {
  text *x = user;
  pthread_mutex_lock(&x->of->work->lock);
  if (!answer_keep(&x->kept, ids, list, n)) x->of->out.failed = true;
  pthread_mutex_unlock(&x->of->work->lock);
}

/* Adds a line of a trace. */
static void on_trace(void *user, const char *line) {
  text *x = user;
  ticket *t = x->of;
  json_text *whole = &t->traces[x->index];
  pthread_mutex_lock(&t->work->lock);
  if (t->held && answer_has_room(t->ask.stream ? t->out.len - t->taken : t->traced, strlen(line))) {
    if (t->ask.stream) {
      open_stream(t);
      t->ask.api->traced(&t->out, &t->head, x->index, line);
      pthread_cond_signal(&t->changed);
    } else {
      if (whole->len) json_raw(whole, ",");
      json_raw(whole, line);
      t->traced += strlen(line);
    }
  }
  pthread_mutex_unlock(&t->work->lock);
}

static void count(work_counts *c, const dtl_result *r) {
  const dt_stats *s = &r->stats;
  c->prompt_tokens += s->prompt_tokens - s->cached_tokens, c->cached_tokens += s->cached_tokens;
  c->tokens += s->generated, c->drafts += s->iterations, c->drafted += s->drafted, c->accepted += s->accepted;
  for (int i = 1; i <= DT_TREE_VERIFY && s->verified_at[i]; i++) c->accepted_at[i] += s->accepted_at[i];
  c->prompt_ms += s->prompt_ms, c->text_ms += s->total_ms > s->prompt_ms ? s->total_ms - s->prompt_ms : 0;
}

/* Called when a text has ended; after its last text the ticket leaves the list. The lock must be held. */
static void end_text(text *x, const refusal *why) {
  ticket *t = x->of;
  work *w = t->work;
  if (why) fail_ticket(t, why);
  if (!why && !t->fails && t->ask.stream) {
    open_stream(t);
    parts_end(x->parts, on_part, x);
    t->ask.api->ends(&t->out, &t->head, x->index, &t->results[x->index], parts_calls(x->parts), &x->kept, &x->offset);
  }
  pthread_cond_signal(&t->changed);
  if (++t->ended < t->n) return;
  ticket **at = &w->first;
  while (*at != t) at = &(*at)->next;
  *at = t->next;
  w->counts.requests++;
  if (t->ask.stream && t->opened && !t->fails) t->ask.api->closes(&t->out, &t->head, t->results, t->n);
  if (!t->held) free_ticket(t);
}

static bool done(void *user, int prompt, dtl_result *r) {
  text *x = user;
  work *w = x->of->work;
  refusal why;
  (void)prompt;
  pthread_mutex_lock(&w->lock);
  w->counts.processing--;
  count(&w->counts, r);
  if (r->failed) why = refusal_of(&r->failure);
  bool failed = r->failed;
  if (x->lines.ended && x->lines.len < r->text_len) r->text[r->text_len = x->lines.len] = 0;
  x->of->results[x->index] = *r;
  *r = (dtl_result){0}; /* the result is ours now */
  end_text(x, failed ? &why : NULL);
  pthread_mutex_unlock(&w->lock);
  return true;
}

/* ---- in the engine's thread: the queue --------------------------------------------------------------------------- */

/* Returns the oldest text that has not begun; NULL: there is none. The lock must be held. */
static text *next_text(const work *w) {
  for (ticket *t = w->first; t; t = t->next)
    if (t->begun < t->n) return &t->texts[t->begun];
  return NULL;
}

static dtl_request request_of(const work *w, text *x) {
  const ticket *t = x->of;
  dtl_request r = w->how.server->defaults;
  int answer = x->index % t->ask.in.request.answers;
  struct ask_prompt *prompt = &t->ask.prompts[x->index / t->ask.in.request.answers];
  x->prompt = (dtl_prompt){.ids = prompt->ids, .n_ids = prompt->n};
  r.prompts = &x->prompt, r.n = 1;
  r.seq = t->ask.in.request.seq;
  r.alone = !t->ask.cached;
  r.seq.sampling.seed += (uint64_t)answer;
  if (t->memory) r.memory = t->memory, r.corpus = NULL;
  r.trace = x->trace;
  r.on_text = on_text;
  if (t->ask.stream && t->ask.in.request.seq.logprobs.wanted) r.on_logprobs = on_logprobs;
  r.done = done;
  r.user = x;
  r.interrupt = &x->interrupt;
  return r;
}

/* Begins texts while slots are free. The lock must be held; it is released in between. */
static void begin_texts(work *w) {
  text *x;
  while (dtl_engine_room(w->engine) && (x = next_text(w))) {
    ticket *t = x->of;
    const dtl_policy *policy = t->ask.own ? t->ask.own : w->how.server->policy;
    dt_error err;
    t->begun++;
    if (t->fails || !t->held) {
      refusal gone = refusal_say(499, "cancelled", "the client has left");
      end_text(x, &gone);
      continue;
    }
    dtl_request request = request_of(w, x);
    w->counts.processing++;
    pthread_mutex_unlock(&w->lock);
    dt_status status = dtl_engine_begin(w->engine, policy, &request, &err);
    pthread_mutex_lock(&w->lock);
    if (!status) continue;
    w->counts.processing--;
    refusal why = refusal_of(&err);
    end_text(x, &why);
  }
}

/* Ends texts whose time is over, or all of them when the server stops. The lock must be held. */
static void end_late(work *w) {
  double now = dt_clock_ms();
  refusal stops = refusal_say(503, "unavailable_error", "the server is shutting down");
  for (ticket *t = w->first, *next; t; t = next) {
    next = t->next;
    if ((t->deadline && now > t->deadline) || (w->stopping && now > w->end))
      for (int i = 0; i < t->n; i++) t->texts[i].interrupt = 1;
    while (w->stopping && t->begun < t->n) {
      bool last = t->ended + 1 == t->n;
      end_text(&t->texts[t->begun++], &stops);
      if (last) break; /* the ticket has left the list */
    }
  }
}

static void *serve(void *user) {
  work *w = user;
  int busy = 0;
  pthread_mutex_lock(&w->lock);
  for (;;) {
    while (!busy && !w->first && !w->stopping) pthread_cond_wait(&w->asked, &w->lock);
    end_late(w);
    begin_texts(w);
    if (w->stopping && !w->first) break;
    pthread_mutex_unlock(&w->lock);
    busy = dtl_engine_step(w->engine);
    pthread_mutex_lock(&w->lock);
    w->counts.cached_bytes = dtl_engine_cached_bytes(w->engine);
  }
  pthread_mutex_unlock(&w->lock);
  return NULL;
}

/* ---- for all threads --------------------------------------------------------------------------------------------- */

dt_status work_open(const work_options *o, work **out, dt_error *err) {
  work *w = calloc(1, sizeof *w);
  if (!w) return dt_fail_memory(err, "the queue", sizeof *w);
  w->how = *o;
  pthread_mutex_init(&w->lock, NULL);
  pthread_cond_init(&w->asked, NULL);
  dtl_engine_options engine = {.slots = o->slots, .context = o->server->context, .learned = o->learned};
  engine.prefix_cache_bytes = o->prefix_cache_bytes;
  dt_status status = dtl_engine_open(o->server->pair, &engine, &w->engine, err);
  if (!status) w->has_thread = pthread_create(&w->thread, NULL, serve, w) == 0;
  if (!status && !w->has_thread)
    status = dt_fail(err, DT_EDEVICE, "cannot start the thread of the engine: %s", strerror(errno));
  if (status)
    work_close(w);
  else
    *out = w;
  return status;
}

void work_stop(work *w, double grace_ms) {
  pthread_mutex_lock(&w->lock);
  w->stopping = true;
  w->end = dt_clock_ms() + grace_ms;
  pthread_cond_broadcast(&w->asked);
  pthread_mutex_unlock(&w->lock);
  if (w->has_thread) pthread_join(w->thread, NULL);
  w->has_thread = false;
}

void work_close(work *w) {
  if (!w) return;
  dtl_engine_close(w->engine);
  pthread_cond_destroy(&w->asked);
  pthread_mutex_destroy(&w->lock);
  free(w);
}

work_counts work_count(work *w) {
  pthread_mutex_lock(&w->lock);
  work_counts counts = w->counts;
  for (const ticket *t = w->first; t; t = t->next) counts.deferred += t->begun == 0;
  pthread_mutex_unlock(&w->lock);
  return counts;
}

/* Makes a ticket of *a, of which it takes ownership. NULL: out of memory. */
static ticket *make_ticket(work *w, ask *a) {
  ticket *t = calloc(1, sizeof *t);
  if (!t) {
    ask_free(a);
    return NULL;
  }
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&t->changed, &clock);
  pthread_condattr_destroy(&clock);
  t->work = w, t->ask = *a, t->held = true;
  t->head = (answer_head){.server = w->how.server, .ask = &t->ask, .created = (long)time(NULL)};
  t->n = a->n_prompts * a->in.request.answers;
  t->texts = calloc((size_t)t->n, sizeof *t->texts);
  t->results = calloc((size_t)t->n, sizeof *t->results);
  t->traces = calloc((size_t)t->n, sizeof *t->traces);
  const bool shows = a->has_source || a->trace; /* what its policy may search in */
  if (shows) t->memory = dtl_memory_open();
  bool whole = t->texts && t->results && t->traces && (t->memory || !shows);
  if (!whole) t->n = 0;
  for (int i = 0; i < t->n; i++) {
    t->texts[i].of = t, t->texts[i].index = i;
    if (a->trace && dtl_trace_open_lines(on_trace, &t->texts[i], &t->texts[i].trace, NULL)) whole = false;
    if (a->stream && a->is_chat && !parts_open(t->head.server, &t->ask, &t->texts[i].parts)) whole = false;
  }
  if (whole && a->stream && a->api->open) whole = a->api->open(&t->head);
  if (!whole) {
    free_ticket(t);
    return NULL;
  }
  t->deadline = w->how.seconds ? dt_clock_ms() + w->how.seconds * 1e3 : 0;
  return t;
}

/* A random seed, below 2^53 so that any client can send it back. */
static void choose_seed(ask *a) {
  uint64_t seed = 0;
  dt_sampling *sampling = &a->in.request.seq.sampling;
  if (a->seeded || !(sampling->temp > 0) || !os_random(&seed, sizeof seed)) return;
  sampling->seed = seed >> 11;
}

ticket *work_submit(work *w, ask *a, refusal *why) {
  int waiting = 0;
  choose_seed(a);
  ticket *t = make_ticket(w, a);
  if (!t) {
    *why = refusal_say(500, "server_error", "out of memory: the request");
    return NULL;
  }
  pthread_mutex_lock(&w->lock);
  ticket **last = &w->first;
  for (; *last; last = &(*last)->next) waiting += (*last)->begun < (*last)->n;
  bool full = waiting >= w->how.queue, stops = w->stopping;
  if (!full && !stops) {
    snprintf(t->head.id, sizeof t->head.id, "%s%lx-%lu", t->ask.api->id, w->how.server->started, ++w->numbers);
    *last = t;
    pthread_cond_broadcast(&w->asked);
  }
  pthread_mutex_unlock(&w->lock);
  if (!full && !stops) return t;
  *why = stops ? refusal_say(503, "unavailable_error", "the server is shutting down")
               : refusal_say(503, "unavailable_error", "the queue is full (%d requests): try again later", waiting);
  free_ticket(t);
  return NULL;
}

const ask *ticket_ask(const ticket *t) { return &t->ask; }

/* Returns whether the stream, or the whole answer, can be read now. The lock must be held. */
static bool goes(const ticket *t) { return t->fails || (t->ask.stream && t->opened) || t->ended == t->n; }

ticket_state ticket_wait(ticket *t, double ms, refusal *why) {
  work *w = t->work;
  pthread_mutex_lock(&w->lock);
  if (!goes(t)) wait_told(t, ms);
  bool failed = t->fails && !(t->ask.stream && t->opened);
  ticket_state state = failed ? TICKET_FAILED : goes(t) ? TICKET_GOES : TICKET_WAITS;
  if (failed) *why = t->why;
  pthread_mutex_unlock(&w->lock);
  return state;
}

long ticket_read(ticket *t, char *bytes, size_t size, double ms) {
  work *w = t->work;
  pthread_mutex_lock(&w->lock);
  if (t->taken == t->out.len && !t->out.failed && t->ended < t->n) wait_told(t, ms);
  long n = (long)(t->out.len - t->taken);
  if (t->out.failed || (!n && (t->ended == t->n || t->fails))) {
    n = -1;
  } else if (n) {
    if ((size_t)n > size) n = (long)size;
    memcpy(bytes, t->out.bytes + t->taken, (size_t)n);
    t->taken += (size_t)n;
    if (t->taken == t->out.len) t->taken = t->out.len = 0;
  }
  pthread_mutex_unlock(&w->lock);
  return n;
}

bool ticket_say(ticket *t, char *out, size_t size) {
  long tokens = 0;
  pthread_mutex_lock(&t->work->lock);
  for (int i = 0; i < t->n; i++) tokens += t->results[i].n_tokens;
  const char *s = tokens == 1 ? "" : "s";
  if (t->fails)
    snprintf(out, size, "%ld token%s, then %s", tokens, s, t->why.message);
  else
    snprintf(out, size, "%ld token%s, %s", tokens, s, t->results[0].finish_reason);
  const bool fine = !t->fails;
  pthread_mutex_unlock(&t->work->lock);
  return fine;
}

void ticket_answer(ticket *t, json_text *out) { t->ask.api->whole(out, &t->head, t->results, t->traces, t->n); }

void ticket_leave(ticket *t) {
  work *w = t->work;
  pthread_mutex_lock(&w->lock);
  t->held = false;
  for (int i = 0; i < t->n; i++) t->texts[i].interrupt = 1;
  bool over = t->ended == t->n;
  pthread_mutex_unlock(&w->lock);
  if (over) free_ticket(t);
}
