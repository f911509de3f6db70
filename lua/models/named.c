/* See named.h. A line of models/pull.txt has name, package, file, bytes and digest; the last two are only read by
 * scripts/get-model. */
#include "models/named.h"

#include "files/user_files.h"
#include "host.h"
#include "system/asprintf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_plain(const char *word) { return *word && *word != '.' && !strpbrk(word, "/\\"); }

static bool parse(const char *line, named_model *out) {
  return sscanf(line, "%127s %*s %127s", out->name, out->file) == 2 && out->name[0] != '#' && is_plain(out->name) &&
         is_plain(out->file);
}

named_model *named_all(int *n) {
  char *path, line[1024];
  named_model *all = NULL, one;
  *n = 0;
  FILE *file = !dt_find("models/pull.txt", &path, NULL) && path ? fopen(path, "r") : NULL;
  while (file && fgets(line, sizeof line, file)) {
    named_model *grown = parse(line, &one) ? realloc(all, ((size_t)*n + 1) * sizeof *all) : NULL;
    if (grown) all = grown, all[(*n)++] = one;
  }
  if (file) fclose(file);
  free(path);
  return all;
}

char *named_home(void) { return user_path("XDG_DATA_HOME", ".local/share", "models"); }

/* Returns folder/name if it exists. */
static char *there(const char *folder, const char *name) {
  char *path;
  if (!folder || dt_asprintf(&path, "%s/%s", folder, name) < 0) return NULL;
  if (access(path, F_OK) == 0) return path;
  free(path);
  return NULL;
}

static char *bundled(const char *name, const char *mark) {
  char *relative, *path = NULL;
  if (dt_asprintf(&relative, "models/%s%s", name, mark) < 0) return NULL;
  if (dt_find(relative, &path, NULL)) path = NULL;
  free(relative);
  if (path) path[strlen(path) - strlen(mark)] = '\0';
  return path;
}

char *named_path(const char *name, bool *known) {
  int n;
  named_model *all = named_all(&n);
  char *path = NULL, *home = named_home();
  *known = false;
  for (int i = 0; i < n && !*known; i++) {
    *known = strcmp(all[i].name, name) == 0;
    if (*known && !(path = bundled(all[i].file, ""))) path = there(home, all[i].file);
  }
  free(all), free(home);
  if (*known || !is_plain(name)) return path;
  return bundled(name, "/config.json");
}
