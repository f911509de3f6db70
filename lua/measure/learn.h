/* Learned costs of a pair's passes: see dtl_learned in host.h. Each kind of run (sequences at once, way of sampling)
 * has a course of its own, kept in a file of its own. */
#ifndef DTL_LEARN_H
#define DTL_LEARN_H

#include "measure/learned.h"
#include "measure/ledger.h"

typedef struct course course; /* learned costs of one kind of run */

const dt_pair *learn_pair(const dtl_learned *learned);

/* The course of such runs, from the cache or begun as an estimate. `first`: it is about to be used; if nothing is
 * known, a few passes are measured, a quarter of a second in all. dtl_learned owns it. DT_ENOMEM. */
dt_status learn_course(dtl_learned *learned, int batch, const dt_seq_options *options, bool first, course **out,
                       dt_error *err);

/* Learns from a pass with this number of rows in all, after `context` tokens on average, that read this number of
 * distinct experts; 0: none. */
void learn_pass(course *c, learned_kind kind, int rows, int context, int experts, double ms);

/* Call after each target pass. Times cache misses if it is their turn. */
void learn_cache_miss(course *c);

/* Whether an iteration without a tree is due, so that plain decoding's cost is known. */
bool learn_wants_plain(const course *c);

/* An iteration begins: costs may change now. */
void learn_look(course *c);

const dtl_costs *learn_costs(const course *c, const int **revision);

/* What the policy whose text has this digest knows of the pair and of this way of sampling. dtl_learned owns it. */
ledger_book *learn_book(const course *c, const char *digest);

/* A run has ended: writes the course if it has learned much, or for the first time. After a failed run no note tells
 * that writing failed. */
void learn_keep(dtl_learned *learned, course *c, bool failed);

#endif
