/* Whole answers with calls: see calls.h. */
#include "chat/call_format.h"
#include "system/need.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  dt_called *to;
  char *arguments; /* of the call that is being read */
  size_t n;
  bool no_memory;
} collector;

static bool add_call(collector *c, const char *name, size_t len) {
  dt_call *grown = realloc(c->to->calls, ((size_t)c->to->n_calls + 1) * sizeof *grown);
  if (!grown) return false;
  c->to->calls = grown;
  grown[c->to->n_calls] = (dt_call){.name = strndup(name, len)};
  if (!grown[c->to->n_calls].name) return false;
  c->to->n_calls++;
  return true;
}

static void drop_call(collector *c) {
  free(c->arguments);
  c->arguments = NULL, c->n = 0;
  free(c->to->calls[--c->to->n_calls].name);
}

static bool collect(void *user, dt_call_part part, int index, const char *bytes, size_t len) {
  collector *c = user;
  (void)index;
  bool fine = true;
  switch (part) {
  case DT_CALL_BEGIN: fine = add_call(c, bytes, len); break;
  case DT_CALL_ARGUMENTS: fine = call_put_bytes(bytes, len, &c->arguments, &c->n); break;
  case DT_CALL_END:
    c->to->calls[c->to->n_calls - 1].arguments = c->arguments;
    c->arguments = NULL, c->n = 0;
    break;
  case DT_CALL_BROKEN: drop_call(c); /* fall through */
  case DT_CALL_CONTENT: fine = call_put_bytes(bytes, len, &c->to->content, &c->to->len); break;
  }
  if (!fine) c->no_memory = true;
  return fine;
}

dt_status dt_calls_read(const dt_call_format *format, const char *tools, const char *answer, size_t len, dt_called *out,
                        dt_error *err) {
  NEED(format, "format");
  NEED_TEXT(answer, len, "answer");
  NEED(out, "out");
  dt_calls *s;
  *out = (dt_called){0};
  dt_status status = dt_calls_open(format, tools, &s, err);
  if (status) return status;
  collector c = {.to = out, .no_memory = !call_put_bytes("", 0, &out->content, &out->len)};
  if (!c.no_memory && dt_calls_add(s, answer, len, collect, &c)) dt_calls_end(s, collect, &c);
  dt_calls_close(s);
  free(c.arguments);
  if (!c.no_memory) return DT_OK;
  dt_called_free(out);
  return dt_fail_memory(err, "the calls of an answer", len);
}

void dt_called_free(dt_called *called) {
  if (!called) return;
  for (int i = 0; i < called->n_calls; i++) free(called->calls[i].name), free(called->calls[i].arguments);
  free(called->calls), free(called->content);
  *called = (dt_called){0};
}
