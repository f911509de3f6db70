/* self.memory of a policy that declares uses.memory: memory:get(key) -> value, memory:set(key, value) -> whether there
 * was room, memory:room() -> bytes. It stores copies of plain data: keys are integers or strings; values are numbers,
 * strings, booleans or lists of numbers. */
#include "box/memory_object.h"
#include "box/box.h"
#include "box/object.h"

#include <lauxlib.h>
#include <string.h>

#define MEMORY_TYPE "memory"

/* A value is stored as a letter for its type followed by its bytes; a list as its letter followed by each number with
 * its own letter. */

static memory_table *check(lua_State *L, const char *who) {
  memory_table **object = luaL_testudata(L, 1, MEMORY_TYPE);
  box_look(L);
  if (!object) luaL_error(L, "%s: not called as a method of a memory", who);
  return *object;
}

static void put_number(lua_State *L, int i, unsigned char *to) {
  lua_Integer integer = lua_tointeger(L, i);
  lua_Number number = lua_tonumber(L, i);
  to[0] = lua_isinteger(L, i) ? 'i' : 'n';
  memcpy(to + 1, lua_isinteger(L, i) ? (const void *)&integer : (const void *)&number, 8);
}

static const unsigned char *push_number(lua_State *L, const unsigned char *from) {
  lua_Integer integer;
  lua_Number number;
  memcpy(&integer, from + 1, 8), memcpy(&number, from + 1, 8);
  if (from[0] == 'i')
    lua_pushinteger(L, integer);
  else
    lua_pushnumber(L, number);
  return from + 9;
}

/* Writes the list at index i. */
static size_t put_list(lua_State *L, int i, unsigned char *to) {
  lua_Unsigned n = lua_rawlen(L, i), keys = 0;
  if (lua_getmetatable(L, i)) return (size_t)luaL_error(L, "memory:set: value: the table has a metatable");
  if (n > MEMORY_LIST) luaL_error(L, "memory:set: value: the list has more than %d numbers", MEMORY_LIST);
  for (lua_pushnil(L); lua_next(L, i); lua_pop(L, 1)) keys++;
  if (keys != n) luaL_error(L, "memory:set: value: the table is not a list of numbers");
  to[0] = 'l';
  for (lua_Unsigned k = 0; k < n; k++) {
    if (lua_rawgeti(L, i, (lua_Integer)k + 1) != LUA_TNUMBER)
      luaL_error(L, "memory:set: value: item %d is a %s, not a number", (int)k + 1, luaL_typename(L, -1));
    put_number(L, -1, to + 1 + 9 * k);
    lua_pop(L, 1);
  }
  return 1 + 9 * (size_t)n;
}

/* The bytes of the string at index i, in a userdata that stays on the stack. */
static memory_bytes put_string(lua_State *L, int i) {
  size_t len;
  const char *text = lua_tolstring(L, i, &len);
  char *bytes = lua_newuserdatauv(L, len + 1, 0);
  bytes[0] = 's';
  memcpy(bytes + 1, text, len);
  return (memory_bytes){bytes, len + 1};
}

static memory_bytes key_of(lua_State *L, const char *who, unsigned char small[9]) {
  if (lua_type(L, 2) == LUA_TSTRING) return put_string(L, 2);
  int exact = 0;
  lua_Integer key = lua_type(L, 2) == LUA_TNUMBER ? lua_tointegerx(L, 2, &exact) : 0;
  if (!exact)
    luaL_error(L, "%s: a key is an integer or a string, not %s", who,
               lua_type(L, 2) == LUA_TNUMBER ? "a fraction" : luaL_typename(L, 2));
  small[0] = 'i';
  memcpy(small + 1, &key, 8);
  return (memory_bytes){small, 9};
}

static memory_bytes value_of(lua_State *L, unsigned char small[1 + 9 * MEMORY_LIST]) {
  switch (lua_type(L, 3)) {
  case LUA_TSTRING: return put_string(L, 3);
  case LUA_TBOOLEAN: small[0] = 'b', small[1] = (unsigned char)lua_toboolean(L, 3); return (memory_bytes){small, 2};
  case LUA_TNUMBER: put_number(L, 3, small); return (memory_bytes){small, 9};
  case LUA_TTABLE: return (memory_bytes){small, put_list(L, 3, small)};
  default:
    luaL_error(L, "memory:set: a value is a number, a string, a boolean, a list of numbers or nil, not a %s",
               luaL_typename(L, 3));
    return (memory_bytes){0};
  }
}

static int memory_get_method(lua_State *L) {
  const memory_table *t = check(L, "memory:get");
  unsigned char small[9];
  memory_bytes value;
  lua_settop(L, 2);
  if (!memory_get(t, key_of(L, "memory:get", small), &value)) {
    lua_pushnil(L);
    return 1;
  }
  const unsigned char *at = value.bytes, *end = at + value.len;
  switch (*at) {
  case 's': lua_pushlstring(L, (const char *)at + 1, value.len - 1); break;
  case 'b': lua_pushboolean(L, at[1]); break;
  case 'l':
    lua_createtable(L, (int)(value.len / 9), 0);
    for (at++; at < end; lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1)) at = push_number(L, at);
    break;
  default: push_number(L, at);
  }
  return 1;
}

static int memory_set_method(lua_State *L) {
  memory_table *t = check(L, "memory:set");
  unsigned char small_key[9], small[1 + 9 * MEMORY_LIST];
  lua_settop(L, 3);
  memory_bytes key = key_of(L, "memory:set", small_key);
  if (lua_isnil(L, 3)) {
    memory_drop(t, key);
    lua_pushboolean(L, true);
  } else {
    lua_pushboolean(L, memory_set(t, key, value_of(L, small)));
  }
  return 1;
}

static int memory_room_method(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)memory_room(check(L, "memory:room")));
  return 1;
}

void box_memory_push(lua_State *L, memory_table *table) {
  static const luaL_Reg methods[] = {
      {"get", memory_get_method}, {"set", memory_set_method}, {"room", memory_room_method}, {NULL, NULL}};
  memory_table **object = lua_newuserdatauv(L, sizeof *object, 0);
  *object = table;
  object_make_type(L, MEMORY_TYPE, methods);
}
