/* Part of dt.core: the conditions of a measurement, and whether it was disturbed. */
#include "driver/driver.h"
#include "files/identity.h"

static void set_digest(lua_State *L, const char *key, const char *text) {
  if (!*text) return; /* a scripted model computes nothing */
  lua_pushstring(L, text);
  lua_setfield(L, -2, key);
}

int driver_pair_identity(lua_State *L) {
  pair_object *p = driver_pair(L, 1);
  dt_pair_info info;
  dt_pair_describe(p->pair, &info);
  if (!*p->build) {
    identity_build(p->build);
    identity_model(info.target.path, p->target_hash);
    identity_model(info.draft.path, p->draft_hash);
  }
  lua_createtable(L, 0, 4);
  if (*identity_commit()) {
    lua_pushstring(L, identity_commit());
    lua_setfield(L, -2, "commit");
  }
  set_digest(L, "build", p->build);
  set_digest(L, "target_hash", p->target_hash);
  set_digest(L, "draft_hash", p->draft_hash);
  return 1;
}

static double field(lua_State *L, int i, const char *key) {
  luaL_checktype(L, i, LUA_TTABLE);
  lua_getfield(L, i, key);
  double value = luaL_checknumber(L, -1);
  lua_pop(L, 1);
  return value;
}

static dtl_usage usage_at(lua_State *L, int i) {
  return (dtl_usage){.wall_ms = field(L, i, "wall"),
                     .cpu_ms = field(L, i, "cpu"),
                     .steal_ms = field(L, i, "steal"),
                     .switches = (long)field(L, i, "switches")};
}

int driver_usage(lua_State *L) {
  dtl_usage usage = dtl_usage_now(lua_toboolean(L, 1));
  lua_createtable(L, 0, 4);
  lua_pushnumber(L, usage.wall_ms);
  lua_setfield(L, -2, "wall");
  lua_pushnumber(L, usage.cpu_ms);
  lua_setfield(L, -2, "cpu");
  lua_pushnumber(L, usage.steal_ms);
  lua_setfield(L, -2, "steal");
  lua_pushinteger(L, usage.switches);
  lua_setfield(L, -2, "switches");
  return 1;
}

int driver_disturbed(lua_State *L) {
  dtl_usage before = usage_at(L, 1), after = usage_at(L, 2);
  char why[DTL_WHY];
  if (!dtl_disturbed(&before, &after, lua_toboolean(L, 3), why, sizeof why)) return 0;
  lua_pushstring(L, why);
  return 1;
}
