/* Policies in drivers: the options that choose a policy, and its description. */
#include "driver/driver.h"

#include "files/user_files.h"
#include "measure/tuned.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Returns a field of the options table at index 2 as a string, which lives as long as the table. */
static const char *string_option(lua_State *L, const char *key, size_t *len) {
  lua_getfield(L, 2, key);
  const char *text = lua_isnil(L, -1) ? NULL : luaL_checklstring(L, -1, len);
  lua_pop(L, 1);
  return text;
}

/* Reads settings, a list of {name, text}, into an array that stays on the stack. */
static void read_settings(lua_State *L, dtl_policy_options *options) {
  lua_getfield(L, 2, "settings");
  int list = lua_gettop(L);
  options->n_settings = (int)luaL_len(L, list);
  dtl_setting *settings = lua_newuserdatauv(L, sizeof *settings * (size_t)(options->n_settings + 1), 0);
  for (int i = 0; i < options->n_settings; i++) {
    lua_rawgeti(L, list, i + 1);
    lua_rawgeti(L, -1, 1);
    lua_rawgeti(L, -2, 2);
    settings[i] = (dtl_setting){.name = luaL_checkstring(L, -2), .value = luaL_checkstring(L, -1)};
    lua_pop(L, 3);
  }
  options->settings = settings;
}

static double number_option(lua_State *L, const char *key) {
  lua_getfield(L, 2, key);
  double value = luaL_optnumber(L, -1, 0);
  lua_pop(L, 1);
  return value;
}

dtl_policy_options driver_policy_options(lua_State *L) {
  dtl_policy_options options = {.pair = driver_pair(L, 1)->pair,
                                .policy = string_option(L, "policy", NULL),
                                .preset = string_option(L, "preset", NULL),
                                .seconds = number_option(L, "policy_seconds"),
                                .interrupt = driver_interrupt(L)};
  options.source = string_option(L, "source", &options.source_len);
  read_settings(L, &options);
  return options;
}

static void set_string(lua_State *L, const char *key, const char *value) {
  lua_pushstring(L, value); /* NULL: nil */
  lua_setfield(L, -2, key);
}

static void set_texts(lua_State *L, const char *key, const char *const *texts, int n) {
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    lua_pushstring(L, texts[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, key);
}

static void push_description(lua_State *L, const dtl_policy_info *info) {
  lua_createtable(L, 0, 8);
  set_string(L, "name", info->name);
  set_string(L, "doc", info->doc);
  set_string(L, "path", info->path);
  set_string(L, "source", info->source);
  lua_pushboolean(L, info->draft == DTL_NEEDS_DRAFT);
  lua_setfield(L, -2, "needs_draft");
  lua_pushboolean(L, info->draft != DTL_NO_DRAFT);
  lua_setfield(L, -2, "uses_draft");
  set_texts(L, "presets", info->presets, info->n_presets);
  lua_createtable(L, info->n_params, 0);
  for (int i = 0; i < info->n_params; i++) {
    const dtl_param *p = &info->params[i];
    lua_createtable(L, 0, 9);
    set_string(L, "name", p->name);
    set_string(L, "doc", p->doc);
    set_string(L, "type", p->type);
    set_string(L, "value", p->value);
    set_string(L, "range", p->range);
    set_string(L, "min", p->min);
    set_string(L, "max", p->max);
    set_texts(L, "one_of", p->one_of, p->n_one_of);
    set_texts(L, "tune", p->tune, p->n_tune);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "params");
}

int driver_pair_policy(lua_State *L) {
  dtl_policy_options options = driver_policy_options(L);
  dtl_policy *policy;
  dt_error err;
  if (dtl_policy_open(&options, &policy, &err)) return driver_policy_failure(L, &err);
  push_description(L, dtl_policy_describe(policy));
  dtl_policy_close(policy);
  return 1;
}

int driver_pair_save_tuned(lua_State *L) {
  char *path =
      tuned_path(driver_pair(L, 1)->pair, luaL_checkstring(L, 2), lua_toboolean(L, 3) ? DTL_ANY_DRAFT : DTL_NO_DRAFT);
  if (!path) {
    lua_pushnil(L);
    lua_pushliteral(L, "no folder for presets: set XDG_CONFIG_HOME or HOME");
    return 2;
  }
  int code = user_store(path, luaL_checkstring(L, 4)) ? 0 : errno;
  if (code) lua_pushnil(L);
  if (code)
    lua_pushfstring(L, "%s: %s", path, strerror(code));
  else
    lua_pushstring(L, path);
  free(path);
  return code ? 2 : 1;
}
