/* A prefix cache holds the rows (keys and values) of earlier texts, for prompts that share a prefix with them. Its size
 * in bytes is limited, and it evicts the least recently used prefix first. */
#ifndef DTL_PREFIX_CACHE_H
#define DTL_PREFIX_CACHE_H

#include "dtrun.h"

typedef struct {
  struct cached_prefix {
    dt_prefix *prefix;
    long used;            /* `turn` at its last use */
  } * list;               /* [n] */
  int n, room;            /* prefixes; entries allocated in list */
  long turn;              /* counts uses */
  size_t bytes, most;     /* of all prefixes; maximum */
  const dt_prefix *found; /* the result of the last prefix_cache_find */
} prefix_cache;

void prefix_cache_close(prefix_cache *c); /* zeros are allowed */

/* Adds the rows of the first n tokens of a sequence's text, and evicts prefixes that they contain. Adds nothing if they
 * are cached already, if memory is out, or if the cache has no room for them and the prefix that was found last. */
void prefix_cache_add(prefix_cache *c, dt_session *session, int seq, int n);

/* Finds the prefix that has the largest number of rows which a prompt of n tokens can reuse, and sets *rows to it.
 * NULL: there are none. It is valid until prefix_cache_add adds a prefix that contains it, or until the next find. */
const dt_prefix *prefix_cache_find(prefix_cache *c, const int32_t *ids, int n, int *rows);

/* The length of the common prefix of two lists of ids. */
int prefix_cache_common(const int32_t *a, int n_a, const int32_t *b, int n_b);

#endif
