/* Rows of texts that were left, kept for prompts that begin as they do: at most a number of bytes, the least recently
 * used go first. */
#ifndef DTL_PREFIXES_H
#define DTL_PREFIXES_H

#include "dtrun.h"

typedef struct {
  struct kept_prefix {
    dt_prefix *prefix;
    long used; /* turn of its last use */
  } * list;    /* [n] */
  int n, room;
  long turn;
  size_t bytes, most;
  const dt_prefix *found; /* the last one */
} prefixes;

void prefixes_close(prefixes *ps); /* zeros are allowed */

/* Keeps the rows of the first n tokens of a sequence's text, unless they are kept, or have no room next to the prefix
 * that was found last. Prefixes that they contain go. Out of memory: they are not kept. */
void prefixes_keep(prefixes *ps, dt_session *session, int seq, int n);

/* The prefix with most tokens of the prompt's beginning, *same; NULL: none has one.
 * It lasts until prefixes_keep has kept another that contains it, or another was found. */
const dt_prefix *prefixes_find(prefixes *ps, const int32_t *ids, int n, int *same);

/* How many ids two lists begin with alike. */
int prefixes_common(const int32_t *a, int n_a, const int32_t *b, int n_b);

#endif
