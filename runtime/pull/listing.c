/* See listing.h. */
#include "pull/listing.h"

#include "model/gguf_name.h"
#include "system/json_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LONGEST_PART 255

/* ---- reading ----------------------------------------------------------------------------------------------------- */

bool listing_is_id(const char *id) {
  static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
  size_t org = strspn(id, allowed), name = id[org] == '/' ? strspn(id + org + 1, allowed) : 0;
  return org && name && !id[org + 1 + name] && org + name < 200 && *id != '.' && id[org + 1] != '.' &&
         !strstr(id, "--");
}

/* Whether a path stays below its folder and fits one line: no empty part, no "." or "..", no backslash, no control
 * character. */
static bool is_safe(const char *path) {
  for (const char *c = path; *c; c++)
    if ((unsigned char)*c < ' ' || *c == 0x7f || *c == '\\') return false;
  for (const char *part = path;; part++) {
    size_t n = strcspn(part, "/");
    if (n == 0 || n > LONGEST_PART || (n == 1 && *part == '.') || (n == 2 && !strncmp(part, "..", 2))) return false;
    part += n;
    if (!*part) return strlen(path) < 1024;
  }
}

static bool is_commit(const char *text) {
  size_t n = text ? strspn(text, "0123456789abcdef") : 0;
  return n >= 7 && n < LISTING_COMMIT && !text[n];
}

static dt_status read_names(const char *id, const cJSON *files, listing *out, dt_error *err) {
  int n = cJSON_GetArraySize(files);
  out->names = calloc((size_t)n + 1, sizeof *out->names);
  out->wanted = calloc((size_t)n + 1, sizeof *out->wanted);
  if (!out->names || !out->wanted) return dt_fail_memory(err, "a list of files", (size_t)n * sizeof *out->names);
  for (const cJSON *f = files->child; f; f = f->next) {
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(f, "rfilename"));
    if (!name) return dt_fail(err, DT_EIO, "%s: the list of files contains a file without a name", id);
    if (!is_safe(name))
      return dt_fail(err, DT_EIO, "%s: the file '%.100s' would be outside of the model's folder: refused", id, name);
    if (!(out->names[out->n] = strdup(name))) return dt_fail_memory(err, "a list of files", strlen(name));
    out->n++;
  }
  return DT_OK;
}

dt_status listing_read(const char *id, const char *json, size_t len, listing *out, dt_error *err) {
  char what[300];
  cJSON *all;
  *out = (listing){0};
  snprintf(what, sizeof what, "%s: the list of files", id);
  if (json_parse_object(what, json, len, &all, err)) return DT_EIO;
  const char *commit = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(all, "sha"));
  const cJSON *files = cJSON_GetObjectItemCaseSensitive(all, "siblings");
  dt_status status = DT_OK;
  if (!is_commit(commit) || !cJSON_IsArray(files))
    status = dt_fail(err, DT_EIO, "%s: the list of files has no commit ('sha') or no files ('siblings')", id);
  if (!status) strcpy(out->commit, commit);
  if (!status) status = read_names(id, files, out, err);
  cJSON_Delete(all);
  return status;
}

void listing_free(listing *l) {
  for (int i = 0; i < l->n; i++) free(l->names[i]);
  free(l->names), free(l->wanted);
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

static bool ends(const char *name, const char *end) {
  size_t n = strlen(name), k = strlen(end);
  return n >= k && strcmp(name + n - k, end) == 0;
}

/* Whether the word is in the name, in letters of any size. */
static bool says(const char *name, const char *word) {
  const size_t n = strlen(word);
  while (*name && strncasecmp(name, word, n) != 0) name++;
  return *name;
}

/* Whether a GGUF file is a model, or the first part of one; there may be other GGUF files next to it. */
static bool is_gguf_model(const char *name) {
  return gguf_is_name(name) && !gguf_is_later_part(name) && !says(name, "mmproj") && !says(name, "imatrix");
}

static bool has(const listing *l, const char *name) {
  for (int i = 0; i < l->n; i++)
    if (strcmp(l->names[i], name) == 0) return true;
  return false;
}

/* Whether a file belongs to a model in safetensors; weights of other programs in the same folder do not. */
static bool belongs(const char *name, bool named_model) {
  if (strchr(name, '/')) return false;
  if (ends(name, ".safetensors")) return !named_model || strncmp(name, "model", 5) == 0;
  return strcmp(name, "config.json") == 0 || strcmp(name, "generation_config.json") == 0 ||
         strcmp(name, "model.safetensors.index.json") == 0 || strncmp(name, "chat_template", 13) == 0 ||
         (strncmp(name, "tokenizer", 9) == 0 && ends(name, ".json"));
}

/* Whether there is such a model; if so, marks its files as wanted. */
static bool choose_safetensors(listing *l) {
  bool named_model = has(l, "model.safetensors") || has(l, "model.safetensors.index.json"), weights = false;
  if (!has(l, "config.json")) return false;
  for (int i = 0; i < l->n; i++)
    weights = weights || (belongs(l->names[i], named_model) && ends(l->names[i], ".safetensors"));
  for (int i = 0; weights && i < l->n; i++) l->wanted[i] = belongs(l->names[i], named_model);
  return weights;
}

/* Lists names of .gguf files, as many as fit a message. */
static void list(const listing *l, char *out, size_t size) {
  size_t n = 0;
  *out = '\0';
  for (int i = 0; i < l->n; i++) {
    if (!is_gguf_model(l->names[i])) continue;
    if (n + strlen(l->names[i]) + 8 > size) {
      snprintf(out + n, size - n, ", ...");
      return;
    }
    n += (size_t)snprintf(out + n, size - n, "%s%s", n ? ", " : "", l->names[i]);
  }
}

/* Counts the .gguf files that spec means (NULL: all); *at is the last of them. */
static int count(const listing *l, const char *spec, int *at) {
  int n = 0;
  for (int i = 0; i < l->n; i++)
    if (is_gguf_model(l->names[i]) && (!spec || gguf_answers(l->names[i], spec))) *at = i, n++;
  return n;
}

/* Marks a .gguf file as wanted, with the other parts of its model. */
static dt_status want_file(listing *l, const char *id, int at, dt_error *err) {
  int number, count = 1;
  char name[1024];
  l->wanted[at] = true;
  gguf_part(l->names[at], &number, &count);
  for (int i = 2; i <= count; i++) {
    int k = 0;
    if (!gguf_part_path(l->names[at], i, name, sizeof name))
      return dt_fail(err, DT_EINPUT, "%.100s..: the path is too long", l->names[at]);
    while (k < l->n && strcmp(l->names[k], name) != 0) k++;
    if (k == l->n) return dt_fail(err, DT_EINPUT, "%s lacks %s, part %d of %d of a model", id, name, i, count);
    l->wanted[k] = true;
  }
  return DT_OK;
}

dt_status listing_choose(listing *l, const char *id, const char *spec, const char **file, dt_error *err) {
  char found[320];
  int at = 0, all = count(l, NULL, &at);
  *file = NULL;
  if (!spec && choose_safetensors(l)) return DT_OK;
  if (all == 0)
    return dt_fail(err, DT_EINPUT, "%s contains no .gguf file%s", id,
                   spec ? "" : ", and no config.json with *.safetensors");
  if (!spec && all > 1) spec = GGUF_DEFAULT;
  int n = count(l, spec, &at);
  list(l, found, sizeof found);
  if (n == 0) return dt_fail(err, DT_EINPUT, "%s has no %.60s: name one, as in %s:FILE: %s", id, spec, id, found);
  if (n > 1)
    return dt_fail(err, DT_EINPUT, "%s: %d files match %.60s: name one, as in %s:FILE: %s", id, n, spec, id, found);
  *file = l->names[at];
  return want_file(l, id, at, err);
}
