/* The machine's name, for files of measurements. */
#include "files/machine.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads a value of the first processor in /proc/cpuinfo; false: it has no value with this name. */
static bool read_value(const char *name, char *to, size_t size) {
  FILE *file = fopen("/proc/cpuinfo", "r");
  char line[256];
  bool found = false;
  while (file && !found && fgets(line, sizeof line, file)) {
    const char *value = strncmp(line, name, strlen(name)) == 0 ? strchr(line, ':') : NULL;
    if (!value) continue;
    value += 1 + strspn(value + 1, " \t");
    snprintf(to, size, "%.*s", (int)strcspn(value, "\n"), value);
    found = true;
  }
  if (file) fclose(file);
  return found;
}

/* Writes the processor's name; ARM processors have numbers instead. If there are neither, name stays. */
static void read_model(char *name, size_t size) {
  char maker[32], part[32];
  if (read_value("model name", name, size)) return;
  if (read_value("CPU implementer", maker, sizeof maker) && read_value("CPU part", part, sizeof part))
    snprintf(name, size, "ARM processor, implementer %s, part %s", maker, part);
}

void machine_name(char *name, size_t size) {
  char model[200] = "unknown processor";
  read_model(model, sizeof model);
  cpu_set_t set;
  int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  snprintf(name, size, "%s, %d CPU%s", model, n, n == 1 ? "" : "s");
}
