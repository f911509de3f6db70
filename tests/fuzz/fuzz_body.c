/* Any bytes as the body of a request. What is accepted is an object whose texts have no NUL character and whose names
 * differ; everything else is refused in one line. cJSON, which is more lenient, reads everything that is accepted, and
 * reads the same value again after printing it. */
#include "fuzz.h"

#include "serve/body.h"

static void check_names(const cJSON *value) {
  const cJSON *one;
  cJSON_ArrayForEach(one, value) {
    if (cJSON_IsObject(value) && cJSON_GetObjectItemCaseSensitive(value, one->string) != one) abort();
    check_names(one);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  raw_json body = {(const char *)bytes, size};
  cJSON *root, *again;
  refusal why;
  char *printed;
  if (!body_read(&body, &root, &why)) {
    if (root || why.status != 400 || !*why.message) abort();
    fuzz_check_message(why.message, "");
    return 0;
  }
  if (!cJSON_IsObject(root) || body.at < (const char *)bytes || *body.at != '{' || body.at[body.len - 1] != '}')
    abort();
  if (memchr(body.at, 0, body.len)) abort();
  check_names(root);
  printed = cJSON_PrintUnformatted(root);
  again = cJSON_Parse(printed);
  if (!printed || !again) abort();
  cJSON_Delete(root), cJSON_Delete(again);
  free(printed);
  return 0;
}
