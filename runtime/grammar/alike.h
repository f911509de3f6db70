/* Of a tree of tokens those that have bytes of one set only, by their length. After a state that takes all bytes of
 * the set alike, as a bounded string takes letters, such tokens differ in their length only, so a mask is made of them
 * at once, and only the others are looked at. */
#ifndef DT_ALIKE_H
#define DT_ALIKE_H

#include "grammar/vocabulary.h"

#define ALIKE_BYTES 128 /* sets have bytes below */

typedef struct {
  const vocabulary_nodes *of; /* the tree */
  bool has[ALIKE_BYTES];      /* the set */
  int longest;                /* depth of the deepest of the tokens; one that is not short counts as another */
  uint64_t *up_to;            /* [longest + 1] masks of those down to a depth */
  vocabulary_nodes rest;      /* the tree of the others */
} alike;

/* Of a tree of the vocabulary; bytes above its first nodes do not count. False: no memory; *a is zeros then. */
bool alike_open(alike *a, const vocabulary *v, const vocabulary_nodes *of, const bool has[ALIKE_BYTES]);
void alike_close(alike *a); /* zeros are allowed */

#endif
