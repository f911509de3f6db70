/* Writes the file of --json: see result_file.h. */
#include "cli/result_file.h"

#include "cli/replace.h"
#include "system/asprintf.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

dt_status json_check_path(const char *path, dt_error *err) {
  struct stat info;
  char folder[PATH_MAX];
  if (!*path) return dt_fail(err, DT_EINPUT, "--json: expected a file name or '-'");
  if (strcmp(path, "-") == 0) return DT_OK;
  const char *slash = strrchr(path, '/'), *written = folder;
  if (strlen(path) + 16 > sizeof folder) return dt_fail(err, DT_EINPUT, "--json: the file name is too long");
  snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
  if (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode))
    return dt_fail(err, DT_EINPUT, "--json %s: no folder %s", path, folder);
  if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) written = path;
  if (written == path && S_ISDIR(info.st_mode))
    return dt_fail(err, DT_EINPUT, "--json %s: is a folder, expected a file", path);
  return access(written, W_OK) == 0 ? DT_OK : dt_fail(err, DT_EIO, "--json %s: %s", path, strerror(errno));
}

/* Returns the member "compare" as malloc'd text; NULL: out of memory. */
static char *compare_text(const dtl_result *other, const comparison *c) {
  static const char *const members[] = {"policy", "params", "stats"};
  char *text = dtl_result_json(other, 0), *printed = NULL;
  cJSON *from = text ? cJSON_Parse(text) : NULL, *to = cJSON_CreateObject();
  if (from && to && cJSON_AddNumberToObject(to, "speedup", c->ratio) &&
      cJSON_AddNumberToObject(to, "rounds", c->rounds) && cJSON_AddNumberToObject(to, "disturbed", c->disturbed)) {
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
      cJSON_AddItemToObject(to, members[i], cJSON_DetachItemFromObject(from, members[i]));
    printed = cJSON_PrintUnformatted(to);
  }
  cJSON_Delete(from);
  cJSON_Delete(to);
  free(text);
  return printed;
}

static char *result_text(const dtl_result *result, const dtl_result *other, const comparison *compared) {
  char *text = dtl_result_json(result, 0);
  if (!text || !other) return text;
  char *compare = compare_text(other, compared), *joined = NULL, *end = strrchr(text, '}');
  if (compare) { /* inserted as text before the last brace, so that numbers stay as dtl_result_json wrote them */
    while (end[-1] == ' ' || end[-1] == '\n') end--;
    *end = '\0';
    if (dt_asprintf(&joined, "%s,\n\t\"compare\":\t%s\n}\n", text, compare) < 0) joined = NULL;
  }
  free(compare);
  free(text);
  return joined;
}

dt_status json_write(const char *path, const dtl_result *result, const dtl_result *other, const comparison *compared,
                     dt_error *err) {
  char *text = result_text(result, other, compared);
  if (!text) return dt_fail(err, DT_ENOMEM, "out of memory: the result");
  bool standard = strcmp(path, "-") == 0,
       ok = standard ? fputs(text, stdout) >= 0 && fflush(stdout) == 0 : replace_file(path, text);
  int error = errno;
  free(text);
  if (ok) return DT_OK;
  if (standard) clearerr(stdout);
  return dt_fail(err, DT_EIO, "%s%s: %s", standard ? "" : "--json ", standard ? "standard output" : path,
                 strerror(error));
}
