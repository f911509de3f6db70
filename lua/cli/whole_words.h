/* Shows text that comes in tokens by whole words. */
#ifndef WHOLE_WORDS_H
#define WHOLE_WORDS_H

#include "cli/shown.h"

#define WORDS_MOST 40 /* characters: longer words are shown in pieces */

/* Holds back an unfinished word until its rest comes. Zeros: holds nothing. */
typedef struct {
  shown out;  /* first: as shown_text's user */
  char *held; /* [n] */
  size_t n, room;
} words;

/* on_text of a dtl_request whose `user` begins with a `words`. It shows text up to a blank, a punctuation mark or a
 * character that is a word by itself (Chinese), or when a word exceeds WORDS_MOST characters; it never cuts a
 * character. */
bool words_text(void *user, const char *bytes, size_t len);

/* Ends the text: shows the rest, and frees. */
bool words_end(words *w);

#endif
