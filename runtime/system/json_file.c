/* JSON objects from files: see json_file.h. */
#include "system/json_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_FILE (64u << 20)

/* The place of the first NUL character, as a byte or as \u0000, where cJSON would cut a text; len: none. */
static size_t find_nul(const char *bytes, size_t len) {
  for (size_t i = 0; i < len; i++) {
    if (!bytes[i] || (bytes[i] == '\\' && len - i >= 6 && memcmp(bytes + i + 1, "u0000", 5) == 0)) return i;
    if (bytes[i] == '\\') i++;
  }
  return len;
}

dt_status json_parse_object(const char *name, const char *bytes, size_t len, cJSON **out, dt_error *err) {
  size_t nul = find_nul(bytes, len);
  if (nul < len) return dt_fail(err, DT_EINPUT, "%s: a NUL character at byte %zu, which is not allowed", name, nul + 1);
  const char *end = NULL;
  errno = 0;
  cJSON *json = cJSON_ParseWithLengthOpts(bytes, len, &end, 0);
  if (!json && errno == ENOMEM) return dt_fail_memory(err, name, len); /* cJSON itself does not report this */
  if (!json) {
    size_t at = end && end > bytes && end <= bytes + len ? (size_t)(end - bytes) : 0;
    return dt_fail(err, DT_EINPUT, "%s: not valid JSON (near byte %zu)", name, at);
  }
  while (end < bytes + len && strchr(" \t\r\n", *end) && *end) end++;
  if (!cJSON_IsObject(json) || end != bytes + len) {
    cJSON_Delete(json);
    return dt_fail(err, DT_EINPUT, "%s: expected one JSON object and nothing after it", name);
  }
  *out = json;
  return DT_OK;
}

dt_status json_read_object(const char *path, cJSON **out, dt_error *err) {
  struct stat info;
  if (stat(path, &info) != 0) {
    int code = errno == ENOENT || errno == ENOTDIR;
    return dt_fail(err, code ? DT_EINPUT : DT_EIO, "%s: %s", path, code ? "no such file" : strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) return dt_fail(err, DT_EINPUT, "%s: not a regular file", path);
  if (info.st_size > MAX_FILE)
    return dt_fail(err, DT_EINPUT, "%s: %lld bytes, expected at most %u", path, (long long)info.st_size, MAX_FILE);
  size_t size = (size_t)info.st_size;
  char *bytes = malloc(size + 1);
  if (!bytes) return dt_fail_memory(err, path, size + 1);
  FILE *file = fopen(path, "rb");
  size_t got = file ? fread(bytes, 1, size, file) : 0;
  dt_status status = DT_OK;
  if (!file || ferror(file)) status = dt_fail(err, DT_EIO, "%s: cannot read: %s", path, strerror(errno));
  if (file) fclose(file);
  if (status == DT_OK) status = json_parse_object(path, bytes, got, out, err);
  free(bytes);
  return status;
}
