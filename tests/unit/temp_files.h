/* A folder for one test, and files in it. */
#ifndef TEMP_FILES_H
#define TEMP_FILES_H

#include <ftw.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Creates an empty folder; its path is malloc'd. */
static inline char *temp_folder(void) {
  char *path = strdup("/tmp/dtrun_test_XXXXXX");
  if (!mkdtemp(path)) perror(path), exit(1);
  return path;
}

static inline int temp_remove_entry(const char *path, const struct stat *info, int type, struct FTW *where) {
  (void)info, (void)type, (void)where;
  return remove(path);
}

/* Removes the folder with everything in it, and frees its path. */
static inline void temp_remove(char *folder) {
  nftw(folder, temp_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
  free(folder);
}

static inline void temp_write(const char *folder, const char *name, const void *bytes, size_t size) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(bytes, 1, size, file) != size || fclose(file)) perror(path), exit(1);
}

#endif
