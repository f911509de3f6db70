/* Values of a tokenizer.json, and their form in messages: see load_json.h. */
#include "text/load_json.h"

#include <stdio.h>
#include <string.h>

#define MOST_ID ((1 << 22) - 1) /* an id costs memory whether it is used or not */

const char *json_shown(const char *s, char out[64]) {
  size_t n = strlen(s), most = n <= 40 ? n : 37;
  while (most > 0 && n > 40 && (s[most] & 0xC0) == 0x80) most--;
  for (size_t i = 0; i < most; i++) out[i] = (unsigned char)s[i] < 0x20 || s[i] == 0x7F ? '?' : s[i];
  strcpy(out + most, n <= 40 ? "" : "...");
  return out;
}

const char *json_described(const cJSON *v, char out[96]) {
  char text[64];
  const cJSON *type = json_get(v, "type");
  if (!v)
    strcpy(out, "nothing");
  else if (cJSON_IsNull(v))
    strcpy(out, "null");
  else if (cJSON_IsBool(v))
    strcpy(out, cJSON_IsTrue(v) ? "true" : "false");
  else if (cJSON_IsNumber(v))
    snprintf(out, 96, "%.15g", v->valuedouble);
  else if (cJSON_IsString(v))
    snprintf(out, 96, "\"%s\"", json_shown(v->valuestring, text));
  else if (cJSON_IsString(type))
    snprintf(out, 96, "type \"%s\"", json_shown(type->valuestring, text));
  else
    strcpy(out, cJSON_IsArray(v) ? "a list" : "an object without a type");
  return out;
}

dt_status json_unsupported(const json_loader *l, const char *key, const cJSON *found, const char *supported) {
  char text[96];
  return dt_fail(l->err, DT_EINPUT, "%s: %s: found %s; supported: %s", l->path, key, json_described(found, text),
                 supported);
}

const cJSON *json_get(const cJSON *object, const char *key) { return cJSON_GetObjectItemCaseSensitive(object, key); }

bool json_missing(const cJSON *v) { return !v || cJSON_IsNull(v); }

bool json_has_type(const cJSON *v, const char *type) {
  const cJSON *found = json_get(v, "type");
  return cJSON_IsString(found) && strcmp(found->valuestring, type) == 0;
}

dt_status json_flag(const json_loader *l, const cJSON *object, const char *key, bool *value) {
  const cJSON *v = json_get(object, key);
  if (json_missing(v)) return DT_OK;
  if (!cJSON_IsBool(v)) return json_unsupported(l, key, v, "true and false");
  *value = cJSON_IsTrue(v);
  return DT_OK;
}

dt_status json_id(const json_loader *l, const cJSON *number, const char *string, int32_t *id) {
  char value[96], text[64];
  double d = cJSON_IsNumber(number) ? number->valuedouble : -1;
  if (!(d >= 0 && d <= MOST_ID) || d != (double)(int32_t)d)
    return dt_fail(l->err, DT_EINPUT, "%s: the id of \"%s\" is %s: it must be a whole number from 0 to %d", l->path,
                   json_shown(string, text), json_described(number, value), MOST_ID);
  *id = (int32_t)d;
  return DT_OK;
}
