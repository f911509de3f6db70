/* Metadata -> keys: see gguf_keys.h. */
#include "model/gguf_keys.h"

#include <stdio.h>
#include <string.h>

enum {
  LONGEST_KEY = 128,
  LONGEST_TEXT = 256,
  LONGEST_LIST = 4096
}; /* no key that we read is longer; longer texts are cut */

/* A number, or an array that repeats one number for each layer. */
static bool is_number(const gguf_value *v, double layers, double *number) {
  double other;
  if (!gguf_number(v, 0, number) || (v->array && (double)v->count != layers)) return false;
  for (uint64_t i = 1; i < v->count; i++)
    if (!gguf_number(v, i, &other) || other != *number) return false;
  return true;
}

/* Element i of a value of bools or numbers. NULL: out of memory. */
static cJSON *plain_of(const gguf_value *v, uint64_t i) {
  bool truth;
  double number = -1; /* beyond an int64: no key takes -1 */
  if (gguf_bool(v, i, &truth)) return cJSON_CreateBool(truth);
  gguf_number(v, i, &number);
  return cJSON_CreateNumber(number);
}

/* A list of bools or numbers. NULL: out of memory. */
static cJSON *list_of(const gguf_value *v) {
  cJSON *list = cJSON_CreateArray();
  for (uint64_t i = 0; list && i < v->count; i++)
    if (!cJSON_AddItemToArray(list, plain_of(v, i))) {
      cJSON_Delete(list);
      list = NULL;
    }
  return list;
}

/* NULL: out of memory. */
static cJSON *item_of(const gguf_value *v, double layers) {
  bool truth;
  size_t len;
  double number;
  char text[LONGEST_TEXT];
  if (is_number(v, layers, &number)) return cJSON_CreateNumber(number);
  if (v->array && v->count <= LONGEST_LIST && (gguf_bool(v, 0, &truth) || gguf_number(v, 0, &number)))
    return list_of(v);
  if (v->array) return cJSON_CreateString("(an array)");
  if (gguf_bool(v, 0, &truth)) return cJSON_CreateBool(truth);
  const char *bytes = gguf_string(v, 0, &len);
  snprintf(text, sizeof text, "%.*s", len < sizeof text ? (int)len : (int)sizeof text, bytes ? bytes : "");
  return cJSON_CreateString(text);
}

static double layers_of(const gguf *g, const char *prefix) {
  char key[LONGEST_KEY + 16];
  double layers = 0;
  snprintf(key, sizeof key, "%sblock_count", prefix);
  const gguf_value *v = gguf_find(g, key);
  return v && !v->array && gguf_number(v, 0, &layers) ? layers : 0;
}

/* The prefix of its keys: the architecture and a dot. */
static dt_status read_prefix(const gguf *g, char prefix[LONGEST_KEY], dt_error *err) {
  size_t len;
  const char *name = gguf_string(gguf_find(g, "general.architecture"), 0, &len);
  if (!name)
    return dt_fail(err, DT_EINPUT, "%s: general.architecture is missing: expected the name of a model's family",
                   gguf_path(g));
  snprintf(prefix, LONGEST_KEY, "%.*s.", len < 64 ? (int)len : 64, name);
  return DT_OK;
}

dt_status gguf_keys(const gguf *g, cJSON **out, dt_error *err) {
  char prefix[LONGEST_KEY];
  dt_status status = read_prefix(g, prefix, err);
  if (status != DT_OK) return status;
  double layers = layers_of(g, prefix);
  cJSON *json = cJSON_CreateObject();
  bool made = json != NULL;
  for (size_t i = 0; made && i < gguf_count(g); i++) {
    const gguf_value *v = gguf_at(g, i);
    char key[LONGEST_KEY];
    if (v->key_len >= sizeof key) continue;
    snprintf(key, sizeof key, "%.*s", (int)v->key_len, v->key);
    bool own = strncmp(key, prefix, strlen(prefix)) == 0;
    cJSON *item = item_of(v, layers);
    made = item && cJSON_AddItemToObject(json, own ? key + strlen(prefix) : key, item);
    if (!made) cJSON_Delete(item);
  }
  const gguf_tensor *embedding = gguf_find_tensor(g, "token_embd.weight");
  if (made && embedding) {
    cJSON_DeleteItemFromObjectCaseSensitive(json, "vocab_size");
    made = cJSON_AddNumberToObject(json, "vocab_size", (double)embedding->ne[1]);
  }
  if (made)
    *out = json;
  else
    cJSON_Delete(json);
  return made ? DT_OK : dt_fail_memory(err, "a GGUF file's keys", gguf_count(g) * sizeof(cJSON));
}
