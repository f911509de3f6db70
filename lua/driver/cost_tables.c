/* dt.measure_costs: cost tables of a driver's pair. The pair owns them, so that generate finds them. */
#include "box/costs_object.h"
#include "driver/driver.h"

#include <stdlib.h>
#include <string.h>

dt_status driver_costs(lua_State *L, pair_object *p, int batch, bool fresh, const dtl_costs **out, dt_error *err) {
  if (p->costs && (p->costs_given || p->costs->batch == batch) && !fresh) return *out = p->costs, DT_OK;
  dtl_costs *costs = malloc(sizeof *costs);
  dtl_cost_measuring how = dtl_cost_measuring_shown(driver_interrupt(L));
  how.context = p->context;
  how.batch = batch;
  how.fresh = fresh;
  if (!costs) return dtl_fail_memory(err, "a table of costs");
  dt_status status = dtl_measure_costs(p->pair, &how, costs, err);
  if (status) {
    free(costs);
    return status;
  }
  free(p->costs);
  p->costs_given = false;
  *out = p->costs = costs;
  return DT_OK;
}

int driver_pair_measure_costs(lua_State *L) {
  driver_check_interrupt(L);
  pair_object *p = driver_idle_pair(L, 1);
  dt_error err;
  const dtl_costs *costs;
  dt_status status = driver_costs(L, p, driver_int(L, 3, "batch", 1), lua_toboolean(L, 2), &costs, &err);
  driver_check_interrupt(L);
  if (status) return driver_failure(L, &err);
  box_costs_push(L, costs, costs->batch, false, false);
  char *json = costs_json(costs, NULL);
  lua_pushstring(L, json ? json : "{}");
  free(json);
  return 2;
}

int driver_pair_set_costs(lua_State *L) {
  pair_object *p = driver_pair(L, 1);
  const char *given = luaL_checkstring(L, 2);
  bool learns = strcmp(given, "learn") == 0;
  p->counts = learns ? "learn" : "table";
  if (learns || strcmp(given, "table") == 0) return 0;
  dtl_costs *costs = lua_newuserdatauv(L, sizeof *costs, 0);
  const char *wrong = costs_parse(given, NULL, costs);
  if (wrong) return luaL_error(L, "costs: %s", wrong);
  free(p->costs);
  p->costs = malloc(sizeof *costs);
  if (!p->costs) return luaL_error(L, "out of memory: a table of costs");
  memcpy(p->costs, costs, sizeof *costs);
  p->costs_given = true;
  return 0;
}
