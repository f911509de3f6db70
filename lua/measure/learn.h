/* What passes of a pair cost, learned from the runs with it: see dtl_learned in host.h. Runs that differ in what their passes
 * cost (sequences at once, how tokens are drawn) learn apart, each kept in a file of its own. */
#ifndef DTL_LEARN_H
#define DTL_LEARN_H

#include "measure/learned.h"

typedef struct course course; /* what is learned from runs of one kind */

const dt_pair *learn_pair(const dtl_learned *learned);

/* That of such runs, from the cache or begun as a reckoning; `first`: somebody is about to count with it, and where nothing is
 * known a few passes are made, a quarter of a second in all. It stays the owner's. DT_ENOMEM. */
dt_status learn_course(dtl_learned *learned, int batch, const dt_seq_options *options, bool first, course **out,
                       dt_error *err);

/* A pass that was made, of so many rows in all, after `context` tokens each on average. */
void learn_pass(course *c, learned_kind kind, int rows, int context, double ms);

/* An iteration begins: costs may change now. */
void learn_look(course *c);

const dtl_costs *learn_costs(const course *c, const int **revision);

/* A run has ended: what it taught is kept, if that is much or the first of its kind. Of a run that failed only the failure is
 * told, not that nothing could be kept. */
void learn_keep(dtl_learned *learned, course *c, bool failed);

#endif
