/* The automaton of a grammar. A state is everything that the rules know about the bytes so far: a set of stacks of
 * nodes, one for each way to read the text. States are computed when they are first needed, and kept in a store; they
 * depend only on the grammar and the text. Not thread-safe.
 *
 * A store has a maximum size. Beyond it, states that no text has reached are not computed: store.full says so, and the
 * functions return STATES_NOWHERE. */
#ifndef DT_STATES_H
#define DT_STATES_H

#include "grammar/rules.h"

#define STATES_NOWHERE (-1) /* the state after a text that the grammar does not allow */
#define STATES_STACKS 4096  /* maximum number of stacks of a state */

enum { LATER, FIRST, SPACED, MASKS }; /* masks of a state; SPACED: after the space of tokens that begin with a space */

/* The top of a stack: a node, and the frame below it (-1: none). Equal stacks are one frame. */
typedef struct {
  int32_t node, below;
} states_frame;

typedef struct {
  size_t first; /* index of its frames in `list` */
  int n;
  bool ends;
  uint64_t *mask[MASKS]; /* over the vocabulary; NULL: not computed yet */
} states_one;

typedef struct {
  int32_t *slot; /* [size] of a hash table; -1: free */
  int size, used;
} states_table;

/* Everything that is computed; it is dropped as a whole. */
typedef struct {
  states_frame *frame; /* [frames] */
  int32_t *mark;       /* [frames] the last round that reached it */
  int frames, frame_room, round;
  states_one *state; /* [states] */
  int32_t *to;       /* [states][classes] */
  int states, state_room;
  int32_t *list; /* [listed] */
  size_t listed, list_room;
  int32_t *todo, *found; /* [frames] while a state is made */
  states_table frame_index, state_index;
  size_t bytes;
  bool full; /* there was no room for the last state */
} states_store;

typedef struct {
  rules rules;
  states_store s;
  size_t most;   /* maximum size of a store in bytes */
  bool too_many; /* a text had more than STATES_STACKS */
  dt_error failure;
} states;

void states_close(states_store *s); /* zeros are allowed */

/* Grows *list to n items of `size` bytes, unless the store is full. */
bool states_grow(states *a, void *list, size_t n, size_t size);

int32_t states_begin(states *a);                              /* of the empty text */
int32_t states_step(states *a, int32_t from, uint8_t byte);   /* after one more byte */
int32_t states_either(states *a, int32_t one, int32_t other); /* with the stacks of both */

/* The byte that all stacks of a state take next; -1: they differ, or the text may end. */
int states_only_byte(const states *a, int32_t of);

/* The state like this one in which repetitions are at their first items. A text of up to *most bytes is allowed after
 * both states or after neither, since the open item and each remaining item take at least one byte. (Items that may be
 * empty do not matter: a repetition of them can end at once.) The result depends only on this state, so a mask is the
 * same whatever was computed before. STATES_NOWHERE: there is no room. */
int32_t states_begun(states *a, int32_t from, int *most);

/* Copies n states of another store to the present one, whatever room they need. */
void states_bring(states *a, const states_store *old, int32_t *of, int n);

#endif
