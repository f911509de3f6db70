/* Modules of a policy: while the policy file is being loaded, require "name" runs the file name.lua next to it, in the
 * same box and within the time limit of the same call. The watch does not see compiling, so all files together may have
 * only POLICY_TEXT bytes; a file that does not compile counts, too. */
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

/* The module's value is on top of the stack. */
static int end_require(lua_State *L, int status, lua_KContext context) {
  (void)status, (void)context;
  if (lua_isnil(L, -1)) lua_pushboolean(L, true);
  lua_pushvalue(L, 1);
  lua_pushvalue(L, -2);
  lua_rawset(L, lua_upvalueindex(1));
  return 1;
}

static const struct box_module *find(const box_modules *modules, const char *path) {
  for (int i = 0; modules && i < modules->n; i++)
    if (!strcmp(modules->list[i].path, path)) return &modules->list[i];
  return NULL;
}

/* Adds a module, which owns `text` from now on. NULL: out of memory. */
static const struct box_module *add(box_modules *modules, const char *path, char *text, size_t len) {
  struct box_module *grown = realloc(modules->list, sizeof *grown * (size_t)(modules->n + 1));
  char *copy = strdup(path);
  if (grown) modules->list = grown;
  if (!grown || !copy) {
    free(copy), free(text);
    return NULL;
  }
  grown[modules->n] = (struct box_module){copy, text, len};
  return &grown[modules->n++];
}

/* The module's text, whose bytes are counted. Once the policy is open the text never changes, even if its file does. */
static const struct box_module *read_module(lua_State *L, dtl_box *box, const char *path) {
  dt_error err;
  size_t len;
  const struct box_module *m = find(box->modules, path);
  if (!m && !box->reads) luaL_error(L, "require: %s was not required when the policy was opened", path);
  if (!m) {
    char *text;
    if (dtl_read_file("module", path, box->source_left, &text, &len, &err)) luaL_error(L, "require: %s", err.message);
    m = add(box->reads, path, text, len);
    if (!m) luaL_error(L, "require: out of memory: %s", path);
  }
  box->source_left -= m->len;
  identity_module(path, m->text, m->len, box->source);
  return m;
}

int box_require_file(lua_State *L) {
  dtl_box *box = box_of(L);
  size_t name_len;
  const char *name = lua_tolstring(L, 1, &name_len), *slash = strrchr(box->path, '/');
  char path[4096], chunk[4096 + 1];
  if (!is_name(name, name_len))
    return luaL_error(L, "require: expected \"dt.policy\", or \"NAME\" for the file NAME.lua next to the policy file");
  if (!box->has_folder)
    return luaL_error(L, "require: '%s' is not loaded: only a policy file can require other files, while it is loaded",
                      name);
  int folder = slash ? (int)(slash - box->path) + 1 : 0;
  if (snprintf(path, sizeof path, "%.*s%s.lua", folder, box->path, name) >= (int)sizeof path)
    return luaL_error(L, "require: '%s': the path is too long", name);
  snprintf(chunk, sizeof chunk, "@%s", path);
  lua_pushvalue(L, 1);
  lua_pushboolean(L, false); /* marks a module that is not loaded yet: requiring it now would be circular */
  lua_rawset(L, lua_upvalueindex(1));
  const struct box_module *m = read_module(L, box, path);
  int status = luaL_loadbufferx(L, m->text, m->len, chunk, "t");
  box_look(L);
  if (status != LUA_OK) return lua_error(L);
  lua_callk(L, 0, 1, 0, end_require);
  return end_require(L, LUA_OK, 0);
}
