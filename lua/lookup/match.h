/* Finds earlier places of a text's last tokens, by comparing token by token. Pure. suffixes.h does it with an index. */
#ifndef DTL_MATCH_H
#define DTL_MATCH_H

#include <stdint.h>

#define MATCH_MOST 64 /* tokens that are compared at most */

/* How many tokens up to and with text[place] equal the text's last ones. */
int match_common(const int32_t *text, int length, int place, int most);

/* The place before the end with the longest match of the last tokens, up to `most` of them; the latest of several; -1:
 * not even the last token occurs. *equal: the length of the match. */
int match_find_end(const int32_t *text, int length, int most, int *equal);

#endif
