/* Added tokens: strings that are cut out of the text before it is split into words. At each place the longest counts,
 * and the leftmost place comes first (Hugging Face: Aho-Corasick, leftmost-longest). */
#ifndef DT_ADDED_TOKENS_H
#define DT_ADDED_TOKENS_H

#include "system/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  int32_t id;          /* -1: none */
  bool single_word;    /* only where no word character stands beside it */
  bool lstrip, rstrip; /* the white space on that side goes with it */
} added_token;

typedef struct {
  int32_t child, sibling; /* 0: none */
  added_token token;      /* that ends here */
  unsigned char byte;
} added_node;

typedef struct {
  added_node *nodes; /* node 0 is unused */
  int32_t n, capacity;
  int32_t first[256]; /* the node of each first byte; 0: no token begins with it */
} added_tokens;

/* A zeroed struct is the empty set. len >= 1. */
dt_status added_insert(added_tokens *set, const char *string, size_t len, added_token token, dt_error *err);
void added_free(added_tokens *set);

typedef struct {
  size_t from, to; /* of the text: with the white space that goes with the token */
  int32_t id;
  size_t search; /* where the next one is looked for */
} added_match;

/* The next token of a text of n bytes after *m (zeroed: the first); false when there is none. With white space stripped
 * it may begin before m->to, as in Hugging Face. */
bool added_next(const added_tokens *set, const char *s, size_t n, added_match *m);

#endif
