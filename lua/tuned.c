/* Finding and reading the preset `tuned`: see tuned.h. */
#include "tuned.h"

#include "fail.h"
#include "files.h"
#include "identity.h"
#include "machine.h"
#include "user_files.h"

#include <cJSON.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX (1u << 16)

static void add_model(digest *d, const dt_model_info *model) {
  char files[DIGEST_TEXT], shape[64 + DIGEST_TEXT];
  identity_model(model->path, files); /* "": scripted, or none */
  snprintf(shape, sizeof shape, "%s %d %d %d %d", files, model->vocab, model->context, model->layers, model->hidden);
  digest_add_text(d, shape);
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
  digest d;
  char key[DIGEST_TEXT];
  digest_begin(&d, "preset");
  add_model(&d, &info.target), add_model(&d, &info.draft);
  digest_add_text(&d, machine), digest_add_text(&d, info.backend), digest_add_text(&d, settings);
  digest_end(&d, key);
  snprintf(relative, sizeof relative, "presets/%.*s-%s.json", len < 150 ? len : 150, name, key);
  return user_path("XDG_CONFIG_HOME", ".config", relative);
}

/* Whether there is one of an earlier dtrun, whose name ends in an FNV-1a 64 of 16 digits. */
static bool is_old(const char *path) {
  char pattern[PATH_MAX];
  const char *digits = strrchr(path, '-');
  if (snprintf(pattern, sizeof pattern, "%.*s%s", (int)(digits - path), path, "-????????????????.json") >=
      (int)sizeof pattern)
    return false;
  glob_t found = {0};
  bool there = !glob(pattern, GLOB_NOESCAPE, NULL, &found) && found.gl_pathc > 0;
  globfree(&found);
  return there;
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

static bool same_source(const cJSON *root, const char *source) {
  const cJSON *was = cJSON_GetObjectItemCaseSensitive(root, "source");
  return cJSON_IsString(was) && !strcmp(was->valuestring, source);
}

bool tuned_settings(const dt_pair *pair, const char *policy, const char *source, dtl_setting **settings, int *n,
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
    dtl_fail(err, DTL_INPUT, "%.*s: no preset 'tuned' for this pair and machine%s: run `dtrun run tune %s` first", len,
             name, path && is_old(path) ? " (those of an earlier dtrun are not read)" : "", policy);
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
