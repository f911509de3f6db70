/* Objects for policies: see object.h. */
#include "box/object.h"

#include "box/box.h"

#include <stdlib.h>
#include <string.h>

/* The number of letters to insert, delete or change to turn a into b (Levenshtein). If it is above `most`, the result
 * is any number above `most`. */
static int distance(const char *a, const char *b, int most) {
  enum { LONGEST = 24 };
  int n = (int)strlen(a), m = (int)strlen(b), row[LONGEST + 1];
  if (n > LONGEST || m > LONGEST || abs(n - m) > most) return most + 1;
  for (int j = 0; j <= m; j++) row[j] = j;
  for (int i = 1; i <= n; i++) {
    int diagonal = row[0];
    row[0] = i;
    for (int j = 1; j <= m; j++) {
      int change = diagonal + ((a[i - 1] | 32) != (b[j - 1] | 32)); /* ignores case */
      diagonal = row[j];
      int other = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
      row[j] = change < other ? change : other;
    }
  }
  return row[m];
}

int object_no_field(lua_State *L, const char *kind, const char *const *names, int n) {
  static const char *const helpers[] = {"expand", "calibration", NULL}; /* functions of dt.policy that take a tree */
  const char *nearest = NULL;
  box_look(L);
  if (lua_type(L, 2) != LUA_TSTRING) return luaL_error(L, "%s has no field [%s]", kind, luaL_typename(L, 2));
  const char *name = lua_tostring(L, 2);
  int best = strlen(name) > 4 ? 3 : 2; /* this distance is too far */
  for (int i = 0; i < n; i++) {
    int d = distance(name, names[i], best);
    bool first = d == best && nearest && strcmp(names[i], nearest) < 0; /* names may come in any order */
    if (d < best || first) best = d, nearest = names[i];
  }
  if (nearest) return luaL_error(L, "%s has no '%s': did you mean '%s'?", kind, name, nearest);
  for (int i = 0; helpers[i]; i++)
    if (!strcmp(name, helpers[i])) return luaL_error(L, "%s has no '%s': did you mean policy.%s?", kind, name, name);
  return luaL_error(L, "%s has no '%s'", kind, name);
}

#define MOST_METHODS 64

/* __index of a table of methods: (methods, name), for the kind in upvalue 1. */
static int unknown_method(lua_State *L) {
  const char *names[MOST_METHODS];
  int n = 0;
  for (lua_pushnil(L); n < MOST_METHODS && lua_next(L, 1); lua_pop(L, 1)) names[n++] = lua_tostring(L, -2);
  return object_no_field(L, lua_pushfstring(L, "a %s", lua_tostring(L, lua_upvalueindex(1))), names, n);
}

void object_name_unknown(lua_State *L, const char *name) {
  lua_createtable(L, 0, 1);
  lua_pushstring(L, name);
  lua_pushcclosure(L, unknown_method, 1);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
}

void object_make(lua_State *L, const char *name, const luaL_Reg *methods) {
  lua_newtable(L);
  luaL_setfuncs(L, methods, 0); /* object, methods */
  object_name_unknown(L, name);
  lua_createtable(L, 0, 3);
  lua_pushvalue(L, -2);
  lua_setfield(L, -2, "__index");
  lua_pushstring(L, name);
  lua_setfield(L, -2, "__name");
  lua_pushboolean(L, false);
  lua_setfield(L, -2, "__metatable");
  lua_setmetatable(L, -3);
}

void object_make_type(lua_State *L, const char *name, const luaL_Reg *methods) {
  if (luaL_newmetatable(L, name)) {
    lua_newtable(L);
    luaL_setfuncs(L, methods, 0);
    object_name_unknown(L, name);
    lua_setfield(L, -2, "__index");
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "__metatable");
  }
  lua_setmetatable(L, -2);
}

lua_Integer object_integer(lua_State *L, int i, const char *who, const char *what) {
  int exact = 0;
  lua_Integer value = lua_type(L, i) == LUA_TNUMBER ? lua_tointegerx(L, i, &exact) : 0;
  if (!exact)
    luaL_error(L, "%s: %s must be an integer, not %s", who, what,
               lua_type(L, i) == LUA_TNUMBER ? "a fraction" : luaL_typename(L, i));
  return value;
}
