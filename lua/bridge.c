/* The drivers' module for other languages: see host.h and dt/bridge.lua, which does the work. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

struct dtl_bridge {
  lua_State *L;                   /* on its stack: the function of dt/bridge.lua */
  const char *function, *options; /* of the call at hand, */
  dtl_listener listener;          /* and who follows it */
  void *user;
};

/* (text): whether more is wanted */
static int tell_listener(lua_State *L) {
  const dtl_bridge *bridge = lua_touserdata(L, lua_upvalueindex(1));
  size_t len;
  const char *text = luaL_checklstring(L, 1, &len);
  lua_pushboolean(L, !bridge->listener || bridge->listener(bridge->user, text, len));
  return 1;
}

static int open_module(lua_State *L) {
  driver_open_libraries(L);
  lua_getglobal(L, "require");
  lua_pushliteral(L, "dt.bridge");
  lua_call(L, 1, 1);
  return 1;
}

dtl_bridge *dtl_bridge_open(void) {
  dtl_bridge *bridge = calloc(1, sizeof *bridge);
  lua_State *L = bridge ? driver_open(NULL) : NULL;
  if (L) {
    bridge->L = L;
    lua_pushcfunction(L, open_module);
    if (lua_pcall(L, 0, 1, 0) == LUA_OK) return bridge;
  }
  dtl_bridge_close(bridge);
  return NULL;
}

void dtl_bridge_close(dtl_bridge *bridge) {
  if (bridge && bridge->L) lua_close(bridge->L);
  free(bridge);
}

/* (bridge, the module's function) -> answer. Only for want of memory does it fail. */
static int call(lua_State *L) {
  const dtl_bridge *bridge = lua_touserdata(L, 1);
  lua_pushstring(L, bridge->function);
  lua_pushstring(L, bridge->options);
  lua_pushvalue(L, 1);
  lua_pushcclosure(L, tell_listener, 1);
  lua_call(L, 3, 1);
  return 1;
}

char *dtl_bridge_call(dtl_bridge *bridge, const char *function, const char *options, dtl_listener listener,
                      void *user) {
  lua_State *L = bridge->L;
  bridge->function = function, bridge->options = options;
  bridge->listener = listener, bridge->user = user;
  lua_pushcfunction(L, call);
  lua_pushlightuserdata(L, bridge);
  lua_pushvalue(L, 1);
  bool ok = lua_pcall(L, 2, 1, 0) == LUA_OK && lua_isstring(L, -1);
  char *answer = ok ? strdup(lua_tostring(L, -1)) : NULL;
  lua_settop(L, 1);
  return answer;
}

void dtl_bridge_free(char *answer) { free(answer); }
