/* Grammars as llama.cpp writes them (GBNF): NAME ::= ITEMS, one rule a line, `root` is the whole text.
 *
 *   "text"  [a-z]  [^\n]  .  name  ( items )   item* item+ item? item{2} item{2,} item{2,5}   items | items   # comment
 *
 * Newlines are spaces inside parentheses, after ::= and after |. Escapes: \n \r \t \\ \" \[ \] \xHH \uHHHH \UHHHHHHHH.
 * Characters are code points. Tokens in angle brackets are not read. */
#ifndef DT_GBNF_H
#define DT_GBNF_H

#include "grammar/rules.h"

#include <stddef.h>

#define GBNF_BYTES 100000 /* the longest grammar */
#define GBNF_DEPTH 256    /* parentheses in parentheses */

/* DT_EINPUT: one line with line and column. Free the rules with rules_free, also after a failure. */
dt_status gbnf_read(const char *text, size_t len, rules *out, dt_error *err);

#endif
