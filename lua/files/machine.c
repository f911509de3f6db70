/* The machine's name, for files of measurements. */
#include "files/machine.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads the processor's name from /proc/cpuinfo; without one, name stays. */
static void read_model(char *name, size_t size) {
  FILE *file = fopen("/proc/cpuinfo", "r");
  char line[256];
  while (file && fgets(line, sizeof line, file)) {
    const char *value = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;
    if (!value) continue;
    value += 1 + strspn(value + 1, " \t");
    snprintf(name, size, "%.*s", (int)strcspn(value, "\n"), value);
    break;
  }
  if (file) fclose(file);
}

void machine_name(char *name, size_t size) {
  char model[200] = "unknown processor";
  read_model(model, sizeof model);
  cpu_set_t set;
  int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  snprintf(name, size, "%s, %d CPU%s", model, n, n == 1 ? "" : "s");
}
