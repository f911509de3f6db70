/* The machine, and how busy it is: see os.h. */
#include "system/os.h"

#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

/* ARM processors have numbers instead of names. */
void os_processor_name(char *name, size_t size) {
  char maker[32], part[32];
  if (read_value("model name", name, size)) return;
  if (read_value("CPU implementer", maker, sizeof maker) && read_value("CPU part", part, sizeof part))
    snprintf(name, size, "ARM processor, implementer %s, part %s", maker, part);
}

long os_last_cache(void) { return sysconf(_SC_LEVEL3_CACHE_SIZE); }

bool os_boot_id(char text[64]) {
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
  bool known = file && fgets(text, 64, file);
  if (file) fclose(file);
  return known;
}

/* Linux saves the tile registers of a thread only after the process has requested it. */
bool os_grants_tiles(void) {
#ifdef SYS_arch_prctl
  enum { REQUEST = 0x1023, TILE_DATA = 18 }; /* arch_prctl(2) */
  return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
#else
  return false;
#endif
}

/* Bits of <asm/hwcap.h>, by number for older headers. */
bool os_has_dotprod(void) { return getauxval(AT_HWCAP) >> 20 & 1; }
bool os_has_i8mm(void) { return getauxval(AT_HWCAP2) >> 13 & 1; }

double os_stolen_ms(void) {
  FILE *file = fopen("/proc/stat", "r");
  unsigned long long ticks = 0;
  if (file && fscanf(file, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &ticks) != 1) ticks = 0;
  if (file) fclose(file);
  return (double)ticks * 1000 / (double)sysconf(_SC_CLK_TCK);
}

double os_coarse_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}
