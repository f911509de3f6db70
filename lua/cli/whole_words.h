/* Shows text word by word, although it comes in tokens. */
#ifndef WHOLE_WORDS_H
#define WHOLE_WORDS_H

#include "cli/shown.h"

#define WORDS_MOST 40 /* characters; longer words are shown in pieces */

/* Holds back an unfinished word until the rest of it comes. Zeros: nothing is held back. */
typedef struct {
  shown out;  /* must be first, since shown_text takes it as its user */
  char *held; /* [n] */
  size_t n, room;
} words;

/* The on_text of a dtl_request whose `user` begins with a `words`. It shows text up to a blank, a punctuation mark or a
 * character that is a word by itself (Chinese), or when a word exceeds WORDS_MOST characters. It never splits a
 * character. */
bool words_text(void *user, const char *bytes, size_t len);

/* Ends the text: shows the rest and frees its memory. */
bool words_end(words *w);

#endif
