/* A prefix cache: the rows of earlier texts, for prompts that share a beginning with them. It holds at most a number of
 * bytes and evicts the least recently used text first. */
#ifndef DTL_PREFIX_CACHE_H
#define DTL_PREFIX_CACHE_H

#include "dtrun.h"

typedef struct {
  struct cached_prefix {
    dt_prefix *prefix;
    long used; /* turn of its last use */
  } * list;    /* [n] */
  int n, room;
  long turn;
  size_t bytes, most;
  const dt_prefix *found; /* the last one */
} prefix_cache;

void prefix_cache_close(prefix_cache *c); /* zeros are allowed */

/* Adds the rows of the first n tokens of a sequence's text, unless they are cached already, or have no room next to the
 * prefix that was found last. Prefixes that they contain are evicted. Out of memory: nothing is added. */
void prefix_cache_add(prefix_cache *c, dt_session *session, int seq, int n);

/* The prefix that shares most tokens, *same, with the prompt's beginning; NULL: none shares one.
 * It lasts until prefix_cache_add adds one that contains it, or another one is found. */
const dt_prefix *prefix_cache_find(prefix_cache *c, const int32_t *ids, int n, int *same);

/* The length of the common beginning of two lists of ids. */
int prefix_cache_common(const int32_t *a, int n_a, const int32_t *b, int n_b);

#endif
