/* Tables of the costs of passes: looking costs up, writing and reading tables, keeping them between runs. */
#ifndef DTL_COSTS_H
#define DTL_COSTS_H

#include "files/fail.h"

#define COSTS_STEP 128 /* contexts are looked up at the next multiple of this */

#define COSTS_EXPERTS 1e9 /* maximum number of distinct experts of a pass */

#define COSTS_ROWS 19 /* maximum number of row counts that are measured */

typedef double costs_of[DTL_COST_CONTEXTS][DTL_COST_ROWS]; /* ms by context and row count */

/* Chooses the row counts to measure for costs->batch sequences, such that times between and beyond them are nearly
 * linear. */
void costs_choose_rows(dtl_costs *costs);

/* The cost in ms of a pass over `rows` rows of each of costs->batch sequences, after `context` tokens. ms:
 * costs->target or costs->draft. rows may be a fraction if fewer sequences take part in the pass. The result
 * increases strictly with rows, also beyond the measured row counts; a context beyond the measured ones counts as the
 * nearest of them. */
double costs_pass(const dtl_costs *costs, const costs_of ms, double rows, int context);

/* The cost in ms, at least 1e-6, of a target pass that reads `experts` distinct experts, in all layers and for all
 * sequences; 0: as many as the measured passes read. For row counts beyond the measured ones that is the number at the
 * nearest of them. */
double costs_target(const dtl_costs *costs, double rows, int context, double experts);

/* The cost in ms of the draft's first pass of an iteration, over one row of each of `sequences` sequences or, of a
 * block head, over a whole block of each. */
double costs_first(const dtl_costs *costs, int sequences, int context);

/* The cost in ms of processing n tokens of a text of one sequence, without guessing after them: when the draft reads
 * the prompt. If it was not measured, it is that of a draft pass over n rows, which takes longer. */
double costs_read_text(const dtl_costs *costs, int n);

/* Default of cache_miss, for a table without it and for learned costs before the first measurement: measured on a
 * Zen 5. */
extern const double COSTS_CACHE_MISS[DTL_COST_MISSES];

/* The cost in ms of reading 32 KiB that were last read `passes` target passes ago. */
double costs_cache_miss(const dtl_costs *costs, int passes);

/* Makes measured times increase strictly with rows and not decrease with the context. Since disturbances only add time,
 * it takes the isotonic fit from below, the largest one that exceeds no time, and then adds a little for each row. */
void costs_straighten(const dtl_costs *costs, costs_of ms);

/* Estimates the cost of an expert: fills c->experts and c->expert, by row count. usual: the number of distinct experts
 * that usual passes (those of c->target[0]) read. more, longer: how many more experts one pass over that many rows read
 * than another, and how many ms longer it took; 0: not measured. If the difference `more` is too small at a row count,
 * the cost of an expert is taken from smaller row counts, or otherwise from larger ones. If it is too small everywhere,
 * the whole cost of the rows after the first is attributed to their experts. */
void costs_estimate_experts(dtl_costs *costs, const int *usual, const int *more, const double *longer);

/* Returns why the numbers are not a valid table of costs (static), or NULL if they are. */
const char *costs_wrong(const dtl_costs *costs);

/* The table as a JSON object of schema dtrun.costs/2. key: the pair and machine that it was measured on, or NULL.
 * malloc'd; NULL: out of memory. */
char *costs_json(const dtl_costs *costs, const char *key);

extern const char COSTS_STARVED[]; /* the mistake that the functions below return if memory is out */

/* Parses a JSON object, which the caller deletes in any case. Returns NULL, or the mistake: static. */
struct cJSON;
const char *costs_parse_object(const char *json, struct cJSON **object);

/* Parses a table; if key is not NULL, only one with this key. Returns NULL, or the mistake: static. */
const char *costs_parse(const char *json, const char *key, dtl_costs *costs);

/* Where costs are kept between runs: one file for each pair, backend, number of threads and number of sequences at
 * once; for tables also for each context, for learned costs also for each way of sampling ("greedy", "sampled", ..).
 * The key names everything that the times depend on. With batch 0 the place is that of a ledger (ledger.h), which
 * serves any number of sequences. */
typedef struct {
  char *key, *path; /* path is NULL if there is no cache folder or nothing is to be kept */
} costs_place;

dt_status costs_find(dt_pair *pair, int context, int batch, costs_place *place, dt_error *err);
dt_status costs_find_learned(dt_pair *pair, const char *way, int batch, costs_place *place, dt_error *err);
void costs_leave(costs_place *place);

/* Reads the file. *text is malloc'd; NULL: there is no file. DT_EINPUT: it cannot be read; DT_ENOMEM. */
dt_status costs_read(const costs_place *place, char **text, dt_error *err);
/* Writes the whole file or nothing. text: NULL if memory was out. Returns NULL, or the reason of a failure. */
const char *costs_write(const costs_place *place, const char *text);

/* Reads a table. Returns NULL, or the mistake, for a note to the user; "": there is no file. */
const char *costs_load(const costs_place *place, dtl_costs *costs);
/* Writes a table. Returns NULL, or the reason of a failure. */
const char *costs_store(const costs_place *place, const dtl_costs *costs);

#endif
