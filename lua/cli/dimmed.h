/* Shows an answer at a terminal: the reasoning dimmed and without its marks, then a blank line and the rest. */
#ifndef DIMMED_H
#define DIMMED_H

#include "cli/whole_words.h"

typedef struct {
  words out;            /* must be first, since shown_text takes it as its user */
  dt_reasoning *parser; /* owned; NULL: the answer is shown as it is */
  bool reasoning, any;  /* reasoning: the text shown last is reasoning; any: something has been shown */
} dimmed;

/* The on_text of a dtl_request whose `user` is a `dimmed`. */
bool dimmed_text(void *user, const char *bytes, size_t len);

/* Ends the answer: shows the rest and frees its memory. */
bool dimmed_end(dimmed *d);

#endif
