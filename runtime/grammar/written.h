/* Ends a text that was written with open_memstream. */
#ifndef DT_WRITTEN_H
#define DT_WRITTEN_H

#include <stdbool.h>
#include <stdio.h>

/* Closes the stream of a text. False: there was not enough memory, so the text has gaps or is NULL. */
static inline bool is_written(FILE *out, char *const *text) {
  bool gap = ferror(out) != 0;
  return fclose(out) == 0 && *text && !gap;
}

#endif
