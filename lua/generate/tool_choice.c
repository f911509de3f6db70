/* Which of the tools an answer may or must call: see dtl_choose_tools in host.h. */
#include "files/fail.h"
#include "host.h"

#include <cJSON.h>
#include <stdlib.h>
#include <string.h>

static const cJSON *member(const cJSON *object, const char *name) {
  const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);
  return cJSON_IsNull(v) ? NULL : v;
}

static const char *text(const cJSON *object, const char *name) { return cJSON_GetStringValue(member(object, name)); }

/* The name of {"type": "function", "function": {"name"}}; NULL: it is something else. */
static const char *function_name(const cJSON *tool) {
  const char *type = text(tool, "type");
  return type && strcmp(type, "function") == 0 ? text(member(tool, "function"), "name") : NULL;
}

static const char expected[] =
    "tool_choice: expected none, auto, required, {type: function, function: {name}} or {type: allowed_tools, "
    "allowed_tools: {mode, tools}}";

static dt_status check_tools(const cJSON *tools, dt_error *err) {
  const cJSON *tool;
  int i = 0;
  if (!cJSON_IsArray(tools)) return dtl_fail(err, DT_EINPUT, "tools: expected a list of functions");
  cJSON_ArrayForEach(tool, tools) {
    const char *name = function_name(tool);
    if (!name || !*name)
      return dtl_fail(err, DT_EINPUT, "tools[%d]: expected {type: function, function: {name, ...}}", i);
    i++;
  }
  return DT_OK;
}

/* Removes the tools that are not named in a list of {type: function, function: {name}}. */
static dt_status keep_named(cJSON *tools, const cJSON *named, dt_error *err) {
  const cJSON *one;
  cJSON_ArrayForEach(one, named) {
    const char *name = function_name(one);
    const cJSON *tool = tools->child;
    while (tool && name && strcmp(function_name(tool), name) != 0) tool = tool->next;
    if (!name || !tool) return dtl_fail(err, DT_EINPUT, "tool_choice: no tool is called '%.64s'", name ? name : "");
  }
  for (cJSON *tool = tools->child, *next; tool; tool = next) {
    next = tool->next;
    one = named->child;
    while (one && strcmp(function_name(one), function_name(tool)) != 0) one = one->next;
    if (!one) cJSON_Delete(cJSON_DetachItemViaPointer(tools, tool));
  }
  return DT_OK;
}

/* {"type": "function", "function": {"name"}}: this one. */
static dt_status choose_one(cJSON *tools, const cJSON *choice, dt_error *err) {
  cJSON *list = cJSON_CreateArray();
  dt_status status = list && cJSON_AddItemReferenceToArray(list, (cJSON *)choice) ? keep_named(tools, list, err)
                                                                                  : dtl_fail_memory(err, "the tools");
  cJSON_Delete(list);
  return status;
}

/* *none: no tool may be called. */
static dt_status choose(cJSON *tools, const cJSON *choice, dtl_tool_choice *out, bool *none, dt_error *err) {
  const cJSON *allowed = member(choice, "allowed_tools"), *named = member(allowed, "tools");
  const char *mode = allowed ? text(allowed, "mode") : choice ? cJSON_GetStringValue(choice) : "auto";
  *none = false;
  if (allowed && (!cJSON_IsArray(named) || !cJSON_GetArraySize(named))) return dtl_fail(err, DT_EINPUT, "%s", expected);
  dt_status status = allowed ? keep_named(tools, named, err) : DT_OK;
  if (status) return status;
  if (mode) {
    *none = !allowed && strcmp(mode, "none") == 0;
    out->required = strcmp(mode, "required") == 0;
    const bool known = *none || out->required || strcmp(mode, "auto") == 0;
    return known ? DT_OK : dtl_fail(err, DT_EINPUT, "%s", expected);
  }
  if (!function_name(choice)) return dtl_fail(err, DT_EINPUT, "%s", expected);
  out->required = true, out->several = false; /* one call of this tool, as in OpenAI's interface */
  return choose_one(tools, choice, err);
}

/* `list`: the text of `tools`, which keeps all digits of its numbers. */
static dt_status choose_of(cJSON *tools, const char *list, const cJSON *choice, dtl_tool_choice *out, dt_error *err) {
  bool none;
  dt_status status = check_tools(tools, err);
  if (status) return status;
  const int n = cJSON_GetArraySize(tools);
  if (!n) {
    const char *mode = choice ? cJSON_GetStringValue(choice) : "auto";
    const bool known = mode && (strcmp(mode, "none") == 0 || strcmp(mode, "auto") == 0);
    return known ? DT_OK : dtl_fail(err, DT_EINPUT, "tool_choice: there are no tools to call");
  }
  if ((status = choose(tools, choice, out, &none, err)) || none) return status;
  out->list = cJSON_GetArraySize(tools) == n ? strdup(list) : cJSON_PrintUnformatted(tools);
  return out->list ? DT_OK : dtl_fail_memory(err, "the tools");
}

dt_status dtl_choose_tools(const char *tools, const char *choice, bool several, dtl_tool_choice *out, dt_error *err) {
  NEED(out, "out");
  *out = (dtl_tool_choice){.several = several};
  if (!tools) tools = "[]";
  cJSON *list = cJSON_Parse(tools), *chosen = choice ? cJSON_Parse(choice) : NULL;
  dt_status status = choice && !chosen ? dtl_fail(err, DT_EINPUT, "%s", expected)
                                       : choose_of(list, tools, cJSON_IsNull(chosen) ? NULL : chosen, out, err);
  cJSON_Delete(list), cJSON_Delete(chosen);
  return status;
}
