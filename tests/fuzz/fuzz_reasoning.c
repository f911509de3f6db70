/* The first byte chooses a layout, the second the size of a piece in bytes. The rest is an answer, which must have the
 * same parts in pieces as whole. */
#include "fuzz.h"

#include "chat/reasoning.h"

typedef struct {
  char *text; /* parts of both kinds, each after a byte that gives its kind */
  size_t n, bytes;
  bool reasoning;
} heard;

static bool hear(void *user, bool reasoning, const char *bytes, size_t len) {
  heard *h = user;
  if (len == 0) abort();
  if (h->bytes == 0 || reasoning != h->reasoning) h->text[h->n++] = reasoning ? 1 : 2;
  memcpy(h->text + h->n, bytes, len);
  h->n += len, h->bytes += len, h->reasoning = reasoning;
  return true;
}

/* Writes the parts into `room`, which is three times as long as the answer. */
static size_t parts(const dt_chat *chat, bool open, const char *answer, size_t len, size_t piece, char *room) {
  heard h = {.text = room};
  dt_reasoning *t;
  dt_error err;
  if (dt_reasoning_open(chat, open, &t, &err)) abort();
  for (size_t at = 0; at < len; at += piece)
    if (!dt_reasoning_add(t, answer + at, len - at < piece ? len - at : piece, hear, &h)) abort();
  if (!dt_reasoning_end(t, hear, &h) || h.bytes > len) abort();
  dt_reasoning_close(t);
  return h.n;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static const char *const layouts[] = {"chatml", "deepseek-r1", "harmony", "gemma4"};
  if (size < 3) return 0;
  dt_chat *chat;
  dt_error err;
  if (dt_chat_open(&(dt_chat_source){.name = layouts[bytes[0] & 3]}, &chat, &err)) abort();
  const char *answer = (const char *)bytes + 2;
  size_t len = size - 2;
  char *whole = malloc(3 * len), *pieces = malloc(3 * len);
  if (!whole || !pieces) abort();
  bool open = bytes[0] & 4;
  size_t n = parts(chat, open, answer, len, len, whole);
  if (parts(chat, open, answer, len, 1 + bytes[1] % 16, pieces) != n || memcmp(whole, pieces, n) != 0) abort();
  free(whole), free(pieces);
  dt_chat_close(chat);
  return 0;
}
