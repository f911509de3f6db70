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

enum { IS_STRING = 1, IS_NULL = 2, IS_OTHER = 4 };

static int type_named(const cJSON *name) {
  const char *type = cJSON_GetStringValue(name);
  return !type ? IS_OTHER : strcmp(type, "string") == 0 ? IS_STRING : strcmp(type, "null") == 0 ? IS_NULL : IS_OTHER;
}

/* The types of a schema's values; 0: it does not say. */
static int types_of_values(const cJSON *schema) {
  const cJSON *type = member(schema, "type"), *one;
  int types = 0;
  if (cJSON_IsString(type)) return type_named(type);
  cJSON_ArrayForEach(one, type) types |= type_named(one);
  if (types || type) return types;
  cJSON_ArrayForEach(one, member(schema, "anyOf")) {
    const cJSON *named = member(one, "type");
    types |= cJSON_IsString(named)              ? type_named(named)
             : are_strings(member(one, "enum")) ? IS_STRING
                                                : IS_OTHER | IS_STRING;
  }
  return types ? types : cJSON_IsString(member(schema, "const")) || are_strings(member(schema, "enum")) ? IS_STRING : 0;
}

call_declared call_declared_by(const cJSON *schema) {
  switch (types_of_values(schema)) {
  case IS_STRING: return CALL_STRING;
  case IS_STRING | IS_NULL: return CALL_STRING_OR_NULL;
  case IS_NULL:
  case IS_OTHER:
  case IS_NULL | IS_OTHER: return CALL_NOT_STRING;
  default: return CALL_ANY;
  }
}

call_declared call_declared_of(const cJSON *function, call_span key) {
  const cJSON *property;
  cJSON_ArrayForEach(property, member(member(function, "parameters"), "properties")) {
    if (is_text(key, property->string)) return call_declared_by(property);
  }
  return CALL_ANY;
}
