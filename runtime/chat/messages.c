/* Messages, as templates expect them: see dt_conversation. */
#include "chat/parts.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  cJSON *message;
  int i;
  const dt_chat *chat;
  dt_error *err;
} editing;

static dt_status wrong(const editing *e, const char *what) {
  return dt_fail(e->err, DT_EINPUT, "messages[%d]%s", e->i, what);
}

static dt_status starved(dt_error *err) { return dt_fail_memory(err, "the messages", 1); }

static cJSON *member(const cJSON *object, const char *name) { return cJSON_GetObjectItemCaseSensitive(object, name); }

/* Replaces or adds a member. */
static bool put(cJSON *object, const char *name, cJSON *value) {
  cJSON_DeleteItemFromObjectCaseSensitive(object, name);
  return value && cJSON_AddItemToObject(object, name, value);
}

static void drop_nulls(cJSON *object) {
  for (cJSON *v = object->child, *next; v; v = next) {
    next = v->next;
    if (cJSON_IsNull(v)) cJSON_Delete(cJSON_DetachItemViaPointer(object, v));
  }
}

/* ---- contents ---------------------------------------------------------------------------------------------------- */

/* The texts of a list of parts, separated by newlines as in llama.cpp's server: malloc'd. NULL: out of memory. */
static char *joined(const cJSON *parts) {
  size_t size = 1, n = 0;
  const cJSON *part;
  cJSON_ArrayForEach(part, parts) size += strlen(cJSON_GetStringValue(member(part, "text"))) + 1;
  char *text = malloc(size);
  cJSON_ArrayForEach(part, parts) {
    const char *one = cJSON_GetStringValue(member(part, "text"));
    if (!text) break;
    if (n) text[n++] = '\n';
    memcpy(text + n, one, strlen(one));
    n += strlen(one);
  }
  if (text) text[n] = '\0';
  return text;
}

static cJSON *list_of(const char *text) {
  cJSON *list = cJSON_CreateArray(), *part = cJSON_CreateObject();
  if (part && cJSON_AddStringToObject(part, "type", "text") && cJSON_AddStringToObject(part, "text", text) &&
      cJSON_AddItemToArray(list, part))
    return list;
  cJSON_Delete(part);
  cJSON_Delete(list);
  return NULL;
}

static dt_status check_parts(const editing *e, const cJSON *content) {
  const cJSON *part;
  cJSON_ArrayForEach(part, content) {
    const cJSON *type = member(part, "type");
    if ((type && strcmp(cJSON_IsString(type) ? type->valuestring : "", "text") != 0) ||
        !cJSON_IsString(member(part, "text")))
      return wrong(e, ".content: expected parts of type text");
  }
  return DT_OK;
}

/* Makes the content a text, or a list of parts where the template expects one. */
static dt_status edit_content(const editing *e, const char *tag) {
  const cJSON *content = member(e->message, "content");
  if (content && !cJSON_IsString(content) && !cJSON_IsArray(content))
    return wrong(e, ".content: expected a text, or a list of parts");
  dt_status status = check_parts(e, cJSON_IsArray(content) ? content : NULL);
  if (status) return status;
  char *text = cJSON_IsArray(content) ? joined(content) : strdup(content ? content->valuestring : ""), *whole = NULL;
  if (text) whole = malloc(strlen(text) + (tag ? strlen(tag) : 0) + 1);
  if (whole) strcpy(stpcpy(whole, text), tag ? tag : "");
  bool is_kept = e->chat->habits.lists && cJSON_IsArray(content) && !tag;
  bool fine = whole && (is_kept ||
                        put(e->message, "content", e->chat->habits.lists ? list_of(whole) : cJSON_CreateString(whole)));
  free(text), free(whole);
  return fine ? DT_OK : starved(e->err);
}

/* ---- other members ----------------------------------------------------------------------------------------------- */

/* A template may leave out messages whose role it does not know, so a misspelt role must not reach it. */
static bool is_role(const dt_chat *chat, const char *role) {
  static const char *const usual[] = {"system", "developer", "user", "assistant", "tool", "function"};
  for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
    if (strcmp(role, usual[i]) == 0) return true;
  return dt_chat_mentions(chat, role);
}

static dt_status edit_role(const editing *e) {
  const char *role = cJSON_GetStringValue(member(e->message, "role"));
  if (!role || !is_role(e->chat, role))
    return wrong(e, ".role: expected system, developer, user, assistant, tool, or a role that the chat template knows");
  if (strcmp(role, "developer") != 0 || e->chat->habits.developer) return DT_OK;
  return put(e->message, "role", cJSON_CreateString("system")) ? DT_OK : starved(e->err);
}

/* Templates read the reasoning of an answer under different names. */
static dt_status edit_reasoning(const editing *e) {
  static const char *const names[] = {"reasoning_content", "thinking", "reasoning"};
  const char *reasoning = NULL;
  for (int i = 0; i < 3 && !reasoning; i++) reasoning = cJSON_GetStringValue(member(e->message, names[i]));
  for (int i = 0; i < 2 && reasoning; i++)
    if (!member(e->message, names[i]) && !put(e->message, names[i], cJSON_CreateString(reasoning)))
      return starved(e->err);
  return DT_OK;
}

/* Clients send the arguments of a call as a text of JSON, but most templates expect an object. Its numbers stay as they
 * are written. */
static dt_status edit_calls(const editing *e) {
  const cJSON *call;
  cJSON_ArrayForEach(call, member(e->message, "tool_calls")) {
    cJSON *function = member(call, "function"), *holder = function ? function : (cJSON *)call;
    const cJSON *arguments = member(holder, "arguments");
    const char *text = cJSON_GetStringValue(arguments);
    if (e->chat->habits.texts) {
      char *written = arguments && !text ? cJSON_PrintUnformatted(arguments) : NULL;
      bool fine = !arguments || text || (written && put(holder, "arguments", cJSON_CreateString(written)));
      cJSON_free(written);
      if (!fine) return starved(e->err);
      continue;
    }
    cJSON *parsed = text ? cJSON_Parse(text) : NULL;
    const bool is_object = cJSON_IsObject(parsed);
    cJSON_Delete(parsed);
    cJSON *raw = is_object ? cJSON_CreateRaw(text) : NULL;
    if (is_object && !put(holder, "arguments", raw)) return starved(e->err);
  }
  return DT_OK;
}

static dt_status edit(const editing *e, const char *tag) {
  if (!cJSON_IsObject(e->message)) return wrong(e, ": expected {role, content}");
  drop_nulls(e->message);
  dt_status status = edit_role(e);
  if (!status) status = edit_content(e, tag);
  if (!status) status = edit_reasoning(e);
  return status ? status : edit_calls(e);
}

static bool is_answer(const cJSON *message) {
  const char *role = cJSON_GetStringValue(member(message, "role"));
  return role && strcmp(role, "assistant") == 0 && cJSON_GetArraySize(member(message, "tool_calls")) == 0;
}

/* Whether the answer continues the last message. */
static dt_status choose_next(const cJSON *list, dt_chat_next next, bool *goes_on, dt_error *err) {
  const bool by_assistant = is_answer(cJSON_GetArrayItem(list, cJSON_GetArraySize(list) - 1));
  *goes_on = next == DT_CHAT_CONTINUE || (next == DT_CHAT_AUTO && by_assistant);
  if (!*goes_on || by_assistant) return DT_OK;
  return dt_fail(err, DT_EINPUT, "messages: only an answer of the assistant, without calls, can be continued");
}

dt_status chat_messages(const char *json, const dt_chat *chat, dt_chat_next next, const char *tag, char **out,
                        bool *goes_on, dt_error *err) {
  cJSON *list = cJSON_Parse(json), *message;
  dt_status status = DT_OK;
  int i = 0;
  if (!cJSON_IsArray(list)) status = dt_fail(err, DT_EINPUT, "messages: expected a JSON list of {role, content}");
  if (!status && !cJSON_GetArraySize(list)) status = dt_fail(err, DT_EINPUT, "messages: the list is empty");
  if (!status) status = choose_next(list, next, goes_on, err);
  cJSON_ArrayForEach(message, list) {
    if (status) break;
    status = edit(&(editing){message, i++, chat, err}, *goes_on && !message->next ? tag : NULL);
  }
  if (!status && !(*out = cJSON_PrintUnformatted(list))) status = starved(err);
  cJSON_Delete(list);
  return status;
}
