/* Runs a fuzz target over the files of a folder. This takes the place of fuzzing if there is no libFuzzer. */
#include "fuzz.h"

#include <dirent.h>
#include <sys/stat.h>

static int replay(const char *path) {
  FILE *file = fopen(path, "rb");
  struct stat info;
  if (!file || fstat(fileno(file), &info) || !S_ISREG(info.st_mode)) {
    if (file) fclose(file);
    return 0;
  }
  size_t size = (size_t)info.st_size;
  uint8_t *bytes = malloc(size + !size); /* the exact size, so that sanitizers notice a read past the end */
  if (!bytes || fread(bytes, 1, size, file) != size) abort();
  fclose(file);
  printf("%s\n", path);
  fflush(stdout); /* so that the last line names the input that aborts */
  LLVMFuzzerTestOneInput(bytes, size);
  free(bytes);
  return 1;
}

int main(int argc, char **argv) {
  int replayed = 0;
  struct dirent **entries;
  int n = argc == 2 ? scandir(argv[1], &entries, NULL, alphasort) : -1;
  for (int i = 0; i < n; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", argv[1], entries[i]->d_name);
    replayed += replay(path);
    free(entries[i]);
  }
  if (n >= 0) free(entries);
  printf("%d inputs\n", replayed);
  return replayed == 0;
}
