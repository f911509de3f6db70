/* The policy's `seq`: the four primitives (draft_step, verify_tree, commit, rollback), each of which checks that the
 * iteration is in the right phase. A failure of the engine itself ends the call for good. */
#include "box/seq_object.h"

#include "box/handle.h"
#include "box/notes.h"
#include "box/object.h"
#include "box/tree_object.h"
#include "lookup/match.h"

#include <limits.h>
#include <math.h>
#include <string.h>

static dtl_run *check_seq(lua_State *L, const char *who) { return handle_run(L, handle_seq, who); }

static int seq_length(lua_State *L) {
  const dtl_run *run = check_seq(L, "seq:length");
  lua_pushinteger(L, dt_seq_length(run->session, run->seq));
  return 1;
}

static int seq_left(lua_State *L) {
  const dtl_run *run = check_seq(L, "seq:left");
  lua_pushinteger(L, dt_seq_left(run->session, run->seq));
  return 1;
}

static int seq_unread(lua_State *L) {
  const dtl_run *run = check_seq(L, "seq:unread");
  lua_pushinteger(L, run->drafts ? dt_seq_unread(run->session, run->seq) : 0);
  return 1;
}

static int seq_token(lua_State *L) {
  const dtl_run *run = check_seq(L, "seq:token");
  lua_Integer i = object_integer(L, 2, "seq:token", "i");
  if (i < 1 || i > dt_seq_length(run->session, run->seq))
    lua_pushnil(L);
  else
    lua_pushinteger(L, dt_seq_tokens(run->session, run->seq)[i - 1]);
  return 1;
}

static int seq_match(lua_State *L) {
  const dtl_run *run = check_seq(L, "seq:match");
  lua_Integer most = lua_isnoneornil(L, 2) ? MATCH_MOST : object_integer(L, 2, "seq:match", "most");
  if (most < 1 || most > MATCH_MOST)
    luaL_error(L, "seq:match: most = %I is out of range: 1..%d", (LUAI_UACINT)most, MATCH_MOST);
  int equal, place = match_find_end(dt_seq_tokens(run->session, run->seq), dt_seq_length(run->session, run->seq),
                                    (int)most, &equal);
  if (equal == 0) return lua_pushnil(L), 1;
  lua_pushinteger(L, place + 1);
  lua_pushinteger(L, equal);
  return 2;
}

static int seq_log(lua_State *L) {
  dtl_run *run = check_seq(L, "seq:log");
  double value = lua_type(L, 3) == LUA_TNUMBER ? lua_tonumber(L, 3) : NAN;
  if (!isfinite(value)) luaL_error(L, "seq:log: a finite number is expected as the value");
  notes_log(L, run, 2, value, "seq:log");
  return 0;
}

static int seq_clock(lua_State *L) {
  const dtl_run *run = check_seq(L, "seq:clock");
  if (!run->clock.costs) luaL_error(L, "seq:clock: this policy did not declare uses = {costs = true}");
  lua_pushnumber(L, run->clock.ms);
  return 1;
}

static int seq_pause(lua_State *L) {
  dtl_run *run = check_seq(L, "seq:pause");
  lua_Integer n = object_integer(L, 2, "seq:pause", "n");
  if (n < 0) luaL_error(L, "seq:pause: n = %I is negative", (LUAI_UACINT)n);
  lua_Integer equal = lua_isnoneornil(L, 3) ? 0 : object_integer(L, 3, "seq:pause", "equal");
  if (equal < 0 || equal > MATCH_MOST)
    luaL_error(L, "seq:pause: equal = %I is out of range: 0..%d", (LUAI_UACINT)equal, MATCH_MOST);
  run->pause = n > INT_MAX ? INT_MAX : (int)n;
  run->resume_at = (int)equal;
  return 0;
}

static int seq_paused(lua_State *L) {
  lua_pushinteger(L, check_seq(L, "seq:paused")->paused);
  return 1;
}

static int seq_draft_step(lua_State *L) {
  return box_tree_draft_step(L, check_seq(L, "seq:draft_step"), "seq:draft_step");
}

/* ---- the table of results: one per sequence, reused by every iteration ------------------------------------------- */

/* User values of the sequence: the table of results, its table `path`, and the keys of the table of results, since
 * making a Lua string from a C name would search all strings. */
enum {
  OUT = 1,
  PATH,
  DRAFTED,
  DEPTH,
  ACCEPTED,
  BONUS,
  COMMITTED,
  EXPERTS_READ,
  DRAFT_MS,
  VERIFY_MS,
  COMMIT_MS,
  PATH_KEY
};
static const char *const keys[] = {"drafted",  "depth",     "accepted",  "bonus", "committed",  "experts_read",
                                   "draft_ms", "verify_ms", "commit_ms", "path",  "candidates", "experts"};
enum { N_KEYS = sizeof keys / sizeof *keys };

static void set_integer(lua_State *L, int seq, int table, int key, lua_Integer value) {
  lua_getiuservalue(L, seq, key);
  lua_pushinteger(L, value);
  lua_rawset(L, table);
}

static void set_number(lua_State *L, int seq, int table, int key, double value) {
  lua_getiuservalue(L, seq, key);
  lua_pushnumber(L, value);
  lua_rawset(L, table);
}

/* The run of a method of out; upvalue 1 is the sequence. */
static const dtl_run *run_of_out(lua_State *L, const char *who) {
  const dtl_run *run = ((run_handle *)lua_touserdata(L, lua_upvalueindex(1)))->run;
  box_look(L);
  if (!lua_istable(L, 1)) luaL_error(L, "%s: not called as a method of out", who);
  if (!run) luaL_error(L, "%s: the sequence of this out has ended", who);
  return run;
}

/* The node that is argument 2 of a method of out. */
static int node_of_out(lua_State *L, const dtl_run *run, const char *who) {
  lua_Integer node = object_integer(L, 2, who, "node");
  if (node < 0 || node >= run->tree->nodes)
    luaL_error(L, "%s: node: there is no node %I (the tree has 0..%d)", who, (LUAI_UACINT)node, run->tree->nodes - 1);
  return (int)node;
}

/* (out, node, i) -> token, logp; nil: fewer candidates. */
static int out_candidates(lua_State *L) {
  static const char who[] = "out:candidates";
  const dtl_run *run = run_of_out(L, who);
  if (!run->candidates) luaL_error(L, "%s: this policy did not declare uses = {target = k}", who);
  int node = node_of_out(L, run, who);
  lua_Integer i = object_integer(L, 3, who, "i");
  if (i < 1 || i > run->candidates)
    luaL_error(L, "%s: i = %I is out of range: 1..%d (uses.target)", who, (LUAI_UACINT)i, run->candidates);
  const int32_t *token;
  const float *logp;
  dt_error err;
  int n;
  if (dt_seq_candidates(run->session, run->seq, node, &token, &logp, &n, &err)) return run_fail(L, &err, who);
  if (i > n) {
    lua_pushnil(L);
    return 1;
  }
  lua_pushinteger(L, token[i - 1]);
  lua_pushnumber(L, (lua_Number)logp[i - 1]);
  return 2;
}

/* (out, node) -> a list with one list of ids for each layer, empty where it has no experts; nil: the target has
 * none. */
static int out_experts(lua_State *L) {
  static const char who[] = "out:experts";
  const dtl_run *run = run_of_out(L, who);
  int node = node_of_out(L, run, who);
  const int32_t *id;
  dt_error err;
  if (dt_seq_experts(run->session, run->seq, node, &id, &err)) return run_fail(L, &err, who);
  if (!id) {
    lua_pushnil(L);
    return 1;
  }
  dt_pair_info info;
  dt_pair_describe(dt_session_pair(run->session), &info);
  lua_createtable(L, info.target.layers, 0);
  for (int layer = 0; layer < info.target.layers; layer++, id += info.target.chosen_experts) {
    int n = *id < 0 ? 0 : info.target.chosen_experts;
    lua_createtable(L, n, 0);
    for (int i = 0; i < n; i++) {
      lua_pushinteger(L, id[i]);
      lua_rawseti(L, -2, i + 1);
    }
    lua_rawseti(L, -2, layer + 1);
  }
  return 1;
}

static int out_unknown(lua_State *L) { return object_no_field(L, "out", keys, N_KEYS); }

/* Gives the table of results on top its functions, and an error for fields that it does not have. */
static void finish_out(lua_State *L, int seq) {
  lua_pushvalue(L, seq);
  lua_pushcclosure(L, out_candidates, 1);
  lua_setfield(L, -2, "candidates");
  lua_pushvalue(L, seq);
  lua_pushcclosure(L, out_experts, 1);
  lua_setfield(L, -2, "experts");
  lua_createtable(L, 0, 2);
  lua_pushcfunction(L, out_unknown);
  lua_setfield(L, -2, "__index");
  lua_pushboolean(L, false);
  lua_setfield(L, -2, "__metatable");
  lua_setmetatable(L, -2);
}

void box_seq_verified(lua_State *L, int seq, const dtl_run *run) {
  seq = lua_absindex(L, seq);
  lua_getiuservalue(L, seq, OUT);
  lua_getiuservalue(L, seq, PATH);
  int path = lua_gettop(L), out = path - 1;
  set_integer(L, seq, out, DRAFTED, run->verdict.drafted);
  set_integer(L, seq, out, DEPTH, run->verdict.depth);
  set_integer(L, seq, out, ACCEPTED, run->verdict.accepted);
  set_integer(L, seq, out, BONUS, run->verdict.bonus);
  set_integer(L, seq, out, COMMITTED, 0);
  set_integer(L, seq, out, EXPERTS_READ, run->verdict.experts_read);
  set_number(L, seq, out, DRAFT_MS, run->draft_ms);
  set_number(L, seq, out, VERIFY_MS, run->verify_ms);
  set_number(L, seq, out, COMMIT_MS, 0);
  int old = (int)lua_rawlen(L, path);
  for (int i = 0; i < run->verdict.accepted; i++) {
    lua_pushinteger(L, run->verdict.path[i]);
    lua_rawseti(L, path, i + 1);
  }
  for (int i = run->verdict.accepted + 1; i <= old && i <= DT_TREE_ENTRIES; i++) {
    lua_pushnil(L);
    lua_rawseti(L, path, i);
  }
  lua_getiuservalue(L, seq, PATH_KEY);
  lua_pushvalue(L, path);
  lua_rawset(L, out);
  lua_settop(L, out);
}

void box_seq_committed(lua_State *L, int seq, const dtl_run *run) {
  lua_getiuservalue(L, seq, OUT);
  int out = lua_gettop(L);
  set_integer(L, seq, out, COMMITTED, run->block.n);
  set_number(L, seq, out, COMMIT_MS, run->commit_ms);
  lua_pop(L, 1);
}

/* ---- verify, commit, rollback ------------------------------------------------------------------------------------ */

static int end_verify_tree(lua_State *L, int status, lua_KContext context) {
  (void)status, (void)context;
  const dtl_run *run = check_seq(L, "seq:verify_tree");
  run_check_pass(L, run, "seq:verify_tree");
  box_of(L)->entry = "step";
  box_seq_verified(L, 1, run);
  return 1;
}

static int seq_verify_tree(lua_State *L) {
  dtl_run *run = check_seq(L, "seq:verify_tree");
  run_check_iteration(L, run, "seq:verify_tree");
  return run_await(L, run, RUN_VERIFY_PASS, 0, end_verify_tree);
}

unsigned box_seq_commit_flags(lua_State *L, const char *who) {
  unsigned flags = 0;
  if (lua_isnoneornil(L, 2)) return 0;
  if (!lua_istable(L, 2)) luaL_error(L, "%s: a table of options is expected, not %s", who, luaL_typename(L, 2));
  lua_settop(L, 2);
  for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
    if (lua_type(L, 3) != LUA_TSTRING || strcmp(lua_tostring(L, 3), "rebuild"))
      luaL_error(L, "%s: unknown option '%s' (known: rebuild)", who,
                 lua_type(L, 3) == LUA_TSTRING ? lua_tostring(L, 3) : luaL_typename(L, 3));
    if (!lua_isboolean(L, 4)) luaL_error(L, "%s: rebuild must be true or false, not %s", who, luaL_typename(L, 4));
    if (lua_toboolean(L, 4)) flags |= DT_COMMIT_REBUILD;
  }
  return flags;
}

static int seq_commit(lua_State *L) {
  dtl_run *run = check_seq(L, "seq:commit");
  unsigned flags = box_seq_commit_flags(L, "seq:commit");
  run_check_iteration(L, run, "seq:commit");
  box_exclude(L, run_commit(&run, 1, flags));
  run_check_pass(L, run, "seq:commit");
  box_of(L)->entry = "observe";
  box_seq_committed(L, 1, run);
  lua_pushinteger(L, run->block.n);
  return 1;
}

static int seq_rollback(lua_State *L) {
  dtl_run *run = check_seq(L, "seq:rollback");
  run_check_iteration(L, run, "seq:rollback");
  if (run->rollbacks == RUN_ROLLBACKS) luaL_error(L, "seq:rollback: at most %d rollbacks in one step", RUN_ROLLBACKS);
  dt_error err;
  notes_drop(run);
  if (dt_rollback(run->session, run->seq, &err)) return run_fail(L, &err, "seq:rollback");
  run->rollbacks++;
  run->phase = RUN_DRAFT;
  box_of(L)->entry = "draft";
  return 0;
}

static const luaL_Reg methods[] = {{"length", seq_length},
                                   {"left", seq_left},
                                   {"unread", seq_unread},
                                   {"token", seq_token},
                                   {"match", seq_match},
                                   {"log", seq_log},
                                   {"clock", seq_clock},
                                   {"pause", seq_pause},
                                   {"paused", seq_paused},
                                   {"draft_step", seq_draft_step},
                                   {"verify_tree", seq_verify_tree},
                                   {"commit", seq_commit},
                                   {"rollback", seq_rollback},
                                   {NULL, NULL}};

void box_seq_push(lua_State *L, dtl_run *run) {
  box_tree_push(L, run); /* tree, tree's methods */
  run->seq_handle = handle_push(L, handle_seq, run, PATH_KEY);
  for (int key = DRAFTED; key <= PATH_KEY; key++) {
    lua_pushstring(L, keys[key - DRAFTED]);
    lua_setiuservalue(L, -2, key);
  }
  lua_createtable(L, 0, N_KEYS);
  finish_out(L, lua_gettop(L) - 1);
  lua_setiuservalue(L, -2, OUT);
  lua_createtable(L, 8, 0);
  lua_setiuservalue(L, -2, PATH);
  object_make(L, "seq", methods); /* tree, tree's methods, seq, methods */
  lua_pushvalue(L, -2);
  lua_setfield(L, -4, "seq");
  lua_pushvalue(L, -4);
  lua_setfield(L, -2, "tree");
  lua_pushinteger(L, run->id);
  lua_setfield(L, -2, "id");
  lua_pushnumber(L, run->temp);
  lua_setfield(L, -2, "temp");
  lua_pushboolean(L, run->drafts);
  lua_setfield(L, -2, "drafts");
  lua_pushboolean(L, dt_seq_is_coupled(run->session, run->seq));
  lua_setfield(L, -2, "coupled");
  lua_pushboolean(L, dt_seq_has_grammar(run->session, run->seq));
  lua_setfield(L, -2, "grammar");
  lua_pop(L, 1);
  lua_replace(L, -3);
  lua_pop(L, 1); /* seq */
}
