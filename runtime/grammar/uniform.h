/* Finds characters that a grammar treats in the same way after a state: all of them lead to one state. */
#ifndef DT_UNIFORM_H
#define DT_UNIFORM_H

#include "grammar/alike.h"
#include "grammar/masks.h"
#include "grammar/rules.h"

/* The states of masks, and the step from one to the next by a byte. */
typedef struct {
  masks *of;
  int32_t (*step)(masks *of, int32_t from, uint8_t byte);
  const rules *rules;
} uniform_states;

/* Finds the largest set of characters that lead to the same state, other than MASKS_NOWHERE. False: it is small. */
bool uniform_set(const uniform_states *s, int32_t from, alike_set *set);
/* Returns whether all characters of a set lead to one state, *to. */
bool uniform_leads(const uniform_states *s, int32_t from, const alike_set *set, int32_t *to);

#endif
