/* The costs of passes for Lua, in the box and in drivers. All times are in ms.
 *
 *   costs:target(rows, context[, batch[, experts]])   a target pass over `rows` rows of each of `batch` sequences
 *   costs:draft(rows, context[, batch])               a pass of the draft that is not its first of an iteration
 *   costs:first(context[, batch])                     the draft's first pass of an iteration, over the roots
 *   costs:read(n)                 the draft processes n tokens of a text, without guessing after them
 *   costs:cache_miss(passes)      a read of memory that was last read that many target passes ago
 *   costs:block()                 the maximum number of tokens that a pass of a block head guesses; 0: it is none. It
 *                                 takes costs:draft(w + 1, context) for w tokens
 *   costs:sequences()             the number of sequences that run at once: the default of batch
 *   costs:revision()              an integer that changes whenever these times change; those of a table never do
 *   costs:keep(name, list)        keeps a list of numbers for later texts; returns whether there was room. With a table
 *                                 nothing is kept, so that runs can be repeated exactly
 *   costs:recall(name)            the list that was kept under this name, also by an earlier text; nil: there is none
 *
 * experts: number of distinct experts that the pass reads, in all layers and for all sequences; nil or 0: the usual
 * number. */
#include "box/costs_object.h"

#include <lauxlib.h>
#include <math.h>
#include <string.h>

#define COSTS_TYPE "costs"

typedef struct {
  const learned_view *view; /* NULL: the costs are a table, and never change */
  const char *digest;       /* of the policy's text, for its book; NULL with a table */
  dtl_costs table;          /* a copy */
  int sequences;
  double target_sample, draft_sample; /* ms for each row of all sequences */
} costs_object;

static const dtl_costs *check_costs(lua_State *L, int i) {
  const costs_object *object = luaL_checkudata(L, i, COSTS_TYPE);
  const int *revision;
  return object->view ? learn_costs(object->view->course, &revision) : &object->table;
}

static const costs_object *object_of(lua_State *L) { return lua_touserdata(L, 1); } /* its type was checked */

static int argument(lua_State *L, int i, const char *who, const char *what, lua_Integer least) {
  int exact;
  lua_Integer value = lua_tointegerx(L, i, &exact);
  if (!exact || value < least || value > 1 << 30)
    luaL_error(L, "%s: %s must be an integer of at least %d", who, what, (int)least);
  return (int)value;
}

static int at_once(const costs_object *object) { return object->view ? object->view->sequences : object->sequences; }

static int sequences_of(lua_State *L, int i, const char *who) {
  if (lua_isnoneornil(L, i)) return at_once(object_of(L));
  return argument(L, i, who, "batch", 1);
}

/* The number of rows of all sequences together. */
static double rows_of(lua_State *L, const char *who, int *context) {
  int rows = argument(L, 2, who, "rows", 1);
  *context = argument(L, 3, who, "context", 0);
  return (double)rows * sequences_of(L, 4, who);
}

/* An expected number of experts may be a fraction. */
static double experts_of(lua_State *L, int i, const char *who) {
  if (lua_isnoneornil(L, i)) return 0;
  int is_number;
  double experts = lua_tonumberx(L, i, &is_number);
  if (!is_number || !(experts >= 0 && experts <= COSTS_EXPERTS))
    luaL_error(L, "%s: experts must be a number from 0 to 1e9", who);
  return experts;
}

static int costs_of_target(lua_State *L) {
  static const char who[] = "costs:target";
  const dtl_costs *costs = check_costs(L, 1);
  int context;
  double rows = rows_of(L, who, &context), experts = experts_of(L, 5, who);
  lua_pushnumber(L, costs_target(costs, rows / costs->batch, context, experts) + rows * object_of(L)->target_sample);
  return 1;
}

static const dtl_costs *with_draft(lua_State *L, const char *who) {
  const dtl_costs *costs = check_costs(L, 1);
  if (!costs->drafts) luaL_error(L, "%s: there is no draft model", who);
  return costs;
}

static int costs_of_draft(lua_State *L) {
  static const char who[] = "costs:draft";
  const dtl_costs *costs = with_draft(L, who);
  int context;
  double rows = rows_of(L, who, &context);
  lua_pushnumber(L, costs_pass(costs, costs->draft, rows / costs->batch, context) + rows * object_of(L)->draft_sample);
  return 1;
}

static int costs_first_pass(lua_State *L) {
  static const char who[] = "costs:first";
  const dtl_costs *costs = with_draft(L, who);
  int context = argument(L, 2, who, "context", 0), sequences = sequences_of(L, 3, who);
  lua_pushnumber(L, costs_first(costs, sequences, context) + sequences * object_of(L)->draft_sample);
  return 1;
}

static int costs_reading(lua_State *L) {
  static const char who[] = "costs:read";
  lua_pushnumber(L, costs_read_text(with_draft(L, who), argument(L, 2, who, "n", 1)));
  return 1;
}

static int costs_of_cache_miss(lua_State *L) {
  const dtl_costs *costs = check_costs(L, 1);
  lua_pushnumber(L, costs_cache_miss(costs, argument(L, 2, "costs:cache_miss", "passes", 0)));
  return 1;
}

static int costs_of_block(lua_State *L) {
  lua_pushinteger(L, with_draft(L, "costs:block")->block);
  return 1;
}

static int costs_sequences(lua_State *L) {
  check_costs(L, 1);
  lua_pushinteger(L, at_once(object_of(L)));
  return 1;
}

static int costs_revision(lua_State *L) {
  check_costs(L, 1);
  const learned_view *view = object_of(L)->view;
  const int *revision = NULL;
  if (view) learn_costs(view->course, &revision);
  lua_pushinteger(L, revision ? *revision : 0);
  return 1;
}

static ledger_book *book_of(lua_State *L) {
  const costs_object *object = object_of(L);
  return object->view ? learn_book(object->view->course, object->digest) : NULL;
}

static const char *name_of(lua_State *L, const char *who) {
  size_t len;
  const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tolstring(L, 2, &len) : NULL;
  if (!name || !len || len > LEDGER_NAME || strlen(name) != len)
    luaL_error(L, "%s: a name is a string of 1 to %d bytes without NUL", who, LEDGER_NAME);
  return name;
}

static int costs_recall(lua_State *L) {
  check_costs(L, 1);
  int n;
  const double *numbers = ledger_get(book_of(L), name_of(L, "costs:recall"), &n);
  if (!numbers) return lua_pushnil(L), 1;
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) lua_pushnumber(L, numbers[i]), lua_rawseti(L, -2, i + 1);
  return 1;
}

static int costs_keep(lua_State *L) {
  static const char who[] = "costs:keep";
  check_costs(L, 1);
  const char *name = name_of(L, who);
  double numbers[LEDGER_NUMBERS];
  if (!lua_istable(L, 3) || lua_getmetatable(L, 3)) luaL_error(L, "%s: the second argument is not a plain list", who);
  lua_Unsigned n = lua_rawlen(L, 3);
  if (n > LEDGER_NUMBERS) luaL_error(L, "%s: the list has more than %d numbers", who, LEDGER_NUMBERS);
  for (lua_Unsigned i = 0; i < n; i++) {
    bool is_number = lua_rawgeti(L, 3, (lua_Integer)i + 1) == LUA_TNUMBER;
    numbers[i] = is_number ? lua_tonumber(L, -1) : NAN;
    if (!isfinite(numbers[i])) luaL_error(L, "%s: item %d is not a finite number", who, (int)i + 1);
    lua_pop(L, 1);
  }
  lua_pushboolean(L, ledger_set(book_of(L), name, numbers, (int)n));
  return 1;
}

static costs_object *push(lua_State *L) {
  static const luaL_Reg methods[] = {{"target", costs_of_target},
                                     {"draft", costs_of_draft},
                                     {"first", costs_first_pass},
                                     {"block", costs_of_block},
                                     {"cache_miss", costs_of_cache_miss},
                                     {"sequences", costs_sequences},
                                     {"revision", costs_revision},
                                     {"recall", costs_recall},
                                     {"keep", costs_keep},
                                     {"read", costs_reading},
                                     {NULL, NULL}};
  costs_object *object = lua_newuserdatauv(L, sizeof *object, 0);
  *object = (costs_object){0};
  if (luaL_newmetatable(L, COSTS_TYPE)) {
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
  }
  lua_setmetatable(L, -2);
  return object;
}

void box_costs_push(lua_State *L, const dtl_costs *costs, int sequences, bool sampled, bool coupled) {
  costs_object *object = push(L);
  object->table = *costs;
  object->sequences = sequences;
  object->target_sample = sampled ? costs->target_sample : 0;
  object->draft_sample = coupled ? costs->draft_sample : 0;
}

void box_costs_push_learned(lua_State *L, const learned_view *view, const char *digest) {
  costs_object *object = push(L);
  object->view = view;
  object->digest = digest;
}
