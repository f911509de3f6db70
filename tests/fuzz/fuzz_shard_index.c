/* Any bytes as a model.safetensors.index.json, next to two shards with one tensor each: "a" in one, "b" in two. */
#include "fuzz.h"

#include "model/safetensors.h"

#include <stdbool.h>

#define INDEX "model.safetensors.index.json"

static char folder[] = "/tmp/fuzz_shard_index.XXXXXX";

static void path_of(char path[64], const char *name) { snprintf(path, 64, "%s/%s", folder, name); }

static void remove_folder(void) {
  static const char *const names[] = {"one", "two", INDEX};
  char path[64];
  for (int i = 0; i < 3; i++) {
    path_of(path, names[i]);
    unlink(path);
  }
  rmdir(folder);
}

static void write_shard(const char *name, char tensor) {
  char path[64], header[64];
  int length =
      snprintf(header, sizeof header, "{\"%c\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", tensor);
  const uint8_t before[8] = {(uint8_t)length}, data[2] = {1, 2};
  path_of(path, name);
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(before, 1, 8, file) != 8 || fputs(header, file) < 0 || fwrite(data, 1, 2, file) != 2) abort();
  fclose(file);
}

static void make_folder(const char *index) {
  char path[64];
  if (!mkdtemp(folder)) abort();
  atexit(remove_folder);
  write_shard("one", 'a');
  write_shard("two", 'b');
  path_of(path, INDEX);
  if (symlink(index, path)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static bool made;
  const char *index = fuzz_file(bytes, size);
  if (!made) make_folder(index);
  made = true;
  st *s;
  dt_error err;
  dt_status status = st_open_folder(folder, &s, &err);
  if (!status)
    st_close(s);
  else
    fuzz_check_failure(status, &err, folder);
  return 0;
}
