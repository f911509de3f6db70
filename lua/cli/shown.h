/* Generated text on standard output. */
#ifndef SHOWN_H
#define SHOWN_H

#include "host.h"

#include <stdio.h>

typedef struct {
  const char *color; /* escape sequence around the text; NULL: none */
  bool lost;         /* writing has failed, which was told: nothing more is written, and the run is interrupted */
} shown;

/* As dtl_request's, for a user that begins with a `shown`. */
bool shown_text(void *user, const char *bytes, size_t len);
void shown_origin(void *user, dtl_origin origin);

/* Records that `what` cannot be written; errno says why. */
void shown_fail(shown *s, const char *what, FILE *file);

#endif
