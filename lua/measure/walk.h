/* Walks over memory, whose time that of a policy's page is a multiple of (lua/dt/policy/pass_costs.lua): most of it is
 * the wait for memory that passes have driven out of the processor's caches. */
#ifndef DTL_WALK_H
#define DTL_WALK_H

#include "measure/bench.h"

#define WALK_LINES 512 /* of 64 bytes: as much as the nearest cache holds */
#define WALK_PAUSE 8   /* passes after which a walk counts as one after a pause */
#define WALK_TIMES 64  /* measured at most */

typedef struct {
  struct {
    int next;
    char rest[60];
  } line[WALK_LINES];
} walk_lines;

void walk_begin(walk_lines *p);

/* Milliseconds of a walk over all lines in no order that a processor foresees. */
double walk_ms(const walk_lines *p);

typedef struct {
  walk_lines lines;
  int n;
  double ms[DTL_COST_WALKS][WALK_TIMES]; /* as in dtl_costs */
} walk_times;

/* Times a walk of each kind, between passes of plain decoding after `context` tokens. */
dt_status walk_measure(walk_times *w, bench *b, int context, dt_error *err);

/* Fills costs' walks from one measurement or more. Sorts them. */
void walk_costs(walk_times *w, double *walk);

#endif
