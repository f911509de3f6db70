/* See token.h. */
#include "pull/token.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST 4096

static const char *set(const char *variable) {
  const char *value = getenv(variable);
  return value && *value ? value : NULL;
}

static void find_file(char *path, size_t size) {
  if (set("HF_TOKEN_PATH"))
    snprintf(path, size, "%s", set("HF_TOKEN_PATH"));
  else if (set("HF_HOME"))
    snprintf(path, size, "%s/token", set("HF_HOME"));
  else if (set("XDG_CACHE_HOME"))
    snprintf(path, size, "%s/huggingface/token", set("XDG_CACHE_HOME"));
  else
    snprintf(path, size, "%s/.cache/huggingface/token", set("HOME") ? set("HOME") : "");
}

dt_status token_read(char **token, dt_error *err) {
  char text[LONGEST + 2] = "", path[5000] = "HF_TOKEN";
  if (set("HF_TOKEN")) {
    snprintf(text, sizeof text, "%s", set("HF_TOKEN"));
  } else {
    find_file(path, sizeof path);
    FILE *file = fopen(path, "r");
    if (file) text[fread(text, 1, sizeof text - 1, file)] = '\0';
    if (file) fclose(file);
  }
  size_t n = strlen(text);
  while (n > 0 && strchr(" \t\r\n", text[n - 1])) text[--n] = '\0';
  *token = NULL;
  if (n == 0) return DT_OK;
  for (size_t i = 0; i < n; i++)
    if (text[i] <= ' ' || text[i] > '~' || n > LONGEST)
      return dt_fail(err, DT_EINPUT, "%s contains no token: expected one word of printable characters", path);
  *token = strdup(text);
  return *token ? DT_OK : dt_fail_memory(err, "a token", n);
}
