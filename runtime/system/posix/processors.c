/* How many threads this process should start: see processors.h. POSIX tells no quotas. */
#include "system/processors.h"

int processors_usable(const char *root) {
  topology t;
  topology_read(root, &t);
  return topology_cpus(&t);
}

int processors_threads(const char *root, const topology *t) {
  (void)root;
  return topology_threads(t);
}
