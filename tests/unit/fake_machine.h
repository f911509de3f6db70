/* A folder with the files in which Linux describes a machine. */
#ifndef FAKE_MACHINE_H
#define FAKE_MACHINE_H

#include "temp_files.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Writes a file of the machine, and creates the folders above it. */
static inline void put(const char *root, const char *name, const char *text) {
  char path[512];
  for (const char *end = strchr(name, '/'); end; end = strchr(end + 1, '/')) {
    snprintf(path, sizeof path, "%s/%.*s", root, (int)(end - name), name);
    mkdir(path, 0700);
  }
  temp_write(root, name, text, strlen(text));
}

/* The same for a file of one processor or node, whose number replaces the %d in its name. */
static inline void put_of(const char *root, const char *format, int number, const char *text) {
  char name[256];
  snprintf(name, sizeof name, format, number);
  put(root, name, text);
}

#define MASK(list) "proc/thread-self/status", "Name:\tdtrun\nCpus_allowed_list:\t" list "\n"
#define ONLINE(list) "sys/devices/system/cpu/online", list "\n"

#endif
