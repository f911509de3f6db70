/* The learned costs of a pair's passes: see dtl_learned in host.h. Each kind of run (number of sequences at once, way
 * of sampling) has a course of its own, which is kept in a file of its own. */
#ifndef DTL_LEARN_H
#define DTL_LEARN_H

#include "measure/learned.h"
#include "measure/ledger.h"

typedef struct course course; /* learned costs of one kind of run */

const dt_pair *learn_pair(const dtl_learned *learned);

/* Finds the course of runs of `batch` sequences with these options, reads it from the cache, or begins it with an
 * estimate. `first`: it is about to be used, so if nothing is known, a few passes are measured, which takes about 0.25
 * s. *out is owned by `learned`. DT_ENOMEM. */
dt_status learn_course(dtl_learned *learned, int batch, const dt_seq_options *options, bool first, course **out,
                       dt_error *err);

/* Learns from a pass over `rows` rows of all sequences together, after `context` tokens on average, that read `experts`
 * distinct experts (0: the model has none) and took `ms` ms. */
void learn_pass(course *c, learned_kind kind, int rows, int context, int experts, double ms);

/* Learns from the time in which the draft has processed n tokens of a prompt. */
void learn_read(course *c, int n, double ms);

/* Measures the cost of cache misses from time to time. Call it after each target pass. */
void learn_cache_miss(course *c);

/* Whether an iteration without a tree is due, so that the cost of plain decoding stays known. */
bool learn_wants_plain(const course *c);

/* Lets costs change. Call it when an iteration begins. */
void learn_look(course *c);

/* The learned costs. **revision changes whenever they do. */
const dtl_costs *learn_costs(const course *c, const int **revision);

/* What the policy whose text has this digest has kept about the pair with this way of sampling. dtl_learned owns it. */
ledger_book *learn_book(const course *c, const char *digest);

/* Writes the course, if it has learned much or anything for the first time. Call it when a run has ended. failed: the
 * run failed, so a failure to write is not reported in addition. */
void learn_keep(dtl_learned *learned, course *c, bool failed);

#endif
