/* Modules of a policy: require "name" is the file name.lua beside the policy's own, run in the same box and on the account of
 * the same call, while the policy's file itself runs. Compiling is not watched, so all files together have no more bytes than
 * one may have; what fails to compile counts, too. */
#include "box/require.h"

#include "box/box.h"
#include "files/files.h"
#include "files/identity.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LENGTH 64

static bool is_name(const char *name, size_t len) {
  return len > 0 && len <= NAME_MAX_LENGTH && name[0] != '-' &&
         strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == len;
}

/* What the file gave is on top. */
static int end_require(lua_State *L, int status, lua_KContext context) {
  (void)status, (void)context;
  if (lua_isnil(L, -1)) lua_pushboolean(L, true);
  lua_pushvalue(L, 1);
  lua_pushvalue(L, -2);
  lua_rawset(L, lua_upvalueindex(1));
  return 1;
}

/* The file's text, counted: malloc'd. */
static char *read_module(lua_State *L, dtl_box *box, const char *path, size_t *len) {
  dtl_error err;
  char *text = dtl_read_file("module", path, box->source_left, len, &err);
  if (!text) luaL_error(L, "require: %s", err.message);
  box->source_left -= *len;
  identity_module(path, text, *len, box->source);
  return text;
}

int box_require_file(lua_State *L) {
  dtl_box *box = box_of(L);
  size_t name_len, len;
  const char *name = lua_tolstring(L, 1, &name_len), *slash = strrchr(box->path, '/');
  char path[4096], chunk[4096 + 1];
  if (!is_name(name, name_len))
    return luaL_error(L, "require: a module is dt.policy, or a file beside the policy: NAME for NAME.lua");
  if (!box->has_folder)
    return luaL_error(L, "require: '%s' is not loaded: a policy's file requires what lies beside it when it is read",
                      name);
  int folder = slash ? (int)(slash - box->path) + 1 : 0;
  if (snprintf(path, sizeof path, "%.*s%s.lua", folder, box->path, name) >= (int)sizeof path)
    return luaL_error(L, "require: '%s': the path is too long", name);
  snprintf(chunk, sizeof chunk, "@%s", path);
  lua_pushvalue(L, 1);
  lua_pushboolean(L, false); /* until it is there: who requires it again goes in a circle */
  lua_rawset(L, lua_upvalueindex(1));
  char *text = read_module(L, box, path, &len);
  int status = luaL_loadbufferx(L, text, len, chunk, "t");
  free(text);
  box_look(L);
  if (status != LUA_OK) return lua_error(L);
  lua_callk(L, 0, 1, 0, end_require);
  return end_require(L, LUA_OK, 0);
}
