/* Converts regular expressions, as used in JSON schema (ECMA-262, flag u), to grammars. Supported:
 *
 *   text  .  [a-z]  [^a-z]  ( )  (?: )  (?<name> )   a|b   a* a+ a? a{2} a{2,} a{2,5}, also followed by ?
 *   ^ and $ at the ends
 *   \d \D \w \W \s \S   \t \n \r \v \f \xHH \uHHHH \u{H} and \ before punctuation
 *
 * Everything else gives an error that names it, such as assertions, back references and character properties. */
#ifndef DT_REGEX_H
#define DT_REGEX_H

#include "system/status.h"

#include <stdbool.h>
#include <stdio.h>

#define REGEX_DEPTH 200 /* maximum depth of nested parentheses */

/* Writes the items of a rule for texts that the expression matches as a whole. in_json: for JSON strings without their
 * quotes in which the expression matches somewhere; the grammar must have a rule `plain` for one character of a string.
 * DT_EINPUT: the message begins with `what` and the column in bytes. */
dt_status regex_put(const char *regex, bool in_json, const char *what, FILE *out, dt_error *err);
/* Writes a whole grammar for texts that the expression matches as a whole. *gbnf is malloc'd; the caller frees it. */
dt_status regex_to_gbnf(const char *regex, char **gbnf, dt_error *err);

#endif
