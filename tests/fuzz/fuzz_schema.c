/* The compiler of JSON schemas. A grammar that it makes is accepted by the parser of grammars, or is too large for
 * it. */
#include "fuzz.h"

#include "grammar/gbnf.h"
#include "grammar/schema.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = malloc(size + 1), *gbnf;
  rules r;
  dt_error err;
  if (!text) return 0;
  memcpy(text, data, size);
  text[size] = '\0';
  if (!schema_to_gbnf(text, NULL, &gbnf, NULL)) {
    if (gbnf_read(gbnf, strlen(gbnf), &r, &err) && !strstr(err.message, "more than") && !strstr(err.message, "at most"))
      abort();
    rules_free(&r);
    free(gbnf);
  }
  free(text);
  return 0;
}
