/* Any bytes as a GGUF file with a tokenizer. If it opens, it encodes any text. */
#include "fuzz.h"

#include "text/load_gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static const char text[] = "a bc  abc\n<|end|>\xC3\xA9 12's \xE2\x96\x81 \xE4\xB8\xAD\xF0\x9F\x98\x80\xFF";
  gguf *g;
  tok *t;
  dt_error err;
  if (gguf_open_bytes("model.gguf", bytes, size, &g, &err)) return 0;
  dt_status status = tok_open_gguf(g, &t, &err);
  gguf_close(g);
  if (status) {
    fuzz_check_failure(status, &err, "model.gguf");
    return 0;
  }
  int32_t *ids;
  int n;
  if (tok_encode(t, text, sizeof text - 1, true, &ids, &n, &err)) abort();
  for (int i = 0; i < n; i++)
    if (ids[i] < 0 || ids[i] >= tok_size(t)) abort();
  free(ids);
  tok_close(t);
  return 0;
}
