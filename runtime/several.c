/* Results of several prompts: see several.h. */
#include "several.h"

#include "complain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  bool ended;
  uint64_t hash; /* of its tokens */
  char *text;    /* until it is shown; NULL: nothing to show */
  size_t len;
  char summary[160];
} entry;

struct several {
  several_options options;
  FILE *json;
  entry *entry; /* [prompts] */
  int shown;    /* those before are shown */
  int status;
  bool lost; /* standard output or the file has failed: nothing more is written */
  double start_ms;
  several_sum sum;
};

dt_status several_open(const several_options *options, several **out, dt_error *err) {
  several *s = calloc(1, sizeof *s);
  if (s) s->entry = calloc((size_t)options->prompts->n, sizeof *s->entry);
  if (!s || !s->entry) {
    several_free(s);
    return dt_fail_memory(err, "results", sizeof *s->entry);
  }
  s->options = *options;
  if (options->json) s->json = strcmp(options->json, "-") == 0 ? stdout : fopen(options->json, "wb");
  if (options->json && !s->json) {
    dt_status status = dt_fail(err, DT_EIO, "--json %s: %s", options->json, strerror(errno));
    several_free(s);
    return status;
  }
  s->start_ms = dt_clock_ms();
  *out = s;
  return DT_OK;
}

void several_free(several *s) {
  if (!s) return;
  for (int i = 0; s->entry && i < s->options.prompts->n; i++) free(s->entry[i].text);
  if (s->json && s->json != stdout) fclose(s->json);
  free(s->entry);
  free(s);
}

static void fail(several *s, int status) {
  if (!s->status) s->status = status;
}

static void output_failed(several *s, const char *what) {
  if (!s->lost) fail(s, complain(EXIT_ENGINE, "%s: %s", what, strerror(errno)));
  s->lost = true; /* nobody reads on */
}

static void write_json(several *s, const dtl_result *result) {
  char *line = dtl_result_json(result, DTL_JSON_LINE);
  errno = ENOMEM;
  if (!line || fputs(line, s->json) < 0 || fflush(s->json) != 0) {
    output_failed(s, s->json == stdout ? "standard output" : s->options.json);
    clearerr(s->json);
  }
  free(line);
}

static void show(several *s, entry *e) {
  if (!s->options.quiet) fprintf(stderr, "%s\n", e->summary);
  if (e->text) {
    bool line = e->len > 0 && e->text[e->len - 1] == '\n';
    if (fwrite(e->text, 1, e->len, stdout) != e->len || (!line && putchar('\n') == EOF) || fflush(stdout) != 0) {
      output_failed(s, "standard output");
      clearerr(stdout);
    }
  }
  free(e->text);
  e->text = NULL;
}

static void describe(entry *e, const several *s, int prompt, const dtl_result *r) {
  const char *name = s->options.prompts->list[prompt].name, *reason = r->finish_reason;
  size_t skip = strlen(name) > 60 ? strlen(name) - 60 : 0;
  snprintf(e->summary, sizeof e->summary, "dtrun: %d/%d %s: %d tokens (%s), %.2f per iteration", prompt + 1,
           s->options.prompts->n, name + skip, r->n_tokens, reason,
           r->stats.iterations ? (double)r->stats.committed / (double)r->stats.iterations : 0);
}

bool several_done(void *user, int prompt, const dtl_result *result, const dtl_error *failure) {
  several *s = user;
  entry *e = &s->entry[prompt];
  e->ended = true;
  e->hash = dtl_output_hash(result->tokens, result->n_tokens);
  s->sum.ended++;
  s->sum.tokens += result->n_tokens;
  if (failure) {
    s->sum.failed++;
    fail(s, complain(status_of(failure), "prompt %s: %s", s->options.prompts->list[prompt].name, failure->message));
  }
  if (s->json && !s->lost) write_json(s, result);
  if (s->options.silent || s->lost) return !s->lost;
  describe(e, s, prompt, result);
  if (s->json != stdout && result->text) {
    e->len = result->text_len;
    e->text = malloc(e->len + 1);
    if (e->text) memcpy(e->text, result->text, e->len);
  }
  for (; s->shown < s->options.prompts->n && s->entry[s->shown].ended; s->shown++) show(s, &s->entry[s->shown]);
  return !s->lost;
}

int several_finish(several *s, several_sum *sum) {
  for (; s->shown < s->options.prompts->n && !s->options.silent; s->shown++)
    if (s->entry[s->shown].ended && !s->lost) show(s, &s->entry[s->shown]);
  FILE *json = s->json;
  s->json = NULL;
  if (json && json != stdout && fclose(json) != 0) output_failed(s, s->options.json);
  s->sum.ms = dt_clock_ms() - s->start_ms;
  *sum = s->sum;
  return s->status;
}

int several_compare(const several *a, const several *b) {
  for (int i = 0; i < a->options.prompts->n; i++)
    if (a->entry[i].ended && b->entry[i].ended && a->entry[i].hash != b->entry[i].hash) return i;
  return -1;
}
