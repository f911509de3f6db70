/* See models_in.h. */
#include "models/models_in.h"

#include "model/gguf_name.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  const char *folder;
  char **names;
  int n;
} found;

static int is_shown(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static void add(found *f, const char *name) {
  char **grown = realloc(f->names, ((size_t)f->n + 1) * sizeof *grown);
  if (grown) f->names = grown;
  char *copy = grown ? strdup(name) : NULL;
  if (copy) f->names[f->n++] = copy;
}

/* below: "" or a path that ends in '/' */
static void look(found *f, const char *below, int levels) {
  char path[PATH_MAX];
  struct dirent **entries;
  if (snprintf(path, sizeof path, "%s/%s", f->folder, below) >= (int)sizeof path) return;
  int n = scandir(path, &entries, is_shown, alphasort);
  for (int i = 0; i < n; i++) {
    char name[PATH_MAX], config[PATH_MAX];
    const char *own = entries[i]->d_name;
    bool fits = snprintf(name, sizeof name, "%s%s", below, own) < (int)sizeof name - 1 &&
                snprintf(config, sizeof config, "%s/%s/config.json", f->folder, name) < (int)sizeof config;
    if (fits && (gguf_is_name(own) ? !gguf_is_later_part(own) : access(config, F_OK) == 0))
      add(f, name);
    else if (fits && !gguf_is_name(own) && levels > 0)
      look(f, strcat(name, "/"), levels - 1);
    free(entries[i]);
  }
  if (n >= 0) free(entries);
}

char **models_in(const char *folder, int levels, int *n) {
  found f = {.folder = folder};
  look(&f, "", levels);
  *n = f.n;
  return f.names;
}

void models_in_free(char **names, int n) {
  for (int i = 0; i < n; i++) free(names[i]);
  free(names);
}
