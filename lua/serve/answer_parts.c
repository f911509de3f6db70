/* Parts of answers: see answer_parts.h. */
#include "serve/answer_parts.h"

#include <stdlib.h>

struct answer_parts {
  dt_reasoning *reasoning; /* NULL: reasoning stays in the content */
  dt_calls *calls;         /* NULL: the request has no tools */
  bool several;            /* more than one call is wanted */
  int complete;
  parts_on_part on_part; /* of the call that is running */
  void *user;
};

/* Whether an answer begins inside reasoning. A grammar for calls leaves reasoning free; any other begins with the first
 * token. */
static bool begins_inside(const ask *asked) {
  const bool held = asked->in.request.seq.adjustments.grammar && !asked->tools.list;
  return asked->reasoning == DT_REASONING_OPEN && !held;
}

bool parts_open(const ask_server *server, const ask *asked, answer_parts **out) {
  answer_parts *s = calloc(1, sizeof *s);
  dt_error err;
  const bool open = begins_inside(asked);
  *out = s;
  if (!s) return false;
  s->several = asked->tools.several;
  bool fine = asked->whole || !dt_reasoning_open(server->chat, open, &s->reasoning, &err);
  if (fine && asked->tools.list) fine = !dt_calls_open(server->calls, asked->tools.list, &s->calls, &err);
  if (!fine) parts_close(s), *out = NULL;
  return fine;
}

void parts_close(answer_parts *s) {
  if (!s) return;
  dt_reasoning_close(s->reasoning);
  dt_calls_close(s->calls);
  free(s);
}

int parts_calls(const answer_parts *s) { return s ? s->complete : 0; }

static bool on_call(void *user, dt_call_part part, int call, const char *bytes, size_t len) {
  static const part_kind kinds[] = {[DT_CALL_CONTENT] = PART_CONTENT,
                                    [DT_CALL_BEGIN] = PART_CALL,
                                    [DT_CALL_ARGUMENTS] = PART_ARGUMENTS,
                                    [DT_CALL_END] = PART_END,
                                    [DT_CALL_BROKEN] = PART_BROKEN};
  answer_parts *s = user;
  if (part != DT_CALL_CONTENT && call > 0 && !s->several) return true;
  if (part == DT_CALL_END) s->complete++;
  s->on_part(s->user, kinds[part], call, bytes, len);
  return true;
}

static bool on_reasoned(void *user, bool reasoning, const char *bytes, size_t len) {
  answer_parts *s = user;
  if (reasoning)
    s->on_part(s->user, PART_REASONING, 0, bytes, len);
  else if (s->calls)
    dt_calls_add(s->calls, bytes, len, on_call, s);
  else
    s->on_part(s->user, PART_CONTENT, 0, bytes, len);
  return true;
}

void parts_add(answer_parts *s, const char *bytes, size_t len, parts_on_part on_part, void *user) {
  if (len == 0) return;
  s->on_part = on_part, s->user = user;
  if (s->reasoning)
    dt_reasoning_add(s->reasoning, bytes, len, on_reasoned, s);
  else
    on_reasoned(s, false, bytes, len);
}

void parts_end(answer_parts *s, parts_on_part on_part, void *user) {
  if (!s) return;
  s->on_part = on_part, s->user = user;
  dt_reasoning_end(s->reasoning, on_reasoned, s);
  if (s->calls) dt_calls_end(s->calls, on_call, s);
}

typedef struct {
  bool reasoned, over; /* there was reasoning; it has ended */
} counting;

static bool on_counted(void *user, bool reasoning, const char *bytes, size_t len) {
  counting *c = user;
  (void)bytes;
  c->reasoned = c->reasoned || (reasoning && len);
  c->over = c->over || (!reasoning && len);
  return true;
}

int parts_reasoning_tokens(const ask_server *server, const ask *asked, const dtl_result *r) {
  counting c = {0};
  dt_reasoning *split;
  dt_error err;
  char buffer[16];
  size_t len;
  int n = 0;
  if (asked->whole || !asked->is_chat) return 0;
  if (dt_reasoning_open(server->chat, begins_inside(asked), &split, &err)) return -1;
  for (; n < r->n_tokens; n++) {
    const char *bytes = dt_token_bytes(server->pair, r->tokens[n], n == 0, buffer, &len);
    dt_reasoning_add(split, bytes, len, on_counted, &c);
    if (c.over) break; /* this token is not reasoning */
  }
  dt_reasoning_close(split);
  return c.reasoned ? n : 0;
}
