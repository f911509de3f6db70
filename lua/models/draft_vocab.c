/* Reads the ids that the draft may guess as users give them: a number, "auto", or a file with one id per line. */
#include "files/fail.h"
#include "files/files.h"
#include "system/digest.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX (16u << 20)

/* Returns the number from least to INT_MAX that is the text up to `end`; -1: the text is not such a number. */
static int number(const char *text, const char *end, int least) {
  char *after;
  errno = 0;
  long n = *text >= '0' && *text <= '9' ? strtol(text, &after, 10) : -1;
  return n < least || n > INT_MAX || errno || after != end ? -1 : (int)n;
}

static dt_status read_ids(const char *path, dt_draft_vocab *out, dt_error *err) {
  size_t len;
  int lines = 0;
  char *text;
  dt_status status = dtl_read_file("list of ids", path, FILE_MAX, &text, &len, err);
  if (status) return status;
  int32_t *ids = malloc((len / 2 + 1) * sizeof *ids);
  if (!ids) status = dtl_fail_memory(err, "a list of ids");
  for (const char *at = text, *end; !status && at < text + len; at = end + 1) {
    end = memchr(at, '\n', (size_t)(text + len - at));
    if (!end) end = text + len;
    ids[lines++] = number(at, end, 0);
    if (ids[lines - 1] < 0)
      status = dtl_fail(err, DT_EINPUT, "%s:%d: expected one id and nothing else, as `dtrun run vocab` writes it", path,
                        lines);
  }
  if (!status && !lines)
    status = dtl_fail(err, DT_EINPUT, "%s: the file has no ids: `dtrun run vocab` makes a list of them", path);
  free(text);
  out->ids = ids, out->n_ids = lines;
  return status;
}

/* The tokens of the policies' guide also get rows: the lowest ids lack symbols of Markdown and of programs, which the
 * guide contains. */
static const char *const GUIDE[] = {"policies/README.md",   "policies/REFERENCE.md", "policies/SOURCES.md",
                                    "policies/SAMPLING.md", "policies/COSTS.md",     "policies/TRACES.md"};

/* Appends a file of the guide to the text; a file that is not installed adds nothing. */
static dt_status add_page(dt_draft_vocab *out, const char *page, dt_error *err) {
  char *path, *text = NULL;
  size_t len = 0;
  dt_status status = dt_find(page, &path, err);
  if (!status && path) status = dtl_read_file("guide", path, FILE_MAX, &text, &len, err);
  free(path);
  if (status || !text) return status;
  size_t before = out->text ? strlen(out->text) : 0;
  char *both = realloc((char *)out->text, before + len + 1);
  if (both) memcpy(both + before, text, len + 1), out->text = both;
  free(text);
  return both ? DT_OK : dtl_fail_memory(err, "the guide");
}

static dt_status read_guide(dt_draft_vocab *out, dt_error *err) {
  dt_status status = DT_OK;
  for (size_t i = 0; !status && i < sizeof GUIDE / sizeof *GUIDE; i++) status = add_page(out, GUIDE[i], err);
  return status;
}

static void name_ids(const dt_draft_vocab *v, char *name, size_t size) {
  digest d;
  char text[DIGEST_TEXT];
  digest_begin(&d, "ids");
  digest_add(&d, v->ids, (size_t)v->n_ids * sizeof *v->ids);
  digest_end(&d, text);
  snprintf(name, size, "%d ids %s", v->n_ids, text);
}

dt_status dtl_draft_vocab_open(const char *given, dt_draft_vocab *out, dt_error *err) {
  NEED(given, "given");
  NEED(out, "out");
  *out = (dt_draft_vocab){0};
  char name[16 + DIGEST_TEXT];
  const bool is_auto = !strcmp(given, "auto");
  bool counted = is_auto || (*given && strspn(given, "0123456789") == strlen(given));
  if (is_auto) {
    out->lowest = -1;
    snprintf(name, sizeof name, "auto");
  } else if (counted) {
    out->lowest = number(given, given + strlen(given), 1);
    if (out->lowest < 0)
      return dtl_fail(err, DT_EINPUT,
                      "draft_vocab: '%.40s': expected a number of ids, 1 or more, auto, or a file of ids", given);
    snprintf(name, sizeof name, "%d", out->lowest);
  }
  dt_status status = counted ? read_guide(out, err) : read_ids(given, out, err);
  if (!status && !counted) name_ids(out, name, sizeof name);
  if (!status && !(out->name = strdup(name))) status = dtl_fail_memory(err, "a list of ids");
  if (status) dtl_draft_vocab_close(out);
  return status;
}

void dtl_draft_vocab_close(dt_draft_vocab *vocab) {
  if (!vocab) return;
  free((char *)vocab->name), free((char *)vocab->text), free((int32_t *)vocab->ids);
  *vocab = (dt_draft_vocab){0};
}
