/* The C half of the drivers' module `dt`. dt/init.lua wraps these functions, checks their options and turns failures
 * into tables. If a function fails for a reason outside the program, it returns nil, kind, message. */
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
  bool busy;            /* a generation is running */
  dtl_costs *costs;     /* the table that was measured or given last; or NULL */
  bool costs_given;     /* the driver gave the table; it is used for any number of sequences */
  const char *counts;   /* the costs that policies use, "table" or "learn"; NULL: not set, which means "learn" */
  dtl_learned *learned; /* NULL: nothing has been generated yet */
  /* Digests of files. An empty build means that they have not been computed yet. */
  char build[DIGEST_TEXT], target_hash[DIGEST_TEXT], draft_hash[DIGEST_TEXT];
  dtl_memory *memory;
  dtl_corpus *corpus;      /* NULL: none */
  prefix_object *prefixes; /* the open prefixes, which are freed when the pair is closed */
} pair_object;

struct prefix_object {
  dt_prefix *prefix; /* NULL once freed */
  pair_object *owner;
  prefix_object *next, **link;
};

#define PAIR_TYPE "dt.pair"
#define PREFIX_TYPE "dt.prefix"
#define REQUEST_TYPE "dt.request" /* request_input */

#define DRIVER_INTERRUPTED "dt.interrupted" /* registry key: the text to print if Ctrl-C ends the driver */

/* Makes a Lua state for a driver; NULL: out of memory. interrupt: or NULL; it becomes nonzero after Ctrl-C. */
lua_State *driver_open(const volatile sig_atomic_t *interrupt);

/* Opens all of Lua's libraries, and makes `dt` and its parts available to require. */
void driver_open_libraries(lua_State *L);

pair_object *driver_pair(lua_State *L, int i);      /* raises an error if the pair is closed */
pair_object *driver_idle_pair(lua_State *L, int i); /* and if one of its generations is running */

/* Returns the costs of the pair with `batch` sequences at once, measured if necessary. The pair owns them. */
dt_status driver_costs(lua_State *L, pair_object *pair, int batch, bool fresh, const dtl_costs **out, dt_error *err);

/* Pushes nil, kind, message. */
int driver_failure(lua_State *L, const dt_error *err);
/* Pushes nil, kind, message, file, line. */
int driver_policy_failure(lua_State *L, const dt_error *err);

/* Reads the list of token ids at index i into a userdata, which it pushes. Ids that no model has become -1. */
const int32_t *driver_ids(lua_State *L, int i, int *n);

/* Sets the options of an answer that depend on its chat from the table on top of the stack, which
 * driver_pair_conversations made and which must stay there; nil: the prompt is no conversation. limited: the tokens of
 * reasoning are. */
void driver_chat_options(lua_State *L, bool limited, dtl_request *request);

/* Returns the integer at index i, or the fallback for nil. It raises an error if the number does not fit into an
 * int. */
int driver_int(lua_State *L, int i, const char *what, int fallback);

/* Read the table of options at index 2: an integer; the policy with its settings, whose strings stay on the stack. */
int driver_integer(lua_State *L, const char *key, int fallback);
dtl_policy_options driver_policy_options(lua_State *L);

/* Returns the flag that Ctrl-C sets, or NULL. */
const volatile sig_atomic_t *driver_interrupt(lua_State *L);
void driver_check_interrupt(lua_State *L); /* raises an error if Ctrl-C was pressed */

/* Fields of request/fields.h. Here and below, a comment gives the Lua arguments and results. */
void driver_request_type(lua_State *L);
request_input *driver_request(lua_State *L, int i);
int driver_read_request(lua_State *L); /* (table, "generate" or "load", pair or nil) -> request; or nil, message */
int driver_read_text(lua_State *L);    /* (field, its name for the user, text) -> number; or nil, message */
int driver_fields(lua_State *L);       /* ("generate" or "load") -> {[name] = help} */

/* (target's name) -> {path=, name = general.name of a GGUF file, digest=, bytes=, numbers of dt_model_facts, mtp=,
 * drafts = {{path=, kind = "head" or "model", digest=, bytes=, for models the same numbers}, ..}}, or nil, kind,
 * message */
int driver_drafts(lua_State *L);

int driver_pair_open(lua_State *L); /* (request of "load") */
int driver_pair_needs(lua_State *L);
int driver_pair_read(lua_State *L);      /* (pair, list of files): sets its corpus */
int driver_pair_forget(lua_State *L);    /* (pair): forgets what policies remember */
int driver_pair_fake(lua_State *L);      /* (vocab, context, draft_context, eos, target rules, draft rules or false) */
int driver_pair_describe(lua_State *L);  /* (pair) -> table */
int driver_pair_bandwidth(lua_State *L); /* (pair) -> bytes per second */
int driver_pair_close(lua_State *L);
int driver_pair_encode(lua_State *L);
int driver_pair_decode(lua_State *L);
int driver_pair_prefix(lua_State *L); /* (pair, text or list of ids, window, sinks) */
/* (pair, list of messages as JSON, {template =, variables = JSON, think =, raw =, date =, tools = JSON, tool_choice =
 * JSON, single_call =}, all of which may be nil) -> list of lists of ids, what answers depend on (driver_chat_options;
 * with tools also tools = JSON of those that may be called, required =, grammar =), the template's name */
int driver_pair_conversations(lua_State *L);
/* (pair, what answers depend on, an answer's text, template or nil) -> {content =, reasoning = text or nil, calls =
 * {{name =, arguments = JSON}, ..}} */
int driver_pair_message(lua_State *L);
int driver_pair_policy(lua_State *L);        /* (pair, options) -> table | nil, kind, message, file, line */
int driver_pair_set_costs(lua_State *L);     /* (pair, "learn", "table" or the JSON of a table) */
int driver_pair_measure_costs(lua_State *L); /* (pair, fresh, batch) -> costs, JSON of the table */
int driver_pair_identity(lua_State *L);      /* (pair) -> {commit=, build=, target_hash=, draft_hash=}, without
                                                those that do not exist */
int driver_pair_save_tuned(lua_State *L);    /* (pair, policy, uses_draft, JSON) -> path | nil, message */
/* (pair, options) -> true | nil, kind, message, file, line; calls options.on_done(prompt, JSON[, nil, kind, ..]) */
int driver_pair_generate(lua_State *L);
void driver_pair_types(lua_State *L); /* registers the userdata types of pairs and prefixes */

int driver_usage(lua_State *L);     /* (of children?) -> {wall=, cpu=, steal=, switches=}, times in ms: see dtl_usage */
int driver_disturbed(lua_State *L); /* (usage before, usage after, computes?) -> the reason, or nothing */
int driver_dt_open(lua_State *L);   /* the module dt.core */

#endif
