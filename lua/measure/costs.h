/* A table of what passes cost: how it is looked up, written and read, kept between runs, and shown to Lua. */
#ifndef DTL_COSTS_H
#define DTL_COSTS_H

#include "files/fail.h"

#define COSTS_STEP 128 /* contexts are looked up at the next multiple of this */

#define COSTS_ROWS 19 /* numbers of rows that costs are known at, at most */

typedef double costs_of[DTL_COST_CONTEXTS][DTL_COST_ROWS];

/* Those numbers, for costs->batch sequences: what is between them is nearly a straight line, and what is beyond. */
void costs_choose_rows(dtl_costs *costs);

/* Milliseconds of a pass with `rows` rows of each of costs->batch sequences, after `context` tokens; ms is costs->target or
 * costs->draft. Strictly increasing in rows, beyond the measured ones too; contexts beyond those measured cost what the
 * nearest does. rows may be a fraction: what fewer sequences bring into a pass. */
double costs_pass(const dtl_costs *costs, const costs_of ms, double rows, int context);

/* The draft pass that an iteration begins with: of one row of each of so many sequences. */
double costs_first(const dtl_costs *costs, int sequences, int context);

/* Makes measured times increase strictly in rows, and not fall with the context. What disturbs a measurement only adds, so
 * the isotonic fit is the one from below: the largest that lies nowhere above a time; then a little more for each row. */
void costs_straighten(const dtl_costs *costs, costs_of ms);

/* NULL, or why the numbers are no table of costs: static. */
const char *costs_wrong(const dtl_costs *costs);

/* The table as a JSON object, schema dtrun.costs/1, with what it was measured on (key, or NULL): malloc'd; NULL when out of
 * memory. */
char *costs_json(const dtl_costs *costs, const char *key);

extern const char COSTS_STARVED[]; /* what is wrong where memory was out: no fault of the text */

/* The object in a JSON text, to be deleted whatever comes. NULL, or what is wrong: static. */
struct cJSON;
const char *costs_parse_object(const char *json, struct cJSON **object);

/* The table in a JSON text; where key is given, only if it was measured on that. NULL, or what is wrong: static. */
const char *costs_parse(const char *json, const char *key, dtl_costs *costs);

/* The cache: one file per pair, backend, threads and sequences at once; of tables also per context, of what is learned per
 * way of drawing tokens ("greedy", "drawn", ..). The key says all that the times depend on. */
typedef struct {
  char *key, *path; /* path NULL: there is no place for a cache, or nothing worth keeping */
} costs_place;

dt_status costs_find(dt_pair *pair, int context, int batch, costs_place *place, dt_error *err);
dt_status costs_find_learned(dt_pair *pair, const char *drawn, int batch, costs_place *place, dt_error *err);
void costs_leave(costs_place *place);

/* The text there: malloc'd; NULL: there is none. DT_EINPUT: it cannot be read; DT_ENOMEM. */
dt_status costs_read(const costs_place *place, char **text, dt_error *err);
/* NULL, or why the file could not be written (text NULL: no memory). The file is there as a whole or not at all. */
const char *costs_write(const costs_place *place, const char *text);

/* A table. NULL, or what is wrong in words for a note: "": there is no file. */
const char *costs_load(const costs_place *place, dtl_costs *costs);
const char *costs_store(const costs_place *place, const dtl_costs *costs); /* as costs_write */

#endif
