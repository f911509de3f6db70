/* See gguf_name.h. */
#include "model/gguf_name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

bool gguf_is_name(const char *file) {
  size_t n = strlen(file);
  return n > 5 && strcasecmp(file + n - 5, ".gguf") == 0;
}

enum { DIGITS = 5, ENDING = sizeof "-00001-of-00003.gguf" - 1 };

/* A number of five digits; 0: there is none. */
static int number_at(const char *at) {
  int n = 0;
  for (int i = 0; i < DIGITS; i++) {
    if (at[i] < '0' || at[i] > '9') return 0;
    n = 10 * n + (at[i] - '0');
  }
  return n;
}

bool gguf_part(const char *file, int *number, int *count) {
  size_t n = strlen(file);
  if (n <= ENDING || !gguf_is_name(file)) return false;
  const char *end = file + n - ENDING;
  int own = number_at(end + 1), all = number_at(end + 1 + DIGITS + 4);
  if (*end != '-' || strncmp(end + 1 + DIGITS, "-of-", 4) != 0 || own < 1 || own > all) return false;
  *number = own, *count = all;
  return true;
}

bool gguf_is_later_part(const char *file) {
  int number, count;
  return gguf_part(file, &number, &count) && number > 1;
}

bool gguf_part_path(const char *part, int number, char *out, size_t size) {
  int own, count;
  if (!gguf_part(part, &own, &count)) return false;
  size_t stem = strlen(part) - ENDING;
  int n = snprintf(out, size, "%.*s-%05d%s", (int)stem, part, number, part + stem + 1 + DIGITS);
  return n >= 0 && (size_t)n < size;
}

/* Whether both are parts of one model. */
static bool are_parts(const char *a, const char *b) {
  int number, count;
  size_t n = strlen(a), stem = n > ENDING ? n - ENDING : 0;
  return gguf_part(a, &number, &count) && gguf_part(b, &number, &count) && strlen(b) == n &&
         strncmp(a, b, stem + 1) == 0 && strcmp(a + stem + 1 + DIGITS, b + stem + 1 + DIGITS) == 0;
}

bool gguf_answers(const char *file, const char *spec) {
  const char *last = strrchr(file, '/');
  size_t n = strlen(spec);
  if (!gguf_is_name(file) || n == 0) return false;
  if (are_parts(file, spec) || (last && are_parts(last + 1, spec))) return true;
  if (strcmp(file, spec) == 0 || (last && strcmp(last + 1, spec) == 0)) return true;
  for (const char *at = file; *at; at++) {
    bool begins = at == file || !isalnum((unsigned char)at[-1]);
    if (begins && strncasecmp(at, spec, n) == 0 && at[n] && strchr(".-/", at[n])) return true;
  }
  return false;
}
