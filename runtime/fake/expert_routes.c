/* Experts of a scripted target's rows: see expert_routes.h. */
#include "fake/expert_routes.h"

#include "fake/mix.h"

#include <stdbool.h>

/* A number for a token and a place, which does not depend on the token's position. */
static uint64_t hash_of(int32_t token, int place) {
  return fake_mix(fake_mix((uint64_t)(uint32_t)token + 1) + (uint64_t)place);
}

/* The hash of the last token at which the place took a new expert. */
static uint64_t last_taken(const fake_routes *r, int32_t (*token)(const void *row, int back), const void *row, int n,
                           int place) {
  for (int back = 0;; back++) {
    uint64_t h = hash_of(token(row, back), place);
    if (back == n - 1 || (double)(h >> 40) >= (double)r->kept * (1 << 24)) return h;
  }
}

static bool is_taken(const int32_t *id, int n, int32_t expert) {
  for (int j = 0; j < n; j++)
    if (id[j] == expert) return true;
  return false;
}

void fake_route(const fake_routes *r, int32_t (*token)(const void *row, int back), const void *row, int n,
                int32_t *id) {
  for (int layer = 0; layer < r->layers; layer++, id += r->chosen)
    for (int j = 0; j < r->chosen; j++) {
      int32_t expert = (int32_t)(fake_mix(last_taken(r, token, row, n, layer * r->chosen + j)) % (uint64_t)r->experts);
      while (is_taken(id, j, expert)) expert = (expert + 1) % r->experts;
      int at = j; /* its index among the chosen experts, which are in rising order */
      for (; at > 0 && id[at - 1] > expert; at--) id[at] = id[at - 1];
      id[at] = expert;
    }
}
