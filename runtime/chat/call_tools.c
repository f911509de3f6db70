/* Tools, and what their schemas say of arguments: see call_format.h. */
#include "chat/call_format.h"

#include <string.h>

static const cJSON *member(const cJSON *object, const char *name) {
  return cJSON_GetObjectItemCaseSensitive(object, name);
}

dt_status call_check_tools(const cJSON *tools, dt_error *err) {
  const cJSON *tool;
  int i = 0;
  if (!cJSON_IsArray(tools)) return dt_fail(err, DT_EINPUT, "tools: expected a JSON list of functions");
  cJSON_ArrayForEach(tool, tools) {
    const cJSON *type = member(tool, "type");
    const char *name = cJSON_GetStringValue(member(member(tool, "function"), "name"));
    if ((type && strcmp(cJSON_IsString(type) ? type->valuestring : "", "function") != 0) || !name || !*name)
      return dt_fail(err, DT_EINPUT, "tools[%d]: expected {\"type\": \"function\", \"function\": {\"name\": ..}}", i);
    if (name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")] || strlen(name) > 128)
      return dt_fail(err, DT_EINPUT, "tools[%d]: the name %.60s must have at most 128 letters, digits, _, - and .", i,
                     name);
    i++;
  }
  return DT_OK;
}

static bool is_text(call_span span, const char *text) {
  return text && strlen(text) == span.n && memcmp(text, span.bytes, span.n) == 0;
}

const cJSON *call_find_tool(const cJSON *tools, call_span name) {
  const cJSON *tool;
  cJSON_ArrayForEach(tool, tools) {
    const cJSON *function = member(tool, "function");
    if (is_text(name, cJSON_GetStringValue(member(function, "name")))) return function;
  }
  return NULL;
}

static bool are_strings(const cJSON *list) {
  const cJSON *value;
  cJSON_ArrayForEach(value, list) if (!cJSON_IsString(value)) return false;
  return cJSON_IsArray(list) && list->child;
}

call_declared call_declared_of(const cJSON *function, call_span key) {
  const cJSON *property, *schema = NULL;
  cJSON_ArrayForEach(property, member(member(function, "parameters"), "properties")) if (is_text(key, property->string))
      schema = property;
  const char *type = cJSON_GetStringValue(member(schema, "type"));
  if (type) return strcmp(type, "string") == 0 ? CALL_STRING : CALL_NOT_STRING;
  return cJSON_IsString(member(schema, "const")) || are_strings(member(schema, "enum")) ? CALL_STRING : CALL_ANY;
}
