/* Conversations in drivers: turns lists of turns into prompts. */
#include "driver/driver.h"

#include <stdlib.h>

/* Writes the conversation on top of the stack, {turn, .., system =}, as the text of a prompt. All of its values are
 * texts. */
static dt_status make_text(lua_State *L, const dt_chat *chat, const char *date, dt_error *err) {
  int table = lua_gettop(L), n = (int)lua_rawlen(L, table);
  dt_message *turns = lua_newuserdatauv(L, sizeof *turns * (size_t)(n + 1), 0), system;
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, table, i + 1);
    turns[i].text = lua_tolstring(L, -1, &turns[i].len); /* the table keeps the text alive */
    lua_pop(L, 1);
  }
  lua_getfield(L, table, "system");
  system.text = lua_tolstring(L, -1, &system.len);
  char *text;
  size_t len;
  dt_status status = dtl_conversation(chat, system.text ? &system : NULL, turns, NULL, n, date, &text, &len, err);
  if (status) return status;
  lua_pushlstring(L, text, len);
  free(text);
  lua_replace(L, table);
  lua_settop(L, table);
  return DT_OK;
}

int driver_pair_conversations(lua_State *L) {
  const dt_pair *pair = driver_pair(L, 1)->pair;
  const char *date = luaL_optstring(L, 4, NULL);
  dt_chat *chat;
  dt_error err;
  if (dt_pair_chat(pair, luaL_optstring(L, 3, NULL), &chat, &err)) return driver_failure(L, &err);
  int n = (int)lua_rawlen(L, 2);
  dt_status status = DT_OK;
  lua_createtable(L, n, 0);
  for (int i = 0; i < n && !status; i++) {
    lua_rawgeti(L, 2, i + 1);
    if (!(status = make_text(L, chat, date, &err))) lua_rawseti(L, -2, i + 1);
  }
  lua_pushstring(L, dt_chat_end(chat));
  lua_pushstring(L, dt_chat_name(chat));
  dt_chat_close(chat);
  return status ? driver_failure(L, &err) : 3;
}
