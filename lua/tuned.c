/* Finding and reading the preset `tuned`: see tuned.h. */
#include "tuned.h"

#include "fail.h"
#include "files.h"
#include "hash.h"
#include "identity.h"
#include "machine.h"
#include "user_files.h"

#include <cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX (1u << 16)

/* With the NUL, so that two texts in a row are not another two. */
static uint64_t hash_text(uint64_t hash, const char *text) { return hash_bytes(hash, text, strlen(text) + 1); }

static uint64_t hash_model(uint64_t hash, const dt_model_info *model) {
  char shape[100];
  uint64_t files = model->path ? identity_model(model->path) : 0; /* 0: scripted, or none */
  snprintf(shape, sizeof shape, "%016" PRIx64 " %d %d %d %d", files, model->vocab, model->context, model->layers,
           model->hidden);
  return hash_text(hash, shape);
}

/* "hedge" of "policies/hedge.lua" */
static const char *stem(const char *policy, int *len) {
  const char *slash = strrchr(policy, '/'), *name = slash ? slash + 1 : policy;
  size_t n = strlen(name);
  *len = (int)(n > 4 && !strcmp(name + n - 4, ".lua") ? n - 4 : n);
  return name;
}

char *tuned_path(const dt_pair *pair, const char *policy) {
  dt_pair_info info;
  char machine[MACHINE_NAME], settings[256], relative[300];
  int len;
  const char *name = stem(policy, &len);
  dt_pair_describe(pair, &info);
  machine_name(machine, sizeof machine);
  snprintf(settings, sizeof settings, "%d %s %s %s %s%s", info.threads, info.target_dtype,
           info.draft_dtype ? info.draft_dtype : "-", info.draft_vocab ? info.draft_vocab : "-", info.cache_dtype,
           info.draft_head ? info.draft_head : "");
  uint64_t hash = hash_model(hash_model(HASH_START, &info.target), &info.draft);
  hash = hash_text(hash_text(hash_text(hash, machine), info.backend), settings);
  snprintf(relative, sizeof relative, "presets/%.*s-%016" PRIx64 ".json", len < 200 ? len : 200, name, hash);
  return user_path("XDG_CONFIG_HOME", ".config", relative);
}

/* A value as --set takes it: malloc'd; NULL where it is none. */
static char *value_text(const cJSON *value) {
  if (cJSON_IsString(value)) return strdup(value->valuestring);
  return cJSON_IsNumber(value) || cJSON_IsBool(value) ? cJSON_PrintUnformatted(value) : NULL;
}

static bool read_settings(const cJSON *params, dtl_setting **settings, int *n) {
  *n = 0;
  if (!cJSON_IsObject(params)) return false;
  if (!(*settings = calloc((size_t)cJSON_GetArraySize(params) + 1, sizeof **settings))) return false;
  const cJSON *value;
  cJSON_ArrayForEach(value, params) {
    dtl_setting *setting = &(*settings)[*n];
    *setting = (dtl_setting){.name = strdup(value->string), .value = value_text(value)};
    (*n)++;
    if (!setting->name || !setting->value) return false;
  }
  return true;
}

void tuned_free(dtl_setting *settings, int n) {
  for (int i = 0; i < n; i++) free((char *)settings[i].name), free((char *)settings[i].value);
  free(settings);
}

static bool same_source(const cJSON *root, uint64_t source) {
  char text[17];
  const cJSON *was = cJSON_GetObjectItemCaseSensitive(root, "source");
  snprintf(text, sizeof text, "%016" PRIx64, source);
  return cJSON_IsString(was) && !strcmp(was->valuestring, text);
}

bool tuned_settings(const dt_pair *pair, const char *policy, uint64_t source, dtl_setting **settings, int *n,
                    dtl_error *err) {
  *settings = NULL;
  *n = 0;
  int len;
  const char *name = stem(policy, &len);
  char *path = tuned_path(pair, policy), *text = NULL;
  size_t size;
  bool ok = false;
  errno = 0;
  if (!path || access(path, F_OK))
    dtl_fail(err, DTL_INPUT, "%.*s: no preset 'tuned' for this pair and machine: run `dtrun run tune %s` first", len,
             name, policy);
  else if ((text = dtl_read_file("preset", path, FILE_MAX, &size, err))) {
    cJSON *root = cJSON_ParseWithLength(text, size);
    ok = read_settings(cJSON_GetObjectItemCaseSensitive(root, "params"), settings, n);
    if (!ok)
      dtl_fail(err, DTL_INPUT, "%s: not a preset: run `dtrun run tune %s` again", path, policy);
    else if (!(ok = same_source(root, source)))
      dtl_fail(err, DTL_INPUT, "%s: found for another text of the policy: run `dtrun run tune %s` again", path, policy);
    cJSON_Delete(root);
  }
  if (!ok && errno == ENOMEM) dtl_fail(err, DTL_DEVICE, "out of memory: the preset 'tuned' of %.*s", len, name);
  if (!ok) {
    tuned_free(*settings, *n);
    *settings = NULL;
    *n = 0;
  }
  free(text), free(path);
  return ok;
}
