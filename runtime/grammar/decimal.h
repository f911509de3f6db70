/* Decimal numbers in JSON's notation, compared with all their digits. */
#ifndef DT_DECIMAL_H
#define DT_DECIMAL_H

#include <stdbool.h>

/* Returns a value below, at or above 0. Numbers have at most 40 characters (exact_json.h). */
int decimal_compare(const char *a, const char *b);
bool decimal_is_integer(const char *number);
/* Writes the number without an exponent, with no zeros at its ends: a sign, digits (at least one), and a point with
 * digits. False: it has more than 60 digits. */
bool decimal_plain(const char *number, char out[80]);

#endif
