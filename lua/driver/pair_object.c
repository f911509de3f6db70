/* Pairs and prefixes in drivers: userdata that own an object of the engine, which is freed by close, by __close or by
 * the garbage collector. */
#include "driver/driver.h"
#include "dtrun_fake.h"

#include "lookup/corpus.h"

#include <stdlib.h>
#include <string.h>

/* The userdata is made before the object that it owns, since making it may raise an error. */
static pair_object *push_pair(lua_State *L, int context) {
  pair_object *p = lua_newuserdatauv(L, sizeof *p, 0);
  *p = (pair_object){.context = context};
  luaL_setmetatable(L, PAIR_TYPE);
  if (!(p->memory = dtl_memory_open())) luaL_error(L, "out of memory: the memory of policies");
  return p;
}

static void free_prefix(prefix_object *prefix) {
  if (!prefix->prefix) return;
  dt_prefix_free(prefix->prefix);
  prefix->prefix = NULL;
  *prefix->link = prefix->next;
  if (prefix->next) prefix->next->link = prefix->link;
}

static int collect_prefix(lua_State *L) {
  free_prefix(luaL_checkudata(L, 1, PREFIX_TYPE));
  return 0;
}

int driver_pair_close(lua_State *L) {
  pair_object *p = luaL_checkudata(L, 1, PAIR_TYPE);
  if (p->busy) luaL_argerror(L, 1, "the pair is generating");
  while (p->prefixes) free_prefix(p->prefixes);
  free(p->costs);
  p->costs = NULL;
  dtl_learned_close(p->learned), p->learned = NULL;
  dtl_corpus_close(p->corpus), p->corpus = NULL;
  dtl_memory_close(p->memory), p->memory = NULL;
  dt_pair_close(p->pair);
  p->pair = NULL;
  return 0;
}

int driver_pair_bandwidth(lua_State *L) {
  lua_pushnumber(L, dt_pair_bandwidth(driver_idle_pair(L, 1)->pair));
  return 1;
}

/* A driver is a program, so it may print progress; a library that another language loads may not. */
int driver_pair_open(lua_State *L) {
  driver_check_interrupt(L);
  const request_input *in = driver_request(L, 1);
  dtl_load_options options = in->load;
  options.need = DTL_ANY_DRAFT;
  options.shown = driver_interrupt(L) != NULL;
  options.how.rope.context = in->request.context;
  pair_object *p = push_pair(L, in->request.context);
  bool found;
  dt_error err;
  return dtl_load(&options, &p->pair, &found, &err) ? driver_failure(L, &err) : 1;
}

/* (request) -> a table of dt_needs; or nil and a failure */
int driver_pair_needs(lua_State *L) {
  const request_input *in = driver_request(L, 1);
  dtl_load_options options = in->load;
  options.how.rope.context = in->request.context;
  dt_needs needs;
  dt_error err;
  if (dtl_needs(&options, &needs, &err)) return driver_failure(L, &err);
  const struct {
    const char *name;
    lua_Integer value;
  } facts[] = {{"layers", needs.layers},
               {"context", needs.context},
               {"weights", (lua_Integer)needs.weights},
               {"caches", (lua_Integer)needs.caches},
               {"scratch", (lua_Integer)needs.scratch},
               {"host", (lua_Integer)needs.host},
               {"free", (lua_Integer)needs.free},
               {"gpu_layers", needs.gpu_layers},
               {"cpu_experts", needs.cpu_experts}};
  lua_newtable(L);
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
    lua_pushinteger(L, facts[i].value);
    lua_setfield(L, -2, facts[i].name);
  }
  return 1;
}

int driver_pair_read(lua_State *L) {
  pair_object *p = driver_idle_pair(L, 1);
  int n = (int)luaL_len(L, 2);
  const char **files = lua_newuserdatauv(L, sizeof *files * (size_t)(n + 1), 0);
  luaL_checkstack(L, n + 8, "files");
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, 2, i + 1);
    files[i] = luaL_checkstring(L, -1); /* stays on the stack */
  }
  dtl_corpus *corpus;
  dt_error err;
  if (dtl_corpus_open(p->pair, files, n, &corpus, &err)) return driver_failure(L, &err);
  dtl_corpus_close(p->corpus);
  p->corpus = corpus;
  lua_pushboolean(L, true);
  return 1;
}

int driver_pair_forget(lua_State *L) {
  dtl_memory_forget(driver_idle_pair(L, 1)->memory);
  return 0;
}

/* Reads the rules at index i, a list of {context = {ids}, token = {ids}, p = {numbers}}. Its arrays are userdata, which
 * stay on the stack. */
static const dt_fake_rule *fake_rules(lua_State *L, int i, int *n) {
  luaL_checktype(L, i, LUA_TTABLE);
  *n = (int)lua_rawlen(L, i);
  dt_fake_rule *rules = lua_newuserdatauv(L, sizeof *rules * (size_t)(*n + 1), 0);
  luaL_checkstack(L, *n * 3 + 8, "rules");
  for (int r = 0; r < *n; r++) {
    lua_rawgeti(L, i, r + 1);
    int rule = lua_gettop(L);
    lua_getfield(L, rule, "context");
    lua_getfield(L, rule, "token");
    lua_getfield(L, rule, "p"); /* rule, context, token, p */
    int context_len = (int)lua_rawlen(L, rule + 1), count = (int)lua_rawlen(L, rule + 2);
    int32_t *ids = lua_newuserdatauv(L, sizeof *ids * (size_t)(context_len + count + 1), 0);
    float *p = lua_newuserdatauv(L, sizeof *p * (size_t)(count + 1), 0);
    for (int k = 0; k < context_len + count; k++) {
      lua_rawgeti(L, k < context_len ? rule + 1 : rule + 2, k < context_len ? k + 1 : k - context_len + 1);
      ids[k] = driver_int(L, -1, "a token id", -1);
      lua_pop(L, 1);
    }
    for (int k = 0; k < count; k++) {
      lua_rawgeti(L, rule + 3, k + 1);
      p[k] = (float)luaL_checknumber(L, -1);
      lua_pop(L, 1);
    }
    rules[r] =
        (dt_fake_rule){.context = ids, .context_len = context_len, .token = ids + context_len, .p = p, .count = count};
    lua_replace(L, rule + 1);
    lua_replace(L, rule);
    lua_settop(L, rule + 1);
  }
  return rules;
}

static double number_at(lua_State *L, int list, int i) {
  lua_rawgeti(L, list, i);
  double x = luaL_checknumber(L, -1);
  lua_pop(L, 1);
  return x;
}

/* Reads {first, row, bytes} at index i, or nil. */
static dt_fake_times fake_times(lua_State *L, int i) {
  if (!lua_istable(L, i)) return (dt_fake_times){0};
  return (dt_fake_times){number_at(L, i, 1), number_at(L, i, 2), (uint64_t)number_at(L, i, 3)};
}

/* Reads {{from, to, factor}, ..} at index i, or nil, into a userdata that stays on the stack. */
static const dt_fake_delay *fake_delays(lua_State *L, int i, int *n) {
  *n = lua_istable(L, i) ? (int)lua_rawlen(L, i) : 0;
  dt_fake_delay *delays = lua_newuserdatauv(L, sizeof *delays * (size_t)(*n + 1), 0);
  for (int k = 0; k < *n; k++) {
    lua_rawgeti(L, i, k + 1);
    int list = lua_gettop(L);
    delays[k] = (dt_fake_delay){(int)number_at(L, list, 1), (int)number_at(L, list, 2), number_at(L, list, 3)};
    lua_pop(L, 1);
  }
  return delays;
}

int driver_pair_fake(lua_State *L) {
  dt_fake_options options = {.vocab = driver_int(L, 1, "vocab", 0),
                             .context = driver_int(L, 2, "context", 0),
                             .draft_context = driver_int(L, 3, "draft_context", 0),
                             .eos = driver_int(L, 4, "eos", -1),
                             .layers = driver_int(L, 7, "experts: layers", 0),
                             .experts = driver_int(L, 8, "experts: of", 0),
                             .chosen = driver_int(L, 9, "experts: chosen", 0),
                             .kept = (float)luaL_optnumber(L, 10, 0),
                             .target_times = fake_times(L, 11),
                             .draft_times = fake_times(L, 12)};
  options.delays = fake_delays(L, 13, &options.n_delays);
  options.target = fake_rules(L, 5, &options.n_target);
  options.no_draft = lua_isboolean(L, 6);
  if (!options.no_draft) options.draft = fake_rules(L, 6, &options.n_draft);
  pair_object *p = push_pair(L, options.context); /* the context was given, so it is not reduced */
  dt_error engine;
  return dt_pair_open_fake(&options, &p->pair, &engine) ? driver_failure(L, &engine) : 1;
}

static void set_model(lua_State *L, const char *key, const dt_model_info *model) {
  if (!model->path) return;
  lua_createtable(L, 0, 5);
  lua_pushstring(L, model->path);
  lua_setfield(L, -2, "path");
  const struct {
    const char *name;
    int value;
  } numbers[] = {{"vocab", model->vocab},
                 {"context", model->context},
                 {"layers", model->layers},
                 {"hidden", model->hidden},
                 {"block", model->block}};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    lua_pushinteger(L, numbers[i].value);
    lua_setfield(L, -2, numbers[i].name);
  }
  lua_setfield(L, -2, key);
}

int driver_pair_describe(lua_State *L) {
  dt_pair_info info;
  const pair_object *p = driver_pair(L, 1);
  dt_pair_describe(p->pair, &info);
  lua_createtable(L, 0, 14);
  set_model(L, "target", &info.target);
  set_model(L, "draft", &info.draft);
#define SET(name, of_draft) lua_pushstring(L, info.name), lua_setfield(L, -2, #name);
  DT_PAIR_FACTS(SET)
#undef SET
  lua_pushstring(L, p->counts);
  lua_setfield(L, -2, "costs");
  lua_pushstring(L, info.backend);
  lua_setfield(L, -2, "backend");
  lua_pushinteger(L, info.threads);
  lua_setfield(L, -2, "threads");
  lua_pushnumber(L, info.load_ms);
  lua_setfield(L, -2, "load_ms");
  if (p->corpus) {
    lua_pushfstring(L, "%d tokens %s", (int)p->corpus->index.n, p->corpus->hash);
    lua_setfield(L, -2, "corpus");
  }
  lua_pushinteger(L, info.shared_vocab);
  lua_setfield(L, -2, "shared_vocab");
  return 1;
}

int driver_pair_encode(lua_State *L) {
  pair_object *p = driver_pair(L, 1);
  size_t len;
  const char *text = luaL_checklstring(L, 2, &len);
  int32_t *ids;
  int n;
  dt_error engine;
  if (dt_encode(p->pair, text, len, &ids, &n, &engine)) return driver_failure(L, &engine);
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    lua_pushinteger(L, ids[i]);
    lua_rawseti(L, -2, i + 1);
  }
  free(ids);
  return 1;
}

int driver_pair_decode(lua_State *L) {
  pair_object *p = driver_pair(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  dt_pair_info info;
  dt_pair_describe(p->pair, &info);
  size_t n = lua_rawlen(L, 2), len;
  int32_t *ids = lua_newuserdatauv(L, sizeof *ids * (n + 1), 0);
  for (size_t i = 0; i < n; i++) {
    lua_rawgeti(L, 2, (lua_Integer)i + 1);
    lua_Integer id = luaL_checkinteger(L, -1);
    if (id < 0 || id >= info.target.vocab)
      return luaL_error(L, "decode: token %I is out of range: 0..%d", (LUAI_UACINT)id, info.target.vocab - 1);
    ids[i] = (int32_t)id;
    lua_pop(L, 1);
  }
  char *text = dt_decode(p->pair, ids, (int)n, true, &len);
  if (!text) return luaL_error(L, "out of memory");
  lua_pushlstring(L, text, len);
  free(text);
  return 1;
}

int driver_pair_prefix(lua_State *L) {
  driver_check_interrupt(L);
  pair_object *p = driver_pair(L, 1);
  size_t len = 0;
  int n_given = 0;
  const bool is_text = !lua_istable(L, 2);
  const char *text = is_text ? luaL_checklstring(L, 2, &len) : NULL;
  const int32_t *given = is_text ? NULL : driver_ids(L, 2, &n_given); /* stays on the stack */
  prefix_object *prefix = lua_newuserdatauv(L, sizeof *prefix, 1);
  *prefix = (prefix_object){.owner = p};
  luaL_setmetatable(L, PREFIX_TYPE);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1); /* keeps the pair alive */
  dt_pair_info info;
  dt_pair_describe(p->pair, &info);
  dt_session_options options = {.sequences = 1,
                                .context = p->context,
                                .use_draft = info.draft.path != NULL,
                                .window = {driver_int(L, 3, "window", 0), driver_int(L, 4, "sinks", 0)}};
  dt_seq_options seq = {.max_tokens = -1};
  dt_session *session = NULL;
  int32_t *ids = NULL;
  int n = n_given;
  dt_error engine;
  dt_status status = is_text ? dt_encode(p->pair, text, len, &ids, &n, &engine) : DT_OK;
  if (!status) status = dt_session_open(p->pair, &options, &session, &engine);
  if (!status) status = dt_seq_start(session, 0, is_text ? ids : given, n, &seq, &engine);
  if (!status) status = dt_prefix_take(session, 0, &prefix->prefix, &engine);
  free(ids);
  dt_session_close(session);
  if (status) return driver_failure(L, &engine);
  prefix->next = p->prefixes;
  if (prefix->next) prefix->next->link = &prefix->next;
  prefix->link = &p->prefixes;
  p->prefixes = prefix;
  return 1;
}

void driver_pair_types(lua_State *L) {
  static const luaL_Reg pair[] = {{"__gc", driver_pair_close}, {"__close", driver_pair_close}, {NULL, NULL}};
  static const luaL_Reg prefix[] = {{"__gc", collect_prefix}, {"__close", collect_prefix}, {NULL, NULL}};
  luaL_newmetatable(L, PAIR_TYPE);
  luaL_setfuncs(L, pair, 0);
  luaL_newmetatable(L, PREFIX_TYPE);
  luaL_setfuncs(L, prefix, 0);
  lua_pop(L, 2);
}
