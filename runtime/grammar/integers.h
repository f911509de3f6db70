/* Integers between two bounds, exactly, as a grammar. */
#ifndef DT_INTEGERS_H
#define DT_INTEGERS_H

#include "system/status.h"

#include <stdbool.h>
#include <stdio.h>

#define INTEGERS_DIGITS 30 /* of a bound */
#define INTEGERS_FREE 15   /* digits where there is no bound, or as many as the other bound has */

typedef struct {
  __int128 low, high; /* both included */
  bool has_low, has_high;
} integers;

/* Narrows by a bound, a number as JSON writes it. False: it has more than INTEGERS_DIGITS digits. */
bool integers_from(integers *i, const char *number, bool exclusive);
bool integers_to(integers *i, const char *number, bool exclusive);
bool integers_empty(const integers *i);
/* One item of a grammar's rule. */
void integers_put(const integers *i, FILE *out);

#endif
