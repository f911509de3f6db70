/* dtrun pull: see models.h. Other programs do the work, so that this one starts without a library for networks. */
#include "cli/models.h"

#include "cli/complain.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Downloads a model that models/pull.txt names. */
static int pull_named(const char *name) {
  char *script, *folder, *names;
  dt_error err;
  int status;
  if (dtl_named_model(name, &script, &folder, &names, &err)) return complain_of(&err);
  if (script) execl(script, script, name, folder, (char *)NULL);
  if (script)
    status = complain(EXIT_ENGINE, "%s does not start: %s", script, strerror(errno));
  else if (folder)
    status = complain(EXIT_ENGINE, "scripts/get-model is not installed: set DTRUN_HOME to where it is");
  else
    status = complain(EXIT_USAGE, "no model is called '%.100s': dtrun pull knows %s, and OWNER/NAME of Hugging Face",
                      name, names);
  free(script), free(folder), free(names);
  return status;
}

/* The place of the program that pulls: beside this one, or where it is installed. False: it is not there. */
static bool find_program(char *path) {
  static const char *const places[] = {"", "../lib/dtrun/"};
  ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
  while (n > 0 && path[n - 1] != '/') n--;
  for (int i = 0; i < 2 && n > 0; i++) {
    snprintf(path + n, PATH_MAX, "%sdtrun-pull", places[i]);
    if (access(path, X_OK) == 0) return true;
  }
  return false;
}

static int pull_from_hub(const char *id) {
  char path[2 * PATH_MAX], *cache = dtl_hub_folder();
  int status = EXIT_ENGINE;
  if (!cache)
    complain(0, "out of memory: a path");
  else if (!find_program(path))
    complain(0,
             "this dtrun was built without pull: install libcurl4-openssl-dev and libssl-dev and build it again, or hf "
             "download %s",
             id);
  else {
    execl(path, path, cache, id, (char *)NULL);
    complain(0, "%s does not start: %s", path, strerror(errno));
  }
  free(cache);
  return status;
}

/* The id in a page's address, which users paste. */
static const char *without_host(const char *name) {
  static const char *const hosts[] = {"https://huggingface.co/", "https://hf.co/", "huggingface.co/", "hf.co/"};
  for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
    if (strncmp(name, hosts[i], strlen(hosts[i])) == 0) return name + strlen(hosts[i]);
  return name;
}

int models_pull(int argc, char **argv) {
  if (argc != 1 || *argv[0] == '-' || !*argv[0])
    return complain(EXIT_USAGE,
                    "usage: dtrun pull NAME, as in dtrun pull smollm2, or OWNER/NAME[:Q4_K_M] of Hugging Face");
  return strchr(argv[0], '/') ? pull_from_hub(without_host(argv[0])) : pull_named(argv[0]);
}
