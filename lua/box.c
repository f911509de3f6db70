/* Memory, watch and calls of the box: see box.h. The functions in it are sandbox.c. */
#include "box.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST_RESERVE (1u << 20)
#define WATCH_EVERY 256 /* instructions */
#define MESSAGE_MAX 300 /* bytes of a policy's own error message */

dtl_box *box_of(lua_State *L) { return *(dtl_box **)lua_getextraspace(L); }

static void *allocate(void *ud, void *ptr, size_t old_size, size_t new_size) {
  dtl_box *box = ud;
  if (!ptr) old_size = 0; /* it is a type tag then */
  if (new_size == 0) {
    free(ptr);
    box->used -= old_size;
    return NULL;
  }
  size_t cap = BOX_MEMORY + (box->hosting ? HOST_RESERVE : 0);
  if (new_size > old_size && box->used - old_size + new_size > cap) return NULL;
  void *p = realloc(ptr, new_size);
  if (p) box->used += new_size - old_size;
  return p;
}

static void watch(lua_State *L, lua_Debug *ar) {
  (void)ar;
  dtl_box *box = box_of(L);
  if (box->state == BOX_ALIVE) {
    box->instructions += WATCH_EVERY;
    if (box->instructions < BOX_INSTRUCTIONS && dt_clock_ms() < box->deadline) return;
    box->state = BOX_OVERTIME;
  }
  if (lua_isyieldable(L)) {
    lua_yield(L, 0);
    return;
  }
  /* Within a C function that called back into Lua (a comparator, a metamethod): unwind to where yielding is possible. */
  lua_sethook(L, watch, LUA_MASKCOUNT, 1);
  luaL_error(L, "the call was ended");
}

int box_kill(lua_State *L, box_state state) {
  dtl_box *box = box_of(L);
  box->state = state;
  if (lua_isyieldable(L)) return lua_yield(L, 0);
  lua_sethook(L, watch, LUA_MASKCOUNT, 1);
  return luaL_error(L, "the call was ended");
}

bool box_host(dtl_box *box, lua_CFunction work, void *data, int nresults) {
  box->hosting = true;
  lua_pushcfunction(box->L, work);
  lua_pushlightuserdata(box->L, data);
  bool ok = lua_pcall(box->L, 1, nresults, 0) == LUA_OK;
  if (!ok) lua_pop(box->L, 1);
  box->hosting = false;
  return ok;
}

static int install(lua_State *L) {
  dtl_box *box = lua_touserdata(L, 1);
  sandbox_install(L);
  box->co = lua_newthread(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, box);
  return 0;
}

bool box_open(dtl_box *box, dtl_error *err) {
  memset(box, 0, sizeof *box);
  box->hosting = true;
  box->L = lua_newstate(allocate, box);
  if (!box->L) return dtl_fail(err, DTL_DEVICE, "out of memory: a Lua state");
  *(dtl_box **)lua_getextraspace(box->L) = box;
  if (!box_host(box, install, box, 0)) {
    box_close(box);
    return dtl_fail(err, DTL_DEVICE, "out of memory: a Lua state");
  }
  return true;
}

void box_close(dtl_box *box) {
  if (box->L) lua_close(box->L);
  box->L = box->co = NULL;
}

/* The line of the innermost frame of the policy's own file, 0 where there is none. The failed thread's stack still stands. */
static int failing_line(dtl_box *box) {
  lua_Debug ar;
  for (int level = 0; lua_getstack(box->co, level, &ar) && level < 200; level++)
    if (lua_getinfo(box->co, "Sl", &ar) && ar.currentline > 0 && !strcmp(ar.short_src, box->chunk))
      return ar.currentline;
  return 0;
}

/* Splits "chunk:LINE: rest" off the message where Lua put it there; *line is 0 otherwise. */
static const char *split_position(const dtl_box *box, const char *message, int *line) {
  size_t n = strlen(box->chunk);
  *line = 0;
  if (n == 0 || strncmp(message, box->chunk, n) || message[n] != ':') return message;
  char *end;
  long value = strtol(message + n + 1, &end, 10);
  if (end == message + n + 1 || end[0] != ':' || value <= 0 || value > 1 << 30) return message;
  *line = (int)value;
  return end[1] == ' ' ? end + 2 : end + 1;
}

static void describe(dtl_box *box, int status, dtl_error *err) {
  char said[MESSAGE_MAX];
  int line = 0;
  if (box->state == BOX_OVERTIME) {
    snprintf(said, sizeof said, "policy ran longer than %g s (or %ld million instructions) in %s",
             BOX_MILLISECONDS / 1000, BOX_INSTRUCTIONS / 1000000, box->entry);
  } else if (status == LUA_ERRMEM) {
    snprintf(said, sizeof said, "policy used more than %u MB of memory in %s", BOX_MEMORY >> 20, box->entry);
  } else if (lua_type(box->co, -1) == LUA_TSTRING) { /* never a metamethod of an error object */
    size_t len;
    const char *message = lua_tolstring(box->co, -1, &len);
    dtl_clean(said, sizeof said, message, len);
    message = split_position(box, said, &line);
    memmove(said, message, strlen(message) + 1);
  } else {
    snprintf(said, sizeof said, "error object is a %s value", luaL_typename(box->co, -1));
  }
  if (line == 0) line = failing_line(box);
  if (line > 0)
    dtl_fail(err, DTL_POLICY, "%s:%d: %s", box->path, line, said);
  else
    dtl_fail(err, DTL_POLICY, "%s: %s", box->path, said);
  if (err) {
    dtl_clean(err->file, sizeof err->file, box->path, strlen(box->path));
    err->line = line;
  }
}

bool box_load_failed(dtl_box *box, int status, dtl_error *err) {
  box->entry = "its file";
  describe(box, status, err);
  box_close(box);
  return false;
}

int box_wait(lua_State *L, lua_KContext context, lua_KFunction then) {
  box_of(L)->waits = true;
  return lua_yieldk(L, 0, context, then);
}

void box_exclude(lua_State *L, double ms) {
  dtl_box *box = box_of(L);
  box->deadline += ms;
  box->engine_ms += ms;
}

/* Hands control to the call on co. */
static bool run(dtl_box *box, int nargs, dtl_error *err) {
  int nresults;
  box->engine_ms = 0;
  box->waits = false;
  int status = lua_resume(box->co, box->L, nargs, &nresults);
  if (box->state == BOX_ALIVE && (status == LUA_OK || box->waits)) {
    if (box->waits) box->waits_since = dt_clock_ms();
    return true;
  }
  if (box->state != BOX_ENGINE_FAILED) describe(box, status, err);
  box_close(box);
  return false;
}

bool box_call(dtl_box *box, const char *entry, int nargs, dtl_error *err) {
  box->entry = entry;
  box->instructions = 0;
  box->deadline = dt_clock_ms() + BOX_MILLISECONDS;
  lua_sethook(box->co, watch, LUA_MASKCOUNT, WATCH_EVERY);
  return run(box, nargs, err);
}

bool box_resume(dtl_box *box, dtl_error *err) {
  box->deadline += dt_clock_ms() - box->waits_since;
  return run(box, 0, err);
}
