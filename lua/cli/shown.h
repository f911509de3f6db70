/* Generated text on standard output. */
#ifndef SHOWN_H
#define SHOWN_H

#include "host.h"

#include <stdio.h>

typedef struct {
  const char *color; /* escape sequence around the text; NULL: none */
  bool lost;         /* writing has failed and a message said so: nothing more is written, and the run is interrupted */
} shown;

/* Callbacks for dtl_request, whose `user` begins with a `shown`. */
bool shown_text(void *user, const char *bytes, size_t len);
void shown_origin(void *user, dtl_origin origin);

/* Reports that `what` cannot be written; errno has the reason. */
void shown_fail(shown *s, const char *what, FILE *file);

#endif
