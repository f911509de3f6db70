/* Lists the models on this machine: see dtl_models in host.h. */
#include "model/gguf_name.h"
#include "models/hub.h"
#include "models/models_in.h"
#include "models/named.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
  dtl_model *models;
  dt_model_facts *facts; /* [n]; zeros for models that cannot be read */
  int n;
  named_model *pulled; /* [n_pulled] */
  int n_pulled;
  bool failed;
} list;

static uint64_t bytes_of_file(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
}

static bool is_listed(const list *l, const char *name) {
  for (int i = 0; i < l->n; i++)
    if (strcmp(l->models[i].name, name) == 0) return true;
  return false;
}

/* Adds the model at a path. problem: why it cannot be read, or NULL. */
static void add(list *l, const char *name, const char *path, bool removable, const char *problem) {
  dt_error why = {0};
  bool head = false;
  dtl_model *models = realloc(l->models, ((size_t)l->n + 1) * sizeof *models);
  if (models) l->models = models;
  dt_model_facts *facts = realloc(l->facts, ((size_t)l->n + 1) * sizeof *facts);
  if (facts) l->facts = facts;
  char *own_name = strdup(name), *own_path = strdup(path);
  if (!models || !facts || !own_name || !own_path) {
    free(own_name), free(own_path);
    l->failed = true;
    return;
  }
  dtl_model *m = &models[l->n];
  *m = (dtl_model){.name = own_name, .path = own_path, .kind = "target", .removable = removable};
  facts[l->n] = (dt_model_facts){0};
  dt_status status = problem ? DT_EINPUT : dt_head_look(path, &head, &m->bytes, &why);
  if (!status && !head) status = dt_model_look(path, &facts[l->n], &why);
  if (status == DT_ENOMEM) l->failed = true;
  if (!status && head) {
    m->kind = "head";
  } else if (!status) {
    m->type = facts[l->n].type, m->bytes = facts[l->n].bytes;
  } else {
    m->kind = "unreadable", m->bytes = bytes_of_file(path), m->problem = strdup(problem ? problem : why.message);
    facts[l->n] = (dt_model_facts){0};
    if (!m->problem) l->failed = true;
  }
  l->n++;
}

/* Returns the name that models/pull.txt gives to a file, or NULL. */
static const char *pulled_name(const list *l, const char *file) {
  for (int i = 0; i < l->n_pulled; i++)
    if (strcmp(l->pulled[i].file, file) == 0) return l->pulled[i].name;
  return NULL;
}

/* Folders are listed by their names, pulled files by theirs, and other files by their paths. */
static void add_folder(list *l, const char *folder) {
  int n;
  char **names = models_in(folder, 0, &n);
  for (int i = 0; i < n; i++) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", folder, names[i]) >= (int)sizeof path) continue;
    const char *pulled = pulled_name(l, names[i]);
    const char *name = pulled ? pulled : gguf_is_name(names[i]) ? path : names[i];
    if (!is_listed(l, name)) add(l, name, path, pulled != NULL, NULL);
  }
  models_in_free(names, n);
}

/* A model in safetensors is listed by its id, as is a single .gguf file. If there are several .gguf files, each is
 * listed by id and file name. */
static void add_cached(void *user, const char *id, const char *folder) {
  list *l = user;
  int n, files = 0;
  char *snapshot = hub_snapshot(folder), path[PATH_MAX], name[PATH_MAX];
  bool whole = snapshot && snprintf(path, sizeof path, "%s/config.json", snapshot) < (int)sizeof path;
  if (!whole) {
    add(l, id, folder, true, "an incomplete download: dtrun pull continues it");
    free(snapshot);
    return;
  }
  bool model = access(path, F_OK) == 0;
  char **names = models_in(snapshot, HUB_LEVELS, &n);
  for (int i = 0; i < n; i++) files += gguf_is_name(names[i]);
  if (model) add(l, id, snapshot, true, NULL);
  for (int i = 0; i < n; i++) {
    bool alone = !model && files == 1;
    if (!gguf_is_name(names[i]) || snprintf(path, sizeof path, "%s/%s", snapshot, names[i]) >= (int)sizeof path)
      continue;
    if (snprintf(name, sizeof name, "%s%s%s", id, alone ? "" : ":", alone ? "" : names[i]) < (int)sizeof name)
      add(l, name, path, true, NULL);
  }
  if (!model && !files) add(l, id, snapshot, true, "neither config.json nor a .gguf file");
  models_in_free(names, n);
  free(snapshot);
}

static void tell_drafts(list *l) {
  for (int i = 0; i < l->n; i++)
    for (int k = 0; k < l->n; k++)
      if (l->facts[i].family && l->facts[k].family && dt_model_fits(&l->facts[k], &l->facts[i]))
        l->models[i].kind = "draft";
}

dt_status dtl_models(dtl_model **models, int *n, dt_error *err) {
  NEED(models, "models");
  NEED(n, "n");
  char **homes, folder[PATH_MAX], *home = named_home();
  int n_homes;
  list l = {0};
  *models = NULL, *n = 0;
  l.pulled = named_all(&l.n_pulled);
  dt_status status = dt_homes(&homes, &n_homes, err);
  if (status) {
    free(home), free(l.pulled);
    return status;
  }
  for (int i = 0; i < n_homes; i++) {
    snprintf(folder, sizeof folder, "%s/models", homes[i]);
    add_folder(&l, folder);
    free(homes[i]);
  }
  free(homes);
  if (home) add_folder(&l, home);
  hub_each(add_cached, &l);
  tell_drafts(&l);
  free(home), free(l.pulled), free(l.facts);
  *models = l.models, *n = l.n;
  if (!l.failed) return DT_OK;
  dtl_models_free(l.models, l.n);
  *models = NULL, *n = 0;
  return dtl_fail_memory(err, "the list of models");
}

void dtl_models_free(dtl_model *models, int n) {
  for (int i = 0; models && i < n; i++) free(models[i].name), free(models[i].path), free(models[i].problem);
  free(models);
}

dt_status dtl_named_model(const char *name, char **script, char **folder, char **names, dt_error *err) {
  NEED(name, "name");
  NEED(script, "script");
  NEED(folder, "folder");
  NEED(names, "names");
  int n;
  bool known = false;
  named_model *all = named_all(&n);
  *script = *folder = NULL;
  *names = calloc((size_t)n + 1, NAMED_LENGTH);
  for (int i = 0; *names && i < n; i++) {
    known = known || strcmp(all[i].name, name) == 0;
    if (i) strcat(*names, " ");
    strcat(*names, all[i].name);
  }
  free(all);
  if (!*names) return dtl_fail_memory(err, "the names of models");
  if (!known) return DT_OK;
  dt_status status = dt_find("scripts/get-model", script, err);
  if (!status) status = dt_find("models/pull.txt", folder, err);
  if (status) return status;
  *strrchr(*folder, '/') = '\0';
  if (access(*folder, W_OK) == 0) return DT_OK;
  free(*folder);
  *folder = named_home();
  return *folder ? DT_OK : dtl_fail(err, DT_EINPUT, "no folder for models: neither HOME nor XDG_DATA_HOME is set");
}
