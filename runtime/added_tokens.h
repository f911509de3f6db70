/* Added tokens: strings that are cut out of the text before it is split into words. At each place the longest counts, and
 * the leftmost place comes first (Hugging Face: Aho-Corasick, leftmost-longest). */
#ifndef DT_ADDED_TOKENS_H
#define DT_ADDED_TOKENS_H

#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  int32_t child, sibling; /* 0: none */
  int32_t id;             /* of the token that ends here; -1: none does */
  unsigned char byte;
} added_node;

typedef struct {
  added_node *nodes; /* node 0 is unused */
  int32_t n, capacity;
  int32_t first[256]; /* the node of each first byte; 0: no token begins with it */
} added_tokens;

/* A zeroed struct is the empty set. len >= 1. */
dt_status added_insert(added_tokens *set, const char *token, size_t len, int32_t id, dt_error *err);
void added_free(added_tokens *set);

/* The first token at or after `from`: its place, length and id; false when there is none. */
bool added_find(const added_tokens *set, const char *s, size_t n, size_t from, size_t *at, size_t *len, int32_t *id);

#endif
