/* Any bytes as a text for the bundled tokenizer. The text of its tokens is UTF-8, and a stream shows all of it. */
#include "fuzz.h"

#include "text/text.h"
#include "text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static tok *t;
  dt_error err;
  if (!t && tok_open(SOURCE_DIR "/models/mini-target/tokenizer.json", &t, &err) != DT_OK) abort();
  int32_t *ids;
  int count;
  text_stream stream;
  if (tok_encode(t, (const char *)bytes, size, false, &ids, &count, &err) != DT_OK) abort();
  if (text_init(&stream, NULL, 0, &err) != DT_OK) abort();
  for (int i = 0; i < count; i++) {
    size_t len;
    const char *token = tok_bytes(t, ids[i], i == 0, &len);
    if (len == 0 || text_push(&stream, token, len, &err) != DT_OK) abort();
    text_take(&stream, false, &len);
  }
  size_t clean_len;
  char *clean = text_to_utf8(stream.bytes, stream.len, &clean_len);
  if (clean_len != stream.len || (clean_len > 0 && memcmp(clean, stream.bytes, clean_len) != 0)) abort();
  if (stream.shown != stream.len) abort();
  free(clean);
  free(ids);
  text_free(&stream);
  return 0;
}
