/* The chat template that comes with a model. */
#ifndef DT_CHAT_SOURCE_H
#define DT_CHAT_SOURCE_H

#include "system/status.h"

typedef struct {
  const char *from;            /* the file or key of the template; NULL: the model has none */
  char *text, *tools, *tokens; /* as in dt_chat_source; text: NULL if the model has none */
} chat_files;

/* Reads the template of a model's folder (chat_template.jinja or, if that is missing, the key chat_template of
 * tokenizer_config.json: a text, or a list of named ones, of which default and tool_use count) or GGUF file (the keys
 * tokenizer.chat_template and tokenizer.chat_template.tool_use), and its special tokens. A model without these files
 * has none. Free with chat_files_free, after a failure too. */
dt_status chat_files_read(const char *path, chat_files *out, dt_error *err);
void chat_files_free(chat_files *files);

/* Reads a template from a file of its own. *out is malloc'd. */
dt_status chat_file_read(const char *path, char **out, dt_error *err);

#endif
