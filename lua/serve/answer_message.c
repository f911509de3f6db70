/* Messages: see answer_message.h. */
#include "serve/answer_message.h"

#include <stdlib.h>

static void free_call(message_call *call) {
  free(call->name.bytes), free(call->arguments.bytes);
  *call = (message_call){0};
}

static void begin_call(answer_message *m, const char *name, size_t len) {
  message_call *grown = realloc(m->calls, sizeof *grown * ((size_t)m->n_calls + 1));
  if (!grown) {
    m->failed = true;
    return;
  }
  m->calls = grown;
  m->calls[m->n_calls] = (message_call){0};
  json_bytes(&m->calls[m->n_calls].name, name, len);
  m->open = true;
}

void message_add(answer_message *m, part_kind kind, const char *bytes, size_t len) {
  if (m->failed) return;
  switch (kind) {
  case PART_CONTENT: json_bytes(&m->content, bytes, len); break;
  case PART_REASONING: json_bytes(&m->reasoning, bytes, len); break;
  case PART_CALL: begin_call(m, bytes, len); break;
  case PART_ARGUMENTS: json_bytes(&m->calls[m->n_calls].arguments, bytes, len); break;
  case PART_END:
    m->failed = m->calls[m->n_calls].name.failed || m->calls[m->n_calls].arguments.failed;
    m->n_calls++;
    m->open = false;
    break;
  case PART_BROKEN:
    free_call(&m->calls[m->n_calls]);
    m->open = false;
    json_bytes(&m->content, bytes, len);
  }
  m->failed = m->failed || m->content.failed || m->reasoning.failed;
}

static void on_part(void *user, part_kind kind, int call, const char *bytes, size_t len) {
  (void)call;
  message_add(user, kind, bytes, len);
}

bool message_read(const answer_head *head, const dtl_result *r, answer_message *out) {
  answer_parts *parts;
  *out = (answer_message){0};
  if (!parts_open(head->server, head->ask, &parts)) return false;
  parts_add(parts, r->text, r->text_len, on_part, out);
  parts_end(parts, on_part, out);
  parts_close(parts);
  return !out->failed;
}

void message_free(answer_message *m) {
  for (int i = 0; i < m->n_calls + m->open; i++) free_call(&m->calls[i]); /* a client may leave within a call */
  free(m->calls), free(m->content.bytes), free(m->reasoning.bytes);
  *m = (answer_message){0};
}
