/* Shared by the two readers of a tokenizer.json: load_json.c reads the vocabulary and the model, load_pipeline.c the
 * other steps. */
#ifndef DT_LOAD_JSON_H
#define DT_LOAD_JSON_H

#include "text/tokenizer_parts.h"

#include <cjson/cJSON.h>

typedef struct {
  const char *path;
  tok *t;
  bool fused; /* a decoder has joined the tokens */
  dt_error *err;
} json_loader;

const cJSON *json_get(const cJSON *object, const char *key);
bool json_missing(const cJSON *v); /* or null */
bool json_has_type(const cJSON *v, const char *type);

/* Describe a value for a message. json_described: any value. */
const char *json_described(const cJSON *v, char out[96]);
/* Returns a string of the file as a message can show it: printable, short, and not cut inside a character. */
const char *json_shown(const char *s, char out[64]);

/* Fails with: PATH: KEY: found FOUND; supported: SUPPORTED. */
dt_status json_unsupported(const json_loader *l, const char *key, const cJSON *found, const char *supported);

/* Reads a flag of an object; if the key is missing, *value does not change. */
dt_status json_flag(const json_loader *l, const cJSON *object, const char *key, bool *value);

/* Reads an id; `string` is the token that a message names. */
dt_status json_id(const json_loader *l, const cJSON *number, const char *string, int32_t *id);

/* Reads normalizer, pre_tokenizer, post_processor and decoder. */
dt_status load_pipeline(json_loader *l, const cJSON *root);

#endif
