/* dtrun pull: see model_commands.h. Other programs do the work, so that this program starts without a network
 * library. */
#include "cli/model_commands.h"

#include "cli/complain.h"
#include "cli/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Downloads a model that is listed in models/pull.txt. */
static int pull_named(const char *name) {
  char *script, *folder, *names;
  dt_error err;
  int status;
  if (dtl_named_model(name, &script, &folder, &names, &err)) return complain_of(&err);
  if (script) execl(script, script, name, folder, (char *)NULL);
  if (script)
    status = complain(EXIT_ENGINE, "%s does not start: %s", script, strerror(errno));
  else if (folder)
    status =
        complain(EXIT_ENGINE, "scripts/get-model was not found: set DTRUN_HOME to the folder that contains scripts/");
  else
    status =
        complain(EXIT_USAGE, "no model '%.100s': dtrun pull knows %s, and OWNER/NAME of Hugging Face", name, names);
  free(script), free(folder), free(names);
  return status;
}

static int pull_from_hub(const char *id) {
  char *cache = dtl_hub_folder(), *argv[] = {NULL, cache, (char *)id, NULL};
  int status = cache ? program_run("dtrun-pull", argv,
                                   "this dtrun was built without pull: install libcurl4-openssl-dev and libssl-dev and "
                                   "build it again, or download a model with hf download")
                     : complain(EXIT_ENGINE, "out of memory: a path");
  free(cache);
  return status;
}

/* Returns the id in the address of a web page, which users paste. */
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
