/* A list of compiled grammars: see grammar_cache.h. */
#include "session/grammar_cache.h"

#include <string.h>

/* The place of a grammar; n: it is not there. One that has run out of memory is not used again. */
static int place_of(const grammar_cache *c, const char *gbnf) {
  int i = 0;
  while (i < c->n && (strcmp(masks_grammar(c->of[i]), gbnf) != 0 || masks_failure(c->of[i], NULL))) i++;
  return i;
}

/* Drops the last of the list if they need too much memory. It grows as texts reach more states. */
static void limit_memory(grammar_cache *c) {
  size_t bytes = masks_bytes(c->of[0]);
  int keep = 1;
  while (keep < c->n && (bytes += masks_bytes(c->of[keep])) <= GRAMMAR_CACHE_BYTES) keep++;
  while (c->n > keep) masks_release(c->of[--c->n]);
}

dt_status grammar_cache_find(grammar_cache *c, const vocabulary *v, const char *gbnf, masks **out, dt_error *err) {
  int at = place_of(c, gbnf);
  masks *found = at < c->n ? c->of[at] : NULL;
  dt_status status = found ? DT_OK : masks_open(v, gbnf, &found, err);
  if (status) return status;
  if (at == GRAMMAR_CACHE) masks_release(c->of[--at]);
  if (at == c->n) c->n++;
  memmove(c->of + 1, c->of, (size_t)at * sizeof *c->of);
  *out = c->of[0] = found;
  limit_memory(c);
  return DT_OK;
}

void grammar_cache_close(grammar_cache *c) {
  while (c->n) masks_release(c->of[--c->n]);
}
