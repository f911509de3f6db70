/* Reads prompts: see prompts.h. */
#include "cli/prompts.h"

#include "system/json_file.h"
#include "text/utf8.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PROMPT_BYTES (64u << 20) /* far above any context; it stops `-f /dev/zero` */
#define MOST_LINES_BYTES (1u << 30)

static bool is_standard(const char *path) { return strcmp(path, "-") == 0; }

/* Reads a whole file into malloc'd memory with a NUL at its end. */
static dt_status read_all(const char *path, size_t most, char **out, size_t *len, dt_error *err) {
  const char *name = is_standard(path) ? "standard input" : path;
  FILE *file = is_standard(path) ? stdin : fopen(path, "rb");
  if (!file)
    return dt_fail(err, errno == ENOMEM ? DT_ENOMEM : DT_EINPUT, "prompt %s: %s%s", name, strerror(errno),
                   errno == ENOENT || errno == ENAMETOOLONG ? " (a text is given by -p)" : "");
  char *text = NULL;
  size_t capacity = 0, n = 0, got = 1;
  dt_status status = DT_OK;
  while (got > 0 && !status) {
    if (n + 1 >= capacity) {
      capacity = capacity ? capacity * 2 : 1 << 16;
      char *grown = capacity <= most ? realloc(text, capacity) : NULL;
      if (grown)
        text = grown;
      else if (capacity <= most)
        status = dt_fail_memory(err, name, capacity);
      else
        status =
            dt_fail(err, DT_EINPUT, "prompt %s: it has over %zu MiB, more than any context holds", name, most >> 20);
    }
    if (!status) n += got = fread(text + n, 1, capacity - 1 - n, file);
  }
  if (!status && ferror(file)) status = dt_fail(err, DT_EINPUT, "prompt %s: %s", name, strerror(errno));
  if (!status && n == 0)
    status = dt_fail(err, DT_EINPUT, "prompt %s: empty%s", name,
                     is_standard(path) ? ": give --prompt FILE, --text TEXT or --prompts FILE.jsonl"
                                       : ", expected some text");
  if (!is_standard(path)) fclose(file);
  if (status) {
    free(text);
    return status;
  }
  text[n] = '\0';
  *out = text;
  *len = n;
  return DT_OK;
}

/* Adds a prompt. It takes ownership of text, which it frees if memory runs out, and copies name. */
static dt_status add(prompt_list *p, const char *name, char *text, size_t len, dt_error *err) {
  prompt_text *grown = text ? realloc(p->list, (size_t)(p->n + 1) * sizeof *grown) : NULL;
  char *named = strdup(name);
  if (grown) p->list = grown;
  if (!grown || !named) {
    free(text), free(named);
    return dt_fail_memory(err, "the prompts", len);
  }
  p->list[p->n++] = (prompt_text){.name = named, .text = text, .len = len};
  return DT_OK;
}

dt_status prompts_add_text(prompt_list *p, const char *text, dt_error *err) {
  char name[32] = "--text";
  if (!*text) return dt_fail(err, DT_EINPUT, "prompt of --text: empty, expected some text");
  if (p->n > 0) snprintf(name, sizeof name, "--text %d", p->n + 1);
  return add(p, name, strdup(text), strlen(text), err);
}

dt_status prompts_add_file(prompt_list *p, const char *path, dt_error *err) {
  char *text;
  size_t len;
  dt_status status = read_all(path, MOST_PROMPT_BYTES, &text, &len, err);
  return status ? status : add(p, path, text, len, err);
}

static dt_status add_line(prompt_list *p, const char *name, const char *line, size_t len, dt_error *err) {
  size_t valid = utf8_valid_prefix(line, len);
  if (valid < len) return dt_fail(err, DT_EINPUT, "%s: invalid UTF-8 at byte %zu", name, valid + 1);
  cJSON *object;
  dt_status status = json_parse_object(name, line, len, &object, err);
  if (status) return status;
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "prompt"));
  status = text && *text ? add(p, name, strdup(text), strlen(text), err)
                         : dt_fail(err, DT_EINPUT, "%s: %s: expected {\"prompt\": \"...\"}", name,
                                   text ? "the prompt is empty" : "no prompt");
  cJSON_Delete(object);
  return status;
}

dt_status prompts_add_lines(prompt_list *p, const char *path, dt_error *err) {
  char *text, name[1024];
  size_t len;
  dt_status status = read_all(path, MOST_LINES_BYTES, &text, &len, err);
  if (status) return status;
  int number = 0, before = p->n;
  for (char *line = text, *end; line < text + len && !status; line = end + 1) {
    end = memchr(line, '\n', (size_t)(text + len - line));
    if (!end) end = text + len;
    snprintf(name, sizeof name, "%s:%d", path, ++number);
    if (strspn(line, " \t\r") < (size_t)(end - line)) status = add_line(p, name, line, (size_t)(end - line), err);
  }
  if (!status && p->n == before) status = dt_fail(err, DT_EINPUT, "prompts %s: the file has no lines", path);
  free(text);
  return status;
}

void prompts_free(prompt_list *p) {
  for (int i = 0; i < p->n; i++) free(p->list[i].name), free(p->list[i].text), free(p->list[i].ids);
  free(p->list);
  *p = (prompt_list){0};
}
