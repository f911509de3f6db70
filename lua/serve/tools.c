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

static const char *text(const cJSON *object, const char *name) { return cJSON_GetStringValue(member(object, name)); }

static bool wrong(refusal *why, const char *what) {
  *why = refusal_say(400, INVALID, "%s", what);
  return false;
}

/* The name of {"type": "function", "function": {"name"}}; NULL: it is something else. */
static const char *function_name(const cJSON *tool) {
  const char *type = text(tool, "type");
  return type && strcmp(type, "function") == 0 ? text(member(tool, "function"), "name") : NULL;
}

static bool check_tool(int i, const cJSON *tool, refusal *why) {
  static const char *const taken[] = {"type", "function", NULL};
  static const char *const parts[] = {"name", "description", "parameters", "strict", NULL};
  char place[48];
  const char *name = function_name(tool);
  if (!name || !*name) {
    *why = refusal_say(400, INVALID, "tools[%d]: expected {type: function, function: {name, ...}}", i);
    return false;
  }
  snprintf(place, sizeof place, "tools[%d].", i);
  if (!others_pass_all(tool, taken, place, IN_TOOL, why)) return false;
  snprintf(place, sizeof place, "tools[%d].function.", i);
  return others_pass_all(member(tool, "function"), parts, place, IN_TOOL, why);
}

/* ---- which of them ----------------------------------------------------------------------------------------------- */

/* Removes the tools that are not named in a list of {type: function, function: {name}}. False: a name is unknown. */
static bool keep_named(cJSON *tools, const cJSON *named, refusal *why) {
  const cJSON *one;
  cJSON_ArrayForEach(one, named) {
    const char *name = function_name(one);
    const cJSON *tool = tools->child;
    while (tool && name && strcmp(function_name(tool), name) != 0) tool = tool->next;
    if (name && tool) continue;
    *why = refusal_say(400, INVALID, "tool_choice: no tool is called '%.64s'", name ? name : "");
    return false;
  }
  for (cJSON *tool = tools->child, *next; tool; tool = next) {
    next = tool->next;
    one = named->child;
    while (one && strcmp(function_name(one), function_name(tool)) != 0) one = one->next;
    if (!one) cJSON_Delete(cJSON_DetachItemViaPointer(tools, tool));
  }
  return true;
}

/* {"type": "function", "function": {"name"}}: this one. */
static bool choose_one(cJSON *tools, const cJSON *choice, refusal *why) {
  cJSON *list = cJSON_CreateArray();
  bool fine = list && cJSON_AddItemReferenceToArray(list, (cJSON *)choice);
  if (!fine) *why = refusal_say(500, "server_error", "out of memory: the tools");
  fine = fine && keep_named(tools, list, why);
  cJSON_Delete(list);
  return fine;
}

static const char expected[] =
    "tool_choice: expected none, auto, required, {type: function, function: {name}} or {type: allowed_tools, "
    "allowed_tools: {mode, tools}}";

/* *none: no tool may be called. */
static bool choose(cJSON *tools, const cJSON *choice, request_tools *out, bool *none, refusal *why) {
  const cJSON *allowed = member(choice, "allowed_tools");
  const char *mode = allowed ? text(allowed, "mode") : choice ? cJSON_GetStringValue(choice) : "auto";
  *none = false;
  if (allowed && (!cJSON_IsArray(member(allowed, "tools")) || !cJSON_GetArraySize(member(allowed, "tools"))))
    return wrong(why, expected);
  if (allowed && !keep_named(tools, member(allowed, "tools"), why)) return false;
  if (mode) {
    *none = !allowed && strcmp(mode, "none") == 0;
    out->required = strcmp(mode, "required") == 0;
    return *none || out->required || strcmp(mode, "auto") == 0 || wrong(why, expected);
  }
  if (!function_name(choice)) return wrong(why, expected);
  out->required = true, out->several = false; /* one call of this tool, as in OpenAI's interface */
  return choose_one(tools, choice, why);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static bool read_list(const cJSON *root, raw_json body, request_tools *out, refusal *why) {
  const cJSON *list = member(root, "tools"), *tool;
  int i = 0;
  if (!cJSON_IsArray(list)) return wrong(why, "tools: expected a list of functions");
  cJSON_ArrayForEach(tool, list) if (!check_tool(i++, tool, why)) return false;
  cJSON *kept = cJSON_Duplicate(list, true);
  bool none;
  bool fine =
      kept ? choose(kept, member(root, "tool_choice"), out, &none, why) : wrong(why, "out of memory: the tools");
  if (fine && !none && cJSON_GetArraySize(kept) == cJSON_GetArraySize(list)) {
    raw_json raw = raw_member(body, "tools"); /* as it is written, with all digits of its numbers */
    out->list = strndup(raw.at, raw.len);
  } else if (fine && !none) {
    out->list = cJSON_PrintUnformatted(kept);
  }
  cJSON_Delete(kept);
  if (fine && !none && !out->list) return wrong(why, "out of memory: the tools");
  return fine;
}

bool tools_read(const cJSON *root, raw_json body, request_tools *out, refusal *why) {
  const cJSON *list = member(root, "tools"), *choice = member(root, "tool_choice"),
              *several = member(root, "parallel_tool_calls");
  if (several && !cJSON_IsBool(several)) return wrong(why, "parallel_tool_calls: expected true or false");
  out->several = !several || cJSON_IsTrue(several);
  if (list && (!cJSON_IsArray(list) || cJSON_GetArraySize(list))) return read_list(root, body, out, why);
  const char *mode = choice ? cJSON_GetStringValue(choice) : "auto";
  return (mode && (strcmp(mode, "none") == 0 || strcmp(mode, "auto") == 0)) ||
         wrong(why, "tool_choice: there are no tools to call");
}

void tools_free(request_tools *tools) { free(tools->list); }
