/* Lists and removes models: see model_commands.h. */
#include "cli/model_commands.h"

#include "cli/complain.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHOWN 4096 /* maximum number of bytes of a name or path */

static const char *clean(char *out, const char *text) {
  dtl_clean(out, SHOWN, text, strlen(text));
  return out;
}

/* Writes a size such as "98.4 MB". */
static const char *bytes_text(uint64_t bytes, char *out, size_t size) {
  if (bytes < 1000000000)
    snprintf(out, size, "%.1f MB", (double)bytes / 1e6);
  else
    snprintf(out, size, "%.2f GB", (double)bytes / 1e9);
  return out;
}

static void print_table(const dtl_model *models, int n) {
  char name[SHOWN], path[SHOWN], bytes[32];
  int width = 4;
  for (int i = 0; i < n; i++)
    if ((int)strlen(models[i].name) > width) width = (int)strlen(models[i].name);
  if (n) printf("%-*s  %-10s  %-6s  %9s  %s\n", width, "NAME", "KIND", "TYPE", "SIZE", "PATH");
  for (int i = 0; i < n; i++)
    printf("%-*s  %-10s  %-6s  %9s  %s\n", width, clean(name, models[i].name), models[i].kind,
           models[i].type ? models[i].type : "-", bytes_text(models[i].bytes, bytes, sizeof bytes),
           clean(path, models[i].path));
}

/* False: out of memory. */
static bool print_json(const dtl_model *models, int n) {
  cJSON *all = cJSON_CreateObject(), *list;
  cJSON_AddStringToObject(all, "schema", "dtrun.models/1");
  list = cJSON_AddArrayToObject(all, "models");
  bool ok = list;
  for (int i = 0; ok && i < n; i++) {
    const dtl_model *m = &models[i];
    cJSON *one = cJSON_CreateObject();
    ok = one && cJSON_AddItemToArray(list, one) && cJSON_AddStringToObject(one, "name", m->name) &&
         cJSON_AddStringToObject(one, "kind", m->kind) && (!m->type || cJSON_AddStringToObject(one, "type", m->type)) &&
         cJSON_AddNumberToObject(one, "bytes", (double)m->bytes) && cJSON_AddStringToObject(one, "path", m->path) &&
         cJSON_AddBoolToObject(one, "removable", m->removable) &&
         (!m->problem || cJSON_AddStringToObject(one, "problem", m->problem));
  }
  char *text = ok ? cJSON_Print(all) : NULL;
  if (text) puts(text);
  cJSON_Delete(all), cJSON_free(text);
  return text;
}

static int list(int argc, char **argv) {
  bool json = argc == 1 && strcmp(argv[0], "--json") == 0, ok = true;
  dtl_model *models;
  dt_error err;
  int n;
  if (argc > 0 && !json) return complain(EXIT_USAGE, "ls '%.100s': unexpected argument: ls takes only --json", argv[0]);
  if (dtl_models(&models, &n, &err)) return complain_of(&err);
  if (json)
    ok = print_json(models, n);
  else
    print_table(models, n);
  dtl_models_free(models, n);
  return ok ? finish_output(0) : complain(EXIT_ENGINE, "out of memory: the list of models");
}

static bool agree(void *user, const char *path, uint64_t bytes) {
  char shown[SHOWN], size[32], answer[16] = "";
  const bool *sure = user;
  if (*sure) return true;
  fprintf(stderr, "remove %s, %s? [y/N] ", clean(shown, path), bytes_text(bytes, size, sizeof size));
  return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static int take_away(int argc, char **argv) {
  bool sure = argc > 0 && strcmp(argv[0], "-y") == 0, removed;
  const char *name = argc > sure ? argv[sure] : NULL;
  dt_error err;
  if (!name || *name == '-' || argc != sure + 1)
    return complain(EXIT_USAGE, "usage: dtrun rm [-y] NAME, with a name that dtrun ls shows");
  if (!sure && !isatty(STDIN_FILENO))
    return complain(EXIT_USAGE, "rm asks first, which needs a terminal: dtrun rm -y %.200s removes without asking",
                    name);
  if (dtl_remove_model(name, agree, &sure, &removed, &err)) return complain_of(&err);
  say(removed ? "%.200s is removed" : "%.200s is not removed", name);
  return 0;
}

static int tell_loaded(int argc, char **argv) {
  if (argc > 0) return complain(EXIT_USAGE, "ps '%.100s': unexpected argument: ps takes none", argv[0]);
  puts(
      "no model stays loaded: each command, dtrun serve included, loads its models and frees them at its end; dtrun ls "
      "lists the models on this machine");
  return finish_output(0);
}

/* ---- the commands ------------------------------------------------------------------------------------------------ */

typedef struct {
  const char *word, *usage;
  int (*run)(int argc, char **argv);
} command;

static const command commands[] = {
    {"pull", "dtrun pull NAME: download smollm2, or OWNER/NAME[:Q4_K_M] of Hugging Face; -m NAME loads it",
     models_pull},
    {"ls", "dtrun ls [--json]: list the models on this machine", list},
    {"list", "dtrun list [--json]: the same as dtrun ls", list},
    {"models", "dtrun models [--json]: the same as dtrun ls", list},
    {"ps", "dtrun ps: show which models are loaded", tell_loaded},
    {"rm", "dtrun rm [-y] NAME: remove a pulled model by its name in dtrun ls; -y: without asking", take_away},
};

static const command *find(int argc, char **argv) {
  for (size_t i = 0; argc > 0 && i < sizeof commands / sizeof *commands; i++)
    if (strcmp(argv[0], commands[i].word) == 0) return &commands[i];
  return NULL;
}

bool models_meant(int argc, char **argv) { return find(argc, argv) != NULL; }

int models_run(int argc, char **argv) {
  const command *c = find(argc, argv);
  bool help = argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
  if (!help) return c->run(argc - 1, argv + 1);
  puts(c->usage);
  return finish_output(0);
}
