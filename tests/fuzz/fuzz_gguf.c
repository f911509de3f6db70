/* Any bytes as a GGUF file: what is accepted must lie inside of it. */
#include "fuzz.h"

#include "model/gguf.h"

static volatile char byte; /* reading is what may crash */

static void read_values(const gguf *g) {
  static const char *const key[] = {"a", "general.alignment", "general.architecture", "tokenizer.ggml.tokens"};
  for (size_t k = 0; k < sizeof key / sizeof *key; k++) {
    const gguf_value *v = gguf_find(g, key[k]);
    for (uint64_t i = 0; v && i < v->count && i < 1000; i++) {
      int64_t integer;
      double number;
      size_t len = 0;
      if (gguf_integer(v, i, &integer) && !gguf_number(v, i, &number)) abort();
      const char *text = gguf_string(v, i, &len);
      for (size_t j = 0; j < len; j++) byte = text[j];
    }
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  gguf *g;
  dt_error err;
  dt_status status = gguf_open_bytes("model.gguf", bytes, size, &g, &err);
  if (status) {
    fuzz_check_failure(status, &err, "model.gguf");
    return 0;
  }
  read_values(g);
  const gguf_tensor *t = gguf_find_tensor(g, "a");
  void *data = t ? malloc(t->size + 1) : NULL;
  if (data && source_read(t->source, t->offset, data, t->size, &err) != DT_OK) abort();
  free(data);
  gguf_close(g);
  return 0;
}
