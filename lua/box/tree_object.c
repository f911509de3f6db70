/* The policy's `tree`: the functions of runtime/tree/tree.h as methods, whose errors are raised at the caller's line.
 * Every call is a few checks and array reads. */
#include "box/tree_object.h"

#include "box/handle.h"
#include "box/notes.h"
#include "box/object.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Clips integers beyond int's range to values that are far outside every bound. */
static int clip_int(lua_Integer value) {
  return value > 1 << 30 ? 1 << 30 : value < -(1 << 30) ? -(1 << 30) : (int)value;
}

static dtl_run *check_tree(lua_State *L, const char *who) { return handle_run(L, handle_tree, who); }

/* Writes why the tree took no more nodes below `under`. */
static void tell_room(const dt_tree *t, int under, char *out, size_t size) {
  if (t->depth[under] >= t->max_depth)
    snprintf(out, size, "the tree may have only %d level%s here", t->max_depth, t->max_depth == 1 ? "" : "s");
  else if (dt_tree_room(t) == 0)
    snprintf(out, size, "the tree may have only %d node%s here", t->limit, t->limit == 1 ? "" : "s");
  else
    snprintf(out, size, "all its candidates are in the tree");
}

/* Raises if the value at index i comes from an earlier call that found no room for a node, and whose result the policy
 * did not check. */
static void check_room(lua_State *L, const dtl_run *run, int i, const char *who, const char *what) {
  const run_full *full = &run->full;
  char why[80];
  bool none = lua_isnil(L, i);
  lua_Integer u = none ? full->node : lua_tointeger(L, i);
  if (!full->who || u < full->node || none != !strcmp(full->who, "tree:add")) return;
  tell_room(run->tree, full->under, why, sizeof why);
  if (none)
    luaL_error(L, "%s: %s is nil: %s found no room below node %d (%s): check for nil", who, what, full->who,
               full->under, why);
  luaL_error(L,
             "%s: %s: there is no node %I (the tree has 0..%d): %s found no room below node %d (%s): check "
             "`last < first`",
             who, what, (LUAI_UACINT)u, run->tree->nodes - 1, full->who, full->under, why);
}

static int check_node(lua_State *L, const dtl_run *run, int i, const char *who, const char *what) {
  if (run->full.who && lua_isnil(L, i)) check_room(L, run, i, who, what);
  lua_Integer u = object_integer(L, i, who, what);
  if (u >= run->tree->nodes) check_room(L, run, i, who, what);
  if (u < 0 || u >= run->tree->nodes)
    luaL_error(L, "%s: %s: there is no node %I (the tree has 0..%d)", who, what, (LUAI_UACINT)u, run->tree->nodes - 1);
  return (int)u;
}

static int tree_method_size(lua_State *L) {
  lua_pushinteger(L, dt_tree_size(check_tree(L, "tree:size")->tree));
  return 1;
}

static int tree_method_room(lua_State *L) {
  lua_pushinteger(L, dt_tree_room(check_tree(L, "tree:room")->tree));
  return 1;
}

static int tree_method_depth_room(lua_State *L) {
  lua_pushinteger(L, dt_tree_depth_room(check_tree(L, "tree:depth_room")->tree));
  return 1;
}

static int tree_method_limit(lua_State *L) {
  dtl_run *run = check_tree(L, "tree:limit");
  dt_error err;
  if (dt_tree_limit(run->tree, clip_int(object_integer(L, 2, "tree:limit", "n")), &err))
    return run_fail(L, &err, "tree:limit");
  return 0;
}

static int tree_method_branch(lua_State *L) {
  dtl_run *run = check_tree(L, "tree:branch");
  int u = check_node(L, run, 2, "tree:branch", "u"), first, last;
  int b = clip_int(object_integer(L, 3, "tree:branch", "b"));
  dt_error err;
  if (dt_tree_branch(run->tree, u, b, &first, &last, &err)) return run_fail(L, &err, "tree:branch");
  if (last < first && b > 0) run->full = (run_full){"tree:branch", first, u};
  lua_pushinteger(L, first);
  lua_pushinteger(L, last);
  return 2;
}

static int tree_method_add(lua_State *L) {
  dtl_run *run = check_tree(L, "tree:add");
  int u = check_node(L, run, 2, "tree:add", "u"), v;
  int token = clip_int(object_integer(L, 3, "tree:add", "token"));
  double logp = 0;
  if (!lua_isnoneornil(L, 4)) {
    if (lua_type(L, 4) != LUA_TNUMBER) luaL_error(L, "tree:add: logp must be a number, not %s", luaL_typename(L, 4));
    logp = lua_tonumber(L, 4);
  }
  dt_error err;
  if (dt_tree_add(run->tree, u, token, (float)logp, &v, &err)) return run_fail(L, &err, "tree:add");
  if (v < 0) {
    run->full = (run_full){"tree:add", run->tree->nodes, u};
    lua_pushnil(L);
  } else {
    lua_pushinteger(L, v);
  }
  return 1;
}

/* Fills the table at index t with n ids, and clears what is left of a longer list after them. */
static void fill_list(lua_State *L, int t, const int32_t *ids, int n) {
  for (int i = 0; i < n; i++) {
    lua_pushinteger(L, ids[i]);
    lua_rawseti(L, t, i + 1);
  }
  for (int i = n + 1; i <= 1 + DT_TREE_ENTRIES; i++) {
    bool last = lua_rawgeti(L, t, i) == LUA_TNIL;
    lua_pop(L, 1);
    if (last) break;
    lua_pushnil(L);
    lua_rawseti(L, t, i);
  }
}

static int tree_method_best(lua_State *L) {
  dtl_run *run = check_tree(L, "tree:best");
  int k = clip_int(object_integer(L, 2, "tree:best", "k"));
  int first = 1, last = run->tree->nodes - 1;
  if (!lua_isnoneornil(L, 3)) first = clip_int(object_integer(L, 3, "tree:best", "first"));
  if (!lua_isnoneornil(L, 4)) last = clip_int(object_integer(L, 4, "tree:best", "last"));
  int n = 0;
  if (first <= last) { /* an empty range names no nodes */
    if (first < 0) luaL_error(L, "tree:best: first: there is no node %d", first);
    if (last >= run->tree->nodes)
      luaL_error(L, "tree:best: last: there is no node %d (the tree has 0..%d)", last, run->tree->nodes - 1);
    n = dt_tree_best(run->tree, k, first, last, run->ids);
  }
  lua_settop(L, 5);
  if (lua_isnil(L, 5)) {
    lua_createtable(L, n, 0);
    lua_replace(L, 5);
  } else if (!lua_istable(L, 5)) {
    luaL_error(L, "tree:best: into must be a table, not %s", luaL_typename(L, 5));
  }
  fill_list(L, 5, run->ids, n);
  return 1;
}

/* Reads the list of nodes at index i, n of them (-1: all), into run->ids. */
static int read_list(lua_State *L, dtl_run *run, int i, lua_Integer n, const char *who, const char *what) {
  if (n < 0) n = lua_rawlen(L, i) > DT_TREE_ENTRIES + 1 ? DT_TREE_ENTRIES + 2 : (lua_Integer)lua_rawlen(L, i);
  if (n > DT_TREE_ENTRIES + 1) luaL_error(L, "%s: %s has more entries than a tree has nodes", who, what);
  for (int k = 0; k < (int)n; k++) {
    lua_rawgeti(L, i, k + 1);
    run->ids[k] = check_node(L, run, -1, who, what);
    lua_pop(L, 1);
  }
  return (int)n;
}

/* Reads nodes into run->ids and returns their number. Index i has one node, or a list; the number at n_index says how
 * many of the list to read (nil: all). */
static int read_nodes(lua_State *L, dtl_run *run, int i, int n_index, const char *who) {
  if (!lua_istable(L, i)) {
    run->ids[0] = check_node(L, run, i, who, "nodes");
    return 1;
  }
  if (lua_isnoneornil(L, n_index)) return read_list(L, run, i, -1, who, "nodes");
  lua_Integer n = object_integer(L, n_index, who, "n");
  if (n < 0) luaL_error(L, "%s: n = %I is negative", who, (LUAI_UACINT)n);
  return read_list(L, run, i, n, who, "nodes");
}

int box_tree_take_width(lua_State *L, int least, const char *who) {
  int t = lua_gettop(L);
  lua_Integer width = 0;
  if (t < least || !lua_istable(L, t)) return 0;
  for (lua_pushnil(L); lua_next(L, t); lua_settop(L, t + 1)) {
    const char *name = lua_type(L, t + 1) == LUA_TSTRING ? lua_tostring(L, t + 1) : luaL_typename(L, t + 1);
    if (strcmp(name, "width") != 0) luaL_error(L, "%s: unknown option '%s' (known: width)", who, name);
    width = object_integer(L, t + 2, who, name);
  }
  lua_settop(L, t - 1);
  if (width < 0) luaL_error(L, "%s: width = %I is negative", who, (LUAI_UACINT)width);
  return clip_int(width);
}

void box_tree_read_refs(lua_State *L, dtl_run *run, int i, int n_index, int width, const char *who) {
  int n = read_nodes(L, run, i, n_index, who);
  if (run->phase == RUN_INIT) luaL_error(L, "%s: nothing can be drafted in init", who);
  if (run->phase == RUN_COMMITTED)
    luaL_error(L, "%s: the iteration is committed; the next draft starts an empty tree", who);
  if (!run->drafts) luaL_error(L, "%s: this policy declared uses = {draft = false}, or there is no draft model", who);
  for (int k = 0; k < n; k++) run->refs[k] = (dt_node_ref){.seq = run->seq, .node = run->ids[k], .width = width};
  run->n_refs = n;
}

void box_tree_drop_drafted(dtl_run *run) {
  int n = 0;
  if (run->tree->phase != TREE_OPEN) return; /* the engine reports it */
  for (int i = 0; i < run->n_refs; i++)
    if (!dt_tree_draft_of(run->tree, run->refs[i].node)) run->refs[n++] = run->refs[i];
  run->n_refs = n;
}

/* context: the method's name in messages. */
static int end_draft_step(lua_State *L, int status, lua_KContext context) {
  (void)status;
  const dtl_run *run = ((run_handle *)lua_touserdata(L, 1))->run;
  run_check_pass(L, run, (const char *)context);
  lua_pushinteger(L, run->sharers);
  return 1;
}

int box_tree_draft_step(lua_State *L, dtl_run *run, const char *who) {
  const int width = box_tree_take_width(L, 3, who);
  box_tree_read_refs(L, run, 2, 3, width, who);
  box_tree_drop_drafted(run);
  if (run->n_refs) return run_await(L, run, RUN_DRAFT_PASS, (lua_KContext)who, end_draft_step);
  lua_pushinteger(L, 0);
  return 1;
}

static int tree_method_draft_step(lua_State *L) {
  return box_tree_draft_step(L, check_tree(L, "tree:draft_step"), "tree:draft_step");
}

enum { CHAIN_NODE = 2, CHAIN_LEFT, CHAIN_LEAST, CHAIN_FIRST }; /* stack slots of a chain's values, after the tree */

static int extend_chain(lua_State *L, dtl_run *run, const char *who);

/* context: as in end_draft_step. */
static int end_chain_pass(lua_State *L, int status, lua_KContext context) {
  (void)status;
  dtl_run *run = ((run_handle *)lua_touserdata(L, 1))->run;
  run_check_pass(L, run, (const char *)context);
  return extend_chain(L, run, (const char *)context);
}

/* Drafts from the chain's last node, or returns the chain if no levels are left to add or there is no room. */
static int draft_chain(lua_State *L, dtl_run *run, const char *who) {
  const dt_tree *t = run->tree;
  int u = (int)lua_tointeger(L, CHAIN_NODE);
  if (lua_tointeger(L, CHAIN_LEFT) > 0 && t->depth[u] < t->max_depth && dt_tree_room(t) > 0) {
    box_tree_read_refs(L, run, CHAIN_NODE, CHAIN_LEFT, clip_int(t->depth[u] + lua_tointeger(L, CHAIN_LEFT)), who);
    box_tree_drop_drafted(run);
    if (!run->n_refs) return extend_chain(L, run, who);
    return run_await(L, run, RUN_DRAFT_PASS, (lua_KContext)who, end_chain_pass);
  }
  lua_pushvalue(L, CHAIN_FIRST);
  lua_pushinteger(L, t->nodes - 1);
  return 2;
}

/* Adds a child to the chain's last node, which was drafted from, and continues with the child. */
static int extend_chain(lua_State *L, dtl_run *run, const char *who) {
  int u = (int)lua_tointeger(L, CHAIN_NODE), first, last;
  dt_error err;
  if (dt_tree_branch(run->tree, u, 1, &first, &last, &err)) return run_fail(L, &err, who);
  bool sure = (lua_Number)dt_tree_draft_of(run->tree, u)->confidence >= lua_tonumber(L, CHAIN_LEAST);
  lua_pushinteger(L, first);
  lua_replace(L, CHAIN_NODE);
  lua_pushinteger(L, last < first || !sure ? 0 : lua_tointeger(L, CHAIN_LEFT) - 1);
  lua_replace(L, CHAIN_LEFT);
  return draft_chain(L, run, who);
}

static int tree_method_draft_chain(lua_State *L) {
  static const char who[] = "tree:draft_chain";
  dtl_run *run = check_tree(L, who);
  lua_settop(L, CHAIN_LEAST);
  check_node(L, run, CHAIN_NODE, who, "u");
  lua_Integer k = object_integer(L, CHAIN_LEFT, who, "k");
  if (k < 0) luaL_error(L, "%s: k = %I is negative", who, (LUAI_UACINT)k);
  if (lua_isnil(L, CHAIN_LEAST)) {
    lua_pushinteger(L, 0);
    lua_replace(L, CHAIN_LEAST);
  }
  if (lua_type(L, CHAIN_LEAST) != LUA_TNUMBER)
    luaL_error(L, "%s: least must be a number, not %s", who, luaL_typename(L, CHAIN_LEAST));
  box_tree_read_refs(L, run, CHAIN_NODE, CHAIN_LEFT, 0, who); /* raises where nothing may be drafted */
  lua_pushinteger(L, run->tree->nodes);
  return draft_chain(L, run, who);
}

static int tree_method_branch_best(lua_State *L) {
  dtl_run *run = check_tree(L, "tree:branch_best");
  int k = clip_int(object_integer(L, 3, "tree:branch_best", "k")), first, last;
  int n = read_nodes(L, run, 2, 4, "tree:branch_best");
  dt_error err;
  if (dt_tree_branch_best(run->tree, run->ids, n, k, &first, &last, &err)) return run_fail(L, &err, "tree:branch_best");
  if (last < first && k > 0 && n > 0) run->full = (run_full){"tree:branch_best", first, run->ids[0]};
  lua_pushinteger(L, first);
  lua_pushinteger(L, last);
  return 2;
}

static int tree_method_keep(lua_State *L) {
  dtl_run *run = check_tree(L, "tree:keep");
  dt_error err;
  dt_status status;
  if (lua_istable(L, 2)) {
    int n = read_list(L, run, 2, -1, "tree:keep", "nodes");
    status = dt_tree_keep(run->tree, run->ids, n, &err);
  } else {
    status =
        dt_tree_keep_best(run->tree, clip_int(object_integer(L, 2, "tree:keep", "nodes (a list, or how many)")), &err);
  }
  return status ? run_fail(L, &err, "tree:keep") : 0;
}

static double calibration_number(lua_State *L, int arg, const char *name, double otherwise) {
  if (arg > 2 && lua_isnoneornil(L, arg)) return otherwise;
  if (lua_type(L, arg) != LUA_TNUMBER)
    luaL_error(L, "tree:calibrate: %s must be a number, not %s", name, luaL_typename(L, arg));
  return lua_tonumber(L, arg);
}

static int tree_method_calibrate(lua_State *L) {
  dtl_run *run = check_tree(L, "tree:calibrate");
  dt_tree_calibration calibration = {.scale = calibration_number(L, 2, "scale", 1),
                                     .lean = calibration_number(L, 3, "lean", 0),
                                     .slope = calibration_number(L, 4, "slope", 1),
                                     .shift = calibration_number(L, 5, "shift", 0),
                                     .share = calibration_number(L, 6, "share", 1)};
  dt_error err;
  return dt_tree_calibrate(run->tree, calibration, &err) ? run_fail(L, &err, "tree:calibrate") : 0;
}

static int tree_method_p(lua_State *L) {
  dtl_run *run = check_tree(L, "tree:p");
  lua_pushnumber(L, exp(run->tree->cumlogp[check_node(L, run, 2, "tree:p", "u")]));
  return 1;
}

static int tree_method_logp(lua_State *L) {
  dtl_run *run = check_tree(L, "tree:logp");
  lua_pushnumber(L, (lua_Number)run->tree->logp[check_node(L, run, 2, "tree:logp", "u")]);
  return 1;
}

static int tree_method_cumlogp(lua_State *L) {
  dtl_run *run = check_tree(L, "tree:cumlogp");
  lua_pushnumber(L, run->tree->cumlogp[check_node(L, run, 2, "tree:cumlogp", "u")]);
  return 1;
}

static int tree_method_q(lua_State *L) {
  dtl_run *run = check_tree(L, "tree:q");
  lua_pushnumber(L, exp((double)run->tree->own[check_node(L, run, 2, "tree:q", "u")]));
  return 1;
}

static int tree_method_depth(lua_State *L) {
  dtl_run *run = check_tree(L, "tree:depth");
  lua_pushinteger(L, run->tree->depth[check_node(L, run, 2, "tree:depth", "u")]);
  return 1;
}

static int tree_method_parent(lua_State *L) { /* nil: u is the root */
  dtl_run *run = check_tree(L, "tree:parent");
  int parent = run->tree->parent[check_node(L, run, 2, "tree:parent", "u")];
  if (parent < 0)
    lua_pushnil(L);
  else
    lua_pushinteger(L, parent);
  return 1;
}

static int tree_method_token(lua_State *L) {
  dtl_run *run = check_tree(L, "tree:token");
  lua_pushinteger(L, run->tree->token[check_node(L, run, 2, "tree:token", "u")]);
  return 1;
}

static const dt_tree_draft *check_draft(lua_State *L, const dtl_run *run, const char *who) {
  int u = check_node(L, run, 2, who, "u");
  const dt_tree_draft *draft = dt_tree_draft_of(run->tree, u);
  if (!draft) luaL_error(L, "%s: u: node %d has no draft result yet: call draft_step first", who, u);
  return draft;
}

static int tree_method_drafted(lua_State *L) {
  dtl_run *run = check_tree(L, "tree:drafted");
  lua_pushboolean(L, dt_tree_draft_of(run->tree, check_node(L, run, 2, "tree:drafted", "u")) != NULL);
  return 1;
}

static int tree_method_confidence(lua_State *L) {
  lua_pushnumber(L, (lua_Number)check_draft(L, check_tree(L, "tree:confidence"), "tree:confidence")->confidence);
  return 1;
}

static int tree_method_entropy(lua_State *L) {
  lua_pushnumber(L, (lua_Number)check_draft(L, check_tree(L, "tree:entropy"), "tree:entropy")->entropy);
  return 1;
}

static int tree_method_candidate(lua_State *L) { /* nil: fewer candidates */
  const dt_tree_draft *draft = check_draft(L, check_tree(L, "tree:candidate"), "tree:candidate");
  lua_Integer i = object_integer(L, 3, "tree:candidate", "i");
  if (i < 1) luaL_error(L, "tree:candidate: i = %I is below 1", (LUAI_UACINT)i);
  if (i > draft->count) {
    lua_pushnil(L);
    return 1;
  }
  lua_pushinteger(L, draft->token[i - 1]);
  lua_pushnumber(L, (lua_Number)draft->logp[i - 1]);
  lua_pushnumber(L, (lua_Number)draft->own[i - 1]);
  return 3;
}

static int tree_method_rank(lua_State *L) { /* nil: u has no draft */
  const dtl_run *run = check_tree(L, "tree:rank");
  const dt_tree_draft *draft = dt_tree_draft_of(run->tree, check_node(L, run, 2, "tree:rank", "u"));
  lua_Integer token = object_integer(L, 3, "tree:rank", "token");
  if (!draft || draft->count == 0) {
    lua_pushnil(L);
    return 1;
  }
  int i = draft->count;
  while (i > 0 && draft->token[i - 1] != token) i--;
  lua_pushinteger(L, i);
  return 1;
}

static int tree_method_allowed(lua_State *L) {
  dtl_run *run = check_tree(L, "tree:allowed");
  int u = check_node(L, run, 2, "tree:allowed", "u");
  int token = clip_int(object_integer(L, 3, "tree:allowed", "token"));
  bool allowed;
  dt_error err;
  if (dt_seq_allowed(run->session, run->seq, u, token, &allowed, &err)) return run_fail(L, &err, "tree:allowed");
  lua_pushboolean(L, allowed);
  return 1;
}

static int tree_method_forced(lua_State *L) { /* nil: no text is forced */
  dtl_run *run = check_tree(L, "tree:forced");
  int u = check_node(L, run, 2, "tree:forced", "u"), left;
  int32_t token;
  dt_error err;
  if (dt_seq_forced(run->session, run->seq, u, &token, &left, &err)) return run_fail(L, &err, "tree:forced");
  if (token < 0) return lua_pushnil(L), 1;
  lua_pushinteger(L, token);
  lua_pushinteger(L, left);
  return 2;
}

static int tree_method_accepted(lua_State *L) {
  dtl_run *run = check_tree(L, "tree:accepted");
  int u = check_node(L, run, 2, "tree:accepted", "u");
  if (run->tree->phase < TREE_VERIFIED) luaL_error(L, "tree:accepted: the tree is not verified yet");
  int verdict = run->tree->verdict[u];
  if (verdict < 0)
    lua_pushnil(L);
  else
    lua_pushboolean(L, verdict);
  return 1;
}

static int tree_method_tag(lua_State *L) {
  dtl_run *run = check_tree(L, "tree:tag");
  int u = check_node(L, run, 2, "tree:tag", "u");
  if (u == 0) luaL_error(L, "tree:tag: u: the root cannot have a tag, since it is not a guess");
  run_check_iteration(L, run, "tree:tag");
  notes_tag(L, run, u, 3, "tree:tag");
  return 0;
}

static const luaL_Reg methods[] = {{"size", tree_method_size},
                                   {"room", tree_method_room},
                                   {"depth_room", tree_method_depth_room},
                                   {"limit", tree_method_limit},
                                   {"draft_step", tree_method_draft_step},
                                   {"draft_chain", tree_method_draft_chain},
                                   {"branch", tree_method_branch},
                                   {"branch_best", tree_method_branch_best},
                                   {"add", tree_method_add},
                                   {"best", tree_method_best},
                                   {"keep", tree_method_keep},
                                   {"calibrate", tree_method_calibrate},
                                   {"p", tree_method_p},
                                   {"logp", tree_method_logp},
                                   {"cumlogp", tree_method_cumlogp},
                                   {"q", tree_method_q},
                                   {"depth", tree_method_depth},
                                   {"parent", tree_method_parent},
                                   {"token", tree_method_token},
                                   {"drafted", tree_method_drafted},
                                   {"confidence", tree_method_confidence},
                                   {"entropy", tree_method_entropy},
                                   {"candidate", tree_method_candidate},
                                   {"rank", tree_method_rank},
                                   {"allowed", tree_method_allowed},
                                   {"forced", tree_method_forced},
                                   {"accepted", tree_method_accepted},
                                   {"tag", tree_method_tag},
                                   {NULL, NULL}};

void box_tree_push(lua_State *L, dtl_run *run) {
  run_handle *handle = handle_push(L, handle_tree, run, 0);
  object_make(L, "tree", methods); /* tree, methods */
  lua_pushinteger(L, 0);
  lua_setfield(L, -2, "root");
  run->tree_handle = handle;
}
