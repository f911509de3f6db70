/* Grammar rules for free text up to a mark. */
#ifndef DT_FREE_TEXT_H
#define DT_FREE_TEXT_H

#include <stdbool.h>
#include <stdio.h>

enum { FREE_TEXT_MARK = 64 }; /* maximum number of characters of a mark */

/* Writes rules in GBNF for any text without `mark`, then the mark, then the rule `then`. The first rule is NAME-0.
 * may_end: the text may also end without the mark. The rules are the states of Knuth, Morris and Pratt's automaton,
 * which has read a part of the mark. False: the mark is empty, too long or not UTF-8. */
bool free_text_rules(FILE *out, const char *name, const char *mark, const char *then, bool may_end);

#endif
