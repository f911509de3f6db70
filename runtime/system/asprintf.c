/* Texts that are as long as they need to be: see asprintf.h. */
#include "system/asprintf.h"

#include <stdio.h>
#include <stdlib.h>

int dt_vasprintf(char **text, const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  const int n = vsnprintf(NULL, 0, format, again);
  va_end(again);
  *text = n < 0 ? NULL : malloc((size_t)n + 1);
  return *text ? vsnprintf(*text, (size_t)n + 1, format, args) : -1;
}

int dt_asprintf(char **text, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const int n = dt_vasprintf(text, format, args);
  va_end(args);
  return n;
}
