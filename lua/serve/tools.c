/* Tools of requests: see tools.h. */
#include "serve/tools.h"
#include "serve/others.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cJSON *member(const cJSON *object, const char *name) {
  const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);
  return cJSON_IsNull(v) ? NULL : v;
}

static bool wrong(refusal *why, const char *what) {
  *why = refusal_say(400, INVALID, "%s", what);
  return false;
}

/* Checks that a tool has no unknown members. dtl_choose_tools checks the others. */
static bool check_tool(int i, const cJSON *tool, refusal *why) {
  static const char *const taken[] = {"type", "function", NULL};
  static const char *const parts[] = {"name", "description", "parameters", "strict", NULL};
  char place[48];
  snprintf(place, sizeof place, "tools[%d].", i);
  if (!others_pass_all(tool, taken, place, IN_TOOL, why)) return false;
  snprintf(place, sizeof place, "tools[%d].function.", i);
  return others_pass_all(member(tool, "function"), parts, place, IN_TOOL, why);
}

/* Copies a member as it is written, with all digits of its numbers. NULL: it is missing, or out of memory. */
static char *copy(const cJSON *root, raw_json body, const char *name) {
  raw_json raw = raw_member(body, name);
  return member(root, name) ? strndup(raw.at, raw.len) : NULL;
}

static bool choose(const cJSON *root, raw_json body, request_tools *out, refusal *why) {
  const cJSON *several = member(root, "parallel_tool_calls");
  dt_error err;
  if (several && !cJSON_IsBool(several)) return wrong(why, "parallel_tool_calls: expected true or false");
  char *tools = copy(root, body, "tools"), *choice = copy(root, body, "tool_choice");
  const bool starved = (member(root, "tools") && !tools) || (member(root, "tool_choice") && !choice);
  dt_status status = starved ? dt_fail_memory(&err, "the tools", 0)
                             : dtl_choose_tools(tools, choice, !several || cJSON_IsTrue(several), out, &err);
  free(tools), free(choice);
  if (status) *why = refusal_of(&err);
  return !status;
}

bool tools_read(const cJSON *root, raw_json body, request_tools *out, refusal *why) {
  const cJSON *list = member(root, "tools");
  const int n = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;
  bool fine = choose(root, body, out, why);
  for (int i = 0; i < n && fine; i++) fine = check_tool(i, cJSON_GetArrayItem(list, i), why);
  return fine;
}

void tools_free(request_tools *tools) { free(tools->list); }
