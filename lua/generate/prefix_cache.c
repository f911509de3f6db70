/* The cached rows of earlier texts: see prefix_cache.h. */
#include "generate/prefix_cache.h"

#include <stdlib.h>

int prefix_cache_common(const int32_t *a, int n_a, const int32_t *b, int n_b) {
  int same = 0;
  while (same < n_a && same < n_b && a[same] == b[same]) same++;
  return same;
}

static int common(const struct cached_prefix *p, const int32_t *ids, int n, int *length) {
  const int32_t *tokens = dt_prefix_tokens(p->prefix, length);
  return prefix_cache_common(tokens, *length, ids, n);
}

static void drop(prefix_cache *c, int i) {
  if (c->found == c->list[i].prefix) c->found = NULL;
  c->bytes -= dt_prefix_bytes(c->list[i].prefix);
  dt_prefix_free(c->list[i].prefix);
  c->list[i] = c->list[--c->n];
}

void prefix_cache_close(prefix_cache *c) {
  while (c->n) drop(c, c->n - 1);
  free(c->list);
}

/* Evicts prefixes until there is room for `bytes` more bytes. Returns false if that is impossible. */
static bool make_room(prefix_cache *c, size_t bytes) {
  size_t fixed = c->found ? dt_prefix_bytes(c->found) : 0;
  if (bytes > c->most || fixed > c->most - bytes) return false;
  while (c->bytes > c->most - bytes) {
    int oldest = -1;
    for (int i = 0; i < c->n; i++)
      if (c->list[i].prefix != c->found && (oldest < 0 || c->list[i].used < c->list[oldest].used)) oldest = i;
    drop(c, oldest);
  }
  return true;
}

/* Whether a cached prefix begins with these tokens. It then counts as used. */
static bool is_cached(prefix_cache *c, const int32_t *ids, int n) {
  for (int i = 0; i < c->n; i++) {
    int length;
    if (common(&c->list[i], ids, n, &length) < n) continue;
    c->list[i].used = ++c->turn;
    return true;
  }
  return false;
}

/* Drops prefixes that these tokens begin with. */
static void drop_contained(prefix_cache *c, const int32_t *ids, int n) {
  for (int i = c->n - 1; i >= 0; i--) {
    int length;
    if (common(&c->list[i], ids, n, &length) == length) drop(c, i);
  }
}

static bool has_room(prefix_cache *c) {
  if (c->n < c->room) return true;
  int room = 2 * c->room + 8;
  struct cached_prefix *grown = realloc(c->list, sizeof *grown * (size_t)room);
  if (grown) c->list = grown, c->room = room;
  return grown;
}

void prefix_cache_add(prefix_cache *c, dt_session *session, int seq, int n) {
  const int32_t *ids = dt_seq_tokens(session, seq);
  dt_prefix *taken;
  size_t bytes = dt_rows_bytes(session, n);
  if (n < 1 || bytes > c->most || is_cached(c, ids, n) || !has_room(c)) return;
  drop_contained(c, ids, n);
  if (!make_room(c, bytes)) return;
  if (dt_prefix_save(session, seq, n, &taken, NULL)) return;
  c->bytes += dt_prefix_bytes(taken);
  c->list[c->n++] = (struct cached_prefix){taken, ++c->turn};
}

const dt_prefix *prefix_cache_find(prefix_cache *c, const int32_t *ids, int n, int *rows) {
  struct cached_prefix *best = NULL;
  *rows = 0;
  for (int i = 0; i < c->n; i++) {
    int has = dt_prefix_reusable(c->list[i].prefix, ids, n);
    if (has > *rows) best = &c->list[i], *rows = has;
  }
  if (best) best->used = ++c->turn;
  return c->found = best ? best->prefix : NULL;
}
