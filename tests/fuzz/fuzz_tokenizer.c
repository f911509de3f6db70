/* libFuzzer: arbitrary bytes as a tokenizer.json, and as a text for the bundled tokenizer. The first byte chooses. */
#include "text.h"
#include "tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void open_as_file(const char *bytes, size_t n) {
  char path[64];
  int fd = memfd_create("tokenizer.json", 0);
  if (fd < 0 || write(fd, bytes, n) != (ssize_t)n) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  tok *t = NULL;
  dt_error err;
  if (tok_open(path, &t, &err) == DT_OK) {
    int32_t *ids = NULL;
    int count;
    if (tok_encode(t, bytes, n, &ids, &count, &err) == DT_OK) free(ids);
    tok_close(t);
  }
  close(fd);
}

/* The tokens of a text stand for UTF-8, and a stream shows all of it. */
static void encode_text(const tok *t, const char *bytes, size_t n) {
  int32_t *ids = NULL;
  int count;
  dt_error err;
  text_stream stream;
  if (tok_encode(t, bytes, n, &ids, &count, &err) != DT_OK) abort();
  if (text_init(&stream, NULL, 0, &err) != DT_OK) abort();
  for (int i = 0; i < count; i++) {
    size_t len;
    const char *token = tok_bytes(t, ids[i], &len);
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
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  static tok *bundled;
  dt_error err;
  if (!bundled && tok_open(SOURCE_DIR "/models/mini-target/tokenizer.json", &bundled, &err) != DT_OK) abort();
  if (size == 0) return 0;
  if (data[0] & 1)
    open_as_file((const char *)data + 1, size - 1);
  else
    encode_text(bundled, (const char *)data + 1, size - 1);
  return 0;
}
