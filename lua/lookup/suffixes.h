/* An index of texts, a suffix array read backwards: all places of the texts, sorted by the token there, then by the
 * token before it, and so on, up to SUFFIXES_MOST tokens. The places where the last m tokens of some text occur are
 * then neighbours, and a binary search finds the largest m. The index takes 9 bytes per token. Pure functions. */
#ifndef DTL_SUFFIXES_H
#define DTL_SUFFIXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SUFFIXES_MOST 64
#define SUFFIXES_END (-1)          /* marks the end of each text; it is not a token */
#define SUFFIXES_TOKENS (1u << 30) /* maximum number of tokens in an index */
#define SUFFIXES_STEP 32
#define SUFFIXES_KEY 8

typedef struct {
  int32_t *token;  /* [n] the texts, each with its end mark */
  uint32_t *order; /* [n] places, sorted */
  int32_t *sample; /* [1 + (n - 1) / SUFFIXES_STEP][SUFFIXES_KEY] tokens that end at every 32nd place, the last first */
  uint32_t n;
} suffixes;

/* Builds the index of n >= 1 malloc'd tokens, which end with SUFFIXES_END and which it owns from now on. False: out of
 * memory; the tokens are freed. */
bool suffixes_open(suffixes *s, int32_t *token, size_t n);
void suffixes_close(suffixes *s); /* zeros are allowed */

typedef struct {
  int length;        /* of the match; 0: not even the last token occurs */
  uint32_t from, to; /* its places: order[from..to-1] */
} suffixes_match;

/* Finds the most last tokens of text[0..n-1] that occur in the texts, at most `most` of them and SUFFIXES_MOST. */
suffixes_match suffixes_longest(const suffixes *s, const int32_t *text, size_t n, int most);

/* Finds all places of the last m tokens of text[0..n-1], 1 <= m <= min(n, SUFFIXES_MOST); length 0: there are none. */
suffixes_match suffixes_places(const suffixes *s, const int32_t *text, size_t n, int m);

#endif
