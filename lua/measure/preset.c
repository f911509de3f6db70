/* Reads presets: see preset.h. */
#include "measure/preset.h"

#include "system/os.h"

#include <cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The text of a value as --set takes it, malloc'd; NULL: it is not a value. */
static char *value_text(const cJSON *value) {
  if (cJSON_IsString(value)) return strdup(value->valuestring);
  bool is_number = cJSON_IsNumber(value) && isfinite(value->valuedouble);
  return is_number || cJSON_IsBool(value) ? cJSON_PrintUnformatted(value) : NULL;
}

static const char *take_params(const cJSON *params, preset *out) {
  static const char odd[] = "a parameter is not a string, a finite number or a boolean";
  if (!cJSON_IsObject(params)) return "it has no object 'params'";
  if (!(out->settings = calloc((size_t)cJSON_GetArraySize(params) + 1, sizeof *out->settings))) return odd;
  const cJSON *value;
  cJSON_ArrayForEach(value, params) {
    dtl_setting *setting = &out->settings[out->n++];
    *setting = (dtl_setting){.name = strdup(value->string), .value = value_text(value)};
    if (!setting->name || !setting->value) return odd;
  }
  return NULL;
}

static const char *take(const cJSON *root, preset *out) {
  const cJSON *source = cJSON_GetObjectItemCaseSensitive(root, "source");
  if (!cJSON_IsString(source)) return "it has no string 'source'";
  if (!(out->source = strdup(source->valuestring))) return "its source";
  return take_params(cJSON_GetObjectItemCaseSensitive(root, "params"), out);
}

/* Parses one object. There must be nothing after it, and no NUL byte, which would end the text early. */
static cJSON *parse_object(const char *bytes, size_t size) {
  const char *end, *last = bytes + size;
  if (memchr(bytes, '\0', size) || os_find(bytes, size, "\\u0000", 6)) return NULL;
  cJSON *root = cJSON_ParseWithLengthOpts(bytes, size, &end, false);
  if (!root) return NULL;
  while (end < last && strchr(" \t\r\n", *end)) end++;
  if (cJSON_IsObject(root) && end == last) return root;
  cJSON_Delete(root);
  return NULL;
}

const char *preset_parse(const char *bytes, size_t size, preset *out) {
  *out = (preset){0};
  errno = 0;
  cJSON *root = parse_object(bytes, size);
  const char *wrong = root ? take(root, out) : "it is not a JSON object";
  cJSON_Delete(root);
  return wrong;
}

void preset_free(preset *p) {
  for (int i = 0; i < p->n; i++) free((char *)p->settings[i].name), free((char *)p->settings[i].value);
  free(p->settings);
  free(p->source);
  *p = (preset){0};
}
