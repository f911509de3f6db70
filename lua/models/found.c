/* Finds the draft that belongs to a target: see found.h. */
#include "models/found.h"

#include "models/hub.h"
#include "models/models_in.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_FOLDERS 16

typedef struct {
  dt_model_facts target;
  found_kind kind;
  int looked; /* number of candidates */
  char *path; /* the best candidate so far, or NULL */
  dt_fit fit;
  uint64_t bytes;
  struct stat seen[MOST_FOLDERS]; /* folders that have been searched */
  int n_seen;
} search;

static void consider(search *s, const char *path) {
  uint64_t bytes;
  if (s->looked++ >= FOUND_MOST) return;
  dt_fit fit = dt_draft_fits(&s->target, path, &bytes);
  if (fit == DT_FITS_NOT || (s->kind == FOUND_HEADS && fit != DT_FITS_HEAD)) return;
  bool better = !s->path || (fit == s->fit ? bytes < s->bytes : fit == DT_FITS_HEAD);
  char *copy = better ? strdup(path) : NULL;
  if (!copy) return;
  free(s->path);
  s->path = copy, s->fit = fit, s->bytes = bytes;
}

/* Returns whether this is a folder that has not been searched yet. */
static bool is_new(search *s, const char *folder) {
  struct stat info;
  if (stat(folder, &info)) return false;
  for (int i = 0; i < s->n_seen; i++)
    if (s->seen[i].st_dev == info.st_dev && s->seen[i].st_ino == info.st_ino) return false;
  if (s->n_seen < MOST_FOLDERS) s->seen[s->n_seen++] = info;
  return true;
}

static void look_through(search *s, const char *folder) {
  int n;
  if (!is_new(s, folder)) return;
  char **names = models_in(folder, 0, &n);
  for (int i = 0; i < n; i++) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", folder, names[i]) < (int)sizeof path) consider(s, path);
  }
  models_in_free(names, n);
}

/* Searches the folder of a path as it is written, since models are often links. */
static void look_beside(search *s, const char *path) {
  char folder[PATH_MAX];
  size_t n = strlen(path);
  while (n > 1 && path[n - 1] == '/') n--;
  while (n > 0 && path[n - 1] != '/') n--;
  while (n > 1 && path[n - 1] == '/') n--;
  snprintf(folder, sizeof folder, "%.*s", n ? (int)n : 1, n ? path : ".");
  look_through(s, folder);
}

static void look_in_cache(void *user, const char *id, const char *folder) {
  char *snapshot = hub_snapshot(folder);
  (void)id;
  if (snapshot) consider(user, snapshot), look_through(user, snapshot);
  free(snapshot);
}

char *found_draft(const char *target, found_kind kind) {
  search s = {.kind = kind};
  char **homes, folder[PATH_MAX];
  int n;
  if (dt_model_look(target, &s.target, NULL)) return NULL;
  look_beside(&s, target);
  if (!dt_homes(&homes, &n, NULL)) {
    for (int i = 0; i < n; i++) {
      snprintf(folder, sizeof folder, "%s/models", homes[i]);
      look_through(&s, folder);
      free(homes[i]);
    }
    free(homes);
  }
  hub_each(look_in_cache, &s);
  return s.path;
}
