/* Any bytes as a chat template, a NUL, a system text, a NUL and a message. If the template opens, the conversation that
 * it writes contains the message. */
#include "fuzz.h"

#include "text/chat_layout.h"

/* Takes the bytes up to the next NUL. */
static dt_message next(const uint8_t **bytes, size_t *size) {
  const uint8_t *end = memchr(*bytes, 0, *size);
  dt_message m = {(const char *)*bytes, end ? (size_t)(end - *bytes) : *size};
  *size -= m.len + (end != NULL);
  *bytes += m.len + (end != NULL);
  return m;
}

static void write_one(const dt_chat *chat, const dt_message *system, const dt_message *turns, int n) {
  dt_error err;
  char *text;
  size_t len;
  dt_status status = dt_chat_text(chat, system, turns, NULL, n, "05 Aug 2025", &text, &len, &err);
  if (status == DT_EINPUT && system && strstr(err.message, "does not allow a system text")) return;
  if (status || strlen(text) > len) abort();
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  if (size == 0) return 0;
  dt_message template = next(&bytes, &size), system = next(&bytes, &size), turn = next(&bytes, &size);
  char *copy = strndup(template.text, template.len);
  dt_chat *chat;
  dt_error err;
  dt_status status = dt_chat_open(NULL, copy, &chat, &err);
  free(copy);
  if (status) {
    fuzz_check_failure(status, &err, "give --template NAME");
    return 0;
  }
  write_one(chat, NULL, &turn, 1);
  write_one(chat, &system, (dt_message[]){turn, system, turn}, 3);
  dt_chat_close(chat);
  return 0;
}
