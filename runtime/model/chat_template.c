/* Finds a model's chat template: see chat_template.h. */
#include "model/chat_template.h"

#include "model/gguf.h"
#include "system/json_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST (1u << 20) /* bytes of a file that has only a template */

static dt_status read_jinja(const char *path, char **out, dt_error *err) {
  FILE *f = fopen(path, "rb");
  char *text = f ? malloc(MOST + 1) : NULL;
  if (f && !text) {
    fclose(f);
    return dt_fail_memory(err, path, MOST);
  }
  size_t n = f ? fread(text, 1, MOST + 1, f) : 0;
  dt_status status = DT_OK;
  if (!f || ferror(f)) status = dt_fail(err, DT_EIO, "%s: cannot read: %s", path, strerror(errno));
  if (n > MOST)
    status = dt_fail(err, DT_EINPUT, "%s: the file has more than %u bytes, too many for a chat template", path, MOST);
  if (f) fclose(f);
  if (status) {
    free(text);
    return status;
  }
  text[n] = '\0';
  *out = text;
  return DT_OK;
}

/* A text, or a list of {"name", "template"}: then the one called default. */
static const char *choose(const cJSON *value) {
  const cJSON *entry;
  if (cJSON_IsString(value)) return value->valuestring;
  cJSON_ArrayForEach(entry, value) {
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(entry, "name"));
    if (name && strcmp(name, "default") == 0)
      return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(entry, "template"));
  }
  return NULL;
}

static dt_status read_config(const char *path, char **out, dt_error *err) {
  cJSON *config = NULL;
  dt_status status = json_read_object(path, &config, err);
  if (status) return status;
  const char *text = choose(cJSON_GetObjectItemCaseSensitive(config, "chat_template"));
  if (text && !(*out = strdup(text))) status = dt_fail_memory(err, path, strlen(text));
  cJSON_Delete(config);
  return status;
}

static dt_status read_gguf(const char *path, char **out, dt_error *err) {
  gguf *g;
  dt_status status = gguf_open(path, &g, err);
  if (status) return status;
  size_t len;
  const char *text = gguf_string(gguf_find(g, "tokenizer.chat_template"), 0, &len);
  if (text && !(*out = strndup(text, len))) status = dt_fail_memory(err, path, len);
  gguf_close(g);
  return status;
}

dt_status chat_template_read(const char *path, char **out, dt_error *err) {
  struct stat info;
  *out = NULL;
  if (stat(path, &info) == 0 && !S_ISDIR(info.st_mode)) return read_gguf(path, out, err);
  char file[4096];
  snprintf(file, sizeof file, "%s/chat_template.jinja", path);
  if (access(file, F_OK) == 0) return read_jinja(file, out, err);
  snprintf(file, sizeof file, "%s/tokenizer_config.json", path);
  return access(file, F_OK) == 0 ? read_config(file, out, err) : DT_OK;
}
