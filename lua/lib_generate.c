/* pair:generate and pair:generate_batch in drivers. All options are read before anything is opened, since reading may
 * raise. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

/* A driver's function, called from within the engine's loop: its errors wait on the stack until the run is over. */
typedef struct {
  lua_State *L;
  int function; /* stack index */
  bool failed;
  bool brief;
} listener;

/* What it is called with: as `push` puts it on the stack. */
typedef struct {
  void (*push)(lua_State *L, const void *what);
  const void *what;
} message;

static int call_function(lua_State *L) {
  const message *m = lua_touserdata(L, 1);
  m->push(L, m->what);
  lua_call(L, lua_gettop(L) - 2, 0);
  return 0;
}

static void tell(listener *to, void (*push)(lua_State *L, const void *what), const void *what) {
  message m = {push, what};
  if (to->failed) return;
  lua_pushcfunction(to->L, call_function);
  lua_pushlightuserdata(to->L, &m);
  lua_pushvalue(to->L, to->function);
  to->failed = lua_pcall(to->L, 2, 0, 0) != LUA_OK;
}

/* ---- options ------------------------------------------------------------------------------------------------------------ */

static float real_option(lua_State *L, const char *key) {
  lua_getfield(L, 2, key);
  float value = (float)luaL_optnumber(L, -1, 0);
  lua_pop(L, 1);
  return value;
}

static bool flag(lua_State *L, const char *key, bool fallback) {
  lua_getfield(L, 2, key);
  bool value = lua_isnil(L, -1) ? fallback : lua_toboolean(L, -1);
  lua_pop(L, 1);
  return value;
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

/* All but the prompt; what it points to stays on the stack. */
static dtl_request read_request(lua_State *L, const pair_object *pair, uint64_t seed) {
  dtl_request request = {.context = pair->context, .interrupt = driver_interrupt(L)};
  request.seq.max_tokens = (int)driver_integer(L, "tokens", 128);
  request.seq.ignore_eos = flag(L, "ignore_eos", false);
  request.seq.sampling = (dt_sampling){.seed = seed,
                                       .temp = real_option(L, "temp"),
                                       .top_k = (int)driver_integer(L, "top_k", 0),
                                       .top_p = real_option(L, "top_p"),
                                       .min_p = real_option(L, "min_p")};
  request.seq.uncoupled = !flag(L, "coupled", true);
  read_stop(L, &request.seq);
  return request;
}

/* The value on top: text or a prefix. */
static dtl_prompt read_prompt(lua_State *L, const pair_object *pair) {
  dtl_prompt prompt = {0};
  prefix_object *prefix = luaL_testudata(L, -1, PREFIX_TYPE);
  if (prefix) {
    if (!prefix->prefix) luaL_error(L, "generate: the prompt is a prefix that is closed");
    if (prefix->owner != pair) luaL_error(L, "generate: the prompt is a prefix of another pair");
    prompt.prefix = prefix->prefix;
  } else {
    prompt.text = luaL_checklstring(L, -1, &prompt.len);
  }
  return prompt;
}

/* The function at `key`, which stays on the stack; false: there is none. */
static bool read_function(lua_State *L, const char *key, listener *listen) {
  listen->L = L;
  if (lua_getfield(L, 2, key) == LUA_TNIL) return false;
  listen->function = lua_gettop(L);
  return true;
}

static void push_json(lua_State *L, const dtl_result *result, bool brief) {
  char *json = dtl_result_json(result, brief ? DTL_JSON_LINE | DTL_JSON_BRIEF : DTL_JSON_LINE);
  lua_pushstring(L, json ? json : "{}");
  free(json);
}

/* What passes cost, where the policy asks. */
static bool find_costs(lua_State *L, pair_object *pair, bool used, int places, dtl_request *request, dtl_error *err) {
  return !used || (request->costs = driver_costs(L, pair, places, false, err)) != NULL;
}

/* ---- generate ----------------------------------------------------------------------------------------------------------- */

typedef struct {
  const char *bytes;
  size_t len;
} piece;

static void push_piece(lua_State *L, const void *what) {
  const piece *p = what;
  lua_pushlstring(L, p->bytes, p->len);
}

static void on_text(void *user, const char *bytes, size_t len) { tell(user, push_piece, &(piece){bytes, len}); }

int lib_pair_generate(lua_State *L) {
  driver_check_interrupt(L);
  pair_object *pair = driver_idle_pair(L, 1);
  dtl_policy_options options = driver_policy_options(L);
  dtl_request request = read_request(L, pair, options.seed);
  lua_getfield(L, 2, "trace");
  const char *trace = luaL_optstring(L, -1, NULL);
  lua_getfield(L, 2, "prompt");
  dtl_prompt prompt = read_prompt(L, pair);
  request.text = prompt.text, request.text_len = prompt.len, request.prefix = prompt.prefix;
  listener listen = {.brief = flag(L, "brief", false)};
  if (read_function(L, "on_text", &listen)) {
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
  bool ok = find_costs(L, pair, dtl_policy_describe(policy)->uses_costs, 1, &request, &err);
  pair->busy = true;
  ok = ok && dtl_generate(pair->pair, policy, &request, &result, &err);
  pair->busy = false;
  dtl_policy_close(policy);
  ok = dtl_trace_close(request.trace, ok ? &err : NULL) && ok;
  if (listen.failed || (request.interrupt && *request.interrupt)) {
    dtl_result_free(&result);
    if (listen.failed) return lua_error(L);
    driver_check_interrupt(L);
  }
  int returned = 1;
  if (!ok) returned += driver_policy_failure(L, &err);
  push_json(L, &result, listen.brief);
  dtl_result_free(&result);
  return returned;
}

/* ---- generate_batch ----------------------------------------------------------------------------------------------------- */

typedef struct {
  int prompt;
  const dtl_result *result;
  const dtl_error *err;
  bool brief;
} ending;

/* The prompt's number, the result, and what driver_policy_failure says if it failed. */
static void push_ending(lua_State *L, const void *what) {
  const ending *e = what;
  lua_pushinteger(L, e->prompt + 1);
  push_json(L, e->result, e->brief);
  if (e->err) driver_policy_failure(L, e->err);
}

static bool on_done(void *user, int prompt, const dtl_result *result, const dtl_error *err) {
  listener *listen = user;
  tell(listen, push_ending, &(ending){prompt, result, err, listen->brief});
  return !listen->failed;
}

/* The list of prompts, in a userdata that stays on the stack. */
static const dtl_prompt *read_prompts(lua_State *L, const pair_object *pair, int *n) {
  lua_getfield(L, 2, "prompts");
  int list = lua_gettop(L);
  *n = (int)luaL_len(L, list);
  dtl_prompt *prompts = lua_newuserdatauv(L, sizeof *prompts * (size_t)(*n + 1), 0);
  for (int i = 0; i < *n; i++) {
    lua_rawgeti(L, list, i + 1);
    prompts[i] = read_prompt(L, pair);
    lua_pop(L, 1); /* the list holds it */
  }
  return prompts;
}

int lib_pair_generate_batch(lua_State *L) {
  driver_check_interrupt(L);
  pair_object *pair = driver_idle_pair(L, 1);
  dtl_policy_options options = driver_policy_options(L);
  dtl_request request = read_request(L, pair, options.seed);
  listener listen = {.brief = flag(L, "brief", false)};
  dtl_batch batch = {.policy = &options,
                     .request = &request,
                     .places = (int)driver_integer(L, "places", 1),
                     .done = on_done,
                     .user = &listen};
  batch.prompts = read_prompts(L, pair, &batch.n);
  read_function(L, "on_done", &listen);
  luaL_checkstack(L, 10, "generate_batch");

  dtl_error err;
  dtl_policy *policy;
  if (!dtl_policy_open(&options, &policy, &err)) return driver_policy_failure(L, &err);
  bool used = dtl_policy_describe(policy)->uses_costs;
  dtl_policy_close(policy);
  bool ok = find_costs(L, pair, used, batch.places, &request, &err);
  pair->busy = true;
  ok = ok && dtl_generate_batch(pair->pair, &batch, &err);
  pair->busy = false;
  if (listen.failed) return lua_error(L);
  driver_check_interrupt(L);
  if (!ok) return driver_policy_failure(L, &err);
  lua_pushboolean(L, true);
  return 1;
}
