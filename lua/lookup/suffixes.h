/* An index of texts: their places sorted by the token there, then by the one before it, and so on, up to SUFFIXES_MOST
 * tokens. All places of a text's last m tokens are then neighbours, and a binary search finds those of the largest m. 9
 * bytes a token. Pure. */
#ifndef DTL_SUFFIXES_H
#define DTL_SUFFIXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SUFFIXES_MOST 64
#define SUFFIXES_END (-1)          /* stands behind every text: no token */
#define SUFFIXES_TOKENS (1u << 30) /* most of an index */
#define SUFFIXES_STEP 32
#define SUFFIXES_KEY 8

typedef struct {
  int32_t *token;  /* [n] the texts */
  uint32_t *order; /* [n] places, sorted */
  int32_t *sample; /* [1 + (n - 1) / SUFFIXES_STEP][SUFFIXES_KEY] the tokens up to places of order, the last first */
  uint32_t n;
} suffixes;

/* Takes the n tokens (malloc'd), which end with SUFFIXES_END, n >= 1. False: out of memory; they are freed all the
 * same. */
bool suffixes_open(suffixes *s, int32_t *token, size_t n);
void suffixes_close(suffixes *s); /* zeros are allowed */

typedef struct {
  int length;        /* of the match; 0: not even the last token occurs */
  uint32_t from, to; /* its places: order[from..to-1] */
} suffixes_match;

/* The longest end of text[0..n-1] that occurs in the texts, at most `most` tokens and SUFFIXES_MOST. */
suffixes_match suffixes_longest(const suffixes *s, const int32_t *text, size_t n, int most);

/* All places of its last m tokens, 1 <= m <= n and SUFFIXES_MOST; length 0: none. */
suffixes_match suffixes_places(const suffixes *s, const int32_t *text, size_t n, int m);

#endif
