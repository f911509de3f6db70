/* Where the end of a text stands in the text itself, token by token. Pure. For texts that are indexed: suffixes.h. */
#ifndef DTL_MATCH_H
#define DTL_MATCH_H

#include <stdint.h>

#define MATCH_MOST 64 /* tokens that are compared at most */

/* How many tokens before and at a place of a text, counted from 0, are its last ones. */
int match_common(const int32_t *text, int length, int place, int most);

/* The place before the end where most of the last tokens stand too, `most` of them at most: of equals the latest; -1: not even
 * the last one does. *equal: how many. */
int match_find_end(const int32_t *text, int length, int most, int *equal);

#endif
