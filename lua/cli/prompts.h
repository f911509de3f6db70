/* The prompts of the command line: texts, files, and lines of JSON. Only main.c uses it. */
#ifndef PROMPTS_H
#define PROMPTS_H

#include "dtrun.h"

#include <stddef.h>

typedef struct {
  char *name; /* of its file, or FILE:LINE: for messages */
  char *text; /* bytes as they are; not empty */
  size_t len;
} prompt_text;

typedef struct {
  prompt_text *list; /* [n] */
  int n;
} prompt_list;

/* Each adds to a list that begins as zeros. Free it with prompts_free, after a failure too. DT_EINPUT: nothing to read,
 * or no prompt in it. */
dt_status prompts_add_text(prompt_list *p, const char *text, dt_error *err);
dt_status prompts_add_file(prompt_list *p, const char *path, dt_error *err); /* "-": standard input */
/* A prompt from each line {"prompt": "..."} of a file. */
dt_status prompts_add_lines(prompt_list *p, const char *path, dt_error *err);
void prompts_free(prompt_list *p);

#endif
