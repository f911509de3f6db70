/* Builds automata (automaton.h) state by state: after automaton_begin_edges(b, i), with b->at = i, the edges of state i
 * follow in order, and the states come one after the other. */
#ifndef DT_AUTOMATON_BUILD_H
#define DT_AUTOMATON_BUILD_H

#include "grammar/automaton.h"

typedef struct {
  arena *a;
  const char *what;
  int most, n, room, at, n_edges, room_edges; /* most: maximum of n */
  bool *accepts;
  int *first;
  automaton_edge *edge;
} automaton_builder;

void automaton_begin(automaton_builder *b, arena *a, const char *what);
int automaton_add_state(automaton_builder *b, bool accepts); /* leaves the arena if there are too many */
void automaton_begin_edges(automaton_builder *b, int state);
void automaton_add_edge(automaton_builder *b, int32_t low, int32_t high, int to);
_Noreturn void automaton_too_large(automaton_builder *b);
automaton *automaton_end(automaton_builder *b); /* without states that lead nowhere */

#endif
