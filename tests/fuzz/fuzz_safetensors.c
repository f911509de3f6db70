/* Any bytes as a safetensors file. What is accepted must lie inside the file. */
#include "fuzz.h"

#include "model/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  st *s;
  dt_error err;
  dt_status status = st_open_bytes("model.safetensors", bytes, size, &s, &err);
  if (status) {
    fuzz_check_failure(status, &err, "model.safetensors");
    return 0;
  }
  const st_tensor *t = st_find(s, "a");
  uint8_t byte;
  for (uint64_t i = 0; t && i < t->size; i++)
    if (source_read(t->source, t->offset + i, &byte, 1, &err) != DT_OK) abort();
  st_close(s);
  return 0;
}
