/* Grammar rules for free text up to a mark. */
#ifndef DT_FREE_TEXT_H
#define DT_FREE_TEXT_H

#include <stdbool.h>
#include <stdio.h>

enum { FREE_TEXT_MARK = 64 }; /* maximum number of characters of a mark */

/* Writes rules in GBNF for any text without `mark`. The first rule is NAME-0. then: the rule after the mark; NULL: the
 * mark is not allowed. may_end: the text may end without the mark. never: characters, as in a class of GBNF, that are
 * not allowed anywhere. A rule is a state of the automaton of Knuth, Morris and Pratt: how much of the mark has been
 * read. False: the mark is empty, longer than FREE_TEXT_MARK or not UTF-8. */
bool free_text_rules(FILE *out, const char *name, const char *mark, const char *then, bool may_end, const char *never);

#endif
