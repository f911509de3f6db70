/* For targets whose parser is a module of lua/dt: runs a driver's Lua in this process. libFuzzer does not see which
 * lines of Lua an input reaches, so they are counted for it. */
#ifndef FUZZ_LUA_H
#define FUZZ_LUA_H

#include "driver/driver.h"
#include "fuzz.h"

enum { FUZZ_LINES = 1024 };
__attribute__((section("__libfuzzer_extra_counters"), used)) static uint8_t fuzz_lines[FUZZ_LINES];

/* Counts lines by their number only, which comes with a line's event. Asking Lua for more would take half of a run's
 * time. */
static inline void fuzz_count_line(lua_State *L, lua_Debug *ar) {
  (void)L;
  fuzz_lines[ar->currentline % FUZZ_LINES]++;
}

/* Lua's garbage is not a leak, and searching for leaks after every run would take ten times as long as the run. The
 * quarantine need only hold what one run frees; a large one would keep asking the kernel for new pages. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "detect_leaks=0:quarantine_size_mb=1:thread_local_quarantine_size_kb=16";
}

/* `reader` is a chunk that returns a function of a path. The function returns nil or the reason why it refuses the
 * file, and must never raise an error. */
static inline void fuzz_lua(const char *reader, const char *path) {
  static lua_State *L;
  if (!L) {
    L = luaL_newstate();
    if (!L) abort();
    driver_open_libraries(L);
    if (luaL_dostring(L, reader)) {
      fprintf(stderr, "%s\n", lua_tostring(L, -1));
      abort();
    }
    lua_sethook(L, fuzz_count_line, LUA_MASKLINE, 0);
  }
  lua_pushvalue(L, 1);
  lua_pushstring(L, path);
  if (lua_pcall(L, 1, 1, 0)) {
    fprintf(stderr, "%s\n", luaL_tolstring(L, -1, NULL));
    abort();
  }
  if (!lua_isnil(L, -1)) {
    dt_error err;
    dt_fail(&err, DT_EINPUT, "%s", lua_tostring(L, -1));
    fuzz_check_message(err.message, path);
  }
  lua_settop(L, 1);
}

#endif
