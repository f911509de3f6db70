/* Finds and reads the preset `tuned`: see tuned.h. */
#include "measure/tuned.h"

#include "files/fail.h"
#include "files/files.h"
#include "files/identity.h"
#include "files/machine.h"
#include "files/user_files.h"

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
  identity_model(model->path, files); /* "": scripted, or no model */
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

char *tuned_path(const dt_pair *pair, const char *policy, dtl_need draft) {
  dt_pair_info info;
  char machine[MACHINE_NAME], settings[256], relative[300];
  int len;
  const char *name = stem(policy, &len);
  dt_pair_describe(pair, &info);
  machine_name(machine, sizeof machine);
  if (draft == DTL_NO_DRAFT) {
    info.draft = (dt_model_info){0};
    info.draft_dtype = info.draft_vocab = info.draft_output = info.draft_head = info.draft_window = NULL;
  }
  snprintf(settings, sizeof settings, "%d %s %s %s %s %s%s", info.threads, info.target_dtype,
           info.draft_dtype ? info.draft_dtype : "-", info.draft_vocab ? info.draft_vocab : "-", info.cache_dtype,
           info.activations ? info.activations : "-", info.draft_head ? info.draft_head : "");
  digest d;
  char key[DIGEST_TEXT];
  digest_begin(&d, "preset");
  add_model(&d, &info.target), add_model(&d, &info.draft);
  digest_add_text(&d, machine), digest_add_text(&d, info.backend), digest_add_text(&d, settings);
  if (info.draft_output) digest_add_text(&d, info.draft_output);
  if (info.draft_window) digest_add_text(&d, info.draft_window);
  digest_end(&d, key);
  snprintf(relative, sizeof relative, "presets/%.*s-%s.json", len < 150 ? len : 150, name, key);
  return user_path("XDG_CONFIG_HOME", ".config", relative);
}

/* Whether there is a preset of an earlier dtrun, whose file name ends in an FNV-1a 64 hash of 16 digits. */
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

/* Reads a preset. DT_EINPUT: the file is not a preset, or is for another version of the policy's text. */
static dt_status read_preset(const char *path, const char *policy, const char *source, preset *out, dt_error *err) {
  size_t size;
  char *text;
  dt_status status = dtl_read_file("preset", path, FILE_MAX, &text, &size, err);
  if (status) return status;
  const char *wrong = preset_parse(text, size, out);
  bool starved = wrong && errno == ENOMEM;
  free(text);
  if (starved) return dtl_fail(err, DT_ENOMEM, "out of memory: %s", path);
  if (wrong)
    return dtl_fail(err, DT_EINPUT, "%s: not a preset (%s): run `dtrun run tune %s` again", path, wrong, policy);
  if (!strcmp(out->source, source)) return DT_OK;
  return dtl_fail(err, DT_EINPUT, "%s: was tuned for another version of the policy: run `dtrun run tune %s` again",
                  path, policy);
}

dt_status tuned_read(const dt_pair *pair, const dtl_policy_info *info, const char *policy, preset *out, dt_error *err) {
  *out = (preset){0};
  int len;
  const char *name = stem(policy, &len);
  errno = 0;
  char *path = tuned_path(pair, policy, info->draft);
  if (!path && errno == ENOMEM) return dtl_fail(err, DT_ENOMEM, "out of memory: the preset 'tuned' of %.*s", len, name);
  dt_status status;
  if (path && !access(path, F_OK))
    status = read_preset(path, policy, info->source, out, err);
  else
    status = dtl_fail(err, DT_EINPUT,
                      "%.*s has no preset 'tuned' for this pair and machine%s: run `dtrun run tune %s` first", len,
                      name, path && is_old(path) ? " (presets of earlier dtrun versions are not used)" : "", policy);
  free(path);
  return status;
}
