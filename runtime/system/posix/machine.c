/* The machine: see os.h. POSIX tells its architecture only. */
#include "system/os.h"

#include <stdio.h>
#include <sys/utsname.h>
#include <time.h>

void os_processor_name(char *name, size_t size) {
  struct utsname machine;
  if (uname(&machine) >= 0) snprintf(name, size, "%s processor", machine.machine);
}

long os_last_cache(void) { return 0; }

bool os_boot_id(char text[64]) {
  *text = '\0';
  return false;
}

bool os_grants_tiles(void) { return false; }

double os_stolen_ms(void) { return 0; }

double os_coarse_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}
