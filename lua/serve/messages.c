/* Messages: see messages.h. */
#include "serve/messages.h"
#include "serve/others.h"

#include <stdio.h>
#include <string.h>

static bool wrong(int i, const char *what, refusal *why) {
  *why = refusal_say(400, INVALID, "messages[%d]%s", i, what);
  return false;
}

static bool check_part(int i, int at, const cJSON *part, refusal *why) {
  static const char *const taken[] = {"type", "text", NULL};
  char place[64];
  const cJSON *type = cJSON_GetObjectItemCaseSensitive(part, "type");
  const char *kind = type ? cJSON_GetStringValue(type) : "text";
  snprintf(place, sizeof place, "messages[%d].content[%d].", i, at);
  if (!kind || strcmp(kind, "text") != 0 || !cJSON_IsString(cJSON_GetObjectItemCaseSensitive(part, "text"))) {
    *why = refusal_say(400, INVALID, "messages[%d].content[%d]: expected a part of type text, with a text%s%.40s", i,
                       at, kind && *kind ? ", not of type " : "", kind ? kind : "");
    return false;
  }
  return others_pass_all(part, taken, place, IN_PART, why);
}

static bool check_content(int i, const cJSON *message, const char *role, refusal *why) {
  const cJSON *content = cJSON_GetObjectItemCaseSensitive(message, "content"), *part;
  int at = 0;
  if (cJSON_IsString(content)) return true;
  if ((!content || cJSON_IsNull(content)) && strcmp(role, "assistant") == 0) return true;
  if (!cJSON_IsArray(content)) return wrong(i, ".content: expected a text, or a list of parts of type text", why);
  cJSON_ArrayForEach(part, content) if (!check_part(i, at++, part, why)) return false;
  return true;
}

static bool check_one(int i, const cJSON *message, refusal *why) {
  static const char *const taken[] = {
      "role", "content", "name", "reasoning_content", "reasoning", "thinking", "tool_calls", "tool_call_id", NULL};
  char place[32];
  snprintf(place, sizeof place, "messages[%d].", i);
  if (!cJSON_IsObject(message)) return wrong(i, ": expected {role, content}", why);
  const char *role = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(message, "role"));
  if (!role) return wrong(i, ".role: expected a text", why);
  return others_pass_all(message, taken, place, IN_MESSAGE, why) && check_content(i, message, role, why);
}

bool messages_check(const cJSON *messages, refusal *why) {
  const cJSON *message;
  int i = 0;
  if (!cJSON_IsArray(messages) || cJSON_GetArraySize(messages) == 0) {
    *why = refusal_say(400, INVALID, "messages: expected a list of {role, content}");
    return false;
  }
  cJSON_ArrayForEach(message, messages) if (!check_one(i++, message, why)) return false;
  return true;
}
