/* Writes a grammar that matches exactly the integers between two bounds. */
#ifndef DT_INTEGERS_H
#define DT_INTEGERS_H

#include "system/status.h"

#include <stdbool.h>
#include <stdio.h>

#define INTEGERS_DIGITS 30 /* maximum number of digits of a bound */

typedef struct {
  __int128 low, high; /* both included */
  bool has_low, has_high;
} integers;

/* Apply a lower or an upper bound, a number in JSON's notation. False: it has more than INTEGERS_DIGITS digits. */
bool integers_from(integers *i, const char *number, bool exclusive);
bool integers_to(integers *i, const char *number, bool exclusive);
bool integers_empty(const integers *i);
/* Writes one item of a grammar's rule. digits: maximum number of digits without a bound, unless the other bound has
 * more. */
void integers_put(const integers *i, int digits, FILE *out);

#endif
