/* Reads regular expressions, as used in JSON schema (ECMA-262, flag u), into trees, and converts them to grammars.
 * Supported:
 *
 *   text  .  [a-z]  [^a-z]  ( )  (?: )  (?<name> )   a|b   a* a+ a? a{2} a{2,} a{2,5}, also followed by ?
 *   ^ and $
 *   (?=a) and (?!a) at the beginning of the expression or after its ^, in automata (automaton.h)
 *   \d \D \w \W \s \S   \t \n \r \v \f \0 \cA \xHH \uHHHH \u{H} and \ before punctuation
 *
 * Everything else gives an error that names it, such as back references and character properties. */
#ifndef DT_REGEX_H
#define DT_REGEX_H

#include "grammar/arena.h"
#include "grammar/rules.h"

#include <stdbool.h>
#include <stdio.h>

#define REGEX_BYTES 100000 /* maximum length of an expression */
#define REGEX_DEPTH 200    /* maximum depth of nested parentheses */

typedef enum {
  REGEX_SET,    /* one of the characters in `range` */
  REGEX_JOIN,   /* the children, one after the other */
  REGEX_EITHER, /* one of the children */
  REGEX_REPEAT, /* the child, from `least` to `most` times; most = -1: without a limit */
  REGEX_BEGIN,  /* the empty text at the beginning, */
  REGEX_END,    /* or at the end */
  REGEX_AHEAD,  /* the empty text before one that the child matches, */
  REGEX_NOT     /* or does not match */
} regex_kind;

typedef struct regex_node {
  regex_kind kind;
  int least, most, n;
  struct regex_node *child, *next; /* next: sibling */
  const rules_range *range;        /* [n], tidy (characters.h) */
} regex_node;

/* Reads an expression into a tree in the arena, and leaves it with a message that begins with `what` and the column in
 * bytes. */
regex_node *regex_read(arena *a, const char *regex, const char *what);
/* Whether regex_write can write the tree: ^ and $ are at the ends of its outermost alternatives. */
bool regex_is_plain(const regex_node *tree);
/* Writes the items of a rule for texts that the expression matches as a whole. in_json: for JSON strings without their
 * quotes in which the expression matches somewhere; the grammar must have a rule `plain` for one character of a string,
 * and `wide` and `escape` (characters.h). */
void regex_write(const regex_node *tree, bool in_json, FILE *out);

/* regex_read and regex_write. DT_EINPUT: as regex_read, or the expression is not plain. */
dt_status regex_put(const char *regex, bool in_json, const char *what, FILE *out, dt_error *err);
/* Writes a whole grammar for texts that the expression matches as a whole. *gbnf is malloc'd; the caller frees it. */
dt_status regex_to_gbnf(const char *regex, char **gbnf, dt_error *err);

#endif
