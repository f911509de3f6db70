/* policy.calibration([share=false[, state]]) -> an object that learns the arguments of tree:calibrate
 * (runtime/tree/tree.h: dt_tree_learner). It learns `share` only if that is true. state: what s:state() of an earlier
 * object returned.
 *
 *   s:apply(tree)     before an iteration's first draft_step: calibrates the tree with the numbers learned so far
 *   s:observe(tree)   after its commit: learns from the token after every accepted node that was drafted from
 *   s:state(list)     puts what it knows into the list, as 9 numbers from index 1 on */
#include "box/calibration_object.h"

#include "box/handle.h"
#include "box/object.h"

#include <math.h>

static const char calibration_kind[] = "calibration";

typedef struct {
  const char *kind; /* as in a run_handle */
  dt_tree_learner learner;
} calibration;

static dt_tree_learner *check_calibration(lua_State *L, const char *who) {
  calibration *s = lua_touserdata(L, 1);
  box_look(L);
  if (!s || lua_rawlen(L, 1) != sizeof *s || s->kind != calibration_kind)
    luaL_error(L, "%s: not called as a method of a calibration", who);
  return &s->learner;
}

static int calibration_apply(lua_State *L) {
  static const char who[] = "calibration:apply";
  dt_tree_learner *learner = check_calibration(L, who);
  const dtl_run *run = handle_run_at(L, 2, handle_tree, who);
  dt_error err;
  if (dt_tree_calibrate_learned(learner, run->tree, dt_seq_is_coupled(run->session, run->seq), &err))
    return run_fail(L, &err, who);
  return 0;
}

static int calibration_observe(lua_State *L) {
  static const char who[] = "calibration:observe";
  dt_tree_learner *learner = check_calibration(L, who);
  const dtl_run *run = handle_run_at(L, 2, handle_tree, who);
  if (run->phase != RUN_COMMITTED) luaL_error(L, "%s: this iteration has not committed yet", who);
  bool coupled = dt_seq_is_coupled(run->session, run->seq);
  for (int d = 0; d < run->block.n; d++)
    dt_tree_learn(learner, run->tree, d ? run->verdict.path[d - 1] : 0, run->block.tokens[d], coupled);
  return 0;
}

static int calibration_state(lua_State *L) {
  double state[DT_TREE_LEARNER_STATE];
  dt_tree_learner_state(check_calibration(L, "calibration:state"), state);
  if (!lua_istable(L, 2) || lua_getmetatable(L, 2))
    luaL_error(L, "calibration:state: expected a list without a metatable");
  for (int i = 0; i < DT_TREE_LEARNER_STATE; i++) lua_pushnumber(L, state[i]), lua_rawseti(L, 2, i + 1);
  return 0;
}

static const luaL_Reg methods[] = {
    {"apply", calibration_apply}, {"observe", calibration_observe}, {"state", calibration_state}, {NULL, NULL}};

static calibration *push(lua_State *L, dt_tree_learner learner) {
  calibration *s = lua_newuserdatauv(L, sizeof *s, 0);
  *s = (calibration){.kind = calibration_kind, .learner = learner};
  return s;
}

static dt_tree_learner learner_at(lua_State *L, bool share, int i) {
  double state[DT_TREE_LEARNER_STATE];
  if (lua_isnoneornil(L, i)) return dt_tree_learner_new(share);
  if (!lua_istable(L, i)) luaL_error(L, "policy.calibration: state is a %s, not a list", luaL_typename(L, i));
  for (int k = 0; k < DT_TREE_LEARNER_STATE; k++) {
    bool is_number = lua_rawgeti(L, i, k + 1) == LUA_TNUMBER;
    state[k] = is_number ? lua_tonumber(L, -1) : NAN;
    if (!isfinite(state[k])) luaL_error(L, "policy.calibration: item %d of state is not a finite number", k + 1);
    lua_pop(L, 1);
  }
  return dt_tree_learner_resume(share, state);
}

/* Upvalue 1 is an object; all objects share its metatable. */
static int make_calibration(lua_State *L) {
  box_look(L);
  if (!lua_isnoneornil(L, 1) && !lua_isboolean(L, 1))
    luaL_error(L, "policy.calibration: share must be true or false, not %s", luaL_typename(L, 1));
  push(L, learner_at(L, lua_toboolean(L, 1), 2));
  lua_getmetatable(L, lua_upvalueindex(1));
  lua_setmetatable(L, -2);
  return 1;
}

void box_calibration_push(lua_State *L) {
  push(L, dt_tree_learner_new(false));
  object_make(L, "calibration", methods);
  lua_pop(L, 1);
  lua_pushcclosure(L, make_calibration, 1);
}
