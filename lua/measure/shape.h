/* From the places of lessons to costs: what rows and contexts cost of which little or nothing was seen. A pass of r
 * rows after n tokens costs estimated(r, n) * shape(r) * level(n): rows are compared within a context, so that a
 * machine which is faster or slower by now, or a run that makes passes of one size alone, moves the others along and
 * bends nothing. */
#ifndef DTL_SHAPE_H
#define DTL_SHAPE_H

#include "measure/learned.h"

/* ms[k][i] of all rows and contexts, from what was estimated for them and the places of one kind; the estimate where
 * there are none. */
void shape_costs(lessons *l, learned_kind kind, const costs_of estimated, costs_of ms);

#endif
