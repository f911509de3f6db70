/* Finds parts of a JSON text: see raw.h. cJSON finds the end of a value. */
#include "serve/raw.h"

#include <cJSON.h>
#include <string.h>

static void skip(raw_json *left, size_t n) { left->at += n, left->len -= n; }

/* Skips white space and then one of these bytes. */
static void skip_past(raw_json *left, const char *bytes) {
  while (left->len && strchr(" \t\r\n", *left->at)) skip(left, 1);
  if (left->len && strchr(bytes, *left->at)) skip(left, 1);
}

/* Removes a value from the beginning of the text; *what is the parsed value, which the caller frees. */
static raw_json take_value(raw_json *left, cJSON **what) {
  const char *end;
  skip_past(left, "");
  *what = cJSON_ParseWithLengthOpts(left->at, left->len, &end, 0);
  raw_json value = {*what ? left->at : NULL, *what ? (size_t)(end - left->at) : 0};
  skip(left, value.len);
  return value;
}

raw_json raw_member(raw_json object, const char *name) {
  raw_json left = object;
  if (!left.at) return left;
  skip_past(&left, "{");
  for (;;) {
    cJSON *key, *of_value;
    if (!take_value(&left, &key).at) return (raw_json){NULL, 0}; /* the closing brace */
    skip_past(&left, ":");
    raw_json value = take_value(&left, &of_value);
    const char *is = cJSON_GetStringValue(key);
    const int found = is && strcmp(is, name) == 0;
    cJSON_Delete(key), cJSON_Delete(of_value);
    if (found || !value.at) return value;
    skip_past(&left, ",");
  }
}

raw_json raw_element(raw_json *list) {
  cJSON *parsed;
  if (!list->at) return *list;
  skip_past(list, "[,");
  raw_json value = take_value(list, &parsed);
  cJSON_Delete(parsed);
  return value;
}
