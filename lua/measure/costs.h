/* Tables of costs: looked up, written and read, kept between runs. */
#ifndef DTL_COSTS_H
#define DTL_COSTS_H

#include "files/fail.h"

#define COSTS_STEP 128 /* contexts are looked up at the next multiple of this */

#define COSTS_EXPERTS 1e9 /* distinct ones of a pass, at most */

#define COSTS_ROWS 19 /* numbers of rows that costs are known at, at most */

typedef double costs_of[DTL_COST_CONTEXTS][DTL_COST_ROWS];

/* Chooses the numbers of rows to measure for costs->batch sequences: times between and beyond them are nearly
 * linear. */
void costs_choose_rows(dtl_costs *costs);

/* Milliseconds of a pass with `rows` rows of each of costs->batch sequences, after `context` tokens; ms is
 * costs->target or one of costs->draft. Strictly increasing in rows, also beyond the measured ones; a context beyond
 * the measured ones counts as the nearest. rows may be a fraction, if fewer sequences take part in the pass. */
double costs_pass(const dtl_costs *costs, const costs_of ms, double rows, int context);

/* A pass of the target that reads this number of distinct experts, of all layers and sequences; 0: as many as the
 * measured passes. Not below a millionth of a millisecond; a number of rows beyond the measured ones has the experts of
 * the nearest. */
double costs_target(const dtl_costs *costs, double rows, int context, double experts);

/* A draft's first pass of an iteration: one row of each of so many sequences. */
double costs_first(const dtl_costs *costs, int draft, int sequences, int context);

/* Cache misses of a table without them, and of learned costs before the first measurement: as on a Zen 5. */
extern const double COSTS_CACHE_MISS[DTL_COST_MISSES];

/* Milliseconds of a read of 32 KiB that were last read that many target passes ago. */
double costs_cache_miss(const dtl_costs *costs, int passes);

/* Makes measured times increase strictly in rows, and not fall with the context. A disturbance only adds time, so this
 * takes the isotonic fit from below: the largest one that exceeds no time. Then it adds a little for each row. */
void costs_straighten(const dtl_costs *costs, costs_of ms);

/* Fills c->experts and c->expert by rows. usual: the distinct experts that passes like those of c->target[0] read;
 * more, longer: how many more than others a pass over that number of rows read, and how many ms longer it took; 0: not
 * measured. Where they are hardly more and so tell nothing, one more costs as much as with fewer rows, or else with
 * more; if none tell, all that rows after the first cost is for theirs. */
void costs_estimate_experts(dtl_costs *costs, const int *usual, const int *more, const double *longer);

/* NULL, or why the numbers are no table of costs: static. */
const char *costs_wrong(const dtl_costs *costs);

/* The table as a JSON object, schema dtrun.costs/2. key: the pair and machine it was measured on, or NULL. malloc'd;
 * NULL: out of memory. */
char *costs_json(const dtl_costs *costs, const char *key);

extern const char COSTS_STARVED[]; /* the mistake returned below if memory was out */

/* Parses a JSON object, which the caller deletes in any case. Returns NULL, or the mistake: static. */
struct cJSON;
const char *costs_parse_object(const char *json, struct cJSON **object);

/* Parses a table; with a key, only one measured on it. Returns NULL, or the mistake: static. */
const char *costs_parse(const char *json, const char *key, dtl_costs *costs);

/* The cache: one file for each pair, backend, number of threads and sequences at once; for tables also for each
 * context, for learned costs for each way of sampling ("greedy", "sampled", ..). The key names everything that the
 * times depend on. With batch 0 the place is that of a ledger (ledger.h), which serves any number of sequences. */
typedef struct {
  char *key, *path; /* path NULL: there is no folder for a cache, or nothing worth keeping */
} costs_place;

dt_status costs_find(dt_pair *pair, int context, int batch, costs_place *place, dt_error *err);
dt_status costs_find_learned(dt_pair *pair, const char *way, int batch, costs_place *place, dt_error *err);
void costs_leave(costs_place *place);

/* Reads the file: malloc'd; NULL: there is none. DT_EINPUT: it cannot be read; DT_ENOMEM. */
dt_status costs_read(const costs_place *place, char **text, dt_error *err);
/* Writes the file whole or not at all. Returns NULL, or the reason of a failure (text NULL: no memory). */
const char *costs_write(const costs_place *place, const char *text);

/* Reads a table. Returns NULL, or the mistake for a note; "": there is no file. */
const char *costs_load(const costs_place *place, dtl_costs *costs);
const char *costs_store(const costs_place *place, const dtl_costs *costs); /* as costs_write */

#endif
