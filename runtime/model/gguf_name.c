/* See gguf_name.h. */
#include "model/gguf_name.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

bool gguf_is_name(const char *file) {
  size_t n = strlen(file);
  return n > 5 && strcasecmp(file + n - 5, ".gguf") == 0;
}

bool gguf_answers(const char *file, const char *spec) {
  const char *last = strrchr(file, '/');
  size_t n = strlen(spec);
  if (!gguf_is_name(file) || n == 0) return false;
  if (strcmp(file, spec) == 0 || (last && strcmp(last + 1, spec) == 0)) return true;
  for (const char *at = file; *at; at++) {
    bool begins = at == file || !isalnum((unsigned char)at[-1]);
    if (begins && strncasecmp(at, spec, n) == 0 && at[n] && strchr(".-/", at[n])) return true;
  }
  return false;
}
