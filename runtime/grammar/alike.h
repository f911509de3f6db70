/* The tokens that have bytes of one set only, by their length. Behind a state that takes all bytes of the set alike, as a bounded
 * string takes letters, such tokens differ in their length only, so a mask is made of them at once, and only the others are looked at. */
#ifndef DT_ALIKE_H
#define DT_ALIKE_H

#include "grammar/vocabulary.h"

#define ALIKE_LONGEST 32 /* bytes; longer tokens count as others */
#define ALIKE_BYTES 128  /* sets have bytes below */

typedef struct {
  bool has[ALIKE_BYTES]; /* the set */
  int longest;           /* bytes of the longest of the tokens */
  uint64_t *up_to;       /* [longest + 1] masks of those of so many bytes at most */
  vocabulary_node *rest; /* [n] the tree of the others */
  int n;
} alike;

/* The tokens that are not a text's first. False: no memory; *a is zeros then. */
bool alike_open(alike *a, const vocabulary *v, const bool has[ALIKE_BYTES]);
void alike_close(alike *a); /* zeros are allowed */

#endif
