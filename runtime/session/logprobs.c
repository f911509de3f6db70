/* Log-probabilities of a sequence's tokens: see logprobs.h. */
#include "session/logprobs.h"

#include <stdlib.h>
#include <string.h>

dt_status logprobs_check(const dt_logprobs *a, dt_error *err) {
  if (a->top < 0 || a->top > DT_LOGPROBS)
    return dt_fail(err, DT_EINPUT, "logprobs: %d is out of range: 0..%d", a->top, DT_LOGPROBS);
  if ((a->prompt || a->top) && !a->wanted)
    return dt_fail(err, DT_EINPUT,
                   "echo: only log-probabilities of the prompt's tokens can be returned: ask for logprobs");
  return DT_OK;
}

dt_status logprobs_open(logprobs *l, const dt_logprobs *asked, int context, dt_error *err) {
  *l = (logprobs){.asked = *asked};
  if (!asked->wanted) return DT_OK;
  size_t n = (size_t)context, top = n * (size_t)asked->top + 1;
  l->there = calloc(n, sizeof *l->there);
  l->logp = malloc(n * sizeof *l->logp);
  l->top_id = malloc(top * sizeof *l->top_id);
  l->top_logp = malloc(top * sizeof *l->top_logp);
  if (l->there && l->logp && l->top_id && l->top_logp) return DT_OK;
  logprobs_close(l);
  return dt_fail_memory(err, "log-probabilities", n * 5 + top * 8);
}

void logprobs_close(logprobs *l) {
  free(l->there), free(l->logp), free(l->top_id), free(l->top_logp);
  *l = (logprobs){0};
}

void logprobs_put(logprobs *l, int position, float logp, const int32_t *top_id, const float *top_logp) {
  size_t n = (size_t)l->asked.top, at = (size_t)position * n;
  l->there[position] = true;
  l->logp[position] = logp;
  memcpy(l->top_id + at, top_id, n * sizeof *top_id);
  memcpy(l->top_logp + at, top_logp, n * sizeof *top_logp);
}
