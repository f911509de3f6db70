/* Reads the prompts of the command line: texts, files, and lines of JSON. */
#ifndef PROMPTS_H
#define PROMPTS_H

#include "dtrun.h"

#include <stddef.h>

typedef struct {
  char *name; /* for messages: the name of its file, or FILE:LINE */
  char *text; /* the unchanged bytes; not empty */
  size_t len;
  int32_t *ids; /* [n_ids] of a question in the chat template; NULL: the text is encoded as it is */
  int n_ids;
} prompt_text;

typedef struct {
  prompt_text *list; /* [n] */
  int n;
} prompt_list;

/* Each of these adds to a list, which starts as zeros. Free it with prompts_free, after a failure too. DT_EINPUT:
 * nothing can be read, or there is no prompt in it. */
dt_status prompts_add_text(prompt_list *p, const char *text, dt_error *err);
dt_status prompts_add_file(prompt_list *p, const char *path, dt_error *err); /* "-": standard input */
/* Adds a prompt for each line {"prompt": "..."} of a file. */
dt_status prompts_add_lines(prompt_list *p, const char *path, dt_error *err);
void prompts_free(prompt_list *p);

#endif
