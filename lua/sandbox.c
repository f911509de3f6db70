/* The globals of the box. Functions are listed, never libraries: what is not named here does not exist in the state. Those
 * that could run for long inside C, or reach what is not theirs, are replaced by checked ones. */
#include "box.h"
#include "embedded.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <string.h>

#define REP_MAX (1u << 20)
#define TABLE_MAX (1u << 20) /* more elements than the memory holds: such a length is a trick */
#define PRINT_CALL 4096
#define PRINT_RUN 65536

static const char *const base_names[] = {"assert",   "error",    "getmetatable", "ipairs",   "next",   "pairs",
                                         "pcall",    "rawequal", "rawget",       "rawlen",   "rawset", "select",
                                         "tonumber", "tostring", "type",         "_VERSION", NULL};
static const char *const math_names[] = {"abs",  "acos",       "asin",      "atan", "ceil", "cos",    "deg",
                                         "exp",  "floor",      "fmod",      "huge", "log",  "max",    "maxinteger",
                                         "min",  "mininteger", "modf",      "pi",   "rad",  "random", "sin",
                                         "sqrt", "tan",        "tointeger", "type", "ult",  NULL};
static const char *const string_names[] = {"byte", "char", "format", "len", "lower", "reverse", "sub", "upper", NULL};
static const char *const table_names[] = {"concat", "insert", "remove", "unpack", NULL};
static const char *const utf8_names[] = {"char", "charpattern", "codepoint", "codes", "len", "offset", NULL};

static char seed_key, host_key; /* their addresses are keys of the registry */

/* The checked functions run the original in their own frame, so its messages name function and place as ever. */
static int original(lua_State *L) { return lua_tocfunction(L, lua_upvalueindex(1))(L); }

static void check_plain_table(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  if (lua_getmetatable(L, 1)) luaL_argerror(L, 1, "a table with a metatable");
  if (lua_rawlen(L, 1) > TABLE_MAX) luaL_argerror(L, 1, "the table is too long");
}

static int plain_table(lua_State *L) {
  check_plain_table(L);
  return original(L);
}

/* Without a comparator of its own a sort would run unwatched: upvalue 2 is one in Lua. */
static int sort(lua_State *L) {
  check_plain_table(L);
  lua_settop(L, 2);
  if (lua_isnil(L, 2)) {
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_replace(L, 2);
  }
  return original(L);
}

static int rep(lua_State *L) {
  size_t len, sep_len;
  luaL_checklstring(L, 1, &len);
  lua_Integer n = luaL_checkinteger(L, 2);
  luaL_optlstring(L, 3, "", &sep_len);
  if (n <= 0 || len + sep_len == 0) {
    lua_pushliteral(L, "");
    return 1;
  }
  if (len + sep_len > REP_MAX || (lua_Unsigned)n > REP_MAX / (len + sep_len))
    return luaL_error(L, "string.rep: the result is longer than %d bytes", (int)REP_MAX);
  return original(L);
}

static int set_metatable(lua_State *L) {
  if (lua_istable(L, 2)) {
    lua_pushliteral(L, "__gc");
    if (lua_rawget(L, 2) != LUA_TNIL) return luaL_argerror(L, 2, "'__gc' is not available to a policy");
    lua_pop(L, 1);
  }
  return original(L);
}

static int print(lua_State *L) {
  dtl_box *box = box_of(L);
  char line[PRINT_CALL];
  size_t used = 0;
  int n = lua_gettop(L);
  for (int i = 1; i <= n; i++) {
    size_t len;
    const char *text = luaL_tolstring(L, i, &len);
    if (i > 1 && used + 1 < sizeof line) line[used++] = '\t';
    used += dtl_clean(line + used, sizeof line - used, text, len);
    lua_pop(L, 1);
  }
  if (box->printed >= PRINT_RUN) return 0;
  box->printed += used + 1;
  fprintf(stderr, "%.*s\n%s", (int)used, line,
          box->printed >= PRINT_RUN ? "(the policy's further output is not shown)\n" : "");
  return 0;
}

/* Upvalue 1: the loaded modules. */
static int require(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  lua_settop(L, 1);
  if (lua_rawget(L, lua_upvalueindex(1)) == LUA_TNIL)
    return luaL_error(L, "module '%s' is not available to a policy: there is dt.policy", name);
  return 1;
}

static int undefined(lua_State *L) {
  const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : luaL_typename(L, 2);
  return luaL_error(L, "undefined variable '%s'", name);
}

/* Copies the named fields of the table on top into a new table, which replaces it. */
static void select_fields(lua_State *L, const char *const *names) {
  lua_newtable(L);
  for (; *names; names++) {
    lua_getfield(L, -2, *names);
    lua_setfield(L, -2, *names);
  }
  lua_remove(L, -2);
}

/* Stack: library, selection. Puts closure f over the library's function into the selection. */
static void check_field(lua_State *L, const char *name, lua_CFunction f) {
  lua_getfield(L, -2, name);
  lua_pushcclosure(L, f, 1);
  lua_setfield(L, -2, name);
}

static void push_base(lua_State *L) {
  lua_pushcfunction(L, luaopen_base);
  lua_call(L, 0, 1);
  lua_pushvalue(L, -1);
  select_fields(L, base_names); /* library, selection */
  check_field(L, "setmetatable", set_metatable);
  lua_pushcfunction(L, print);
  lua_setfield(L, -2, "print");
  lua_remove(L, -2);
}

static void push_string(lua_State *L) {
  lua_pushcfunction(L, luaopen_string);
  lua_call(L, 0, 1);
  lua_pushvalue(L, -1);
  select_fields(L, string_names);
  check_field(L, "rep", rep);
  lua_remove(L, -2);
  lua_pushliteral(L, "");
  lua_getmetatable(L, -1); /* selection, "", metatable */
  lua_pushvalue(L, -3);
  lua_setfield(L, -2, "__index");
  lua_pushboolean(L, false);
  lua_setfield(L, -2, "__metatable");
  lua_pop(L, 2);
}

static void push_table(lua_State *L) {
  lua_pushcfunction(L, luaopen_table);
  lua_call(L, 0, 1);
  lua_newtable(L); /* library, selection */
  for (const char *const *name = table_names; *name; name++) check_field(L, *name, plain_table);
  lua_getfield(L, -2, "pack");
  lua_setfield(L, -2, "pack");
  lua_getfield(L, -2, "sort");
  if (luaL_loadbufferx(L, "local a, b = ... return a < b", 29, "=sort", "t")) lua_error(L);
  lua_pushcclosure(L, sort, 2);
  lua_setfield(L, -2, "sort");
  lua_remove(L, -2);
}

static void push_math(lua_State *L) {
  lua_pushcfunction(L, luaopen_math);
  lua_call(L, 0, 1);
  lua_getfield(L, -1, "randomseed");
  lua_rawsetp(L, LUA_REGISTRYINDEX, &seed_key);
  select_fields(L, math_names);
}

static void push_utf8(lua_State *L) {
  lua_pushcfunction(L, luaopen_utf8);
  lua_call(L, 0, 1);
  select_fields(L, utf8_names);
}

/* Runs the embedded modules that a policy may require; stack: globals, modules. */
static void load_modules(lua_State *L) {
  const char *name;
  for (int i = 0; (name = embedded_load_for_box(L, i)); i++) {
    lua_call(L, 0, 2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &host_key); /* of the last one, dt.policy */
    lua_setfield(L, -2, name);
  }
}

void sandbox_install(lua_State *L) {
  push_base(L);
  lua_pushvalue(L, -1);
  lua_setfield(L, -2, "_G");
  push_string(L);
  lua_setfield(L, -2, "string");
  push_table(L);
  lua_setfield(L, -2, "table");
  push_math(L);
  lua_setfield(L, -2, "math");
  push_utf8(L);
  lua_setfield(L, -2, "utf8");
  lua_newtable(L); /* globals, modules */
  lua_pushvalue(L, -1);
  lua_pushcclosure(L, require, 1);
  lua_setfield(L, -3, "require");
  lua_pushvalue(L, -2);
  lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS); /* the full libraries are garbage from here on */
  load_modules(L);
  lua_pop(L, 1);
  lua_newtable(L); /* globals, metatable */
  lua_pushcfunction(L, undefined);
  lua_setfield(L, -2, "__index");
  lua_pushboolean(L, false);
  lua_setfield(L, -2, "__metatable");
  lua_setmetatable(L, -2);
  lua_pop(L, 1);
  lua_pushnil(L);
  lua_setfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
}

void sandbox_seed(lua_State *L, uint64_t seed, int seq) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &seed_key);
  lua_pushinteger(L, (lua_Integer)seed);
  lua_pushinteger(L, seq);
  lua_call(L, 2, 0);
}

void sandbox_push_host(lua_State *L) { lua_rawgetp(L, LUA_REGISTRYINDEX, &host_key); }
