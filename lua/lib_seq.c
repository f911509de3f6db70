/* The policy's `seq`: the four primitives, guarded by phase. What the engine itself fails with ends the call for good. */
#include "run.h"

#include <string.h>

int run_fail(lua_State *L, dtl_run *run, const char *who, const dt_error *err) {
  if (err->status == DT_ESTATE || err->status == DT_EINPUT || err->status == DT_ECONTEXT) {
    const char *message = err->message, *name = strchr(who, ':') + 1;
    size_t n = strlen(name);
    if (!strncmp(message, name, n) && message[n] == ':') return luaL_error(L, "%s%s", who, message + n);
    return luaL_error(L, "%s: %s", who, message);
  }
  run->failure = *err;
  return box_kill(L, BOX_ENGINE_FAILED);
}

void run_object(lua_State *L, const char *name, const luaL_Reg *methods, int nup) {
  int object = lua_gettop(L) - nup;
  lua_newtable(L); /* object, upvalues, methods */
  lua_insert(L, object + 1);
  luaL_setfuncs(L, methods, nup); /* object, methods */
  lua_createtable(L, 0, 3);
  lua_pushvalue(L, -2);
  lua_setfield(L, -2, "__index");
  lua_pushstring(L, name);
  lua_setfield(L, -2, "__name");
  lua_pushboolean(L, false);
  lua_setfield(L, -2, "__metatable");
  lua_setmetatable(L, object);
}

static dtl_run *check_seq(lua_State *L, const char *who) {
  dtl_run *run = box_of(L)->run;
  if (!run || lua_touserdata(L, 1) != run->seq_object) luaL_error(L, "%s: not called as a method of a sequence", who);
  return run;
}

static int seq_length(lua_State *L) {
  lua_pushinteger(L, dt_seq_length(check_seq(L, "seq:length")->session, 0));
  return 1;
}

static int seq_left(lua_State *L) {
  lua_pushinteger(L, dt_seq_left(check_seq(L, "seq:left")->session, 0));
  return 1;
}

static int seq_token(lua_State *L) {
  dtl_run *run = check_seq(L, "seq:token");
  lua_Integer i = run_integer(L, 2, "seq:token", "i");
  int length = dt_seq_length(run->session, 0);
  if (i < 1 || i > length) luaL_error(L, "seq:token: i = %I is out of range: 1..%d", (LUAI_UACINT)i, length);
  lua_pushinteger(L, dt_seq_tokens(run->session, 0)[i - 1]);
  return 1;
}

static int seq_draft_step(lua_State *L) { return run_draft_step(L, check_seq(L, "seq:draft_step"), "seq:draft_step"); }

/* Raises unless a tree of this iteration is at hand. */
static void check_running(lua_State *L, const dtl_run *run, const char *who) {
  if (run->phase == RUN_INIT) luaL_error(L, "%s: not in init", who);
  if (run->phase == RUN_COMMITTED) luaL_error(L, "%s: this step has committed already", who);
}

/* Upvalues of verify_tree and commit. Both tables are reused by every iteration. */
enum { OUT = 1, PATH };

static void set_integer(lua_State *L, const char *key, lua_Integer value) {
  lua_pushstring(L, key);
  lua_pushinteger(L, value);
  lua_rawset(L, lua_upvalueindex(OUT));
}

static void set_number(lua_State *L, const char *key, double value) {
  lua_pushstring(L, key);
  lua_pushnumber(L, value);
  lua_rawset(L, lua_upvalueindex(OUT));
}

static int seq_verify_tree(lua_State *L) {
  dtl_run *run = check_seq(L, "seq:verify_tree");
  check_running(L, run, "seq:verify_tree");
  int seq = 0;
  dt_error err;
  double start = dt_clock_ms();
  dt_status status = dt_verify_tree(run->session, &seq, 1, &run->verdict, &err);
  double ms = dt_clock_ms() - start;
  run->engine_ms += ms;
  box_of(L)->deadline += ms;
  if (status) return run_fail(L, run, "seq:verify_tree", &err);
  run->verify_ms += ms;
  run->phase = RUN_VERIFIED;
  box_of(L)->entry = "step";
  set_integer(L, "drafted", run->verdict.drafted);
  set_integer(L, "depth", run->verdict.depth);
  set_integer(L, "accepted", run->verdict.accepted);
  set_integer(L, "committed", 0);
  set_number(L, "draft_ms", run->draft_ms);
  set_number(L, "verify_ms", run->verify_ms);
  set_number(L, "commit_ms", 0);
  int path = lua_upvalueindex(PATH), old = (int)lua_rawlen(L, path);
  for (int i = 0; i < run->verdict.accepted; i++) {
    lua_pushinteger(L, run->verdict.path[i]);
    lua_rawseti(L, path, i + 1);
  }
  for (int i = run->verdict.accepted + 1; i <= old && i <= DT_TREE_ENTRIES; i++) {
    lua_pushnil(L);
    lua_rawseti(L, path, i);
  }
  lua_pushliteral(L, "path");
  lua_pushvalue(L, path);
  lua_rawset(L, lua_upvalueindex(OUT));
  lua_pushvalue(L, lua_upvalueindex(OUT));
  return 1;
}

/* The flags in the table of options at index 2. */
static unsigned commit_flags(lua_State *L) {
  unsigned flags = 0;
  if (lua_isnoneornil(L, 2)) return 0;
  if (!lua_istable(L, 2)) luaL_error(L, "seq:commit: a table of options is expected, not %s", luaL_typename(L, 2));
  lua_settop(L, 2);
  for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
    if (lua_type(L, 3) != LUA_TSTRING || strcmp(lua_tostring(L, 3), "rebuild"))
      luaL_error(L, "seq:commit: unknown option '%s' (known: rebuild)",
                 lua_type(L, 3) == LUA_TSTRING ? lua_tostring(L, 3) : luaL_typename(L, 3));
    if (!lua_isboolean(L, 4)) luaL_error(L, "seq:commit: rebuild must be true or false, not %s", luaL_typename(L, 4));
    if (lua_toboolean(L, 4)) flags |= DT_COMMIT_REBUILD;
  }
  return flags;
}

static int seq_commit(lua_State *L) {
  dtl_run *run = check_seq(L, "seq:commit");
  unsigned flags = commit_flags(L);
  check_running(L, run, "seq:commit");
  int seq = 0;
  dt_error err;
  double start = dt_clock_ms();
  dt_status status = dt_commit(run->session, &seq, 1, flags, &run->block, &err);
  double ms = dt_clock_ms() - start;
  run->engine_ms += ms;
  box_of(L)->deadline += ms;
  if (status) return run_fail(L, run, "seq:commit", &err);
  run->commit_ms += ms;
  run->phase = RUN_COMMITTED;
  box_of(L)->entry = "observe";
  set_integer(L, "committed", run->block.n);
  set_number(L, "commit_ms", run->commit_ms);
  lua_pushinteger(L, run->block.n);
  return 1;
}

static int seq_rollback(lua_State *L) {
  dtl_run *run = check_seq(L, "seq:rollback");
  check_running(L, run, "seq:rollback");
  if (run->rollbacks == RUN_ROLLBACKS) luaL_error(L, "seq:rollback: at most %d rollbacks in one step", RUN_ROLLBACKS);
  dt_error err;
  if (dt_rollback(run->session, 0, &err)) return run_fail(L, run, "seq:rollback", &err);
  run->rollbacks++;
  run->phase = RUN_DRAFT;
  box_of(L)->entry = "draft";
  return 0;
}

static const luaL_Reg methods[] = {{"length", seq_length},
                                   {"left", seq_left},
                                   {"token", seq_token},
                                   {"draft_step", seq_draft_step},
                                   {"verify_tree", seq_verify_tree},
                                   {"commit", seq_commit},
                                   {"rollback", seq_rollback},
                                   {NULL, NULL}};

void lib_seq_push(lua_State *L, dtl_run *run) {
  lib_tree_push(L, run); /* tree, tree's methods */
  run->seq_object = lua_newuserdatauv(L, 1, 0);
  lua_createtable(L, 0, 8);
  lua_createtable(L, 8, 0);
  run_object(L, "seq", methods, 2); /* tree, tree's methods, seq, methods */
  lua_pushvalue(L, -2);
  lua_setfield(L, -4, "seq");
  lua_pushvalue(L, -4);
  lua_setfield(L, -2, "tree");
  lua_pushinteger(L, RUN_SEQ_ID);
  lua_setfield(L, -2, "id");
  lua_pop(L, 1);
  lua_replace(L, -3);
  lua_pop(L, 1); /* seq */
}
