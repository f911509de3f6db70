/* Takes whole answers apart: see dtl_answer_read in host.h. */
#include "files/fail.h"
#include "files/json_text.h"
#include "host.h"

#include <stdlib.h>

typedef struct {
  json_text reasoning, rest;
} parts;

static bool on_part(void *user, bool reasoning, const char *bytes, size_t len) {
  parts *p = user;
  json_bytes(reasoning ? &p->reasoning : &p->rest, bytes, len);
  return true;
}

static dt_status split(const dt_chat *chat, dt_reasoning_state state, const char *text, size_t len, parts *p,
                       dt_error *err) {
  dt_reasoning *reasoning;
  dt_status status = dt_reasoning_open(chat, state == DT_REASONING_OPEN, &reasoning, err);
  if (status) return status;
  dt_reasoning_add(reasoning, text, len, on_part, p);
  dt_reasoning_end(reasoning, on_part, p);
  dt_reasoning_close(reasoning);
  json_bytes(&p->reasoning, "", 0), json_bytes(&p->rest, "", 0); /* texts of no bytes end, too */
  return p->reasoning.failed || p->rest.failed ? dtl_fail_memory(err, "an answer") : DT_OK;
}

dt_status dtl_answer_read(const dt_chat *chat, const dt_call_format *format, const char *tools,
                          dt_reasoning_state state, const char *text, size_t len, dtl_answer *out, dt_error *err) {
  NEED(chat, "chat");
  NEED(out, "out");
  parts p = {0};
  *out = (dtl_answer){0};
  dt_status status = split(chat, state, text, len, &p, err);
  if (!status) status = dt_calls_read(format, tools, p.rest.bytes, p.rest.len, &out->called, err);
  free(p.rest.bytes);
  out->reasoning = p.reasoning.bytes, out->reasoning_len = p.reasoning.failed ? 0 : p.reasoning.len;
  if (status) dtl_answer_free(out);
  return status;
}

void dtl_answer_free(dtl_answer *answer) {
  if (!answer) return;
  free(answer->reasoning);
  dt_called_free(&answer->called);
  *answer = (dtl_answer){0};
}
