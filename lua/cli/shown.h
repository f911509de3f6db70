/* Shows generated text on standard output. */
#ifndef SHOWN_H
#define SHOWN_H

#include "host.h"

#include <stdio.h>

typedef struct {
  const char *color; /* escape sequence that colors the text; NULL: none */
  bool lost; /* writing has failed and a message reported it: nothing more is written, and the run is interrupted */
} shown;

/* Callbacks for a dtl_request whose `user` begins with a `shown`. */
bool shown_text(void *user, const char *bytes, size_t len);
void shown_origin(void *user, dtl_origin origin);

/* Reports that `what` cannot be written, for the reason in errno. */
void shown_fail(shown *s, const char *what, FILE *file);

#endif
