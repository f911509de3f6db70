/* The globals of the box. Functions are listed, never whole libraries: a function that is not named here does not exist
 * in the state. Functions that could run for long in C, or reach data outside the box, are replaced by checked ones. */
#include "box/sandbox.h"

#include "box/box.h"
#include "box/calibration_object.h"
#include "box/embedded.h"
#include "box/require.h"
#include "system/os.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <string.h>

#define ARGUMENTS_MAX 255   /* for functions that take any number of arguments, each of which may be a long numeral */
#define TABLE_MAX (1 << 20) /* more elements than the memory holds: a table with this length is an attack */
#define PRINT_CALL 4096
#define PRINT_RUN 65536
#define MOST_NAMES 64 /* maximum number of a library's names in a message */
#define LONGEST_NAME 40

static const char *const base_names[] = {"assert",   "error",  "getmetatable", "ipairs", "next",   "pcall",
                                         "rawequal", "rawget", "rawlen",       "rawset", "select", "tonumber",
                                         "tostring", "type",   "_VERSION",     NULL};
static const char *const math_names[] = {"abs", "acos",       "asin", "atan", "ceil", "cos", "deg",
                                         "exp", "floor",      "fmod", "huge", "log",  "max", "maxinteger",
                                         "min", "mininteger", "modf", "pi",   "rad",  "sin", "sqrt",
                                         "tan", "tointeger",  "type", "ult",  NULL};
static const char *const string_names[] = {"byte", "char", "format", "len", "lower", "reverse", "sub", "upper", NULL};
static const char *const table_names[] = {"concat", "insert", "remove", "unpack", NULL};
static const char *const utf8_names[] = {"char", "charpattern", "codepoint", "codes", "len", "offset", NULL};

static char seed_key, host_key; /* their addresses are keys of the registry */

/* ---- checked functions ------------------------------------------------------------------------------------------- */

/* Upvalue 1 is a function of the library. The checked function checks that the call has time left and then runs it in
 * its own frame, so that its messages name function and line as usual. */
static int original(lua_State *L) { return lua_tocfunction(L, lua_upvalueindex(1))(L); }

static int watched(lua_State *L) {
  box_look(L);
  return original(L);
}

static int few_arguments(lua_State *L) {
  box_look(L);
  if (lua_gettop(L) > ARGUMENTS_MAX) return luaL_error(L, "more than %d arguments are not allowed", ARGUMENTS_MAX);
  return original(L);
}

static int plain_table(lua_State *L) {
  box_look(L);
  luaL_checktype(L, 1, LUA_TTABLE);
  if (lua_getmetatable(L, 1)) luaL_argerror(L, 1, "the table has a metatable");
  if (lua_rawlen(L, 1) > TABLE_MAX) luaL_argerror(L, 1, "the table is too long");
  return original(L);
}

/* The comparator is called by a Lua function, so that every comparison counts instructions; upvalue 2 makes that
 * function. */
static int sort(lua_State *L) {
  lua_settop(L, 2);
  if (!lua_isnil(L, 2)) luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_pushvalue(L, lua_upvalueindex(2));
  lua_insert(L, 2);
  lua_call(L, 1, 1);
  return plain_table(L);
}

/* For an empty string without a separator, the library's function would count to n, however large n is. */
static int rep(lua_State *L) {
  size_t len, sep_len;
  box_look(L);
  luaL_checklstring(L, 1, &len);
  lua_Integer n = luaL_checkinteger(L, 2);
  luaL_optlstring(L, 3, "", &sep_len);
  if (n <= 0 || len + sep_len == 0) {
    lua_pushliteral(L, "");
    return 1;
  }
  if (len + sep_len > BOX_STRING || (lua_Unsigned)n > BOX_STRING / (len + sep_len))
    return luaL_error(L, "string.rep: the result is longer than %d bytes", (int)BOX_STRING);
  return original(L);
}

/* Upvalue 1: the checked `next`. */
static int pairs(lua_State *L) {
  box_look(L);
  luaL_checkany(L, 1);
  if (luaL_getmetafield(L, 1, "__pairs") == LUA_TNIL) {
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, 1);
    lua_pushnil(L);
  } else {
    lua_pushvalue(L, 1);
    lua_call(L, 1, 3);
  }
  return 3;
}

/* ---- functions of our own ---------------------------------------------------------------------------------------- */

/* Metamethods that do not exist in the box, because the watch cannot bound their time. Lua calls finalizers unwatched.
 * Clearing weak tables and shifting the arguments of chained __call takes the square of their number within one
 * instruction. And it calls __close while it unwinds the stack. */
static const char *const no_metamethods[] = {"__call", "__close", "__gc", "__mode", NULL};

/* Removes these metamethods from one Lua state. Lua 5.4 creates their names once per state and finds a metamethod by
 * the address of its name. A short string (up to 40 bytes) exists only once, so lua_pushstring returns that very
 * string, which is overwritten with random bytes. When a policy then writes "__gc", Lua makes a new string at another
 * address, which it never looks for. tests/lua/bad/ tests this; box.c compiles with Lua 5.4 only. */
static void forget_metamethods(lua_State *L) {
  luaL_Buffer large; /* the first buffer makes the metatable of all buffers, which needs __gc and __close */
  luaL_buffinitsize(L, &large, 2 * LUAL_BUFFERSIZE);
  luaL_pushresultsize(&large, 0);
  lua_pop(L, 1);
  for (const char *const *name = no_metamethods; *name; name++) {
    char *bytes = (char *)lua_pushstring(L, *name);
    size_t n = strlen(*name);
    if (!os_random(bytes, n)) memset(bytes, 1, n);
    lua_pop(L, 1);
  }
}

static int set_metatable(lua_State *L) {
  box_look(L);
  for (const char *const *name = no_metamethods; *name && lua_istable(L, 2); name++) {
    lua_pushstring(L, *name);
    if (lua_rawget(L, 2) != LUA_TNIL)
      return luaL_argerror(L, 2, lua_pushfstring(L, "'%s' is not available to a policy", *name));
    lua_pop(L, 1);
  }
  return original(L);
}

static int print(lua_State *L) {
  dtl_box *box = box_of(L);
  char line[PRINT_CALL];
  size_t used = 0;
  int n = lua_gettop(L);
  box_look(L);
  for (int i = 1; i <= n && used + 1 < sizeof line; i++) {
    size_t len;
    const char *text = luaL_tolstring(L, i, &len);
    if (i > 1) line[used++] = '\t';
    used += dtl_clean(line + used, sizeof line - used, text, len);
    lua_pop(L, 1);
  }
  if (box->quiet || box->printed >= PRINT_RUN) return 0;
  box->printed += used + 1;
  if (box->begin_line) box->begin_line();
  fprintf(stderr, "%.*s\n%s", (int)used, line,
          box->printed >= PRINT_RUN ? "(the policy's further output is not shown)\n" : "");
  return 0;
}

/* Upvalue 1: the loaded modules. */
static int require(lua_State *L) {
  box_look(L);
  const char *name = luaL_checkstring(L, 1);
  lua_settop(L, 1);
  lua_pushvalue(L, 1);
  int type = lua_rawget(L, lua_upvalueindex(1));
  if (type == LUA_TBOOLEAN && !lua_toboolean(L, 2))
    return luaL_error(L, "require: '%s' failed before, or requires itself", name);
  if (type != LUA_TNIL) return 1;
  lua_settop(L, 1);
  return box_require_file(L);
}

/* Pushes the text keys of the table on top, sorted, separated by ", "; at most MOST_NAMES of them. */
static void push_names(lua_State *L) {
  const char *names[MOST_NAMES];
  int n = 0, table = lua_gettop(L);
  for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
    if (n == MOST_NAMES || lua_type(L, -2) != LUA_TSTRING || lua_rawlen(L, -2) > LONGEST_NAME) continue;
    int at = n++;
    for (const char *name = lua_tostring(L, -2); at >= 0; at--) {
      if (at > 0 && strcmp(names[at - 1], name) > 0) {
        names[at] = names[at - 1];
      } else {
        names[at] = name;
        break;
      }
    }
  }
  luaL_Buffer list;
  luaL_buffinit(L, &list);
  for (int i = 0; i < n; i++) {
    if (i) luaL_addstring(&list, ", ");
    luaL_addstring(&list, names[i]);
  }
  luaL_pushresult(&list);
}

/* (library, name); upvalue 1 is the library's name. */
static int missing(lua_State *L) {
  box_look(L);
  const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : luaL_typename(L, 2);
  lua_settop(L, 2);
  lua_pushvalue(L, 1);
  push_names(L);
  return luaL_error(L, "%s.%s does not exist for policies; %s has: %s", lua_tostring(L, lua_upvalueindex(1)), name,
                    lua_tostring(L, lua_upvalueindex(1)), lua_tostring(L, -1));
}

/* Makes the library on top raise an error for names that it does not have. */
static void name_missing(lua_State *L, const char *name) {
  lua_createtable(L, 0, 2);
  lua_pushstring(L, name);
  lua_pushcclosure(L, missing, 1);
  lua_setfield(L, -2, "__index");
  lua_pushboolean(L, false);
  lua_setfield(L, -2, "__metatable");
  lua_setmetatable(L, -2);
}

/* Global variables of Lua, or of earlier versions, that the box does not have. */
static const char *const absent[] = {"io",     "os",     "debug",          "package", "coroutine",  "load", "loadfile",
                                     "dofile", "xpcall", "collectgarbage", "warn",    "loadstring", NULL};

static int undefined(lua_State *L) {
  const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : luaL_typename(L, 2);
  for (const char *const *other = absent; *other; other++)
    if (!strcmp(*other, name))
      return luaL_error(L, "undefined variable '%s': policies may use only what policies/REFERENCE.md lists", name);
  return luaL_error(L, "undefined variable '%s'", name);
}

/* ---- libraries --------------------------------------------------------------------------------------------------- */

/* Adds the library's function `name` to the selection, as a closure of f. Stack: library, selection. */
static void check_field(lua_State *L, const char *name, lua_CFunction f) {
  lua_getfield(L, -2, name);
  lua_pushcclosure(L, f, 1);
  lua_setfield(L, -2, name);
}

/* Opens a library and pushes it, and then a table with the selected functions, each as a closure of f. */
static void open_library(lua_State *L, lua_CFunction open, const char *const *names, lua_CFunction f) {
  lua_pushcfunction(L, open);
  lua_call(L, 0, 1);
  lua_newtable(L);
  for (; *names; names++) {
    if (lua_getfield(L, -2, *names) == LUA_TFUNCTION) lua_pushcclosure(L, f, 1);
    lua_setfield(L, -2, *names);
  }
}

static void push_base(lua_State *L) {
  open_library(L, luaopen_base, base_names, watched);
  check_field(L, "setmetatable", set_metatable);
  lua_getfield(L, -1, "next");
  lua_pushcclosure(L, pairs, 1);
  lua_setfield(L, -2, "pairs");
  lua_pushcfunction(L, print);
  lua_setfield(L, -2, "print");
  lua_remove(L, -2);
}

static void push_string(lua_State *L) {
  open_library(L, luaopen_string, string_names, few_arguments);
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
  static const char comparator[] = "local less = ...\n"
                                   "if less then return function(a, b) return (less(a, b)) end end\n"
                                   "return function(a, b) return a < b end";
  open_library(L, luaopen_table, table_names, plain_table);
  check_field(L, "pack", watched);
  lua_getfield(L, -2, "sort");
  if (luaL_loadbufferx(L, comparator, sizeof comparator - 1, "=sort", "t")) lua_error(L);
  lua_pushcclosure(L, sort, 2);
  lua_setfield(L, -2, "sort");
  lua_remove(L, -2);
}

static void push_math(lua_State *L) {
  open_library(L, luaopen_math, math_names, few_arguments);
  lua_getfield(L, -2, "random"); /* unchanged, since its state is in an upvalue; it takes two arguments */
  lua_setfield(L, -2, "random");
  lua_getfield(L, -2, "randomseed");
  lua_rawsetp(L, LUA_REGISTRYINDEX, &seed_key);
  lua_remove(L, -2);
}

static void push_utf8(lua_State *L) {
  open_library(L, luaopen_utf8, utf8_names, few_arguments);
  lua_remove(L, -2);
}

/* (hint): dt.policy calls it when a policy reads a field of its object that is nil but resembles an existing one. */
static int note_missing(lua_State *L) {
  char *hint = box_of(L)->hint;
  if (!*hint) snprintf(hint, BOX_HINT, "%s", luaL_checkstring(L, 1));
  return 0;
}

/* Runs the embedded modules; stack: globals, modules. Each module can require the ones before it; policies can require
 * only the last, dt.policy. */
static void load_modules(lua_State *L) {
  const char *name, *last = "";
  for (int i = 0; (name = embedded_load_for_box(L, i)); i++) {
    lua_call(L, 0, 2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &host_key); /* dt.policy's */
    lua_setfield(L, -2, name);
    last = name;
  }
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
    if (!strcmp(lua_tostring(L, -2), last)) continue;
    lua_pushvalue(L, -2);
    lua_pushnil(L);
    lua_settable(L, -5);
  }
  sandbox_push_host(L);
  lua_pushcfunction(L, note_missing);
  lua_setfield(L, -2, "note_missing");
  lua_pop(L, 1);
  lua_getfield(L, -1, last);
  box_calibration_push(L);
  lua_setfield(L, -2, "calibration");
  lua_pop(L, 1);
}

void sandbox_install(lua_State *L) {
  forget_metamethods(L);
  push_base(L);
  lua_pushvalue(L, -1);
  lua_setfield(L, -2, "_G");
  push_string(L);
  name_missing(L, "string");
  lua_setfield(L, -2, "string");
  push_table(L);
  name_missing(L, "table");
  lua_setfield(L, -2, "table");
  push_math(L);
  name_missing(L, "math");
  lua_setfield(L, -2, "math");
  push_utf8(L);
  name_missing(L, "utf8");
  lua_setfield(L, -2, "utf8");
  lua_newtable(L); /* globals, modules */
  lua_pushvalue(L, -1);
  lua_pushcclosure(L, require, 1);
  lua_setfield(L, -3, "require");
  lua_pushvalue(L, -2);
  lua_rawseti(L, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS); /* nothing refers to the full libraries any more */
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
