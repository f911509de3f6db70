/* Any bytes as a chat template and, after a NUL, its messages (without a NUL: a conversation of our own). A failure has
 * a message of one line; the marked ranges of a text are ordered and lie within it. */
#include "fuzz.h"

#include "template/template.h"

static const char conversation[] = "[{\"role\": \"system\", \"content\": \"Be brief.\"}, {\"role\": \"user\", "
                                   "\"content\": \"H\xC3\xA9llo <|end|>\\n\"},"
                                   "{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{\"function\": "
                                   "{\"name\": \"f\", \"arguments\": {\"n\": 1.5}}}]},"
                                   "{\"role\": \"tool\", \"content\": [{\"type\": \"text\", \"text\": \"42\"}]}]";

static void check(dt_status status, const dt_error *err, const template_output *out) {
  if (status) {
    if (err->status != status || status != DT_EINPUT) abort();
    fuzz_check_message(err->message, "");
    return;
  }
  size_t last = 0;
  if (out->text[out->len] != '\0' || out->len > TEMPLATE_OUTPUT) abort();
  for (size_t i = 0; i < out->n_marked; i++) {
    if (out->marked[i].begin < last || out->marked[i].end <= out->marked[i].begin) abort();
    last = out->marked[i].end + 1;
  }
  if (out->n_marked && last - 1 > out->len) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  const uint8_t *end = size ? memchr(bytes, 0, size) : NULL;
  size_t len = end ? (size_t)(end - bytes) : size;
  const char *messages = end ? (const char *)end + 1 : conversation;
  template_variable variables[] = {
      {"messages", messages, end ? size - len - 1 : sizeof conversation - 1, TEMPLATE_MESSAGES},
      {"tools", "[{\"name\": \"f\", \"parameters\": {\"n\": {\"type\": [\"number\", null]}}}]", 64, TEMPLATE_REQUEST},
      {"add_generation_prompt", "true", 4, TEMPLATE_OWN},
      {"bos_token", "\"<s>\"", 5, TEMPLATE_OWN}};
  struct tm now = {.tm_mday = 5, .tm_mon = 7, .tm_year = 125};
  template *t;
  template_output out = {0};
  dt_error err;
  dt_status status = template_compile((const char *)bytes, len, &t, &err);
  if (!status) {
    status = template_render(t, variables, 4, &now, &out, &err);
    template_free(t);
  }
  check(status, &err, &out);
  template_output_free(&out);
  return 0;
}
