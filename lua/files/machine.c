/* The machine's name, for files of measurements. */
#include "files/machine.h"

#include "system/os.h"

#include <stdio.h>

void machine_name(char *name, size_t size) {
  char model[200] = "unknown processor";
  os_cpus set;
  os_processor_name(model, sizeof model);
  os_allowed(&set);
  int n = os_cpus_count(&set);
  snprintf(name, size, "%s, %d CPU%s", model, n ? n : 1, n > 1 ? "s" : "");
}
