/* Generation in drivers, for pair:generate and pair:generate_batch. All options are read before anything is opened,
 * since reading them may raise an error. */
#include "driver/driver.h"

#include <stdlib.h>
#include <string.h>

#define TOKENS 128

/* The driver's functions, which are called within the engine's loop. The first error ends the run and stays on the
 * stack until the run is over. */
typedef struct {
  lua_State *L;
  int on_text, on_logprobs, on_done; /* stack indices */
  bool failed;
  bool brief;
} listener;

/* The arguments of such a function, which `push` puts on the stack. */
typedef struct {
  void (*push)(lua_State *L, const void *what);
  const void *what;
} message;

static int call_function(lua_State *L) {
  const message *m = lua_touserdata(L, 1);
  m->push(L, m->what);
  lua_call(L, lua_gettop(L) - 2, 1);
  return 1;
}

/* Calls a function; false: it failed, or returned false to end the run. */
static bool tell(listener *to, int function, void (*push)(lua_State *L, const void *what), const void *what) {
  message m = {push, what};
  if (to->failed) return false;
  lua_pushcfunction(to->L, call_function);
  lua_pushlightuserdata(to->L, &m);
  lua_pushvalue(to->L, function);
  to->failed = lua_pcall(to->L, 2, 1, 0) != LUA_OK;
  if (to->failed) return false;
  bool more = !lua_isboolean(to->L, -1) || lua_toboolean(to->L, -1);
  lua_pop(to->L, 1);
  return more;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static bool flag(lua_State *L, const char *key, bool fallback) {
  lua_getfield(L, 2, key);
  bool value = lua_isnil(L, -1) ? fallback : lua_toboolean(L, -1);
  lua_pop(L, 1);
  return value;
}

/* Reads the request from the table's member "request" (a result of driver_read_request) for a pair, and the texts that
 * end an answer. */
static dtl_request read_request(lua_State *L, const pair_object *pair) {
  lua_getfield(L, 2, "request");
  const request_input *in = driver_request(L, -1);
  dtl_request request = in->request;
  request.context = pair->context, request.memory = pair->memory, request.corpus = pair->corpus;
  request.interrupt = driver_interrupt(L);
  if (!request.seq.max_tokens) request.seq.max_tokens = TOKENS;
  lua_getfield(L, 2, "chat"); /* stays on the stack */
  driver_chat_options(L, request_limits_reasoning(in), &request);
  return request;
}

/* Reads the prompt on top of the stack: a text, a prefix, or a list of ids, which is replaced by a userdata. */
static dtl_prompt read_prompt(lua_State *L, const pair_object *pair) {
  dtl_prompt prompt = {0};
  prefix_object *prefix = luaL_testudata(L, -1, PREFIX_TYPE);
  if (prefix) {
    if (!prefix->prefix) luaL_error(L, "generate: the prompt is a closed prefix");
    if (prefix->owner != pair) luaL_error(L, "generate: the prompt is a prefix of another pair");
    prompt.prefix = prefix->prefix;
  } else if (lua_istable(L, -1)) {
    prompt.ids = driver_ids(L, -1, &prompt.n_ids);
    lua_replace(L, -2);
  } else {
    prompt.text = luaL_checklstring(L, -1, &prompt.len);
  }
  return prompt;
}

/* Reads the list of prompts into a userdata, which stays on the stack. */
static const dtl_prompt *read_prompts(lua_State *L, const pair_object *pair, int *n) {
  lua_getfield(L, 2, "prompts");
  int list = lua_gettop(L);
  *n = (int)luaL_len(L, list);
  dtl_prompt *prompts = lua_newuserdatauv(L, sizeof *prompts * (size_t)(*n + 1), 0);
  for (int i = 0; i < *n; i++) {
    lua_rawgeti(L, list, i + 1);
    prompts[i] = read_prompt(L, pair);
    lua_rawseti(L, list, i + 1); /* keeps the text in the list, also if it was converted from a number */
  }
  return prompts;
}

/* Returns the stack index of the function at `key`, which stays on the stack; 0: there is none. */
static int read_function(lua_State *L, const char *key) {
  return lua_getfield(L, 2, key) == LUA_TNIL ? 0 : lua_gettop(L);
}

/* ---- calls while it runs ----------------------------------------------------------------------------------------- */

typedef struct {
  const char *bytes;
  size_t len;
} piece;

static void push_piece(lua_State *L, const void *what) {
  const piece *p = what;
  lua_pushlstring(L, p->bytes, p->len);
}

static bool on_text(void *user, const char *bytes, size_t len) {
  listener *listen = user;
  return tell(listen, listen->on_text, push_piece, &(piece){bytes, len});
}

typedef struct {
  const int32_t *ids;
  const dtl_logprob *list;
  int n;
} block_logprobs;

/* Pushes log-probabilities in the form of results: {{id =, logprob =, top = {{id, logprob}, ..}}, ..}. */
static void push_logprobs(lua_State *L, const void *what) {
  const block_logprobs *b = what;
  lua_createtable(L, b->n, 0);
  for (int i = 0; i < b->n; i++) {
    lua_createtable(L, 0, 3);
    lua_pushinteger(L, b->ids[i]);
    lua_setfield(L, -2, "id");
    lua_pushnumber(L, (lua_Number)b->list[i].logp);
    lua_setfield(L, -2, "logprob");
    lua_createtable(L, b->list[i].n, 0);
    for (int k = 0; k < b->list[i].n; k++) {
      lua_createtable(L, 2, 0);
      lua_pushinteger(L, b->list[i].id[k]);
      lua_rawseti(L, -2, 1);
      lua_pushnumber(L, (lua_Number)b->list[i].logps[k]);
      lua_rawseti(L, -2, 2);
      lua_rawseti(L, -2, k + 1);
    }
    lua_setfield(L, -2, "top");
    lua_rawseti(L, -2, i + 1);
  }
}

static void on_logprobs(void *user, const int32_t *ids, const dtl_logprob *list, int n) {
  listener *listen = user;
  tell(listen, listen->on_logprobs, push_logprobs, &(block_logprobs){ids, list, n});
}

typedef struct {
  int prompt;
  const dtl_result *result;
  bool brief;
} ending;

/* Pushes the prompt's number, the result, and, if it failed, the values of driver_policy_failure. */
static void push_ending(lua_State *L, const void *what) {
  const ending *e = what;
  lua_pushinteger(L, e->prompt + 1);
  char *json = dtl_result_json(e->result, e->brief ? DTL_JSON_LINE | DTL_JSON_BRIEF : DTL_JSON_LINE);
  if (!json) luaL_error(L, "out of memory: the result");
  lua_pushstring(L, json);
  free(json);
  if (e->result->failed) driver_policy_failure(L, &e->result->failure);
}

static bool on_done(void *user, int prompt, dtl_result *result) {
  listener *listen = user;
  bool more = tell(listen, listen->on_done, push_ending, &(ending){prompt, result, listen->brief});
  dtl_result_free(result); /* the driver has copies of everything by now */
  return more;
}

/* ---- generate ---------------------------------------------------------------------------------------------------- */

/* Finds the costs of passes: with "table" a table, if the policy uses costs; otherwise learned costs. */
static dt_status find_costs(lua_State *L, pair_object *pair, const dtl_policy *policy, const char *counts,
                            dtl_request *request, dt_error *err) {
  if (counts && strcmp(counts, "table") == 0) {
    if (!dtl_policy_describe(policy)->uses_costs) return DT_OK;
    return driver_costs(L, pair, request->slots ? request->slots : 1, false, &request->costs, err);
  }
  dtl_learning how = dtl_learning_shown(request->interrupt);
  if (!pair->learned) pair->learned = dtl_learned_open(pair->pair, &how);
  request->learned = pair->learned;
  return request->learned ? DT_OK : dtl_fail_memory(err, "the costs of passes");
}

/* Opens costs and trace for an open policy, and generates. */
static dt_status generate_prompts(lua_State *L, pair_object *pair, const dtl_policy *policy, dtl_request *request,
                                  const char *counts, const char *trace, dtl_result *results, dt_error *err) {
  dt_status status = find_costs(L, pair, policy, counts, request, err);
  if (!status && trace) status = dtl_trace_open(trace, &request->trace, err);
  if (status) return status;
  pair->busy = true;
  status = dtl_generate(pair->pair, policy, request, results, err);
  pair->busy = false;
  dt_status lost = dtl_trace_close(request->trace, status ? NULL : err);
  return status ? status : lost;
}

int driver_pair_generate(lua_State *L) {
  driver_check_interrupt(L);
  pair_object *pair = driver_idle_pair(L, 1);
  dtl_policy_options options = driver_policy_options(L);
  dtl_request request = read_request(L, pair);
  request.prompts = read_prompts(L, pair, &request.n);
  lua_getfield(L, 2, "trace");
  const char *trace = luaL_optstring(L, -1, NULL);
  lua_getfield(L, 2, "request");
  const char *asked = driver_request(L, -1)->costs, *counts = asked ? asked : pair->counts;
  listener listen = {.L = L, .on_text = read_function(L, "on_text"), .on_done = read_function(L, "on_done")};
  listen.brief = flag(L, "brief", false);
  listen.on_logprobs = read_function(L, "on_logprobs");
  if (listen.on_text) request.on_text = on_text;
  if (listen.on_logprobs) request.on_logprobs = on_logprobs;
  request.done = on_done, request.user = &listen;
  size_t answers = (size_t)request.n * (size_t)(request.answers > 0 ? request.answers : 1);
  dtl_result *results = lua_newuserdatauv(L, sizeof *results * (answers + 1), 0);
  luaL_checkstack(L, 10, "generate");

  dt_error err;
  dtl_policy *policy;
  if (dtl_policy_open(&options, &policy, &err)) return driver_policy_failure(L, &err);
  dt_status status = generate_prompts(L, pair, policy, &request, counts, trace, results, &err);
  dtl_policy_close(policy);
  if (listen.failed) return lua_error(L);
  driver_check_interrupt(L);
  if (status) return driver_policy_failure(L, &err);
  lua_pushboolean(L, true);
  return 1;
}
