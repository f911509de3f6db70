/* Derives costs from the places of lessons, also for row counts and contexts with few times or none. A pass over r rows
 * after n tokens costs estimated(r, n) * shape(r) * level(n). Row counts are compared within a context only. So if the
 * machine becomes faster or slower, or if a run makes passes of one size only, all costs of the context change together
 * and the shape stays. */
#ifndef DTL_SHAPE_H
#define DTL_SHAPE_H

#include "measure/learned.h"

/* Fills ms[k][i] for all contexts k and row counts i, from the estimates and the places of one kind; without any times,
 * with the estimates. */
void shape_costs(lessons *l, learned_kind kind, const costs_of estimated, costs_of ms);

#endif
