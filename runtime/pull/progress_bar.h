/* Shows the progress of a download on standard error: a bar on a terminal, otherwise a line for each tenth of a large
 * file. */
#ifndef PULL_PROGRESS_BAR_H
#define PULL_PROGRESS_BAR_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
  const char *name;
  int64_t size, first; /* in bytes: of the whole file; how many were in the cache before */
  bool bar;
  int tenth;             /* the last one that was shown */
  double began, told_at; /* seconds */
} shown;

shown shown_begin(const char *name, int64_t size, int64_t have);
void shown_at(shown *s, int64_t have);
void shown_end(shown *s); /* call it before any other line is printed */

#define SIZE_TEXT 32

/* "529 bytes", "98.4 MB", "4.37 GB" */
const char *size_text(int64_t bytes, char out[SIZE_TEXT]);

void say(const char *format, ...) __attribute__((format(printf, 1, 2))); /* prints a line "dtrun: ..." */

#endif
