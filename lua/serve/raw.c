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

/* Removes a value from the beginning of the text. */
static raw_json take_value(raw_json *left) {
  const char *end;
  skip_past(left, "");
  cJSON *what = cJSON_ParseWithLengthOpts(left->at, left->len, &end, 0);
  raw_json value = {what ? left->at : NULL, what ? (size_t)(end - left->at) : 0};
  cJSON_Delete(what);
  skip(left, value.len);
  return value;
}

bool raw_next(raw_json *left, raw_json *name, raw_json *value) {
  *name = (raw_json){NULL, 0};
  skip_past(left, "{[,");
  *value = take_value(left); /* at a closing bracket there is none */
  skip_past(left, "");
  if (!left->len || *left->at != ':') return value->at != NULL;
  *name = *value;
  skip(left, 1);
  *value = take_value(left);
  return value->at != NULL;
}

static bool is_name(raw_json quoted, const char *name) {
  cJSON *key = cJSON_ParseWithLength(quoted.at, quoted.len);
  const char *is = cJSON_GetStringValue(key);
  const bool same = is && strcmp(is, name) == 0;
  cJSON_Delete(key);
  return same;
}

raw_json raw_member(raw_json object, const char *name) {
  raw_json left = object, key, value;
  while (object.at && raw_next(&left, &key, &value))
    if (key.at && is_name(key, name)) return value;
  return (raw_json){NULL, 0};
}
