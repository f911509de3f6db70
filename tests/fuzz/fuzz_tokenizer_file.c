/* Any bytes as a tokenizer.json. If it opens, it encodes any text. */
#include "fuzz.h"

#include "text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static const char text[] = "a bc  abc\n<|end|>\xC3\xA9 12's \xE2\x96\x81 \xE4\xB8\xAD\xF0\x9F\x98\x80\xFF";
  const char *path = fuzz_file(bytes, size);
  tok *t;
  dt_error err;
  dt_status status = tok_open(path, &t, &err);
  if (status) {
    fuzz_check_failure(status, &err, path);
    return 0;
  }
  int32_t *ids;
  int n;
  status = tok_encode(t, text, sizeof text - 1, true, &ids, &n, &err);
  if (status && !strstr(err.message, "limit")) abort(); /* a pattern may exceed its time limit */
  for (int i = 0; !status && i < n; i++)
    if (ids[i] < 0 || ids[i] >= tok_size(t)) abort();
  if (!status) free(ids);
  tok_close(t);
  return 0;
}
