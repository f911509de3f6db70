/* Finds the tokens in a tree of tokens whose bytes are all in a given set, and sorts them by length. In a state that
 * accepts all bytes of the set in the same way, as a string of bounded length does for letters, only the length of
 * these tokens matters. Their part of the mask is then made at once, and only the other tokens are examined. */
#ifndef DT_ALIKE_H
#define DT_ALIKE_H

#include "grammar/vocabulary.h"

#define ALIKE_BYTES 128 /* sets contain only bytes below this */

typedef struct {
  const vocabulary_nodes *of; /* the tree */
  bool has[ALIKE_BYTES];      /* the set */
  int longest;                /* length of the longest of these tokens; long tokens count as others */
  uint64_t *up_to;            /* [longest + 1] masks of the tokens up to a length */
  vocabulary_nodes rest;      /* the tree of the other tokens */
} alike;

/* Opens *a for a tree of the vocabulary; bytes above its first nodes are ignored. False: out of memory, and *a is
 * zeroed. */
bool alike_open(alike *a, const vocabulary *v, const vocabulary_nodes *of, const bool has[ALIKE_BYTES]);
void alike_close(alike *a); /* zeros are allowed */

#endif
