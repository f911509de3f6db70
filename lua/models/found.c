/* Finds the drafts that belong to a target: see found.h. */
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
  int looked;      /* number of candidates */
  found_one *list; /* [n] the drafts among them, in order */
  int n;
  struct stat seen[MOST_FOLDERS]; /* folders that have been searched */
  int n_seen;
} search;

static bool is_better(const found_one *a, const found_one *b) {
  return a->fit == b->fit ? a->bytes < b->bytes : a->fit == DT_FITS_HEAD;
}

static bool is_listed(const search *s, const char *path) {
  struct stat info, other;
  for (int i = 0; i < s->n && !stat(path, &info); i++)
    if (!stat(s->list[i].path, &other) && info.st_dev == other.st_dev && info.st_ino == other.st_ino) return true;
  return false;
}

static void consider(search *s, const char *path) {
  found_one one = {0};
  if (s->looked++ >= FOUND_MOST) return;
  one.fit = dt_draft_fits(&s->target, path, &one.bytes);
  if (one.fit == DT_FITS_NOT || (s->kind == FOUND_HEADS && one.fit != DT_FITS_HEAD) || is_listed(s, path)) return;
  found_one *list = realloc(s->list, ((size_t)s->n + 1) * sizeof *list);
  if (list) s->list = list;
  one.path = list ? strdup(path) : NULL;
  if (!one.path) return;
  int at = s->n++;
  for (; at > 0 && is_better(&one, &list[at - 1]); at--) list[at] = list[at - 1];
  list[at] = one;
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

found_one *found_all(const char *target, found_kind kind, int *n) {
  search s = {.kind = kind};
  char **homes, folder[PATH_MAX];
  int n_homes;
  *n = 0;
  if (dt_model_look(target, &s.target, NULL)) return NULL;
  look_beside(&s, target);
  if (!dt_homes(&homes, &n_homes, NULL)) {
    for (int i = 0; i < n_homes; i++) {
      snprintf(folder, sizeof folder, "%s/models", homes[i]);
      look_through(&s, folder);
      free(homes[i]);
    }
    free(homes);
  }
  hub_each(look_in_cache, &s);
  *n = s.n;
  return s.list;
}

void found_free(found_one *list, int n) {
  for (int i = 0; i < n; i++) free(list[i].path);
  free(list);
}

char *found_draft(const char *target, found_kind kind) {
  int n;
  found_one *list = found_all(target, kind, &n);
  char *first = n > 0 ? list[0].path : NULL;
  if (first) list[0].path = NULL;
  found_free(list, n);
  return first;
}
