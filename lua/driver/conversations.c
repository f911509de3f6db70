/* Conversations in drivers: turns lists of messages into prompts, and answers into messages. */
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
  dtl_tool_choice tools;
  dt_call_format *format; /* NULL: there are no tools */
} conversations;

static dt_status read_tools(lua_State *L, int table, conversations *c, dt_error *err) {
  dt_calls *unused; /* opening it checks the tools */
  lua_getfield(L, table, "single_call");
  const bool several = !lua_toboolean(L, -1);
  lua_pop(L, 1);
  dt_status status =
      dtl_choose_tools(field(L, table, "tools"), field(L, table, "tool_choice"), several, &c->tools, err);
  if (status || !c->tools.list) return status;
  c->how.tools = c->tools.list;
  if ((status = dt_call_format_open(c->chat, &c->format, err))) return status;
  if (!(status = dt_calls_open(c->format, c->tools.list, &unused, err))) dt_calls_close(unused);
  return status;
}

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
  return status ? status : read_tools(L, table, c, err);
}

static void close_conversations(conversations *c) {
  dt_call_format_close(c->format);
  free(c->tools.list);
  dt_chat_close(c->chat);
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

/* Adds the tools, and the grammar that makes sure that calls are theirs, to the table on top of the stack. */
static dt_status push_tools(lua_State *L, const conversations *c, dt_error *err) {
  char *grammar;
  if (!c->format) return DT_OK;
  dt_status status = dtl_call_grammar(c->pair, c->chat, c->format, c->tools.list, c->tools.required, c->tools.several,
                                      c->reasoning, &grammar, err);
  if (status) return status;
  lua_pushstring(L, c->tools.list);
  lua_setfield(L, -2, "tools");
  lua_pushboolean(L, c->tools.required);
  lua_setfield(L, -2, "required");
  lua_pushstring(L, grammar); /* nil: there is none */
  lua_setfield(L, -2, "grammar");
  free(grammar);
  return DT_OK;
}

static void push_answer(lua_State *L, const conversations *c) {
  const char *begin, *end;
  lua_createtable(L, 0, 7);
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
  const bool calls = lua_getfield(L, table, "tools") != LUA_TNIL;
  lua_pop(L, 1);
  if (!limited || (request->seq.adjustments.grammar && !calls)) return;
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
    status = push_tools(L, &c, &err);
  }
  if (!status) lua_pushstring(L, dt_chat_name(c.chat));
  close_conversations(&c);
  return status ? driver_failure(L, &err) : 3;
}

static void set_text(lua_State *L, const char *name, const char *text, size_t len) {
  lua_pushlstring(L, text, len);
  lua_setfield(L, -2, name);
}

static void push_message(lua_State *L, const dtl_answer *a) {
  lua_createtable(L, 0, 3);
  set_text(L, "content", a->called.content, a->called.len);
  if (a->reasoning_len) set_text(L, "reasoning", a->reasoning, a->reasoning_len);
  lua_createtable(L, a->called.n_calls, 0);
  for (int i = 0; i < a->called.n_calls; i++) {
    const dt_call *call = &a->called.calls[i];
    lua_createtable(L, 0, 2);
    set_text(L, "name", call->name, strlen(call->name));
    set_text(L, "arguments", call->arguments, strlen(call->arguments));
    lua_rawseti(L, -2, i + 1);
  }
  lua_setfield(L, -2, "calls");
}

int driver_pair_message(lua_State *L) {
  conversations c = {.pair = driver_pair(L, 1)->pair};
  size_t len;
  const char *text = luaL_checklstring(L, 3, &len);
  const char *tools = field(L, 2, "tools"), *layout = luaL_optstring(L, 4, NULL);
  dtl_answer answer;
  dt_error err;
  lua_getfield(L, 2, "reasoning");
  const dt_reasoning_state state = (dt_reasoning_state)lua_tointeger(L, -1);
  dt_status status = dt_pair_chat(c.pair, layout, &c.chat, &err);
  if (!status) status = dt_call_format_open(c.chat, &c.format, &err);
  if (!status) status = dtl_answer_read(c.chat, c.format, tools, state, text, len, &answer, &err);
  close_conversations(&c);
  if (status) return driver_failure(L, &err);
  push_message(L, &answer);
  dtl_answer_free(&answer);
  return 1;
}
