/* The slots of one session. Their iterations share passes: each policy object runs until it waits for a pass; then the
 * draft steps that were requested run as one pass, and when every object waits for the target, one verify pass serves
 * them all. If one object serves all sequences (scope "batch"), it makes its passes itself. */
#ifndef DTL_SLOTS_H
#define DTL_SLOTS_H

#include "generate/stepper.h"

typedef struct slots {
  dt_session *session;
  int n, n_steppers;
  slot *slot;        /* [n] */
  stepper *steppers; /* one for each slot, or one for all slots, which the owner opens and closes */
  bool one_stepper;
  bool stopped;     /* every sequence ends after its current iteration */
  bool over;        /* the stepper of all slots has failed */
  dt_error failure; /* its failure */
  /* Called when a sequence has ended and its result is complete. */
  void (*left)(void *user, slot *s);
  void *user;
} slots;

/* Allocates n slots. Call slots_close after a failure, too. */
dt_status slots_open(slots *all, int n, bool one_stepper, dt_error *err);
void slots_close(slots *all); /* every slot must be free; zeros are allowed */

/* Begins a sequence in a slot that is not running, with its prompt pass (see slot_start) or a piece of it. Its policy
 * uses `costs`. After a failure the slot is free, and `left` was called. */
dt_status slots_begin(slots *all, slot *s, dt_pair *pair, const learned_view *costs, dt_prefix **shared);

/* Lets a slot whose prompt is complete take part in iterations from now on. After a failure all sequences of its
 * stepper have ended. */
void slots_join(slots *all, slot *s);

/* Gives the slot's policy other costs from the next iteration on. */
void slots_set_costs(slot *s, const learned_view *costs);

/* Ends a sequence. failure: why it ends early, or NULL. */
void slots_end(slots *all, slot *s, const dt_error *failure);

/* Begins an iteration in each stepper that is between two, and makes the next pass that steppers wait for. Returns true
 * after a draft pass, after which all iterations are still incomplete. */
bool slots_turn(slots *all);

#endif
