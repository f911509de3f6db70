/* Rows of texts that were left: see prefixes.h. */
#include "generate/prefixes.h"

#include <stdlib.h>

int prefixes_common(const int32_t *a, int n_a, const int32_t *b, int n_b) {
  int same = 0;
  while (same < n_a && same < n_b && a[same] == b[same]) same++;
  return same;
}

static int common(const struct kept_prefix *k, const int32_t *ids, int n, int *length) {
  const int32_t *tokens = dt_prefix_tokens(k->prefix, length);
  return prefixes_common(tokens, *length, ids, n);
}

static void drop(prefixes *ps, int i) {
  if (ps->found == ps->list[i].prefix) ps->found = NULL;
  ps->bytes -= dt_prefix_bytes(ps->list[i].prefix);
  dt_prefix_free(ps->list[i].prefix);
  ps->list[i] = ps->list[--ps->n];
}

void prefixes_close(prefixes *ps) {
  while (ps->n) drop(ps, ps->n - 1);
  free(ps->list);
}

/* Makes room for so many bytes, if it can. */
static bool make_room(prefixes *ps, size_t bytes) {
  size_t fixed = ps->found ? dt_prefix_bytes(ps->found) : 0;
  if (bytes > ps->most || fixed > ps->most - bytes) return false;
  while (ps->bytes > ps->most - bytes) {
    int oldest = -1;
    for (int i = 0; i < ps->n; i++)
      if (ps->list[i].prefix != ps->found && (oldest < 0 || ps->list[i].used < ps->list[oldest].used)) oldest = i;
    drop(ps, oldest);
  }
  return true;
}

/* Whether these tokens are the beginning of a prefix, which is then used. */
static bool is_kept(prefixes *ps, const int32_t *ids, int n) {
  for (int i = 0; i < ps->n; i++) {
    int length;
    if (common(&ps->list[i], ids, n, &length) < n) continue;
    ps->list[i].used = ++ps->turn;
    return true;
  }
  return false;
}

/* Drops prefixes that are the beginning of these tokens. */
static void drop_contained(prefixes *ps, const int32_t *ids, int n) {
  for (int i = ps->n - 1; i >= 0; i--) {
    int length;
    if (common(&ps->list[i], ids, n, &length) == length) drop(ps, i);
  }
}

static bool has_room(prefixes *ps) {
  if (ps->n < ps->room) return true;
  int room = 2 * ps->room + 8;
  struct kept_prefix *grown = realloc(ps->list, sizeof *grown * (size_t)room);
  if (grown) ps->list = grown, ps->room = room;
  return grown;
}

void prefixes_keep(prefixes *ps, dt_session *session, int seq, int n) {
  const int32_t *ids = dt_seq_tokens(session, seq);
  dt_prefix *taken;
  size_t bytes = dt_rows_bytes(session, n);
  if (n < 1 || bytes > ps->most || is_kept(ps, ids, n) || !has_room(ps)) return;
  drop_contained(ps, ids, n);
  if (!make_room(ps, bytes)) return;
  if (dt_prefix_save(session, seq, n, &taken, NULL)) return;
  ps->bytes += dt_prefix_bytes(taken);
  ps->list[ps->n++] = (struct kept_prefix){taken, ++ps->turn};
}

const dt_prefix *prefixes_find(prefixes *ps, const int32_t *ids, int n, int *same) {
  struct kept_prefix *best = NULL;
  *same = 0;
  for (int i = 0; i < ps->n; i++) {
    int length, is = common(&ps->list[i], ids, n, &length);
    if (is > *same) best = &ps->list[i], *same = is;
  }
  if (best) best->used = ++ps->turn;
  return ps->found = best ? best->prefix : NULL;
}
