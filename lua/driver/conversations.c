/* Conversations in drivers: turns lists of messages into prompts. */
#include "driver/driver.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *field(lua_State *L, int table, const char *name) {
  lua_getfield(L, table, name);
  const char *text = lua_tostring(L, -1);
  lua_pop(L, 1); /* the table keeps it */
  return text;
}

/* Reads "26 Jul 2024" or "2024-07-26". */
static dt_status read_date(const char *text, struct tm *out, dt_error *err) {
  static const char *const forms[] = {"%d %b %Y", "%Y-%m-%d"};
  for (int i = 0; i < 2; i++) {
    *out = (struct tm){.tm_isdst = -1};
    const char *end = strptime(text, forms[i], out);
    if (!end || *end) continue;
    mktime(out); /* fills in the day of the week */
    return DT_OK;
  }
  return dtl_fail(err, DT_EINPUT, "date: '%.40s': expected a date such as 2024-07-26 or 26 Jul 2024", text);
}

typedef struct {
  const dt_pair *pair;
  dt_chat *chat;
  dt_conversation how; /* without messages */
  const char *settings[2];
  struct tm date;
  dt_reasoning_state reasoning;
} conversations;

static dt_status read_options(lua_State *L, int table, conversations *c, dt_error *err) {
  const char *date = field(L, table, "date"), *think = field(L, table, "think");
  c->settings[0] = field(L, table, "variables");
  c->how.settings = c->settings, c->how.n_settings = c->settings[0] != NULL;
  lua_getfield(L, table, "raw");
  c->how.raw = lua_toboolean(L, -1);
  lua_pop(L, 1);
  dt_status status = dt_pair_chat(c->pair, field(L, table, "template"), &c->chat, err);
  if (!status) status = dtl_think(c->chat, think, &c->settings[c->how.n_settings], err);
  if (!status && c->settings[c->how.n_settings]) c->how.n_settings++;
  if (!status && date) status = read_date(date, &c->date, err);
  if (date) c->how.now = &c->date;
  return status;
}

/* Replaces the JSON on top of the stack by a list of ids. */
static dt_status make_ids(lua_State *L, conversations *c, dt_error *err) {
  int32_t *ids;
  int n;
  c->how.messages = lua_tostring(L, -1);
  dt_status status = dtl_encode_chat(c->pair, c->chat, &c->how, &ids, &n, &c->reasoning, err);
  if (status) return status;
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    lua_pushinteger(L, ids[i]);
    lua_rawseti(L, -2, i + 1);
  }
  free(ids);
  lua_replace(L, -2);
  return DT_OK;
}

static void push_answer(lua_State *L, const conversations *c) {
  const char *begin, *end;
  lua_createtable(L, 0, 4);
  lua_pushstring(L, dt_chat_end(c->chat));
  lua_setfield(L, -2, "ends");
  lua_pushinteger(L, c->reasoning);
  lua_setfield(L, -2, "reasoning");
  if (!dt_chat_reasoning(c->chat, &begin, &end)) return;
  lua_pushstring(L, begin);
  lua_setfield(L, -2, "reasoning_begin");
  lua_pushstring(L, end);
  lua_setfield(L, -2, "reasoning_end");
}

void driver_chat_options(lua_State *L, bool limited, dtl_request *request) {
  if (!lua_istable(L, -1)) return;
  const int table = lua_gettop(L);
  dt_reasoning_limit *limit = &request->seq.adjustments.reasoning;
  request->seq.end = field(L, table, "ends");
  lua_getfield(L, table, "reasoning");
  request->reasoning = (dt_reasoning_state)lua_tointeger(L, -1);
  lua_pop(L, 1);
  if (!limited || request->seq.adjustments.grammar) return;
  limit->begin = field(L, table, "reasoning_begin"), limit->end = field(L, table, "reasoning_end");
  limit->open = request->reasoning == DT_REASONING_OPEN;
}

int driver_pair_conversations(lua_State *L) {
  conversations c = {.pair = driver_pair(L, 1)->pair};
  dt_error err;
  dt_status status = read_options(L, 3, &c, &err);
  const int n = (int)lua_rawlen(L, 2);
  lua_createtable(L, n, 0);
  for (int i = 0; i < n && !status; i++) {
    lua_rawgeti(L, 2, i + 1);
    if (!(status = make_ids(L, &c, &err))) lua_rawseti(L, -2, i + 1);
  }
  if (!status) {
    push_answer(L, &c);
    lua_pushstring(L, dt_chat_name(c.chat));
  }
  dt_chat_close(c.chat);
  return status ? driver_failure(L, &err) : 3;
}
