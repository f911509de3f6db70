/* libFuzzer: no bytes may crash the safetensors reader, and what it accepts must lie inside the file.
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Iruntime tests/fuzz/fuzz_safetensors.c \
 *     runtime/{safetensors,json_file,status}.c -lcjson -lutf8proc -o /tmp/fuzz_safetensors && /tmp/fuzz_safetensors */
#include "safetensors.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  st *s;
  dt_error err;
  if (st_open_bytes("fuzz", bytes, size, &s, &err) != DT_OK) {
    if (err.status == DT_OK || !err.message[0] || strchr(err.message, '\n')) abort();
    return 0;
  }
  const st_tensor *t = st_find(s, "a");
  volatile uint8_t sum = 0;
  for (uint64_t i = 0; t && i < t->size; i++) sum ^= ((const uint8_t *)t->data)[i];
  st_close(s);
  return 0;
}
