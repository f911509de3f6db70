/* Finds the tokens in a tree of tokens whose characters are all in a given set, and sorts them by length. In a state
 * that accepts all characters of the set in the same way, as a string of bounded length does for letters, only the
 * length of these tokens matters. Their part of the mask is then made at once, and only the other tokens are examined.
 * What is found is kept with the vocabulary, for all of its grammars. */
#ifndef DT_ALIKE_H
#define DT_ALIKE_H

#include "grammar/vocabulary.h"

#define ALIKE_BYTES 128 /* of characters of one byte */

typedef struct {
  bool has[ALIKE_BYTES]; /* the characters of one byte that are in the set */
  bool wide;             /* all others are, as UTF-8 has them; otherwise none of them is */
} alike_set;

typedef struct {
  const vocabulary_nodes *of; /* the tree */
  alike_set set;
  int longest;           /* length of the longest of these tokens; long tokens count as others */
  uint64_t *up_to;       /* [longest + 1] masks of the tokens up to a length */
  vocabulary_nodes rest; /* the tree of the other tokens */
  size_t bytes;          /* that all of this needs */
  uint64_t used;         /* when it was last used */
} alike;

/* UTF-8 of characters of several bytes: the ranges of the first byte and of the second, and how many follow. */
typedef struct {
  uint8_t low, high, second_low, second_high, more;
} alike_wide;

#define ALIKE_WIDE 8
extern const alike_wide alike_wides[ALIKE_WIDE];

/* Returns the tokens of a set in a tree of the vocabulary, which are valid until the next call; NULL: out of memory.
 * Lengths are in characters and include the bytes above the tree's first nodes. */
const alike *alike_of(const vocabulary *v, const vocabulary_nodes *of, const alike_set *set);

/* The characters that a JSON string may have without a backslash. A vocabulary has their tokens from the beginning. */
alike_set alike_json(void);

typedef struct alike_list alike_list;
/* Opens the list of a vocabulary, with the tokens of JSON strings. NULL: out of memory. */
alike_list *alike_open(const vocabulary *v);
void alike_close(alike_list *list); /* NULL is allowed */

#endif
