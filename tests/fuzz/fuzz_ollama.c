/* Any object as the body of /api/chat and /api/generate. What is accepted becomes a body that the strict reader
 * accepts, which asks for a stream unless "stream" is false; everything else is refused in one line. */
#include "fuzz.h"

#include "serve/body.h"
#include "serve/ollama.h"

#include <string.h>

typedef bool translator(const ask_server *server, const cJSON *root, raw_json body, char **out, unsigned *where,
                        refusal *why);

static void check_accepted(const cJSON *root, const char *text, unsigned where) {
  raw_json body = {text, strlen(text)};
  cJSON *written;
  refusal why;
  if (!body_read(&body, &written, &why)) abort();
  const cJSON *stream = cJSON_GetObjectItemCaseSensitive(root, "stream");
  if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(written, "stream")) == cJSON_IsFalse(stream)) abort();
  if (!cJSON_HasObjectItem(written, where == IN_CHAT ? "messages" : "prompt")) abort();
  cJSON_Delete(written);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static translator *const both[] = {ollama_chat_body, ollama_generate_body};
  static dt_chat *chat;
  static const char *const names[] = {"model"};
  if (!chat && dt_chat_open(&(dt_chat_source){.name = "chatml"}, &chat, NULL)) abort();
  const ask_server server = {.models = names, .n_models = 1, .chat = size % 2 ? chat : NULL, .context = 2048};
  raw_json body = {(const char *)bytes, size};
  cJSON *root;
  refusal why;
  if (!body_read(&body, &root, &why)) return 0;
  for (int i = 0; i < 2; i++) {
    unsigned where = 0;
    char *out = NULL;
    why = (refusal){0};
    if (both[i](&server, root, body, &out, &where, &why)) {
      check_accepted(root, out, where);
    } else {
      if (out || why.status != 400 || !*why.message) abort();
      fuzz_check_message(why.message, "");
    }
    free(out);
  }
  cJSON_Delete(root);
  return 0;
}
