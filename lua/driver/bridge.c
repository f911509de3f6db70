/* Makes the drivers' module callable from other languages: see host.h and dt/bridge.lua, which does the work. */
#include "driver/driver.h"

#include "system/asprintf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dtl_bridge {
  lua_State *L; /* its stack contains the function of dt/bridge.lua */
  volatile sig_atomic_t interrupted;
  bool busy;                      /* a call is running: */
  const char *function, *options; /* its name and options, */
  dtl_listener listener;          /* and the functions that follow it */
  void *user;
};

/* The signal that interrupts a bridge. There is only one, since a process has one handler for it. */
static struct {
  dtl_bridge *bridge; /* NULL: no signal is caught */
  int number;
  struct sigaction before;
} caught;

static void on_signal(int number, siginfo_t *info, void *context) {
  dtl_bridge_interrupt(caught.bridge, true);
  if (caught.before.sa_flags & SA_SIGINFO)
    caught.before.sa_sigaction(number, info, context);
  else if (caught.before.sa_handler != SIG_IGN && caught.before.sa_handler != SIG_DFL)
    caught.before.sa_handler(number);
}

void dtl_bridge_interrupt(dtl_bridge *bridge, bool interrupted) {
  if (bridge) bridge->interrupted = interrupted;
}

bool dtl_bridge_catch(dtl_bridge *bridge, int number) {
  if (caught.bridge) sigaction(caught.number, &caught.before, NULL);
  caught.bridge = NULL;
  if (!number) return true;
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
  if (!bridge || sigaction(number, NULL, &caught.before)) return false;
  caught.bridge = bridge, caught.number = number;
  if (sigaction(number, &action, NULL) == 0) return true;
  caught.bridge = NULL;
  return false;
}

/* Lua: (text) -> whether the caller wants more */
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
  lua_State *L = bridge ? driver_open(&bridge->interrupted) : NULL;
  if (L) {
    bridge->L = L;
    lua_pushcfunction(L, open_module);
    if (lua_pcall(L, 0, 1, 0) == LUA_OK) return bridge;
  }
  dtl_bridge_close(bridge);
  return NULL;
}

void dtl_bridge_close(dtl_bridge *bridge) {
  if (!bridge || bridge->busy) return;
  if (caught.bridge == bridge) dtl_bridge_catch(NULL, 0);
  if (bridge->L) lua_close(bridge->L);
  free(bridge);
}

/* Lua: (bridge, the module's function) -> answer. It fails only if memory runs out. */
static int call(lua_State *L) {
  const dtl_bridge *bridge = lua_touserdata(L, 1);
  lua_pushstring(L, bridge->function);
  lua_pushstring(L, bridge->options);
  lua_pushvalue(L, 1);
  lua_pushcclosure(L, tell_listener, 1);
  lua_call(L, 3, 1);
  return 1;
}

/* Makes an error answer without Lua. */
static char *refusal(const char *message) {
  char *answer;
  return dt_asprintf(&answer, "{\"error\": {\"kind\": \"input\", \"message\": \"%s\"}}", message) < 0 ? NULL : answer;
}

char *dtl_bridge_call(dtl_bridge *bridge, const char *function, const char *options, dtl_listener listener,
                      void *user) {
  if (!bridge || !function || !options) return refusal("a call needs a bridge, a function's name and its options");
  if (bridge->busy) return refusal("another call is running: call again when it has returned, not from its listener");
  lua_State *L = bridge->L;
  bridge->function = function, bridge->options = options;
  bridge->listener = listener, bridge->user = user;
  bridge->busy = true;
  lua_pushcfunction(L, call);
  lua_pushlightuserdata(L, bridge);
  lua_pushvalue(L, 1);
  bool ok = lua_pcall(L, 2, 1, 0) == LUA_OK && lua_isstring(L, -1);
  char *answer = ok ? strdup(lua_tostring(L, -1)) : NULL;
  lua_settop(L, 1);
  bridge->busy = false;
  return answer;
}

void dtl_bridge_free(char *answer) { free(answer); }
