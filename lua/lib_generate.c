/* pair:generate in drivers. All options are read before anything is opened, since reading may raise. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

/* A driver's on_text, called from within the engine's loop: its errors wait on the stack until the run is over. */
typedef struct {
  lua_State *L;
  int function; /* stack index */
  bool failed;
  const char *bytes;
  size_t len;
} listener;

static int call_function(lua_State *L) {
  listener *l = lua_touserdata(L, 1);
  lua_pushvalue(L, 2);
  lua_pushlstring(L, l->bytes, l->len);
  lua_call(L, 1, 0);
  return 0;
}

static void on_text(void *user, const char *bytes, size_t len) {
  listener *l = user;
  if (l->failed) return;
  l->bytes = bytes;
  l->len = len;
  lua_pushcfunction(l->L, call_function);
  lua_pushlightuserdata(l->L, l);
  lua_pushvalue(l->L, l->function);
  l->failed = lua_pcall(l->L, 2, 0, 0) != LUA_OK;
}

static float real_option(lua_State *L, const char *key) {
  lua_getfield(L, 2, key);
  float value = (float)luaL_optnumber(L, -1, 0);
  lua_pop(L, 1);
  return value;
}

static void read_sampling(lua_State *L, dt_seq_options *seq, uint64_t seed) {
  seq->sampling = (dt_sampling){.seed = seed,
                                .temp = real_option(L, "temp"),
                                .top_k = (int)driver_integer(L, "top_k", 0),
                                .top_p = real_option(L, "top_p"),
                                .min_p = real_option(L, "min_p")};
  lua_getfield(L, 2, "coupled");
  seq->uncoupled = lua_isboolean(L, -1) && !lua_toboolean(L, -1);
  lua_pop(L, 1);
}

static void read_stop(lua_State *L, dt_seq_options *seq) {
  lua_getfield(L, 2, "stop");
  int list = lua_gettop(L);
  seq->n_stop = (int)luaL_len(L, list);
  const char **stop = lua_newuserdatauv(L, sizeof *stop * (size_t)(seq->n_stop + 1), 0);
  for (int i = 0; i < seq->n_stop; i++) {
    lua_rawgeti(L, list, i + 1);
    stop[i] = luaL_checkstring(L, -1);
    lua_pop(L, 1);
  }
  seq->stop = stop;
}

/* The prompt: text or a prefix; it stays on the stack. */
static void read_prompt(lua_State *L, const pair_object *pair, dtl_request *request) {
  lua_getfield(L, 2, "prompt");
  prefix_object *prefix = luaL_testudata(L, -1, PREFIX_TYPE);
  if (prefix) {
    if (!prefix->prefix) luaL_error(L, "generate: the prompt is a prefix that is closed");
    if (prefix->owner != pair) luaL_error(L, "generate: the prompt is a prefix of another pair");
    request->prefix = prefix->prefix;
  } else {
    request->text = luaL_checklstring(L, -1, &request->text_len);
  }
}

static void push_json(lua_State *L, const dtl_result *result, bool brief) {
  char *json = dtl_result_json(result, brief);
  lua_pushstring(L, json ? json : "{}");
  free(json);
}

int lib_pair_generate(lua_State *L) {
  driver_check_interrupt(L);
  pair_object *pair = driver_pair(L, 1);
  dtl_policy_options options = driver_policy_options(L);
  lua_getfield(L, 2, "trace");
  const char *trace = luaL_optstring(L, -1, NULL);
  dtl_request request = {.context = pair->context, .interrupt = driver_interrupt(L)};
  request.seq.max_tokens = (int)driver_integer(L, "tokens", 128);
  lua_getfield(L, 2, "ignore_eos");
  request.seq.ignore_eos = lua_toboolean(L, -1);
  lua_getfield(L, 2, "brief");
  bool brief = lua_toboolean(L, -1);
  read_sampling(L, &request.seq, options.seed);
  read_stop(L, &request.seq);
  read_prompt(L, pair, &request);
  listener listen = {.L = L};
  if (lua_getfield(L, 2, "on_text") != LUA_TNIL) {
    listen.function = lua_gettop(L);
    request.on_text = on_text;
    request.user = &listen;
  }
  luaL_checkstack(L, 10, "generate");

  dtl_error err;
  dtl_policy *policy = NULL;
  if (!dtl_policy_open(&options, &policy, &err) || (trace && !dtl_trace_open(trace, &request.trace, &err))) {
    dtl_policy_close(policy);
    return driver_policy_failure(L, &err);
  }
  dtl_result result = {0};
  bool ok = true;
  if (dtl_policy_describe(policy)->uses_costs) ok = (request.costs = driver_costs(L, pair, false, &err)) != NULL;
  ok = ok && dtl_generate(pair->pair, policy, &request, &result, &err);
  dtl_policy_close(policy);
  ok = dtl_trace_close(request.trace, ok ? &err : NULL) && ok;
  if (listen.failed || (request.interrupt && *request.interrupt)) {
    dtl_result_free(&result);
    if (listen.failed) return lua_error(L);
    driver_check_interrupt(L);
  }
  int returned = 1;
  if (!ok) returned += driver_policy_failure(L, &err);
  push_json(L, &result, brief);
  dtl_result_free(&result);
  return returned;
}
