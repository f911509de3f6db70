/* A checkpoint folder whose weights come from a formula (tests/golden/make_families.py). Models with the width of real
 * ones therefore take no space in the source tree. */
#ifndef FORMULA_CHECKPOINT_H
#define FORMULA_CHECKPOINT_H

#include "temp_files.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* The i-th number of a splitmix64 generator that starts from the FNV-1a hash of the name. */
static inline uint64_t formula_bits(const char *name, uint64_t i) {
  uint64_t z = 0xcbf29ce484222325u;
  for (; *name; name++) z = (z ^ (unsigned char)*name) * 0x100000001b3u;
  z += (i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

/* Writes x in this type, which must represent it exactly. Returns the number of bytes. */
static inline size_t formula_encode(const char *dtype, float x, unsigned char *to) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  uint16_t half = (uint16_t)(bits >> 16);
  if (!strcmp(dtype, "U8")) return *to = (unsigned char)x, 1;
  if (!strcmp(dtype, "F32")) return memcpy(to, &bits, 4), 4;
  if (!strcmp(dtype, "F16"))
    half = x == 0 ? 0 : (uint16_t)((bits >> 16 & 0x8000) | (((bits >> 13) & 0x3ffff) - 0x1c000));
  return memcpy(to, &half, 2), 2;
}

typedef struct {
  unsigned char *bytes;
  size_t size;
  cJSON *header;
} formula_shard;

/* Adds integers, which are listed one by one. */
static inline void formula_add_integers(formula_shard *shard, const char *dtype, const cJSON *numbers) {
  for (const cJSON *number = numbers->child; number; number = number->next) {
    int64_t x = (int64_t)number->valuedouble;
    size_t bytes = strcmp(dtype, "BOOL") ? 8 : 1;
    memcpy(shard->bytes + shard->size, &x, bytes);
    shard->size += bytes;
  }
}

static inline void formula_add_numbers(formula_shard *shard, const char *name, const char *dtype, const cJSON *tensor,
                                       size_t n) {
  int a = cJSON_GetArrayItem(tensor, 3)->valueint, base = cJSON_GetArrayItem(tensor, 4)->valueint;
  float step = 1.0f / (float)(1u << cJSON_GetArrayItem(tensor, 5)->valueint);
  for (size_t i = 0; i < n; i++) {
    int k = (int)((formula_bits(name, i) >> 32) % (uint64_t)(2 * a + 1)) - a;
    shard->size += formula_encode(dtype, (float)(base + k) * step, shard->bytes + shard->size);
  }
}

/* Adds a tensor: [name, type, shape, a, base, e] or [name, type, shape, integers]. */
static inline void formula_add(formula_shard *shard, const cJSON *tensor) {
  const char *name = cJSON_GetArrayItem(tensor, 0)->valuestring, *dtype = cJSON_GetArrayItem(tensor, 1)->valuestring;
  const cJSON *shape = cJSON_GetArrayItem(tensor, 2), *fourth = cJSON_GetArrayItem(tensor, 3);
  size_t n = 1, begin = shard->size;
  for (const cJSON *dim = shape->child; dim; dim = dim->next) n *= (size_t)dim->valueint;
  shard->bytes = realloc(shard->bytes, shard->size + 8 * n);
  if (cJSON_IsArray(fourth))
    formula_add_integers(shard, dtype, fourth);
  else
    formula_add_numbers(shard, name, dtype, tensor, n);
  cJSON *entry = cJSON_AddObjectToObject(shard->header, name);
  cJSON_AddStringToObject(entry, "dtype", dtype);
  cJSON_AddItemToObject(entry, "shape", cJSON_Duplicate(shape, true));
  cJSON_AddItemToObject(entry, "data_offsets",
                        cJSON_CreateDoubleArray((double[]){(double)begin, (double)shard->size}, 2));
}

static inline void formula_write_shard(const char *folder, const char *name, const formula_shard *shard) {
  char *header = cJSON_PrintUnformatted(shard->header);
  size_t length = strlen(header);
  unsigned char *file = malloc(8 + length + shard->size);
  for (int i = 0; i < 8; i++) file[i] = (unsigned char)((uint64_t)length >> 8 * i);
  memcpy(file + 8, header, length);
  memcpy(file + 8 + length, shard->bytes, shard->size);
  temp_write(folder, name, file, 8 + length + shard->size);
  free(file), free(header);
}

static inline void formula_write_json(const char *folder, const char *name, const cJSON *json) {
  char *text = cJSON_PrintUnformatted(json);
  temp_write(folder, name, text, strlen(text));
  free(text);
}

/* Writes config.json and the weights, from the config, shards and tensors of a golden.json. */
static inline void formula_checkpoint(const char *folder, const cJSON *golden) {
  int shards = cJSON_GetObjectItem(golden, "shards")->valueint;
  cJSON *index = cJSON_CreateObject(), *map = cJSON_AddObjectToObject(index, "weight_map");
  formula_write_json(folder, "config.json", cJSON_GetObjectItem(golden, "config"));
  for (int s = 0; s < shards; s++) {
    char name[64] = "model.safetensors";
    if (shards > 1) snprintf(name, sizeof name, "model-%05d-of-%05d.safetensors", s + 1, shards);
    formula_shard shard = {NULL, 0, cJSON_CreateObject()};
    int i = 0;
    for (const cJSON *t = cJSON_GetObjectItem(golden, "tensors")->child; t; t = t->next) {
      if (i++ % shards != s) continue;
      formula_add(&shard, t);
      cJSON_AddStringToObject(map, cJSON_GetArrayItem(t, 0)->valuestring, name);
    }
    formula_write_shard(folder, name, &shard);
    free(shard.bytes);
    cJSON_Delete(shard.header);
  }
  if (shards > 1) formula_write_json(folder, "model.safetensors.index.json", index);
  cJSON_Delete(index);
}

/* Does the same in a temporary folder. dtype: the type of all tensors except for integers; NULL: the type that `of`
 * gives. */
static inline char *formula_folder(const cJSON *of, const char *dtype) {
  char *folder = temp_folder();
  cJSON *held = cJSON_Duplicate(of, true);
  for (cJSON *tensor = cJSON_GetObjectItem(held, "tensors")->child; tensor && dtype; tensor = tensor->next)
    if (!cJSON_IsArray(cJSON_GetArrayItem(tensor, 3))) cJSON_ReplaceItemInArray(tensor, 1, cJSON_CreateString(dtype));
  formula_checkpoint(folder, held);
  cJSON_Delete(held);
  return folder;
}

#endif
