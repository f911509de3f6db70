/* Part of dt.core: what the files of a target and of its drafts say. */
#include "driver/driver.h"
#include "files/identity.h"
#include "models/found.h"
#include "models/hub.h"

#include <stdlib.h>

static void set_text(lua_State *L, const char *key, const char *text) {
  lua_pushstring(L, text);
  lua_setfield(L, -2, key);
}

static void set_number(lua_State *L, const char *key, uint64_t value) {
  lua_pushinteger(L, (lua_Integer)value);
  lua_setfield(L, -2, key);
}

/* Pushes a model's path, digest and bytes. */
static void push_model(lua_State *L, const char *path, uint64_t bytes) {
  char digits[DIGEST_TEXT];
  lua_newtable(L);
  identity_model(path, digits);
  set_text(L, "path", path);
  set_text(L, "digest", digits);
  set_number(L, "bytes", bytes);
}

static void set_read(lua_State *L, const dt_model_facts *facts) {
  set_number(L, "pass", facts->pass);
  set_number(L, "output", facts->output);
  set_number(L, "all_experts", facts->all_experts);
  set_number(L, "experts", (uint64_t)facts->experts);
  set_number(L, "chosen_experts", (uint64_t)facts->chosen_experts);
}

static void push_draft(lua_State *L, const found_one *draft) {
  dt_model_facts facts;
  push_model(L, draft->path, draft->bytes);
  set_text(L, "kind", draft->fit == DT_FITS_HEAD ? "head" : "model");
  if (draft->fit == DT_FITS_MODEL && !dt_model_look(draft->path, &facts, NULL)) set_read(L, &facts);
}

int driver_drafts(lua_State *L) {
  dt_model_facts facts;
  dt_error err;
  char *path;
  int n;
  dt_status status = hub_path(luaL_checkstring(L, 1), &path, &err);
  if (!status && (status = dt_model_look(path, &facts, &err))) free(path);
  if (status) return driver_failure(L, &err);
  push_model(L, path, facts.bytes);
  set_text(L, "name", facts.name);
  set_read(L, &facts);
  lua_pushboolean(L, dt_has_mtp(path));
  lua_setfield(L, -2, "mtp");
  found_one *drafts = found_all(path, FOUND_ANY, &n);
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    push_draft(L, &drafts[i]);
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "drafts");
  found_free(drafts, n);
  free(path);
  return 1;
}
