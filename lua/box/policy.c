/* Opening policies: the file's text becomes an object in a box, with its parameters set. The rules for parameters are in
 * lua/dt/policy/; here is what must happen outside the box. */
#include "box/policy.h"

#include "box/sandbox.h"
#include "files/files.h"
#include "files/identity.h"
#include "files/json_text.h"
#include "measure/tuned.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

#define SOURCE_MAX (64u << 10) /* compiling takes up to the square of it, and is not watched */

/* Registers p, which may be NULL, to be freed with the policy. NULL when out of memory. */
static void *own(dtl_policy *policy, void *p) {
  char **grown = p ? realloc(policy->owned, (size_t)(policy->n_owned + 1) * sizeof *grown) : NULL;
  if (!grown) {
    free(p);
    return NULL;
  }
  policy->owned = grown;
  grown[policy->n_owned++] = p;
  return p;
}

void dtl_policy_close(dtl_policy *policy) {
  if (!policy) return;
  box_close(&policy->box);
  for (int i = 0; i < policy->n_owned; i++) free(policy->owned[i]);
  free(policy->owned);
  free(policy->params_json);
  free(policy);
}

const dtl_policy_info *dtl_policy_describe(const dtl_policy *policy) { return policy ? &policy->info : NULL; }

typedef struct {
  dtl_policy *policy;
  const dtl_policy_options *options;
  const char *source;
  size_t len;
  preset tuned; /* what DTL_TUNED stands for, if that is asked for */
  int status;
} opening;

/* Moves what is above index `base` from the main thread onto co. */
static void hand_over(lua_State *L, lua_State *co, int base) { lua_xmove(L, co, lua_gettop(L) - base); }

/* Compiles the text onto co: on failure the message is there. */
static int load_chunk(lua_State *L) {
  opening *o = lua_touserdata(L, 1);
  dtl_box *box = &o->policy->box;
  const char *name = lua_pushfstring(L, "@%s", o->policy->info.path);
  const char *text = o->source;
  size_t len = o->len;
  if (len >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3)) text += 3, len -= 3;
  if (len > 0 && text[0] == '#') /* the line of an interpreter; its end is kept, so that lines count right */
    while (len > 0 && *text != '\n') text++, len--;
  if (luaL_loadbufferx(L, "", 0, name, "t")) lua_error(L);
  lua_Debug ar;
  lua_getinfo(L, ">S", &ar);
  memcpy(box->chunk, ar.short_src, sizeof box->chunk);
  o->status = luaL_loadbufferx(box->co, text, len, name, "t");
  return 0;
}

/* Pushes {{name, text}, ...}. */
static void push_settings(lua_State *L, const dtl_setting *settings, int n) {
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    lua_createtable(L, 2, 0);
    lua_pushstring(L, settings[i].name);
    lua_rawseti(L, -2, 1);
    lua_pushstring(L, settings[i].value);
    lua_rawseti(L, -2, 2);
    lua_rawseti(L, -2, i + 1);
  }
}

/* Pushes the host's function `name` and the file's value, which stays on co. */
static void push_call(lua_State *L, lua_State *co, const char *name) {
  sandbox_push_host(L);
  lua_getfield(L, -1, name);
  lua_settop(co, 1); /* a file without a value: nil */
  lua_pushvalue(co, 1);
  lua_xmove(co, L, 1);
}

/* The need of a draft on top: true, false or "optional". */
static dtl_need take_need(lua_State *L) {
  dtl_need need = lua_isstring(L, -1) ? DTL_ANY_DRAFT : lua_toboolean(L, -1) ? DTL_NEEDS_DRAFT : DTL_NO_DRAFT;
  lua_pop(L, 1);
  return need;
}

/* co: the file's value. */
static int read_need(lua_State *L) {
  opening *o = lua_touserdata(L, 1);
  push_call(L, o->policy->box.co, "draft");
  lua_call(L, 1, 1);
  o->policy->info.draft = take_need(L);
  return 0;
}

/* co: the file's value -> host.open, that value, preset (its name, or settings), settings. */
static int prepare_open(lua_State *L) {
  opening *o = lua_touserdata(L, 1);
  lua_State *co = o->policy->box.co;
  push_call(L, co, "open");
  lua_settop(co, 0);
  if (o->tuned.settings)
    push_settings(L, o->tuned.settings, o->tuned.n);
  else
    lua_pushstring(L, o->options->preset); /* NULL: nil */
  push_settings(L, o->options->settings, o->options->n_settings);
  hand_over(L, co, lua_gettop(L) - 4);
  return 0;
}

/* The string on top, copied. */
static char *copy_text(lua_State *L, dtl_policy *policy) {
  char *copy = own(policy, strdup(luaL_checkstring(L, -1)));
  if (!copy) luaL_error(L, "out of memory");
  return copy;
}

/* The string field `key` of the table on top, copied; NULL where there is none. */
static char *field(lua_State *L, dtl_policy *policy, const char *key) {
  char *copy = lua_getfield(L, -1, key) == LUA_TNIL ? NULL : copy_text(L, policy);
  lua_pop(L, 1);
  return copy;
}

/* One that is only shown. */
static const char *clean_field(lua_State *L, dtl_policy *policy, const char *key) {
  char *copy = field(L, policy, key);
  if (copy) dtl_clean(copy, strlen(copy) + 1, copy, strlen(copy));
  return copy;
}

static bool is_set(lua_State *L, const char *key) {
  lua_getfield(L, -1, key);
  bool set = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return set;
}

static void *field_array(lua_State *L, dtl_policy *policy, const char *key, size_t size, int *n) {
  lua_getfield(L, -1, key);
  *n = (int)lua_rawlen(L, -1);
  void *array = own(policy, calloc((size_t)*n + 1, size));
  if (!array) luaL_error(L, "out of memory");
  return array; /* the table stays on the stack */
}

/* The list of strings at `key`, copied. */
static const char *const *field_texts(lua_State *L, dtl_policy *policy, const char *key, int *n) {
  const char **texts = field_array(L, policy, key, sizeof *texts, n);
  for (int i = 0; i < *n; i++) {
    lua_rawgeti(L, -1, i + 1);
    texts[i] = copy_text(L, policy);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return texts;
}

/* co: object, description -> main thread: object, host; the description is copied. */
static int take_object(lua_State *L) {
  opening *o = lua_touserdata(L, 1);
  dtl_policy *policy = o->policy;
  dtl_policy_info *info = &policy->info;
  lua_State *co = policy->box.co;
  lua_xmove(co, L, 2); /* object, description: host.open made it, so its fields are what they should be */
  info->name = clean_field(L, policy, "name");
  info->doc = clean_field(L, policy, "doc");
  info->uses_costs = is_set(L, "costs");
  info->uses_memory = is_set(L, "memory");
  info->uses_corpus = is_set(L, "corpus");
  info->batch = is_set(L, "batch");
  lua_getfield(L, -1, "target");
  info->candidates = (int)lua_tointeger(L, -1);
  lua_pop(L, 1);
  info->presets = field_texts(L, policy, "presets", &info->n_presets);
  dtl_param *params = field_array(L, policy, "params", sizeof *params, &info->n_params);
  info->params = params;
  for (int i = 0; i < info->n_params; i++) {
    lua_rawgeti(L, -1, i + 1);
    params[i].name = field(L, policy, "name");
    params[i].doc = clean_field(L, policy, "doc");
    params[i].type = field(L, policy, "type");
    params[i].value = field(L, policy, "value");
    params[i].range = clean_field(L, policy, "range");
    params[i].min = field(L, policy, "min");
    params[i].max = field(L, policy, "max");
    params[i].one_of = field_texts(L, policy, "one_of", &params[i].n_one_of);
    params[i].tune = field_texts(L, policy, "tune", &params[i].n_tune);
    lua_pop(L, 1);
  }
  lua_pop(L, 2); /* params, description */
  sandbox_push_host(L);
  lua_replace(L, 1);
  lua_insert(L, 1); /* object, host */
  return 2;
}

static char *params_json(const dtl_policy_info *info) {
  json_text out = {0};
  json_raw(&out, "{");
  for (int i = 0; i < info->n_params; i++) {
    const dtl_param *p = &info->params[i];
    if (i) json_raw(&out, ",");
    json_string(&out, p->name, strlen(p->name));
    json_raw(&out, ":");
    if (!p->value)
      json_raw(&out, "null");
    else if (!strcmp(p->type, "string") || !strcmp(p->type, "list"))
      json_string(&out, p->value, strlen(p->value));
    else
      json_raw(&out, p->value);
  }
  json_raw(&out, "}");
  return json_finish(&out);
}

static int seed(lua_State *L) {
  dtl_policy *policy = lua_touserdata(L, 1);
  sandbox_seed(L, policy->seed, 0);
  return 0;
}

static bool out_of_memory(const opening *o, dtl_error *err) {
  return dtl_fail(err, DTL_DEVICE, "out of memory: policy %s", o->options->policy);
}

/* What the preset "tuned" stands for, if that is asked for. */
static bool find_tuned(opening *o, dtl_error *err) {
  const dtl_policy_options *options = o->options;
  if (!options->pair || !options->preset || strcmp(options->preset, DTL_TUNED)) return true;
  return tuned_read(options->pair, &o->policy->info, options->policy, &o->tuned, err);
}

/* Everything that happens in the box. */
static bool open_in_box(opening *o, dtl_error *err) {
  dtl_policy *policy = o->policy;
  dtl_box *box = &policy->box;
  if (!box_host(box, seed, policy, 0, err) || !box_host(box, load_chunk, o, 0, err)) return false;
  if (o->status != LUA_OK) return box_load_failed(box, err);
  identity_text(o->source, o->len, box->source);
  box->source_left = SOURCE_MAX - o->len;
  box->has_folder = !o->options->source;
  if (!box_call(box, "its file", 1, 0, err)) return false;
  box->has_folder = false;
  memcpy(policy->info.source, box->source, sizeof box->source);
  if (!box_host(box, read_need, o, 0, err) || !find_tuned(o, err) || !box_host(box, prepare_open, o, 0, err))
    return false;
  if (!box_call(box, "check", 1, 3, err)) return false;
  if (lua_isnil(box->co, 1)) return dtl_fail(err, DTL_INPUT, "%s", lua_tostring(box->co, 2));
  if (!box_host(box, take_object, o, 2, err)) return false;
  return (policy->params_json = params_json(&policy->info)) || out_of_memory(o, err);
}

/* The text of the policy; that of its file is malloc'd in *text. */
static bool find_source(opening *o, char **text, dtl_error *err) {
  const dtl_policy_options *options = o->options;
  char *path = options->source ? strdup(options->policy) : dtl_locate("policy", "policies", options->policy, err);
  if (!path) return options->source ? out_of_memory(o, err) : false;
  if (!(o->policy->info.path = own(o->policy, path))) return out_of_memory(o, err);
  o->source = options->source, o->len = options->source_len;
  if (!options->source) o->source = *text = dtl_read_file("policy", path, SOURCE_MAX, &o->len, err);
  if (o->len > SOURCE_MAX)
    return dtl_fail(err, DTL_INPUT, "%s: cannot take the policy: %zu bytes are more than %u", path, o->len, SOURCE_MAX);
  return o->source != NULL;
}

static bool check_options(const dtl_policy_options *options, dtl_error *err) {
  NEED(options, "options");
  NEED(options->policy, "policy");
  NEED_LIST(options->settings, options->n_settings, "settings");
  for (int i = 0; i < options->n_settings; i++) {
    NEED(options->settings[i].name, "a setting's name");
    NEED(options->settings[i].value, "a setting's value");
  }
  if (!(options->seconds >= 0))
    return dtl_fail(err, DTL_INPUT, "policy: %g seconds, expected 0 (any time) or more", options->seconds);
  return true;
}

static int fill_box(lua_State *L) {
  sandbox_install(L);
  return 0;
}

static bool open_box(dtl_policy *policy, double seconds, dtl_error *err) {
  dtl_box *box = &policy->box;
  return box_open(box, policy->info.path, seconds, err) && box_host(box, fill_box, NULL, 0, err);
}

bool dtl_policy_open(const dtl_policy_options *options, dtl_policy **out, dtl_error *err) {
  NEED(out, "out");
  if (!check_options(options, err)) return false;
  dtl_policy *policy = calloc(1, sizeof *policy);
  opening o = {.policy = policy, .options = options};
  char *text = NULL;
  if (!policy) return out_of_memory(&o, err);
  policy->seed = options->seed;
  bool ok = find_source(&o, &text, err) && open_box(policy, options->seconds, err);
  if (ok) {
    policy->box.interrupt = options->interrupt;
    ok = open_in_box(&o, err);
  }
  free(text);
  preset_free(&o.tuned);
  if (ok)
    *out = policy;
  else
    dtl_policy_close(policy);
  return ok;
}
