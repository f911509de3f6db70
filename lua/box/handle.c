/* Handles of runs: see handle.h. */
#include "box/handle.h"

const char handle_tree[] = "tree", handle_seq[] = "sequence";

run_handle *handle_push(lua_State *L, const char *kind, dtl_run *run, int n_values) {
  run_handle *handle = lua_newuserdatauv(L, sizeof *handle, n_values);
  *handle = (run_handle){.kind = kind, .run = run};
  return handle;
}

dtl_run *handle_run(lua_State *L, const char *kind, const char *who) {
  run_handle *handle = lua_touserdata(L, 1);
  box_look(L);
  if (!handle || lua_rawlen(L, 1) != sizeof *handle || handle->kind != kind)
    luaL_error(L, "%s: not called as a method of a %s", who, kind);
  if (!handle->run) luaL_error(L, "%s: the sequence of this %s has ended", who, kind);
  return handle->run;
}

dtl_run *handle_run_at(lua_State *L, int i, const char *kind, const char *who) {
  run_handle *handle = lua_touserdata(L, i);
  if (!handle || lua_rawlen(L, i) != sizeof *handle || handle->kind != kind)
    luaL_error(L, "%s: a %s is expected, not %s", who, kind, luaL_typename(L, i));
  if (!handle->run) luaL_error(L, "%s: that %s has ended", who, kind);
  return handle->run;
}

void handle_detach(dtl_run *run) {
  if (run->tree_handle) run->tree_handle->run = NULL;
  if (run->seq_handle) run->seq_handle->run = NULL;
  run->tree_handle = run->seq_handle = NULL;
}
