/* Shows an answer at a terminal: its reasoning dim, without the marks, then a blank line and the rest. */
#ifndef DIMMED_H
#define DIMMED_H

#include "cli/whole_words.h"

typedef struct {
  words out;            /* first: as shown_text's user */
  dt_reasoning *parser; /* ours; NULL: the answer is shown as it is */
  bool reasoning, any;  /* what was shown last is reasoning; something was shown */
} dimmed;

/* on_text of a dtl_request whose `user` is a `dimmed`. */
bool dimmed_text(void *user, const char *bytes, size_t len);

/* Ends the answer: shows the rest, and frees. */
bool dimmed_end(dimmed *d);

#endif
