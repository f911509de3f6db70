/* Sequences at once in one session, each of a request of its own or of one request: their iterations, in passes that
 * they share. Each policy object runs until it waits for a pass. Then the requested draft steps run as one; when all
 * wait for the target, one verify pass serves them all. If one object serves all sequences, it makes its passes itself.
 */
#ifndef DTL_PLACES_H
#define DTL_PLACES_H

#include "generate/stepper.h"

typedef struct {
  /* The caller's, before places_begin; the others are zeros: */
  const dtl_policy *policy;
  const dtl_request *request;
  dtl_result *result;
  int number; /* of the answer, from 0, among those of its request */

  bool taken, joined;
  generation g;
  stepper *s;
} place;

typedef struct places {
  dt_session *session;
  int n, n_steppers;
  place *place;      /* [n]; a place's index is its sequence's in the session */
  stepper *steppers; /* one for each place, or one for all, which the owner opens and closes */
  bool one_stepper;
  bool stopped; /* all sequences end behind their iteration */
  bool over;    /* the stepper of all has failed: */
  dt_error failure;
  /* A sequence has ended: its result is filled. */
  void (*left)(void *user, place *p);
  void *user;
} places;

dt_status places_open(places *ps, int n, bool one_stepper, dt_error *err); /* after a failure places_close, too */
void places_close(places *ps);                                             /* all have left; zeros are allowed */

/* Begins a sequence at a free place, with its prompt's pass (generation_start has `shared`) or a piece of it. Its
 * policy counts with `costs`. After a failure the place is free, and `left` was called. */
dt_status places_begin(places *ps, place *p, dt_pair *pair, const learned_view *costs, dt_prefix **shared);

/* Its prompt is whole: it takes part in iterations from now on. After a failure all sequences of its stepper have left.
 */
void places_join(places *ps, place *p);

/* Other costs from the next iteration on. */
void places_count(place *p, const learned_view *costs);

void places_end(places *ps, place *p, const dt_error *failure); /* failure: NULL, or why */

/* Begins an iteration of each stepper that is in none, and makes the next pass that steppers wait for. True: it was one
 * of draft steps, so that no sequence's iteration has come to its end by it. */
bool places_turn(places *ps);

#endif
