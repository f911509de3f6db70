/* Runs drivers: a user's programs with full Lua and the module dt. */
#include "driver/driver.h"

#include "box/embedded.h"
#include "files/files.h"

#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WATCH_EVERY 10000 /* Lua instructions between two checks of the interrupt flag */

typedef struct {
  const char *path;
  int argc;
  char **argv;
} driver;

static void watch(lua_State *L, lua_Debug *ar) {
  (void)ar;
  const volatile sig_atomic_t *interrupt = driver_interrupt(L);
  if (!interrupt || !*interrupt) return;
  int count = lua_gethookcount(L); /* raise it again, sooner each time, if pcall catches it */
  lua_sethook(L, watch, LUA_MASKCOUNT, count > 1 ? count / 2 : 1);
  driver_check_interrupt(L);
}

/* Loads an embedded module; upvalue 1 is its index in dtl_embedded. */
static int load_embedded(lua_State *L) {
  const dtl_module *m = &dtl_embedded[lua_tointeger(L, lua_upvalueindex(1))];
  lua_settop(L, 2);
  if (embedded_load(L, m)) return lua_error(L);
  lua_insert(L, 1);
  lua_call(L, 2, 1);
  return 1;
}

void driver_open_libraries(lua_State *L) {
  luaL_openlibs(L);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  for (int i = 0; dtl_embedded[i].name; i++) {
    lua_pushinteger(L, i);
    lua_pushcclosure(L, load_embedded, 1);
    lua_setfield(L, -2, strcmp(dtl_embedded[i].name, "dt.init") ? dtl_embedded[i].name : "dt");
  }
  lua_pushcfunction(L, driver_dt_open);
  lua_setfield(L, -2, "dt.core");
  lua_pop(L, 1);
}

/* Turns any error into one line: a string, or a table of dt with a message. */
static int one_line(lua_State *L) {
  if (lua_istable(L, 1)) {
    lua_getfield(L, 1, "message");
    if (lua_isstring(L, -1)) return 1;
    lua_pop(L, 1);
  }
  luaL_tolstring(L, 1, NULL);
  return 1;
}

static int run(lua_State *L) {
  driver *d = lua_touserdata(L, 1);
  driver_open_libraries(L);
  lua_createtable(L, d->argc, 1);
  lua_pushstring(L, d->path);
  lua_rawseti(L, -2, 0);
  for (int i = 0; i < d->argc; i++) {
    lua_pushstring(L, d->argv[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setglobal(L, "arg");
  lua_pushcfunction(L, one_line); /* turns errors into lines where they are raised */
  if (luaL_loadfilex(L, d->path, "t")) return lua_error(L);
  luaL_checkstack(L, d->argc + 1, "too many arguments");
  for (int i = 0; i < d->argc; i++) lua_pushstring(L, d->argv[i]);
  lua_sethook(L, watch, LUA_MASKCOUNT, WATCH_EVERY);
  if (lua_pcall(L, d->argc, 0, 2)) return lua_error(L);
  return 0;
}

/* Returns the message about a driver that failed (its error is on top of the stack) or was interrupted; otherwise
 * "". */
static void take_message(lua_State *L, bool failed, bool interrupted, char *out, size_t size) {
  const char *message = failed ? "(the error is not a text)" : "";
  if (interrupted)
    message = lua_getfield(L, LUA_REGISTRYINDEX, DRIVER_INTERRUPTED) == LUA_TSTRING ? lua_tostring(L, -1) : "";
  else if (failed && lua_tostring(L, -1))
    message = lua_tostring(L, -1);
  dtl_clean(out, size, message, strlen(message));
}

int dtl_run_driver(const char *name, int argc, char **argv, const volatile sig_atomic_t *interrupt) {
  dt_error err;
  if (!name || argc < 0 || (argc && !argv)) {
    fprintf(stderr, "dtrun: a driver needs a name and a list of %d arguments\n", argc);
    return 2;
  }
  char *path;
  if (dtl_locate("driver", "scripts", name, &path, &err)) {
    fprintf(stderr, "dtrun: %s\n", err.message);
    return err.status == DT_EINPUT ? 2 : 1;
  }
  driver d = {.path = path, .argc = argc, .argv = argv};
  int status = 1;
  lua_State *L = driver_open(interrupt);
  if (!L) {
    fprintf(stderr, "dtrun: out of memory\n");
  } else {
    lua_pushcfunction(L, run);
    lua_pushlightuserdata(L, &d);
    status = lua_pcall(L, 1, 0, 0) != LUA_OK;
    take_message(L, status, interrupt && *interrupt, err.message, sizeof err.message);
    lua_close(L); /* hides the line of dt.progress */
    if (*err.message || (status && !(interrupt && *interrupt))) fprintf(stderr, "dtrun: %s\n", err.message);
  }
  free(path);
  return interrupt && *interrupt ? 130 : status;
}
