/* Costs as Lua sees them, in the box and in drivers: costs:target(rows, context[, batch]) and costs:draft(..) -> ms of a
 * pass with so many rows of each of `batch` sequences: if not told, as many as run at once, which costs:sequences() tells. */
#include "costs.h"

#include <lauxlib.h>

#define COSTS_TYPE "costs"

typedef struct {
  dtl_costs table;
  int places;
} costs_object;

const dtl_costs *box_costs_check(lua_State *L, int i) {
  return &((const costs_object *)luaL_checkudata(L, i, COSTS_TYPE))->table;
}

static int argument(lua_State *L, int i, const char *who, const char *what, lua_Integer least) {
  int exact;
  lua_Integer value = lua_tointegerx(L, i, &exact);
  if (!exact || value < least || value > 1 << 30)
    luaL_error(L, "%s: %s must be an integer of at least %d", who, what, (int)least);
  return (int)value;
}

static int cost(lua_State *L, const char *who, const dtl_costs *costs, const costs_of ms) {
  int rows = argument(L, 2, who, "rows", 1), context = argument(L, 3, who, "context", 0);
  int batch = ((const costs_object *)costs)->places;
  if (!lua_isnoneornil(L, 4)) batch = argument(L, 4, who, "batch", 1);
  lua_pushnumber(L, costs_pass(costs, ms, (double)rows * batch / costs->batch, context));
  return 1;
}

static int costs_target(lua_State *L) {
  const dtl_costs *costs = box_costs_check(L, 1);
  return cost(L, "costs:target", costs, costs->target);
}

static int costs_draft(lua_State *L) {
  const dtl_costs *costs = box_costs_check(L, 1);
  if (!costs->has_draft) return luaL_error(L, "costs:draft: there is no draft model");
  return cost(L, "costs:draft", costs, costs->draft);
}

static int costs_sequences(lua_State *L) {
  box_costs_check(L, 1);
  lua_pushinteger(L, ((const costs_object *)lua_touserdata(L, 1))->places);
  return 1;
}

void box_costs_push(lua_State *L, const dtl_costs *costs, int places) {
  static const luaL_Reg methods[] = {
      {"target", costs_target}, {"draft", costs_draft}, {"sequences", costs_sequences}, {NULL, NULL}};
  costs_object *object = lua_newuserdatauv(L, sizeof *object, 0);
  *object = (costs_object){.table = *costs, .places = places};
  if (luaL_newmetatable(L, COSTS_TYPE)) {
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
  }
  lua_setmetatable(L, -2);
}
