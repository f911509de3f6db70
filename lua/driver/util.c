/* Shared by all functions for drivers: the state's flag, arguments and failures. See driver.h. */
#include "driver/driver.h"

#include <limits.h>

static const volatile sig_atomic_t **flag_of(lua_State *L) { return lua_getextraspace(L); }

const volatile sig_atomic_t *driver_interrupt(lua_State *L) { return *flag_of(L); }

lua_State *driver_open(const volatile sig_atomic_t *interrupt) {
  lua_State *L = luaL_newstate();
  if (L) *flag_of(L) = interrupt;
  return L;
}

int driver_failure(lua_State *L, const dt_error *err) {
  lua_pushnil(L);
  lua_pushstring(L, dtl_kind_name(err->status));
  lua_pushstring(L, err->message);
  return 3;
}

void driver_check_interrupt(lua_State *L) {
  const volatile sig_atomic_t *interrupt = driver_interrupt(L);
  if (interrupt && *interrupt) luaL_error(L, "interrupted");
}

pair_object *driver_pair(lua_State *L, int i) {
  pair_object *p = luaL_checkudata(L, i, PAIR_TYPE);
  if (!p->pair) luaL_argerror(L, i, "the pair is closed");
  return p;
}

pair_object *driver_idle_pair(lua_State *L, int i) {
  pair_object *p = driver_pair(L, i);
  if (p->busy) luaL_argerror(L, i, "the pair is generating");
  return p;
}

int driver_int(lua_State *L, int i, const char *what, int fallback) {
  lua_Integer value = luaL_optinteger(L, i, fallback);
  if (value < INT_MIN || value > INT_MAX) luaL_error(L, "%s = %I is out of range", what, (LUAI_UACINT)value);
  return (int)value;
}

const int32_t *driver_ids(lua_State *L, int i, int *n) {
  const int list = lua_absindex(L, i);
  *n = (int)luaL_len(L, list);
  int32_t *ids = lua_newuserdatauv(L, sizeof *ids * (size_t)(*n + 1), 0);
  for (int k = 0; k < *n; k++) {
    lua_rawgeti(L, list, k + 1);
    lua_Integer id = luaL_checkinteger(L, -1);
    ids[k] = id < 0 || id > INT32_MAX ? -1 : (int32_t)id;
    lua_pop(L, 1);
  }
  return ids;
}

int driver_integer(lua_State *L, const char *key, int fallback) {
  lua_getfield(L, 2, key);
  int value = driver_int(L, -1, key, fallback);
  lua_pop(L, 1);
  return value;
}

int driver_policy_failure(lua_State *L, const dt_error *err) {
  int n = driver_failure(L, err);
  lua_pushstring(L, err->file);
  lua_pushinteger(L, err->line);
  return n + 2;
}
