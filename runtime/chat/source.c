/* Finds a model's chat template: see source.h. */
#include "chat/source.h"

#include "model/gguf.h"
#include "system/json_file.h"
#include "template/template.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

dt_status chat_file_read(const char *path, char **out, dt_error *err) {
  FILE *f = fopen(path, "rb");
  char *text = f ? malloc(TEMPLATE_TEXT + 1) : NULL;
  if (f && !text) {
    fclose(f);
    return dt_fail_memory(err, path, TEMPLATE_TEXT);
  }
  size_t n = f ? fread(text, 1, TEMPLATE_TEXT + 1, f) : 0;
  dt_status status = DT_OK;
  if (!f || ferror(f)) status = dt_fail(err, DT_EIO, "%s: cannot read: %s", path, strerror(errno));
  if (n > TEMPLATE_TEXT)
    status = dt_fail(err, DT_EINPUT, "%s: the file has more than %d bytes, too many for a chat template", path,
                     TEMPLATE_TEXT);
  if (!status && memchr(text, '\0', n))
    status = dt_fail(err, DT_EINPUT, "%s: a chat template cannot have a NUL character", path);
  if (f) fclose(f);
  if (status) {
    free(text);
    return status;
  }
  text[n] = '\0';
  *out = text;
  return DT_OK;
}

/* ---- a folder ---------------------------------------------------------------------------------------------------- */

static const cJSON *member(const cJSON *object, const char *name) {
  return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* The template called `name`; a text alone is the default one. */
static const char *choose(const cJSON *value, const char *name) {
  const cJSON *entry;
  if (cJSON_IsString(value)) return strcmp(name, "default") == 0 ? value->valuestring : NULL;
  cJSON_ArrayForEach(entry, value) {
    const char *known = cJSON_GetStringValue(member(entry, "name"));
    if (known && strcmp(known, name) == 0) return cJSON_GetStringValue(member(entry, "template"));
  }
  return NULL;
}

static bool ends_in_token(const char *name) {
  size_t n = strlen(name);
  return n > 6 && strcmp(name + n - 6, "_token") == 0;
}

/* A token is a text, or an object with its text. */
static const char *token_text(const cJSON *token) {
  return cJSON_GetStringValue(cJSON_IsObject(token) ? member(token, "content") : token);
}

/* Adds the members of tokenizer_config.json that name special tokens, as Hugging Face transformers gives them to
 * templates. */
static bool add_tokens(cJSON *tokens, const cJSON *config) {
  const cJSON *v, *list = member(config, "additional_special_tokens");
  bool fine = true;
  cJSON_ArrayForEach(v, config) if (fine && ends_in_token(v->string) && token_text(v)) fine =
      cJSON_AddStringToObject(tokens, v->string, token_text(v)) != NULL;
  if (!fine || !cJSON_IsArray(list)) return fine;
  cJSON *more = cJSON_AddArrayToObject(tokens, "additional_special_tokens");
  cJSON_ArrayForEach(v, list) if (token_text(v)) fine =
      cJSON_AddItemToArray(more, cJSON_CreateString(token_text(v))) && fine;
  return fine && more;
}

static dt_status starved(dt_error *err) { return dt_fail_memory(err, "the special tokens", 1); }

static dt_status copy(const char *text, char **out, dt_error *err) {
  if (!text || (*out = strdup(text))) return DT_OK;
  return dt_fail_memory(err, "a chat template", strlen(text));
}

/* Reads the template, unless the folder has one in a file of its own, and the special tokens. */
static dt_status read_config(const char *path, cJSON *tokens, chat_files *out, dt_error *err) {
  cJSON *config = NULL;
  dt_status status = json_read_object(path, &config, err);
  if (status) return status;
  const cJSON *templates = out->from ? NULL : member(config, "chat_template");
  status = copy(choose(templates, "default"), &out->text, err);
  if (!status) status = copy(choose(templates, "tool_use"), &out->tools, err);
  if (out->text && !out->from) out->from = "tokenizer_config.json";
  if (!status && !add_tokens(tokens, config)) status = starved(err);
  cJSON_Delete(config);
  return status;
}

static dt_status read_folder(const char *path, cJSON *tokens, chat_files *out, dt_error *err) {
  char jinja[4096], config[4096];
  snprintf(jinja, sizeof jinja, "%s/chat_template.jinja", path);
  snprintf(config, sizeof config, "%s/tokenizer_config.json", path);
  dt_status status = DT_OK;
  if (access(jinja, F_OK) == 0) status = chat_file_read(jinja, &out->text, err), out->from = "chat_template.jinja";
  if (!status && access(config, F_OK) == 0) status = read_config(config, tokens, out, err);
  return status;
}

/* ---- a GGUF file ------------------------------------------------------------------------------------------------- */

static dt_status copy_string(const gguf *g, const char *key, char **out, dt_error *err) {
  size_t len;
  const char *text = gguf_string(gguf_find(g, key), 0, &len);
  if (!text || (*out = strndup(text, len))) return DT_OK;
  return dt_fail_memory(err, "a chat template", len);
}

/* Adds the special tokens whose ids the file names. */
static bool add_gguf_tokens(cJSON *tokens, const gguf *g) {
  static const char *const names[][2] = {{"bos", "bos_token"},       {"eos", "eos_token"},     {"unknown", "unk_token"},
                                         {"seperator", "sep_token"}, {"padding", "pad_token"}, {"cls", "cls_token"},
                                         {"mask", "mask_token"}};
  bool fine = true;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char key[64], *text = NULL;
    int64_t id;
    size_t len = 0;
    snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", names[i][0]);
    if (!gguf_integer(gguf_find(g, key), 0, &id) || id < 0) continue;
    const char *bytes = gguf_string(gguf_find(g, "tokenizer.ggml.tokens"), (uint64_t)id, &len);
    if (bytes) text = strndup(bytes, len);
    if (bytes) fine = text && cJSON_AddStringToObject(tokens, names[i][1], text) && fine;
    free(text);
  }
  return fine;
}

static dt_status read_gguf(const char *path, cJSON *tokens, chat_files *out, dt_error *err) {
  gguf *g;
  dt_status status = gguf_open(path, &g, err);
  if (status) return status;
  status = copy_string(g, "tokenizer.chat_template", &out->text, err);
  if (!status) status = copy_string(g, "tokenizer.chat_template.tool_use", &out->tools, err);
  if (out->text) out->from = "tokenizer.chat_template";
  if (!status && !add_gguf_tokens(tokens, g)) status = starved(err);
  gguf_close(g);
  return status;
}

/* ---- either ------------------------------------------------------------------------------------------------------ */

dt_status chat_files_read(const char *path, chat_files *out, dt_error *err) {
  struct stat info;
  *out = (chat_files){0};
  cJSON *tokens = cJSON_CreateObject();
  const bool is_file = stat(path, &info) == 0 && !S_ISDIR(info.st_mode);
  dt_status status = tokens ? (is_file ? read_gguf : read_folder)(path, tokens, out, err) : starved(err);
  char *printed = status ? NULL : cJSON_PrintUnformatted(tokens);
  if (!status) status = printed ? copy(printed, &out->tokens, err) : starved(err);
  cJSON_free(printed);
  cJSON_Delete(tokens);
  return status;
}

void chat_files_free(chat_files *files) {
  free(files->text), free(files->tools), free(files->tokens);
  *files = (chat_files){0};
}
