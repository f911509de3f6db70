/* Conversations as prompts: messages as JSON, and what a chat template adds to a request. */
#include "files/fail.h"
#include "files/json_text.h"
#include "host.h"

#include <stdlib.h>
#include <string.h>

char *dtl_messages_json(const dtl_message *messages, int n) {
  json_text out = {0};
  if (n < 0 || (n > 0 && !messages)) return NULL;
  json_raw(&out, "[");
  for (int i = 0; i < n; i++) {
    const dtl_message *m = &messages[i];
    json_raw(&out, i ? ",{\"role\":" : "{\"role\":");
    json_string(&out, m->role, strlen(m->role));
    json_raw(&out, ",\"content\":");
    json_string(&out, m->text, m->len);
    if (m->reasoning_len) {
      json_raw(&out, ",\"reasoning_content\":");
      json_string(&out, m->reasoning, m->reasoning_len);
    }
    if (m->members) json_raw(&out, ","), json_raw(&out, m->members);
    json_raw(&out, "}");
  }
  json_raw(&out, "]");
  return json_finish(&out);
}

dt_status dtl_think(const dt_chat *chat, const char *think, const char **settings, dt_error *err) {
  NEED(chat, "chat");
  NEED(settings, "settings");
  *settings = NULL;
  if (!think || strcmp(think, "auto") == 0) return DT_OK;
  const bool on = strcmp(think, "on") == 0;
  if (!on && strcmp(think, "off") != 0)
    return dt_fail(err, DT_EINPUT, "think '%.40s': expected on, off or auto", think);
  if (!dt_chat_mentions(chat, "enable_thinking") && !dt_chat_mentions(chat, "thinking"))
    return dt_fail(err, DT_EINPUT,
                   "think %s: the chat template %.100s cannot turn reasoning on or off: it has no variable "
                   "enable_thinking or thinking",
                   think, dt_chat_name(chat));
  *settings = on ? DT_CHAT_THINK : DT_CHAT_NO_THINK;
  return DT_OK;
}

void dtl_chat_options(const dt_chat *chat, dt_reasoning_state reasoning, bool limited, dtl_request *request) {
  const char *begin, *end;
  if (!request) return;
  request->seq.end = dt_chat_end(chat);
  request->reasoning = reasoning;
  if (!limited || !dt_chat_reasoning(chat, &begin, &end)) return;
  dt_reasoning_limit *limit = &request->seq.adjustments.reasoning;
  limit->begin = begin, limit->end = end, limit->open = reasoning == DT_REASONING_OPEN;
}

dt_status dtl_encode_chat(const dt_pair *pair, const dt_chat *chat, const dt_conversation *conversation, int32_t **ids,
                          int *n, dt_reasoning_state *reasoning, dt_error *err) {
  NEED(reasoning, "reasoning");
  dt_chat_prompt prompt = {0};
  dt_status status = dt_chat_write(chat, conversation, &prompt, err);
  if (!status) status = dt_encode_chat(pair, &prompt, ids, n, err);
  *reasoning = prompt.reasoning;
  dt_chat_prompt_free(&prompt);
  return status;
}

/* ---- calls of tools ---------------------------------------------------------------------------------------------- */

/* Returns whether a grammar may look for the mark of a call in free text: it says where the text ends, so the answer
 * must end with a token of the model, and not every backend has grammars. */
static bool can_look_for_calls(const dt_pair *pair, const dt_chat *chat) {
  const char *end = dt_chat_end(chat);
  int32_t id;
  dt_pair_info info;
  dt_error ignored;
  dt_pair_describe(pair, &info);
  return end && !dtl_token(pair, end, strlen(end), &id, &ignored) && strncmp(info.backend, "cpu", 3) == 0;
}

static int32_t token_at(const void *pair, const char *text, size_t n, size_t *len) {
  return dt_token_at(pair, text, n, len);
}

dt_status dtl_call_grammar(const dt_pair *pair, const dt_chat *chat, const dt_call_format *format, const char *tools,
                           bool required, bool several, dt_reasoning_state reasoning, char **grammar, dt_error *err) {
  NEED(pair, "pair");
  NEED(chat, "chat");
  NEED(grammar, "grammar");
  dt_call_options how = {
      .required = required, .several = several, .open = reasoning == DT_REASONING_OPEN, .token = token_at, .of = pair};
  *grammar = NULL;
  if (!required && !can_look_for_calls(pair, chat)) return DT_OK;
  if (reasoning != DT_REASONING_CLOSED) dt_chat_reasoning(chat, &how.reasoning_begin, &how.reasoning_end);
  dt_status status = dt_call_grammar(format, tools, &how, grammar, err);
  return status == DT_EINPUT && !required ? DT_OK : status;
}
