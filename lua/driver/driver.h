/* The C half of the drivers' module `dt`. dt/init.lua wraps it, checks options and turns failures into tables.
 * Functions here return nil, kind, message if they fail for a reason outside the program. */
#ifndef DTL_DRIVER_H
#define DTL_DRIVER_H

#include "files/fail.h"
#include "request/input.h"
#include "system/digest.h"

#include <lauxlib.h>

typedef struct prefix_object prefix_object;

typedef struct {
  dt_pair *pair; /* NULL once closed */
  int context;
  bool busy;            /* it is generating */
  dtl_costs *costs;     /* the last table measured or given; or NULL */
  bool costs_given;     /* the driver gave it, for any number of sequences at once */
  const char *counts;   /* the costs that policies use: "table", "learn"; NULL: not set, learn */
  dtl_learned *learned; /* NULL: nothing was generated yet */
  /* Digests of files; build "": not computed yet. */
  char build[DIGEST_TEXT], target_hash[DIGEST_TEXT], draft_hash[DIGEST_TEXT], draft2_hash[DIGEST_TEXT];
  dtl_memory *memory;
  dtl_corpus *corpus;      /* NULL: none */
  prefix_object *prefixes; /* those alive: closing the pair frees them */
} pair_object;

struct prefix_object {
  dt_prefix *prefix; /* NULL once freed */
  pair_object *owner;
  prefix_object *next, **link;
};

#define PAIR_TYPE "dt.pair"
#define PREFIX_TYPE "dt.prefix"
#define REQUEST_TYPE "dt.request" /* request_input */

#define DRIVER_INTERRUPTED "dt.interrupted" /* a text in the registry: what Ctrl-C means now; or nil */

/* A state for a driver; NULL: out of memory. interrupt: or NULL; nonzero after Ctrl-C. */
lua_State *driver_open(const volatile sig_atomic_t *interrupt);

/* All of Lua, and the module `dt` with its parts for require. */
void driver_open_libraries(lua_State *L);

pair_object *driver_pair(lua_State *L, int i);      /* raises when it is closed */
pair_object *driver_idle_pair(lua_State *L, int i); /* and when a callback of its own generation asks */

/* The costs of the pair with `batch` sequences at once, measured if necessary. The pair owns them. */
dt_status driver_costs(lua_State *L, pair_object *pair, int batch, bool fresh, const dtl_costs **out, dt_error *err);

/* nil, kind, message */
int driver_failure(lua_State *L, const dt_error *err);
/* nil, kind, message, file, line */
int driver_policy_failure(lua_State *L, const dt_error *err);

/* The integer at index i, or the fallback for nil; raises if it does not fit into an int. */
int driver_int(lua_State *L, int i, const char *what, int fallback);

/* From the table of options at index 2: an integer; the policy and its settings (the strings stay on the stack). */
int driver_integer(lua_State *L, const char *key, int fallback);
dtl_policy_options driver_policy_options(lua_State *L);

/* The flag that says Ctrl-C was pressed, or NULL. */
const volatile sig_atomic_t *driver_interrupt(lua_State *L);
void driver_check_interrupt(lua_State *L); /* raises when it was */

/* Fields of request/fields.h. */
void driver_request_type(lua_State *L);
request_input *driver_request(lua_State *L, int i);
int driver_read_request(lua_State *L); /* (table, "generate" or "load", pair or nil) -> request; or nil, message */
int driver_read_text(lua_State *L);    /* (field, its name for the user, text) -> number; or nil, message */
int driver_fields(lua_State *L);       /* ("generate" or "load") -> {[name] = help} */

int driver_pair_open(lua_State *L);      /* (request of "load") */
int driver_pair_read(lua_State *L);      /* (pair, list of files): its corpus from now on */
int driver_pair_forget(lua_State *L);    /* (pair): what policies remember */
int driver_pair_fake(lua_State *L);      /* (vocab, context, draft_context, eos, target rules, draft rules or false) */
int driver_pair_describe(lua_State *L);  /* (pair) -> table */
int driver_pair_bandwidth(lua_State *L); /* (pair) -> bytes a second */
int driver_pair_close(lua_State *L);
int driver_pair_encode(lua_State *L);
int driver_pair_decode(lua_State *L);
int driver_pair_prefix(lua_State *L); /* (pair, text, window, sinks, whether the text says everything itself) */
/* (pair, list of conversations {turn, .., system =}, template or nil, date or nil: today's) -> list of texts, what ends
 * an answer, the template's name */
int driver_pair_conversations(lua_State *L);
int driver_pair_policy(lua_State *L);        /* (pair, options) -> table | nil, kind, message, file, line */
int driver_pair_set_costs(lua_State *L);     /* (pair, "learn", "table" or the JSON of one) */
int driver_pair_measure_costs(lua_State *L); /* (pair, fresh, batch) -> costs, JSON of the table */
int driver_pair_identity(
    lua_State *L); /* (pair) -> {commit=, build=, target_hash=, draft_hash=, draft2_hash=}; absent: none */
int driver_pair_save_tuned(lua_State *L); /* (pair, policy, uses_draft, JSON) -> path | nil, message */
/* (pair, options) -> true | nil, kind, message, file, line; calls options.on_done(prompt, JSON[, nil, kind, ..]) */
int driver_pair_generate(lua_State *L);
void driver_pair_types(lua_State *L); /* registers the two userdata types */

int driver_usage(lua_State *L);     /* (of children?) -> {wall=, cpu=, steal= ms, switches=}: see dtl_usage */
int driver_disturbed(lua_State *L); /* (usage before, after, computes?) -> why | nothing */
int driver_dt_open(lua_State *L);   /* the module dt.core */

#endif
