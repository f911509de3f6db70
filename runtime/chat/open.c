/* Opening chats: see chat.h. */
#include "chat/layouts.h"
#include "chat/parts.h"
#include "chat/source.h"
#include "system/need.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static dt_status compile(const char *name, const char *text, template **out, dt_error *err) {
  dt_error inner;
  dt_status status = template_compile(text, strlen(text), out, &inner);
  return status ? chat_fail(name, status, &inner, err) : DT_OK;
}

static dt_status fail_unknown(const char *name, dt_error *err) {
  char known[400] = "";
  for (const chat_layout_text *l = chat_layout_texts; l->name; l++) {
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", l->name);
  }
  return dt_fail(err, DT_EINPUT, "no chat template '%.100s': expected a file or one of: %s", name, known);
}

static const char *built_in(const char *name) {
  for (const chat_layout_text *l = chat_layout_texts; l->name; l++)
    if (strcmp(l->name, name) == 0) return l->text;
  return NULL;
}

static dt_status fill(dt_chat *c, const dt_chat_source *source, const char *text, dt_error *err) {
  c->name = strdup(source->name ? source->name : "given");
  c->text = strdup(text);
  c->tokens = strdup(source->tokens ? source->tokens : "{}");
  if (!c->name || !c->text || !c->tokens) return dt_fail_memory(err, "a chat template", strlen(text));
  dt_status status = compile(c->name, text, &c->main, err);
  if (!status && source->tools) status = compile(c->name, source->tools, &c->tools, err);
  if (!status) chat_learn(c);
  return status;
}

dt_status dt_chat_open(const dt_chat_source *source, dt_chat **out, dt_error *err) {
  NEED(source, "source");
  NEED(out, "out");
  NEED(source->name || source->text, "name, and the text too,");
  const char *text = source->text ? source->text : built_in(source->name);
  if (!text) return fail_unknown(source->name, err);
  dt_chat *c = calloc(1, sizeof *c);
  if (!c) return dt_fail_memory(err, "a chat template", sizeof *c);
  dt_status status = fill(c, source, text, err);
  if (status)
    dt_chat_close(c);
  else
    *out = c;
  return status;
}

/* ---- of a model ---------------------------------------------------------------------------------------------------
 */

/* Opens the template called `name`, built in or a file. */
static dt_status open_named(const char *name, const chat_files *files, dt_chat **out, dt_error *err) {
  char *text = NULL;
  dt_status status = DT_OK;
  if (!built_in(name) && access(name, F_OK) == 0) status = chat_file_read(name, &text, err);
  const char *slash = text ? strrchr(name, '/') : NULL; /* messages, which clients may see, name no folder */
  if (!status) status = dt_chat_open(&(dt_chat_source){slash ? slash + 1 : name, text, NULL, files->tokens}, out, err);
  free(text);
  return status;
}

static dt_status open_own(const char *path, const chat_files *files, dt_chat **out, dt_error *err) {
  dt_error inner;
  if (!files->text)
    return dt_fail(err, DT_EINPUT, "%s has no chat template: give --template NAME, as in --template chatml", path);
  dt_status status =
      dt_chat_open(&(dt_chat_source){files->from, files->text, files->tools, files->tokens}, out, &inner);
  return status ? dt_fail(err, status, "%s: %s; --template NAME or FILE uses another one", path, inner.message) : DT_OK;
}

dt_status dt_model_chat(const char *path, const char *name, dt_chat **out, dt_error *err) {
  NEED(path, "path");
  NEED(out, "out");
  chat_files files;
  dt_status status = chat_files_read(path, &files, err);
  if (!status) status = name ? open_named(name, &files, out, err) : open_own(path, &files, out, err);
  chat_files_free(&files);
  return status;
}
