/* Writing conversations: see chat.h. */
#include "chat/parts.h"
#include "chat/space.h"
#include "system/need.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

/* The message of a template's failure begins with its line, or is what the template itself says. */
dt_status chat_fail(const char *name, dt_status status, const dt_error *inner, dt_error *err) {
  if (strncmp(inner->message, "line ", 5) == 0)
    return dt_fail(err, status, "chat template %.100s, %s", name, inner->message);
  return dt_fail(err, status, "%s", inner->message);
}

enum { OWN_VARIABLES = 5 };

/* answer: add_generation_prompt. */
static dt_status run(const dt_chat *c, const dt_conversation *q, const char *messages, bool answer,
                     template_output *out, dt_error *err) {
  template_variable v[OWN_VARIABLES + DT_CHAT_SETTINGS] = {
      {NULL, c->tokens, strlen(c->tokens), TEMPLATE_OWN},
      {"messages", messages, strlen(messages), TEMPLATE_MESSAGES},
      {"tools", q->tools ? q->tools : "null", 0, TEMPLATE_REQUEST},
      {"documents", q->documents ? q->documents : "null", 0, TEMPLATE_REQUEST},
      {"add_generation_prompt", answer ? "true" : "false", 0, TEMPLATE_OWN},
  };
  for (int i = 0; i < q->n_settings; i++)
    v[OWN_VARIABLES + i] = (template_variable){NULL, q->settings[i], 0, TEMPLATE_REQUEST};
  for (int i = 2; i < OWN_VARIABLES + q->n_settings; i++) v[i].len = strlen(v[i].json);
  struct tm now;
  time_t time_now = time(NULL);
  const struct tm *day = q->now ? q->now : localtime_r(&time_now, &now);
  dt_error inner;
  dt_status status =
      template_render(q->tools && c->tools ? c->tools : c->main, v, OWN_VARIABLES + q->n_settings, day, out, &inner);
  return status ? chat_fail(c->name, status, &inner, err) : DT_OK;
}

/* Is appended to the message that the answer continues, and cut off with all that follows. The space shows whether the
 * template trims messages. As in Hugging Face transformers. */
#define TAG "CONTINUE_FINAL_MESSAGE_TAG "

static size_t trimmed(const char *text, size_t n) {
  while (n > 0 && chat_is_space(text[n - 1])) n--;
  return n;
}

static dt_status cut_at_tag(const dt_chat *c, template_output *out, dt_error *err) {
  const size_t len = strlen(TAG);
  size_t at = out->len + 1;
  for (size_t i = 0; i + len - 1 <= out->len; i++)
    if (memcmp(out->text + i, TAG, len - 1) == 0) at = i;
  if (at > out->len)
    return dt_fail(err, DT_EINPUT, "the chat template %.100s does not write the message that is to be continued",
                   c->name);
  if (out->text[at + len - 1] != ' ') at = trimmed(out->text, at);
  out->text[out->len = at] = '\0';
  while (out->n_marked > 0 && out->marked[out->n_marked - 1].begin >= at) out->n_marked--;
  if (out->n_marked > 0 && out->marked[out->n_marked - 1].end > at) out->marked[out->n_marked - 1].end = at;
  return DT_OK;
}

static bool ends_with(const char *text, size_t n, const char *mark) {
  const size_t len = strlen(mark);
  return n >= len && memcmp(text + n - len, mark, len) == 0;
}

static dt_reasoning_state reasoning_of(const dt_chat *c, const template_output *out) {
  const size_t n = trimmed(out->text, out->len);
  if (!c->reasoning_begin) return DT_REASONING_FREE;
  return ends_with(out->text, n, c->reasoning_begin)  ? DT_REASONING_OPEN
         : ends_with(out->text, n, c->reasoning_mark) ? DT_REASONING_CLOSED
                                                      : DT_REASONING_FREE;
}

static dt_status write_next(const dt_chat *c, const dt_conversation *q, template_output *out, dt_error *err) {
  char *messages = NULL;
  bool goes_on;
  dt_status status = chat_messages(q->messages, c, q->next, TAG, &messages, &goes_on, err);
  if (!status) status = run(c, q, messages, !goes_on && q->next != DT_CHAT_NOTHING, out, err);
  if (!status && goes_on) status = cut_at_tag(c, out, err);
  cJSON_free(messages);
  return status;
}

dt_status dt_chat_write(const dt_chat *c, const dt_conversation *q, dt_chat_prompt *out, dt_error *err) {
  NEED(c, "chat");
  NEED(q, "conversation");
  NEED(q->messages, "messages");
  NEED_LIST(q->settings, q->n_settings, "settings");
  NEED(out, "out");
  if (q->n_settings > DT_CHAT_SETTINGS)
    return dt_fail(err, DT_EINPUT, "%d objects of settings, expected at most %d", q->n_settings, DT_CHAT_SETTINGS);
  template_output written = {0};
  dt_status status = write_next(c, q, &written, err);
  if (status) {
    template_output_free(&written);
    return status;
  }
  if (q->raw) written.n_marked = 0;
  *out = (dt_chat_prompt){.text = written.text,
                          .len = written.len,
                          .plain = written.marked,
                          .n_plain = written.n_marked,
                          .reasoning = reasoning_of(c, &written)};
  return DT_OK;
}

void dt_chat_prompt_free(dt_chat_prompt *prompt) {
  if (!prompt) return;
  free(prompt->text);
  free(prompt->plain);
  *prompt = (dt_chat_prompt){0};
}
