/* Reads grammars in llama.cpp's notation (GBNF): NAME ::= ITEMS, one rule per line; `root` matches the whole text.
 *
 *   "text"  [a-z]  [^\n]  .  name  ( items )   item* item+ item? item{2} item{2,} item{2,5}   items | items   # comment
 *   <think>  <[1000]>
 *
 * Newlines are spaces inside parentheses, after ::= and after |. Escapes: \n \r \t \\ \" \[ \] \xHH \uHHHH \UHHHHHHHH.
 * Characters are code points. In angle brackets stands a token: one whose text is <think>, brackets included, or one
 * with the id 1000. llama.cpp's negation of tokens (!) is not supported. */
#ifndef DT_GBNF_H
#define DT_GBNF_H

#include "grammar/rules.h"

#include <stddef.h>

#define GBNF_BYTES 4000000 /* maximum length of a grammar */
#define GBNF_DEPTH 256     /* maximum depth of nested parentheses */

/* Reads a grammar of len bytes. DT_EINPUT: the message names the mistake with its line and column. Free the rules with
 * rules_free, even after a failure. */
dt_status gbnf_read(const char *text, size_t len, rules *out, dt_error *err);

#endif
