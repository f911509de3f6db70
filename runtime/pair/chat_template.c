/* The chat template of a model: see dt_pair_chat, dt_model_chat. */
#include "model/chat_template.h"
#include "pair/pair.h"
#include "system/need.h"

#include <stdlib.h>

dt_status dt_model_chat(const char *path, const char *name, dt_chat **out, dt_error *err) {
  char *template = NULL;
  NEED(path, "path");
  NEED(out, "out");
  if (name) return dt_chat_open(name, NULL, out, err);
  dt_status status = chat_template_read(path, &template, err);
  if (!status && !template)
    status = dt_fail(err, DT_EINPUT, "%s has no chat template: give --template NAME, as in --template chatml", path);
  dt_error unknown;
  if (!status && dt_chat_open(NULL, template, out, &unknown))
    status = dt_fail(err, unknown.status, "%s: %s", path, unknown.message);
  free(template);
  return status;
}

dt_status dt_pair_chat(const dt_pair *pair, const char *name, dt_chat **out, dt_error *err) {
  NEED(pair, "pair");
  return dt_model_chat(pair->target_info.path, name, out, err);
}
