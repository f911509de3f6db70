/* Reports of a run: see report.h. */
#include "report.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static double ratio(double a, double b) { return b > 0 ? a / b : 0; }

void report_summary(const dtl_result *r) {
  const dt_stats *s = &r->stats;
  char drafted[80] = "nothing drafted", reason[40] = "";
  if (s->drafted > 0)
    snprintf(drafted, sizeof drafted, "%.0f %% of %ld drafted accepted",
             100 * ratio((double)s->accepted, (double)s->drafted), s->drafted);
  if (strcmp(r->finish_reason, "length") != 0) snprintf(reason, sizeof reason, " (%s)", r->finish_reason);
  double all = s->prompt_ms + s->draft_ms + s->verify_ms + s->commit_ms + r->policy_ms + r->other_ms;
  fprintf(stderr,
          "dtrun: %d tokens%s, %.1f tokens/s, %.2f per iteration, %s; time: prompt %.0f %%, draft %.0f %%, "
          "verify %.0f %%, commit %.0f %%, policy %.0f %%, other %.0f %%\n",
          r->n_tokens, reason, dtl_tokens_per_second(r), ratio((double)s->committed, (double)s->iterations), drafted,
          100 * ratio(s->prompt_ms, all), 100 * ratio(s->draft_ms, all), 100 * ratio(s->verify_ms, all),
          100 * ratio(s->commit_ms, all), 100 * ratio(r->policy_ms, all), 100 * ratio(r->other_ms, all));
}

void report_details(const dtl_result *r) {
  const dt_stats *s = &r->stats;
  fprintf(stderr, "dtrun: target %s, draft %s, backend %s, threads %d\n", r->target, r->draft ? r->draft : "none",
          r->backend, r->threads);
  fprintf(stderr, "dtrun: policy %s %s, %d prompt tokens\n", r->policy, r->params, s->prompt_tokens);
  fprintf(stderr,
          "dtrun: ms: prompt %.2f, draft %.2f, verify %.2f, commit %.2f, policy %.2f, other %.2f; first token after "
          "%.2f, total %.2f\n",
          s->prompt_ms, s->draft_ms, s->verify_ms, s->commit_ms, r->policy_ms, r->other_ms, s->ttft_ms, s->total_ms);
  fprintf(stderr, "dtrun: %ld iterations, mean tree of %.1f nodes and depth %.1f, %ld draft passes of %.1f rows\n",
          s->iterations, ratio((double)s->drafted, (double)s->iterations),
          ratio((double)s->depth_sum, (double)s->iterations), s->draft_passes,
          ratio((double)s->draft_rows, (double)s->draft_passes));
  fprintf(stderr, "dtrun: memory in MB: peak %.1f, weights %.1f, caches %.1f", (double)r->peak_memory / 1e6,
          (double)r->weight_bytes / 1e6, (double)r->cache_bytes / 1e6);
  if (r->device_memory) fprintf(stderr, ", on the device %.1f", (double)r->device_memory / 1e6);
  fprintf(stderr, "; output hash %016" PRIx64 "\n", dtl_output_hash(r->tokens, r->n_tokens));
}

dt_status report_comparison(const dtl_result *a, const dtl_result *b, bool quiet, dt_error *err) {
  int n = a->n_tokens < b->n_tokens ? a->n_tokens : b->n_tokens, same = 0;
  while (same < n && a->tokens[same] == b->tokens[same]) same++;
  if (same < a->n_tokens || same < b->n_tokens)
    return dt_fail(err, DT_EDEVICE, "the engine failed: %s and %s differ from token %d on (they gave %d and %d tokens)",
                   a->policy, b->policy, same + 1, a->n_tokens, b->n_tokens);
  double speed = dtl_tokens_per_second(a), other = dtl_tokens_per_second(b);
  if (!quiet)
    fprintf(stderr, "dtrun: %s %.1f tokens/s, %s %.1f tokens/s: %.2fx, same %d tokens\n", a->policy, speed, b->policy,
            other, ratio(speed, other), same);
  return DT_OK;
}

static double rate(const several_sum *sum) { return sum->ms > 0 ? 1000 * (double)sum->tokens / sum->ms : 0; }

void report_sum(const several_sum *sum, int prompts, int places) {
  char failed[40] = "";
  if (sum->failed) snprintf(failed, sizeof failed, " (%d failed)", sum->failed);
  fprintf(stderr, "dtrun: %d of %d sequences%s, %d at once, %ld tokens in %.2f s: %.1f tokens/s\n", sum->ended, prompts,
          failed, places, sum->tokens, sum->ms / 1000, rate(sum));
}

void report_sums(const char *policy, const several_sum *sum, const char *other, const several_sum *other_sum) {
  fprintf(stderr, "dtrun: %s %.1f tokens/s, %s %.1f tokens/s: %.2fx, same %ld tokens\n", policy, rate(sum), other,
          rate(other_sum), ratio(rate(sum), rate(other_sum)), sum->tokens);
}

/* ---- the JSON file ---------------------------------------------------------------------------------------------------- */

dt_status report_check_path(const char *path, dt_error *err) {
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

/* The member "compare" as text, malloc'd; NULL: out of memory. */
static char *compare_text(const dtl_result *result, const dtl_result *other) {
  static const char *const members[] = {"policy", "params", "stats"};
  char *text = dtl_result_json(other, 0), *printed = NULL;
  cJSON *from = text ? cJSON_Parse(text) : NULL, *to = cJSON_CreateObject();
  double speedup = ratio(dtl_tokens_per_second(result), dtl_tokens_per_second(other));
  if (from && to && cJSON_AddNumberToObject(to, "speedup", speedup)) {
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
      cJSON_AddItemToObject(to, members[i], cJSON_DetachItemFromObject(from, members[i]));
    printed = cJSON_PrintUnformatted(to);
  }
  cJSON_Delete(from);
  cJSON_Delete(to);
  free(text);
  return printed;
}

static char *result_text(const dtl_result *result, const dtl_result *other) {
  char *text = dtl_result_json(result, 0);
  if (!text || !other) return text;
  char *compare = compare_text(result, other), *joined = NULL, *end = strrchr(text, '}');
  if (compare) { /* before the last brace, as text: numbers stay as the host wrote them */
    while (end[-1] == ' ' || end[-1] == '\n') end--;
    *end = '\0';
    if (asprintf(&joined, "%s,\n\t\"compare\":\t%s\n}\n", text, compare) < 0) joined = NULL;
  }
  free(compare);
  free(text);
  return joined;
}

/* Writes and closes; false with errno set when a byte may be lost. */
static bool write_and_close(FILE *file, const char *text) {
  bool ok = fputs(text, file) >= 0 && fflush(file) == 0;
  int error = errno;
  if (fclose(file) != 0 && ok) return false;
  errno = error;
  return ok;
}

static bool write_through(const char *path, const char *text) {
  FILE *file = fopen(path, "wb");
  return file && write_and_close(file, text);
}

/* Writes beside `path` and renames, with the permissions that writing in place would give. */
static bool replace_file(const char *path, mode_t mode, const char *text) {
  char *temporary;
  if (asprintf(&temporary, "%s.XXXXXX", path) < 0) return false;
  int fd = mkstemp(temporary);
  FILE *file = fd >= 0 ? fdopen(fd, "wb") : NULL;
  bool ok = file && fchmod(fd, mode) == 0;
  if (file) ok = write_and_close(file, text) && ok;
  ok = ok && rename(temporary, path) == 0;
  if (!ok && fd >= 0) {
    int error = errno;
    unlink(temporary);
    errno = error;
  }
  free(temporary);
  return ok;
}

static bool write_file(const char *path, const char *text) {
  struct stat info;
  if (stat(path, &info) != 0) {
    mode_t mask = umask(0);
    umask(mask);
    return replace_file(path, 0666 & ~mask, text);
  }
  if (!S_ISREG(info.st_mode)) return write_through(path, text); /* a device or a pipe */
  char *real = realpath(path, NULL);                            /* a link stays a link */
  bool ok = real && replace_file(real, info.st_mode & 0777, text);
  free(real);
  return ok;
}

dt_status report_write(const char *path, const dtl_result *result, const dtl_result *other, dt_error *err) {
  char *text = result_text(result, other);
  if (!text) return dt_fail(err, DT_ENOMEM, "out of memory: the result");
  bool standard = strcmp(path, "-") == 0,
       ok = standard ? fputs(text, stdout) >= 0 && fflush(stdout) == 0 : write_file(path, text);
  int error = errno;
  free(text);
  if (ok) return DT_OK;
  if (standard) clearerr(stdout);
  return dt_fail(err, DT_EIO, "%s%s: %s", standard ? "" : "--json ", standard ? "standard output" : path,
                 strerror(error));
}
