/* The policy's `batch`: a list of trees, and the passes over all of them at once. */
#include "box/batch_object.h"

#include "box/object.h"
#include "box/seq_object.h"
#include "box/tree_object.h"

static const char batch_kind[] = "batch";

typedef struct {
  const char *kind; /* as in a run_handle */
  run_group *group;
} batch_handle;

enum { TREES = 1, SEQS, OUTS }; /* user values: lists in the order of the group */

static run_group *check_batch(lua_State *L, const char *who) {
  batch_handle *handle = lua_touserdata(L, 1);
  box_look(L);
  if (!handle || lua_rawlen(L, 1) != sizeof *handle || handle->kind != batch_kind)
    luaL_error(L, "%s: not called as a method of a batch", who);
  return handle->group;
}

/* batch[i] is a tree; any key but an integer names a method (upvalue 1). */
static int batch_index(lua_State *L) {
  check_batch(L, "batch");
  if (lua_isinteger(L, 2)) {
    lua_getiuservalue(L, 1, TREES);
    lua_rawgeti(L, -1, lua_tointeger(L, 2));
  } else {
    lua_pushvalue(L, 2);
    lua_gettable(L, lua_upvalueindex(1));
  }
  return 1;
}

static int batch_len(lua_State *L) {
  lua_pushinteger(L, check_batch(L, "batch")->n);
  return 1;
}

/* (a list with one list of nodes, or nil, for each tree[, n: use at most n nodes of each list][, {width =}]) */
static int batch_draft_step(lua_State *L) {
  static const char who[] = "batch:draft_step";
  run_group *group = check_batch(L, who);
  dtl_run *asked[DTL_SLOTS];
  int n = 0;
  if (!lua_istable(L, 2))
    return luaL_error(L, "%s: a list of nodes for each tree is expected, not %s", who, luaL_typename(L, 2));
  const int width = box_tree_take_width(L, 3, who);
  lua_Integer most = lua_isnoneornil(L, 3) ? 1 + DT_TREE_ENTRIES : object_integer(L, 3, who, "n");
  lua_settop(L, 2);
  for (int i = 0; i < group->n; i++) {
    dtl_run *run = group->run[i];
    if (lua_rawgeti(L, 2, i + 1) != LUA_TNIL) {
      box_tree_read_refs(L, run, 3, 4, width, who);
      if (run->n_refs > most) run->n_refs = (int)most;
      box_tree_drop_drafted(run);
      if (run->n_refs > 0) asked[n++] = run;
    }
    lua_settop(L, 2);
  }
  if (!n) return 0;
  box_exclude(L, run_draft(asked, n));
  for (int i = 0; i < n; i++) run_check_pass(L, asked[i], who);
  return 0;
}

/* -> a list of the sequences' tables of results. */
static int batch_verify_tree(lua_State *L) {
  static const char who[] = "batch:verify_tree";
  run_group *group = check_batch(L, who);
  for (int i = 0; i < group->n; i++) run_check_iteration(L, group->run[i], who);
  box_exclude(L, run_verify(group->run, group->n));
  for (int i = 0; i < group->n; i++) run_check_pass(L, group->run[i], who);
  box_of(L)->entry = "step";
  lua_settop(L, 1);
  lua_getiuservalue(L, 1, SEQS);
  lua_getiuservalue(L, 1, OUTS);
  for (int i = 0; i < group->n; i++) {
    lua_rawgeti(L, 2, i + 1);
    box_seq_verified(L, 4, group->run[i]);
    lua_rawseti(L, 3, i + 1);
    lua_settop(L, 3);
  }
  for (lua_Unsigned i = lua_rawlen(L, 3); i > (lua_Unsigned)group->n; i--) { /* entries of sequences that have ended */
    lua_pushnil(L);
    lua_rawseti(L, 3, (lua_Integer)i);
  }
  return 1;
}

static int batch_commit(lua_State *L) {
  static const char who[] = "batch:commit";
  run_group *group = check_batch(L, who);
  unsigned flags = box_seq_commit_flags(L, who);
  for (int i = 0; i < group->n; i++) run_check_iteration(L, group->run[i], who);
  box_exclude(L, run_commit(group->run, group->n, flags));
  for (int i = 0; i < group->n; i++) run_check_pass(L, group->run[i], who);
  box_of(L)->entry = "observe";
  lua_settop(L, 1);
  lua_getiuservalue(L, 1, SEQS);
  for (int i = 0; i < group->n; i++) {
    lua_rawgeti(L, 2, i + 1);
    box_seq_committed(L, 3, group->run[i]);
    lua_settop(L, 2);
  }
  return 0;
}

void box_batch_push(lua_State *L, run_group *group) {
  static const luaL_Reg methods[] = {
      {"draft_step", batch_draft_step}, {"verify_tree", batch_verify_tree}, {"commit", batch_commit}, {NULL, NULL}};
  batch_handle *handle = lua_newuserdatauv(L, sizeof *handle, OUTS);
  *handle = (batch_handle){.kind = batch_kind, .group = group};
  for (int value = TREES; value <= OUTS; value++) {
    lua_createtable(L, DTL_SLOTS, 0);
    lua_setiuservalue(L, -2, value);
  }
  lua_createtable(L, 0, 4);
  luaL_newlib(L, methods);
  object_name_unknown(L, "batch");
  lua_pushcclosure(L, batch_index, 1);
  lua_setfield(L, -2, "__index");
  lua_pushcfunction(L, batch_len);
  lua_setfield(L, -2, "__len");
  lua_pushliteral(L, "batch");
  lua_setfield(L, -2, "__name");
  lua_pushboolean(L, false);
  lua_setfield(L, -2, "__metatable");
  lua_setmetatable(L, -2);
}

void box_batch_add(lua_State *L, int batch, const run_group *group) {
  lua_getiuservalue(L, batch, TREES);
  lua_getiuservalue(L, batch, SEQS);
  box_seq_push(L, group->run[group->n - 1]);
  lua_getfield(L, -1, "tree"); /* trees, seqs, seq, tree */
  lua_rawseti(L, -4, group->n);
  lua_rawseti(L, -2, group->n);
  lua_pop(L, 2);
}

static void remove_entry(lua_State *L, int batch, int value, int n, int i) {
  lua_getiuservalue(L, batch, value);
  for (int k = i + 1; k <= n; k++) {
    if (k < n)
      lua_rawgeti(L, -1, k + 1);
    else
      lua_pushnil(L);
    lua_rawseti(L, -2, k);
  }
  lua_pop(L, 1);
}

void box_batch_remove(lua_State *L, int batch, const run_group *group, int i) {
  remove_entry(L, batch, TREES, group->n, i); /* policies cannot change these two tables, so the fields set here */
  remove_entry(L, batch, SEQS, group->n, i);  /* exist, and setting them allocates nothing */
}
