/* Any bytes as a chat template, a NUL, a JSON list of messages, a NUL and a JSON object of variables. What opens is
 * asked for the conversation, and a message that a template writes keeps its marks in order. */
#include "fuzz.h"

#include "chat/chat.h"

/* Copies the bytes up to the next NUL. */
static char *next(const uint8_t **bytes, size_t *size) {
  const uint8_t *end = memchr(*bytes, 0, *size);
  size_t len = end ? (size_t)(end - *bytes) : *size;
  char *text = strndup((const char *)*bytes, len);
  *size -= len + (end != NULL);
  *bytes += len + (end != NULL);
  return text;
}

static void write_one(const dt_chat *chat, const dt_conversation *q) {
  dt_error err;
  dt_chat_prompt out = {0};
  dt_status status = dt_chat_write(chat, q, &out, &err);
  if (status) fuzz_check_failure(status, &err, "");
  size_t at = 0;
  for (size_t i = 0; i < out.n_plain; at = out.plain[i++].end)
    if (out.plain[i].begin < at || out.plain[i].end <= out.plain[i].begin || out.plain[i].begin >= out.len) abort();
  dt_chat_prompt_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  if (size == 0) return 0;
  char *template = next(&bytes, &size), *messages = next(&bytes, &size), *variables = next(&bytes, &size);
  dt_chat *chat;
  dt_error err;
  dt_status status = dt_chat_open(&(dt_chat_source){.name = "fuzzed", .text = template}, &chat, &err);
  if (status) {
    fuzz_check_failure(status, &err, "");
  } else {
    const char *const settings[] = {variables};
    const struct tm day = {.tm_year = 126, .tm_mday = 1};
    write_one(chat, &(dt_conversation){.messages = messages, .now = &day});
    write_one(chat,
              &(dt_conversation){
                  .messages = messages, .settings = settings, .n_settings = 1, .next = DT_CHAT_CONTINUE, .now = &day});
    write_one(chat, &(dt_conversation){.messages = "[{\"role\": \"user\", \"content\": \"hi\"}]", .now = &day});
    dt_chat_close(chat);
  }
  free(template), free(messages), free(variables);
  return 0;
}
