/* The progress of a download on standard error: a bar on a terminal, else a line for each tenth of a large file. */
#ifndef PULL_PROGRESS_BAR_H
#define PULL_PROGRESS_BAR_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
  const char *name;
  int64_t size, first; /* bytes in all, and those that were here before */
  bool bar;
  int tenth;             /* told last */
  double began, told_at; /* seconds */
} shown;

shown shown_begin(const char *name, int64_t size, int64_t have);
void shown_at(shown *s, int64_t have);
void shown_end(shown *s); /* before any other line */

#define SIZE_TEXT 32

/* "529 bytes", "98.4 MB", "4.37 GB" */
const char *size_text(int64_t bytes, char out[SIZE_TEXT]);

void say(const char *format, ...) __attribute__((format(printf, 1, 2))); /* a line "dtrun: ..." */

#endif
