/* Text that comes in tokens, shown in whole words. */
#ifndef WORDS_H
#define WORDS_H

#include "cli/shown.h"

#define WORDS_MOST 40 /* characters: longer words are shown in pieces */

/* Holds an unfinished word back until its rest comes. Zeros: nothing is held. */
typedef struct {
  shown out;  /* first: as shown_text's user */
  char *held; /* [n] */
  size_t n, room;
} words;

/* As dtl_request's on_text, for a user that begins with a `words`. What is shown ends behind a blank, a mark of punctuation or a
 * character that is a word (Chinese), or where a word grows beyond WORDS_MOST characters; never within a character. */
bool words_text(void *user, const char *bytes, size_t len);

/* Shows what waits: the text has ended. Frees. */
bool words_end(words *w);

#endif
