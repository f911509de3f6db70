/* Sets of texts as deterministic automata over characters: what several patterns, lengths and lists of names allow
 * together. Automata lie in an arena; state 0 is the first, and every state leads to one that accepts. */
#ifndef DT_AUTOMATON_H
#define DT_AUTOMATON_H

#include "grammar/regex.h"

#ifndef AUTOMATON_STATES       /* fuzz targets are built with a lower limit */
#define AUTOMATON_STATES 20000 /* maximum number of states, */
#endif
#define AUTOMATON_LETTERS 200000 /* and for a list of texts */

typedef struct {
  int32_t low, high; /* characters, both included */
  int to;
} automaton_edge;

typedef struct {
  int n;                /* number of states; 0: there is no text */
  bool *accepts;        /* [n] */
  int *first;           /* [n + 1] the edges of state i are first[i]..first[i + 1] - 1 */
  automaton_edge *edge; /* in order, without overlaps */
} automaton;

typedef enum { AUTOMATON_AND, AUTOMATON_MINUS, AUTOMATON_OR } automaton_way;

/* The texts that an expression matches as a whole, or in which it matches somewhere. Leaves the arena if the expression
 * has an assertion that is not supported, or too many states; messages begin with `what`, as below. */
automaton *automaton_of(arena *a, const regex_node *tree, bool whole, const char *what);
automaton *automaton_combine(arena *a, const automaton *x, const automaton *y, automaton_way way, const char *what);
automaton *automaton_of_texts(arena *a, const char *const *text, int n, const char *what);
/* Texts of `least` to `most` characters; most = -1: without a limit. */
automaton *automaton_of_lengths(arena *a, int least, int most, const char *what);
/* Decimal integers that are multiples of m: digits with a sign, and `places` digits after a point, where the number is
 * counted in units of the last of them. */
automaton *automaton_of_multiples(arena *a, int m, int places, const char *what);

bool automaton_has(const automaton *x, const char *text);
/* Writes rules NAME-0 (the first state) and so on. in_json: for JSON strings without their quotes; the grammar must
 * have the rules `plain`, `wide` and `escape` (characters.h). */
void automaton_put(arena *a, const automaton *x, const char *name, bool in_json, FILE *out);

#endif
