/* Finds added tokens: strings that are cut out of the text before it is split into words. The leftmost match comes
 * first, and of several at the same place the longest counts (Hugging Face: Aho-Corasick, leftmost-longest). */
#ifndef DT_ADDED_TOKENS_H
#define DT_ADDED_TOKENS_H

#include "system/range.h"
#include "system/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  int32_t id;          /* -1: none */
  bool control;        /* its string is not part of any text ("special" in tokenizer.json) */
  bool single_word;    /* matches only if no word character is next to it */
  bool lstrip, rstrip; /* the match includes the white space on that side */
} added_token;

typedef struct {
  int32_t child, sibling; /* 0: none */
  added_token token;      /* the token that ends here */
  unsigned char byte;
} added_node;

typedef struct {
  added_node *nodes; /* node 0 is unused */
  int32_t n, capacity;
  int32_t first[256]; /* the node of each first byte; 0: no token begins with it */
} added_tokens;

/* Adds a string of len >= 1 bytes to the set. A zeroed struct is the empty set. */
dt_status added_insert(added_tokens *set, const char *string, size_t len, added_token token, dt_error *err);
void added_free(added_tokens *set);

/* Returns the length of the longest token that the n bytes begin with, and sets *token; 0: there is none. */
size_t added_at(const added_tokens *set, const char *bytes, size_t n, added_token *token);

/* A text in which tokens are searched for. */
typedef struct {
  const char *bytes;
  size_t n;
  const dt_range *plain; /* [n_plain], in order, apart: a token that would include a byte of these is not a match */
  size_t n_plain;
} added_text;

typedef struct {
  size_t from, to; /* the match, including the white space that belongs to it */
  int32_t id;
  size_t search; /* where the search for the next match begins */
  size_t range;  /* the first of text.plain that does not end before it */
} added_match;

/* Finds the next match after *m (zeroed: the first one). False: there is none. If a match includes white space, it may
 * begin before the previous m->to, as in Hugging Face; this white space may be plain. */
bool added_next(const added_tokens *set, const added_text *text, added_match *m);

#endif
