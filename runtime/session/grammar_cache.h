/* The grammars that a session's texts had last, compiled, by their text: so a server that answers with one schema and
 * then with another does not compile them each time. */
#ifndef DT_GRAMMAR_CACHE_H
#define DT_GRAMMAR_CACHE_H

#include "grammar/masks.h"

enum { GRAMMAR_CACHE = 32 }; /* maximum number of grammars */
static const size_t GRAMMAR_CACHE_BYTES = 256u
                                          << 20; /* of their memory; above it, only the last one is kept for sure */

typedef struct {
  masks *of[GRAMMAR_CACHE]; /* [n] the last one first; each with a reference */
  int n;
} grammar_cache;

/* Finds the masks of a grammar, or opens them. *out is the cache's: add a reference to keep it. The cache is unchanged
 * after a failure. */
dt_status grammar_cache_find(grammar_cache *c, const vocabulary *v, const char *gbnf, masks **out, dt_error *err);
void grammar_cache_close(grammar_cache *c);

#endif
