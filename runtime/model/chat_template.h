/* The chat template that comes with a model: a program in Jinja, as text. */
#ifndef DT_CHAT_TEMPLATE_H
#define DT_CHAT_TEMPLATE_H

#include "system/status.h"

/* Reads the chat template of a model's folder (chat_template.jinja or, if that is missing, the key chat_template of
 * tokenizer_config.json) or GGUF file (the key tokenizer.chat_template). *out is malloc'd and NUL-terminated; it is
 * NULL if the model has none. */
dt_status chat_template_read(const char *path, char **out, dt_error *err);

#endif
