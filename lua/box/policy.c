/* Opens policies: makes an object of the policy once, to describe it and to refuse bad code, and frees the object. */
#include "box/policy.h"

#include "box/opened.h"
#include "files/files.h"
#include "files/json_text.h"
#include "measure/tuned.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

/* Registers p, which may be NULL, to be freed with the policy. Returns NULL if p is NULL or memory is out. */
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
  for (int i = 0; i < policy->n_owned; i++) free(policy->owned[i]);
  for (int i = 0; i < policy->modules.n; i++) free(policy->modules.list[i].path), free(policy->modules.list[i].text);
  free(policy->modules.list);
  free(policy->owned);
  free(policy->params_json);
  preset_free(&policy->tuned);
  free(policy);
}

const dtl_policy_info *dtl_policy_describe(const dtl_policy *policy) { return policy ? &policy->info : NULL; }

const char *dtl_policy_text(const dtl_policy *policy, size_t *len) {
  if (len) *len = policy ? policy->len : 0;
  return policy ? policy->text : NULL;
}

typedef struct {
  dtl_policy *policy;
  const dtl_policy_options *options;
  opened object;
} opening;

/* Pops uses.draft: true, false or "optional". */
static dtl_need take_need(lua_State *L) {
  dtl_need need = lua_isstring(L, -1) ? DTL_ANY_DRAFT : lua_toboolean(L, -1) ? DTL_NEEDS_DRAFT : DTL_NO_DRAFT;
  lua_pop(L, 1);
  return need;
}

/* Reads uses.draft of the policy; co has the file's value. */
static int read_need(lua_State *L) {
  const opening *o = lua_touserdata(L, 1);
  opened_push_call(L, o->object.box.co, "draft");
  lua_call(L, 1, 1);
  o->policy->info.draft = take_need(L);
  return 0;
}

/* Copies the string on top. */
static char *copy_text(lua_State *L, dtl_policy *policy) {
  char *copy = own(policy, strdup(luaL_checkstring(L, -1)));
  if (!copy) luaL_error(L, "out of memory");
  return copy;
}

/* Copies the string field `key` of the table on top; NULL: it has no such field. */
static char *field(lua_State *L, dtl_policy *policy, const char *key) {
  char *copy = lua_getfield(L, -1, key) == LUA_TNIL ? NULL : copy_text(L, policy);
  lua_pop(L, 1);
  return copy;
}

/* A field that is only shown: control characters are replaced. */
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

/* Copies the list of strings in the field `key` of the table on top. */
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

/* Copies the description; co has the object and the description, which host.open made, so its fields have the right
 * types. */
static int take_description(lua_State *L) {
  opening *o = lua_touserdata(L, 1);
  dtl_policy *policy = o->policy;
  dtl_policy_info *info = &policy->info;
  lua_xmove(o->object.box.co, L, 1);
  info->name = clean_field(L, policy, "name");
  info->doc = clean_field(L, policy, "doc");
  info->uses_costs = is_set(L, "costs");
  info->uses_memory = is_set(L, "memory");
  info->uses_corpus = is_set(L, "corpus");
  info->corpus_optional = is_set(L, "corpus_optional");
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
  return 0;
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

static dt_status out_of_memory(const opening *o, dt_error *err) {
  return dtl_fail(err, DT_ENOMEM, "out of memory: policy %s", o->options->policy);
}

/* Reads the settings of the preset "tuned", if it is wanted. */
static dt_status find_tuned(const opening *o, dt_error *err) {
  const dtl_policy_options *options = o->options;
  if (!options->pair || !options->preset || strcmp(options->preset, DTL_TUNED)) return DT_OK;
  return tuned_read(options->pair, &o->policy->info, options->policy, &o->policy->tuned, err);
}

static dt_status describe(opening *o, dt_error *err) {
  dtl_policy *policy = o->policy;
  dtl_box *box = &o->object.box;
  dt_status status = opened_run_file(&o->object, policy, 0, o->options->interrupt, &policy->modules, err);
  if (status) return status;
  memcpy(policy->info.source, box->source, sizeof box->source);
  status = box_host(box, read_need, o, 0, err);
  if (!status) status = find_tuned(o, err);
  if (!status) status = opened_make_object(&o->object, err);
  if (!status) status = box_host(box, take_description, o, 0, err);
  if (!status && !(policy->params_json = params_json(&policy->info))) status = out_of_memory(o, err);
  return status;
}

static dt_status read_text(const opening *o, dt_error *err) {
  const dtl_policy_options *options = o->options;
  dtl_policy *p = o->policy;
  char *path = NULL, *text = NULL;
  dt_status status = DT_OK;
  if (options->source)
    path = strdup(options->policy);
  else
    status = dtl_locate("policy", "policies", options->policy, &path, err);
  if (status) return status;
  if (!(p->info.path = own(p, path))) return out_of_memory(o, err);
  p->len = options->source_len;
  p->has_folder = !options->source;
  if (p->len > POLICY_TEXT)
    return dtl_fail(err, DT_EINPUT, "%s: the policy has %zu bytes, more than the maximum of %u", path, p->len,
                    POLICY_TEXT);
  if (options->source)
    text = malloc(p->len + 1);
  else
    status = dtl_read_file("policy", path, POLICY_TEXT, &text, &p->len, err);
  if (status) return status;
  if (text && options->source) memcpy(text, options->source, p->len);
  return (p->text = own(p, text)) ? DT_OK : out_of_memory(o, err);
}

/* A copy that the policy owns. NULL: out of memory, or text is NULL. */
static char *own_text(dtl_policy *policy, const char *text) { return text ? own(policy, strdup(text)) : NULL; }

static dt_status copy_options(const opening *o, dt_error *err) {
  const dtl_policy_options *options = o->options;
  dtl_policy *p = o->policy;
  dtl_setting *settings = own(p, calloc((size_t)options->n_settings + 1, sizeof *settings));
  bool ok = settings;
  for (int i = 0; ok && i < options->n_settings; i++) {
    settings[i].name = own_text(p, options->settings[i].name);
    settings[i].value = own_text(p, options->settings[i].value);
    ok = settings[i].name && settings[i].value;
  }
  p->settings = settings, p->n_settings = options->n_settings;
  p->seconds = options->seconds;
  p->call_ms = options->call_seconds > 0 ? options->call_seconds * 1e3 : BOX_MILLISECONDS;
  p->init_times = options->call_seconds > 0 ? 1 : BOX_INIT;
  p->quiet = options->quiet;
  p->preset = own_text(p, options->preset);
  return ok && (p->preset || !options->preset) ? DT_OK : out_of_memory(o, err);
}

static dt_status check_options(const dtl_policy_options *options, dt_error *err) {
  NEED(options, "options");
  NEED(options->policy, "policy");
  NEED_LIST(options->settings, options->n_settings, "settings");
  for (int i = 0; i < options->n_settings; i++) {
    NEED(options->settings[i].name, "a setting's name");
    NEED(options->settings[i].value, "a setting's value");
  }
  if (!(options->seconds >= 0))
    return dtl_fail(err, DT_EINPUT, "policy: seconds = %g, expected 0 (no limit) or more", options->seconds);
  if (!(options->call_seconds >= 0))
    return dtl_fail(err, DT_EINPUT, "policy: call_seconds = %g, expected 0 (the default) or more",
                    options->call_seconds);
  return DT_OK;
}

dt_status dtl_policy_open(const dtl_policy_options *options, dtl_policy **out, dt_error *err) {
  NEED(out, "out");
  dt_status status = check_options(options, err);
  if (status) return status;
  dtl_policy *policy = calloc(1, sizeof *policy);
  opening o = {.policy = policy, .options = options};
  if (!policy) return out_of_memory(&o, err);
  status = copy_options(&o, err);
  if (!status) status = read_text(&o, err);
  if (!status) status = describe(&o, err);
  opened_close(&o.object);
  if (status)
    dtl_policy_close(policy);
  else
    *out = policy;
  return status;
}
