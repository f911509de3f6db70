/* Regular expressions as JSON schema means them (ECMA-262, flag u), as grammars.
 *
 *   text  .  [a-z]  [^a-z]  ( )  (?: )  (?<name> )   a|b   a* a+ a? a{2} a{2,} a{2,5}, also followed by ?
 *   ^ and $ at the ends
 *   \d \D \w \W \s \S   \t \n \r \v \f \xHH \uHHHH \u{H} and \ before punctuation
 *
 * All else is refused by name: assertions, back references, properties of characters. */
#ifndef DT_REGEX_H
#define DT_REGEX_H

#include "system/status.h"

#include <stdbool.h>
#include <stdio.h>

#define REGEX_DEPTH 200 /* parentheses in parentheses */

/* Writes the items of a rule: the whole text matches. `in_json`: JSON strings without their quotes in which it matches
 * somewhere; the grammar has a rule `plain` then, for one character of a string. DT_EINPUT: `what` and the column, in
 * bytes. */
dt_status regex_put(const char *regex, bool in_json, const char *what, FILE *out, dt_error *err);
/* *gbnf is malloc'd: texts that the expression matches as a whole. */
dt_status regex_to_gbnf(const char *regex, char **gbnf, dt_error *err);

#endif
