/* Finds earlier occurrences of a text's last tokens, by comparing token by token. suffixes.h does the same with an
 * index. Pure functions. */
#ifndef DTL_MATCH_H
#define DTL_MATCH_H

#include <stdint.h>

#define MATCH_MOST 64 /* tokens that are compared at most */

/* The number of tokens that end at text[place], that token included, and equal the last tokens of the text; at most
 * `most`. */
int match_common(const int32_t *text, int length, int place, int most);

/* Finds the longest earlier passage that equals the last tokens of the text, up to `most` of them, and the latest of
 * several. Returns the index of its last token and sets *equal to its length; -1: not even the last token occurs
 * earlier. */
int match_find_end(const int32_t *text, int length, int most, int *equal);

#endif
