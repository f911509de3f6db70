/* The C half of the drivers' module `dt`: dt/init.lua wraps it, checks options and turns failures into tables. Functions
 * here return nil, kind, message where they fail for a reason outside the program. */
#ifndef DTL_DRIVER_H
#define DTL_DRIVER_H

#include "fail.h"

#include <lauxlib.h>

typedef struct prefix_object prefix_object;

typedef struct {
  dt_pair *pair; /* NULL once closed */
  int context;
  bool busy;               /* it is generating */
  dtl_costs *costs;        /* those asked for last; NULL: none */
  bool costs_given;        /* by the driver, for any number of sequences at once */
  prefix_object *prefixes; /* those alive: closing the pair frees them */
} pair_object;

struct prefix_object {
  dt_prefix *prefix; /* NULL once freed */
  pair_object *owner;
  prefix_object *next, **link;
};

#define PAIR_TYPE "dt.pair"
#define PREFIX_TYPE "dt.prefix"

pair_object *driver_pair(lua_State *L, int i);      /* raises when it is closed */
pair_object *driver_idle_pair(lua_State *L, int i); /* and when a callback of its own generation asks */

/* The pair's costs with so many sequences at once, calibrated if need be; NULL with *err. */
const dtl_costs *driver_costs(lua_State *L, pair_object *pair, int batch, bool fresh, dtl_error *err);

/* nil, kind, message */
int driver_failure(lua_State *L, const dtl_error *err);
/* nil, kind, message, file, line */
int driver_policy_failure(lua_State *L, const dtl_error *err);

/* Of the table of options at index 2: an integer; which policy and how it is set (what it points to stays on the stack). */
lua_Integer driver_integer(lua_State *L, const char *key, lua_Integer fallback);
dtl_policy_options driver_policy_options(lua_State *L);

/* The flag that says Ctrl-C was pressed, or NULL. */
const volatile sig_atomic_t *driver_interrupt(lua_State *L);
void driver_check_interrupt(lua_State *L); /* raises when it was */

int lib_pair_open(lua_State *L);     /* (target, draft, backend, threads, context) */
int lib_pair_fake(lua_State *L);     /* (vocab, context, draft_context, eos, target rules, draft rules or false) */
int lib_pair_describe(lua_State *L); /* (pair) -> table */
int lib_pair_close(lua_State *L);
int lib_pair_encode(lua_State *L);
int lib_pair_decode(lua_State *L);
int lib_pair_prefix(lua_State *L);     /* (pair, text) */
int lib_pair_policy(lua_State *L);     /* (pair, options) -> table | nil, kind, message, file, line */
int lib_pair_set_costs(lua_State *L);  /* (pair, JSON of a table) */
int lib_pair_calibrate(lua_State *L);  /* (pair, fresh, batch) -> costs, JSON of the table */
int lib_pair_save_tuned(lua_State *L); /* (pair, policy, JSON) -> path | nil, message */
int lib_pair_generate(
    lua_State *L); /* (pair, options) -> JSON | nil, kind, message, file, line, JSON of what there is */
/* (pair, options) -> true | nil, kind, message, file, line; calls options.on_done(prompt, JSON[, nil, kind, ..]) */
int lib_pair_generate_batch(lua_State *L);
void lib_pair_types(lua_State *L); /* registers the two userdata types */

int lib_dt_open(lua_State *L); /* the module dt.core */

#endif
