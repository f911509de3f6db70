/* Fields of requests and pairs in drivers: reads the table of request/fields.h from Lua. */
#include "driver/driver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int collect(lua_State *L) {
  request_input *in = luaL_checkudata(L, 1, REQUEST_TYPE);
  request_free(in);
  memset(in, 0, sizeof *in);
  return 0;
}

void driver_request_type(lua_State *L) {
  static const luaL_Reg functions[] = {{"__gc", collect}, {"__close", collect}, {NULL, NULL}};
  luaL_newmetatable(L, REQUEST_TYPE);
  luaL_setfuncs(L, functions, 0);
  lua_pop(L, 1);
}

request_input *driver_request(lua_State *L, int i) { return luaL_checkudata(L, i, REQUEST_TYPE); }

/* Where values are read from and to. */
typedef struct {
  lua_State *L;
  request_input *in;
  int object;          /* stack index of the userdata that keeps the texts alive */
  const dt_pair *pair; /* the pair whose tokens the biases name; NULL: there is none */
  dt_error *err;
} source;

static dt_status expected(const source *s, const char *name, const char *what) {
  int type = lua_type(s->L, -1);
  bool plain = type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TBOOLEAN;
  return plain ? dtl_fail(s->err, DT_EINPUT, "%s: %.60s is not %s", name, luaL_tolstring(s->L, -1, NULL), what)
               : dtl_fail(s->err, DT_EINPUT, "%s: a %s is not %s", name, lua_typename(s->L, type), what);
}

/* Returns the text on top of the stack if it has no NUL; it lives as long as the userdata. NULL: it is not such a
 * text. */
static const char *kept_text(const source *s) {
  size_t len;
  const char *text = lua_tolstring(s->L, -1, &len);
  if (!text || strlen(text) != len) return NULL;
  lua_getiuservalue(s->L, s->object, 1);
  lua_pushvalue(s->L, -2);
  lua_rawseti(s->L, -2, (lua_Integer)lua_rawlen(s->L, -2) + 1);
  lua_pop(s->L, 1);
  return text;
}

static bool is_text(const source *s) { return lua_type(s->L, -1) == LUA_TSTRING; }

/* Calls `read` for each element of the list on top of the stack, with the element on top. */
static dt_status each(const source *s, const request_field *f, const char *name,
                      dt_status (*read)(const source *s, const request_field *f, const char *name)) {
  dt_status status = DT_OK;
  int n = (int)luaL_len(s->L, -1);
  for (int i = 1; i <= n && !status; i++) {
    lua_geti(s->L, -1, i);
    int top = lua_gettop(s->L);
    status = read(s, f, name);
    lua_settop(s->L, top - 1);
  }
  return status;
}

static dt_status read_text(const source *s, const request_field *f, const char *name) {
  const char *text = is_text(s) || lua_isinteger(s->L, -1) ? kept_text(s) : NULL;
  return text ? request_text(s->in, f, name, text, s->err) : expected(s, name, "a text without NUL");
}

/* {id or text, bias or false} */
static dt_status read_bias(const source *s, const request_field *f, const char *name) {
  static const char what[] = "{token's id or text, bias or false, which bans it}";
  (void)f;
  lua_State *L = s->L;
  dt_bias b = {.id = -1};
  size_t len;
  if (!lua_istable(L, -1) || luaL_len(L, -1) != 2) return expected(s, name, what);
  lua_geti(L, -1, 1);
  lua_geti(L, -2, 2);
  bool bans = lua_isboolean(L, -1) && !lua_toboolean(L, -1);
  if (!bans && lua_type(L, -1) != LUA_TNUMBER) return expected(s, name, what);
  b.bias = bans ? -INFINITY : (float)lua_tonumber(L, -1);
  lua_pop(L, 1);
  dt_status status = DT_OK;
  if (lua_isinteger(L, -1)) {
    lua_Integer id = lua_tointeger(L, -1);
    b.id = id < 0 || id > INT32_MAX ? -1 : (int32_t)id;
  } else if (is_text(s) && s->pair) {
    const char *text = lua_tolstring(L, -1, &len);
    status = dtl_token(s->pair, text, len, &b.id, s->err);
  } else {
    return expected(s, name, what);
  }
  return status ? status : request_add_bias(s->in, b, s->err);
}

/* Reads a whole number, or a text with one as in results, since Lua's integers end at 2^63 - 1. */
static dt_status read_seed(const source *s, const request_field *f, const char *name) {
  if (lua_isinteger(s->L, -1)) return request_seed(s->in, f, name, (uint64_t)lua_tointeger(s->L, -1));
  return is_text(s) ? read_text(s, f, name) : expected(s, name, "a whole number from 0 to 2^64 - 1");
}

static dt_status read_field(const source *s, const request_field *f, const char *name) {
  lua_State *L = s->L;
  switch (f->kind) {
  case FIELD_FLAG:
    return lua_isboolean(L, -1) ? request_flag(s->in, f, name, lua_toboolean(L, -1), s->err)
                                : expected(s, name, "true or false");
  case FIELD_WHOLE:
  case FIELD_LOGPROBS:
    return lua_isinteger(L, -1) ? request_number(s->in, f, name, (double)lua_tointeger(L, -1), s->err)
                                : expected(s, name, "an integer");
  case FIELD_REAL:
    return lua_type(L, -1) == LUA_TNUMBER ? request_number(s->in, f, name, lua_tonumber(L, -1), s->err)
                                          : expected(s, name, "a number");
  case FIELD_SEED: return read_seed(s, f, name);
  case FIELD_STOP: return lua_istable(L, -1) ? each(s, f, name, read_text) : read_text(s, f, name);
  case FIELD_BIAS: return lua_istable(L, -1) ? each(s, f, name, read_bias) : expected(s, name, "a list");
  default: break;
  }
  return read_text(s, f, name);
}

/* Pushes a userdata with the values of those fields in the table at index i that have a flag of `where`. */
static dt_status read_table(lua_State *L, int i, unsigned where, const dt_pair *pair, dt_error *err) {
  request_input *in = lua_newuserdatauv(L, sizeof *in, 1);
  memset(in, 0, sizeof *in);
  luaL_setmetatable(L, REQUEST_TYPE);
  source s = {.L = L, .in = in, .object = lua_gettop(L), .pair = pair, .err = err};
  lua_newtable(L);
  lua_setiuservalue(L, s.object, 1);
  dt_status status = DT_OK;
  for (int k = 0; request_field_at(k) && !status; k++) {
    const request_field *f = request_field_at(k);
    if (!(f->where & where)) continue;
    if (lua_getfield(L, i, f->name) != LUA_TNIL) status = read_field(&s, f, f->name);
    lua_settop(L, s.object);
  }
  return status ? status : request_check(in, err);
}

int driver_read_request(lua_State *L) {
  static const char *const places[] = {"generate", "load", NULL};
  const bool loads = luaL_checkoption(L, 2, NULL, places) == 1;
  dt_error err;
  luaL_checktype(L, 1, LUA_TTABLE);
  const dt_pair *pair = lua_isnoneornil(L, 3) ? NULL : driver_pair(L, 3)->pair;
  if (!read_table(L, 1, loads ? IN_LOAD : IN_DRIVER, pair, &err)) return 1;
  lua_pushnil(L);
  lua_pushstring(L, err.message);
  return 2;
}

int driver_read_text(lua_State *L) {
  const request_field *f = request_field_named(luaL_checkstring(L, 1), IN_SET | IN_DRIVER);
  const char *name = luaL_checkstring(L, 2), *text = luaL_checkstring(L, 3);
  dt_error err;
  if (!f) return luaL_error(L, "no field %s", lua_tostring(L, 1));
  request_input in = {0};
  dt_status status = request_text(&in, f, name, text, &err);
  if (!status) status = request_check(&in, &err);
  request_free(&in);
  if (status) {
    lua_pushnil(L);
    lua_pushstring(L, err.message);
    return 2;
  }
  if (!lua_stringtonumber(L, text))
    return luaL_error(L, "%s: no number", name); /* the number as it was typed, not converted to float */
  return 1;
}

int driver_fields(lua_State *L) {
  static const char *const places[] = {"generate", "load", NULL};
  const unsigned where = luaL_checkoption(L, 1, NULL, places) == 1 ? IN_LOAD : IN_DRIVER;
  lua_newtable(L);
  for (int i = 0; request_field_at(i); i++) {
    if (!(request_field_at(i)->where & where)) continue;
    lua_pushstring(L, request_field_at(i)->help ? request_field_at(i)->help : "");
    lua_setfield(L, -2, request_field_at(i)->name);
  }
  return 1;
}
