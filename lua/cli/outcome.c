/* Runs a policy over the prompts of a job: see outcome.h. */
#include "cli/outcome.h"

#include "cli/complain.h"
#include "cli/interrupt.h"
#include "cli/shown.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WARM_UP_TOKENS 16

typedef struct {
  shown out; /* must be first: callbacks that show text take it */
  const job *job;
  outcome *gave;
  bool silent;
  FILE *lines; /* results of several texts; NULL: not wanted */
  int next;    /* number of texts that have been shown, of several */
  int status;
} run;

static void fail(run *r, int status) {
  if (!r->status) r->status = status;
}

static bool json_is_output(const job *j) { return j->options->json && strcmp(j->options->json, "-") == 0; }

/* ---- several texts, shown when they end -------------------------------------------------------------------------- */

static void write_line(run *r, const dtl_result *result) {
  char *line = dtl_result_json(result, DTL_JSON_LINE);
  errno = ENOMEM;
  if (!line || fputs(line, r->lines) < 0 || fflush(r->lines) != 0)
    shown_fail(&r->out, r->lines == stdout ? "standard output" : r->job->options->json, r->lines);
  free(line);
}

static void show_result(run *r, int prompt) {
  const dtl_result *result = &r->gave->results[prompt];
  const job *j = r->job;
  const char *name = j->prompts.list[prompt / j->answers].name;
  size_t skip = strlen(name) > 60 ? strlen(name) - 60 : 0;
  if (!r->job->options->quiet)
    say("%d/%d %s: %d token%s (%s), %.2f per iteration", prompt + 1, job_texts(j), name + skip, result->n_tokens,
        result->n_tokens == 1 ? "" : "s", result->finish_reason,
        result->stats.iterations ? (double)result->stats.committed / (double)result->stats.iterations : 0);
  if (json_is_output(r->job) || !result->text) return;
  shown_text(r, result->text, result->text_len);
  if (!result->text_len || result->text[result->text_len - 1] != '\n') shown_text(r, "\n", 1);
}

/* Shows results that have ended, in the order of the prompts; with `all` also those that come after one that never
 * ended. */
static void show_results(run *r, bool all) {
  for (; r->next < job_texts(r->job) && (all || r->gave->ended[r->next]); r->next++)
    if (r->gave->ended[r->next] && !r->out.lost) show_result(r, r->next);
}

static bool on_done(void *user, int prompt, dtl_result *result) {
  run *r = user;
  outcome *out = r->gave;
  out->ended[prompt] = true;
  out->n_ended++;
  out->n_failed += result->failed;
  out->tokens += result->n_tokens;
  if (result->failed && r->job->several) {
    fail(r, complain(status_of(&result->failure), "prompt %s: %s", r->job->prompts.list[prompt / r->job->answers].name,
                     result->failure.message));
    say_traceback(&result->failure);
  } else if (result->failed)
    fail(r, complain_of(&result->failure));
  if (r->lines && !r->out.lost) write_line(r, result);
  if (!r->silent && r->job->several) show_results(r, false);
  return true;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* Returns the first n prompts of the job. */
static dtl_prompt *list_prompts(const job *j, int n) {
  dtl_prompt *list = calloc((size_t)n, sizeof *list);
  for (int i = 0; i < n && list; i++) {
    const prompt_text *p = &j->prompts.list[i];
    list[i] = (dtl_prompt){.text = p->text, .len = p->len, .ids = p->ids, .n_ids = p->n_ids};
  }
  return list;
}

static int open_lines(run *r) {
  const char *path = r->job->options->json;
  if (r->silent || !r->job->several || !path) return 0;
  r->lines = json_is_output(r->job) ? stdout : fopen(path, "wb");
  return r->lines ? 0 : complain(EXIT_ENGINE, "--json %s: %s", path, strerror(errno));
}

static void close_lines(run *r) {
  if (r->lines && r->lines != stdout && fclose(r->lines) != 0) shown_fail(&r->out, r->job->options->json, stdout);
}

/* Every round starts with an empty memory; otherwise a policy could copy the output of the round before. */
int outcome_run(const job *j, const dtl_policy *policy, bool silent, outcome *out) {
  run r = {.job = j, .gave = out, .silent = silent};
  size_t n = (size_t)job_texts(j);
  dtl_prompt *prompts = list_prompts(j, j->prompts.n);
  *out = (outcome){.policy = dtl_policy_describe(policy)->name,
                   .results = calloc(n, sizeof *out->results),
                   .ended = calloc(n, sizeof *out->ended)};
  dtl_memory_forget(j->memory);
  double start = dt_clock_ms();
  if (!prompts || !out->results || !out->ended) {
    fail(&r, complain(EXIT_ENGINE, "out of memory: the results"));
  } else if (!(r.status = open_lines(&r))) {
    dtl_request request = job_request(j);
    request.prompts = prompts, request.n = j->prompts.n;
    request.done = on_done, request.user = &r;
    if (!silent) request.trace = j->trace;
    if (!silent && !j->several && !json_is_output(j)) {
      request.on_text = shown_text;
      if (j->options->color) request.on_origin = shown_origin;
    }
    dt_error err;
    dt_status status = dtl_generate(j->pair, policy, &request, out->results, &err);
    if (!silent && j->several) show_results(&r, true);
    close_lines(&r);
    if (status && !out->n_failed) fail(&r, complain_of(&err)); /* failed sequences have been reported before */
    if (r.out.lost) fail(&r, EXIT_ENGINE);
  }
  out->ms = dt_clock_ms() - start;
  free(prompts);
  return !r.status && interrupted ? EXIT_INTERRUPTED : r.status;
}

void outcome_free(outcome *out, const job *j) {
  for (int i = 0; out->results && i < job_texts(j); i++) dtl_result_free(&out->results[i]);
  free(out->results), free(out->ended);
}

double outcome_speed(const job *j, const outcome *out) {
  if (!j->several) return dtl_tokens_per_second(out->results);
  return out->ms > 0 ? 1000 * (double)out->tokens / out->ms : 0;
}

void outcome_warm_up(const job *j, const dtl_policy *policy) {
  dtl_request request = job_request(j);
  request.n = j->several && j->slots < j->prompts.n ? j->slots : j->prompts.n;
  request.answers = 1;
  dtl_prompt *prompts = list_prompts(j, request.n);
  dtl_result *results = calloc((size_t)request.n, sizeof *results);
  dt_error err;
  if (prompts && results) {
    int most = request.seq.max_tokens;
    request.prompts = prompts;
    if (most < 0 || most > WARM_UP_TOKENS) request.seq.max_tokens = WARM_UP_TOKENS;
    dtl_generate(j->pair, policy, &request, results, &err);
    for (int i = 0; i < request.n; i++) dtl_result_free(&results[i]);
  }
  free(prompts), free(results);
}
