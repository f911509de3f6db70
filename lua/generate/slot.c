/* One sequence from its prompt to its result: see slot.h. Whatever happens, the result has everything that was
 * committed, and on_text has received all of it. */
#include "generate/slot.h"

#include "box/notes.h"
#include "generate/trace.h"
#include "system/os.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static dt_status out_of_memory(dt_error *err) { return dtl_fail_memory(err, "the result of a generation"); }

static char *copy(const char *text) { return text ? strdup(text) : NULL; }

/* Fills the parts of the result that are known before the run. */
static dt_status fill_head(const slot *s, const dt_pair_info *pair, dt_error *err) {
  const dtl_policy *policy = s->policy;
  dtl_result *r = s->result;
  const char *draft = policy->info.draft == DTL_NO_DRAFT ? NULL : pair->draft.path;
  r->finish_reason = "error";
  r->policy = copy(policy->info.name);
  r->params = copy(policy->params_json);
  memcpy(r->source, policy->info.source, sizeof r->source);
  r->seed = s->options.sampling.seed;
  r->sampling = s->options.sampling;
  r->coupled = !s->options.uncoupled;
  r->window = s->request->window;
  r->adjustments = s->options.adjustments;
  r->reasoning = s->request->reasoning;
  r->adjustments.bias = NULL;
  r->adjustments.grammar = copy(s->options.adjustments.grammar);
  r->adjustments.reasoning.begin = copy(s->options.adjustments.reasoning.begin);
  r->adjustments.reasoning.end = copy(s->options.adjustments.reasoning.end);
  if (r->adjustments.n_bias > 0) {
    size_t bytes = sizeof(dt_bias) * (size_t)r->adjustments.n_bias;
    dt_bias *bias = malloc(bytes);
    if (!bias) return r->adjustments.n_bias = 0, out_of_memory(err);
    r->adjustments.bias = memcpy(bias, s->options.adjustments.bias, bytes);
  }
  r->target = copy(pair->target.path);
  r->draft = copy(draft);
  bool whole = true;
#define COPY(name, of_draft)                                                                                           \
  r->name = copy(of_draft && !draft ? NULL : pair->name);                                                              \
  whole = whole && (r->name || !pair->name || (of_draft && !draft));
  DT_PAIR_FACTS(COPY)
#undef COPY
  r->backend = copy(pair->backend);
  r->threads = pair->threads;
  r->load_ms = pair->load_ms;
  if (s->options.adjustments.grammar && !r->adjustments.grammar) whole = false;
  if (s->options.adjustments.reasoning.begin && !r->adjustments.reasoning.begin) whole = false;
  if (s->options.adjustments.reasoning.end && !r->adjustments.reasoning.end) whole = false;
  if (!whole || !r->policy || !r->params || !r->target || !r->backend || (draft && !r->draft))
    return out_of_memory(err);
  return DT_OK;
}

static dtl_logprob logprob_at(const slot *s, int at) {
  dtl_logprob l = {.logp = NAN};
  dt_seq_logprobs(s->run->session, s->run->seq, at, &l.logp, &l.id, &l.logps, &l.n, NULL);
  return l;
}

/* Copies the log-probabilities of tokens first..last-1 of the text, as far as there is room. */
static dtl_logprob *copy_logprobs(const slot *s, int first, int last, size_t *used) {
  dtl_result *r = s->result;
  dtl_logprob *list = malloc(sizeof *list * (size_t)(last - first + 1));
  for (int i = first; i < last && list; i++) {
    dtl_logprob *to = &list[i - first];
    *to = logprob_at(s, i);
    if (!to->n) continue;
    to->id = memcpy(r->top_ids + *used, to->id, sizeof *to->id * (size_t)to->n);
    to->logps = memcpy(r->top_logps + *used, to->logps, sizeof *to->logps * (size_t)to->n);
    *used += (size_t)to->n;
  }
  return list;
}

static dt_status fill_logprobs(const slot *s, dt_error *err) {
  dtl_result *r = s->result;
  const dt_logprobs *asked = &s->options.logprobs;
  if (!asked->wanted) return DT_OK;
  size_t tokens = (size_t)r->n_tokens + (asked->prompt ? (size_t)r->n_prompt : 0), used = 0;
  r->top_ids = malloc(sizeof *r->top_ids * (tokens * (size_t)asked->top + 1));
  r->top_logps = malloc(sizeof *r->top_logps * (tokens * (size_t)asked->top + 1));
  if (!r->top_ids || !r->top_logps) return out_of_memory(err);
  r->logprobs = copy_logprobs(s, r->n_prompt, r->n_prompt + r->n_tokens, &used);
  if (asked->prompt) r->prompt_logprobs = copy_logprobs(s, 0, r->n_prompt, &used);
  return r->logprobs && (r->prompt_logprobs || !asked->prompt) ? DT_OK : out_of_memory(err);
}

/* Fills the generated parts of the result; tokens and text are filled as far as memory allows. If memory runs out, the
 * run has failed. */
static dt_status fill_tail(const slot *s, dt_error *err) {
  dtl_result *r = s->result;
  const dt_session *session = s->run->session;
  int seq = s->run->seq;
  dt_seq_stats(session, seq, &r->stats);
  const int32_t *tokens = dt_seq_tokens(session, seq);
  int length = dt_seq_length(session, seq);
  size_t text_len;
  const char *text = dt_seq_text(session, seq, &text_len);
  r->n_prompt = r->stats.prompt_tokens;
  r->n_tokens = length - r->n_prompt;
  r->prompt_ids = malloc(sizeof(int32_t) * (size_t)(r->n_prompt + 1));
  r->tokens = malloc(sizeof(int32_t) * (size_t)(r->n_tokens + 1));
  r->text = dt_utf8(text, text_len, &r->text_len);
  if (!r->prompt_ids || !r->tokens || !r->text) {
    r->n_prompt = r->n_tokens = 0;
    return out_of_memory(err);
  }
  memcpy(r->prompt_ids, tokens, sizeof(int32_t) * (size_t)r->n_prompt);
  memcpy(r->tokens, tokens + r->n_prompt, sizeof(int32_t) * (size_t)r->n_tokens);
  dt_status status = fill_logprobs(s, err);
  if (status) return status;
  dt_pair_info info;
  dt_pair_describe(s->pair, &info);
  r->ids_without_row = info.tokenizer_size > info.target.vocab ? info.tokenizer_size - info.target.vocab : 0;
  r->weight_bytes = info.weight_bytes;
  r->cache_bytes = info.cache_bytes;
  r->device_memory = info.on_device ? info.weight_bytes + info.cache_bytes + info.scratch_bytes : 0;
  r->peak_memory = os_peak_memory();
  return DT_OK;
}

/* Announces the origin of the next bytes to emit (on_origin) and returns how many of the len bytes have it. A character
 * that several tokens share belongs to the first. */
static size_t announce_origin(slot *s, const char *bytes, size_t len) {
  const size_t *end = dt_seq_text_ends(s->run->session, s->run->seq);
  while (end[s->at] <= s->emitted) s->at++;
  int last = s->at;
  while (end[last] < s->emitted + len && s->origin[last + 1] == s->origin[s->at]) last++;
  size_t n = end[last] - s->emitted < len ? end[last] - s->emitted : len;
  while (n < len && ((unsigned char)bytes[n] & 0xC0) == 0x80) n++;
  s->request->on_origin(s->request->user, (dtl_origin)s->origin[s->at]);
  return n;
}

static void emit(slot *s, const char *bytes, size_t len) {
  while (len > 0) {
    size_t n = s->origin ? announce_origin(s, bytes, len) : len;
    if (s->request->on_text && !s->request->on_text(s->request->user, bytes, n)) s->enough = true;
    s->emitted += n, bytes += n, len -= n;
  }
}

static void emit_block(slot *s) {
  const dt_committed *block = &s->run->block;
  int first = dt_seq_length(s->run->session, s->run->seq) - block->n;
  for (int i = 0; s->origin && i < block->n; i++)
    s->origin[first + i] = i < block->accepted ? DTL_DRAFTED : block->corrected ? DTL_CORRECTED : DTL_BONUS;
  dtl_logprob listed[DT_TREE_VERIFY + 1];
  for (int i = 0; s->request->on_logprobs && i < block->n; i++) listed[i] = logprob_at(s, first + i);
  if (s->request->on_logprobs) s->request->on_logprobs(s->request->user, block->tokens, listed, block->n);
  emit(s, block->text, block->text_len);
}

static const char *finish_name(dt_finish finish) {
  switch (finish) {
  case DT_FINISH_EOS: return "eos";
  case DT_FINISH_STOP: return "stop";
  case DT_FINISH_CONTEXT: return "context";
  default: return "length";
  }
}

dt_status prompt_ids(const dt_pair *pair, const dtl_prompt *p, int32_t **ids, int *n, dt_error *err) {
  if (!p->ids) return dt_encode(pair, p->text, p->len, ids, n, err);
  if (p->n_ids < 0) return dtl_fail(err, DT_EINPUT, "prompt: n_ids = %d is negative", p->n_ids);
  size_t bytes = sizeof **ids * (size_t)(*n = p->n_ids);
  *ids = malloc(bytes + 1);
  if (!*ids) return dtl_fail(err, DT_ENOMEM, "out of memory: a prompt of %d ids", p->n_ids);
  memcpy(*ids, p->ids, bytes);
  return DT_OK;
}

static dt_status start_sequence(const slot *s, const dt_prefix *shared, dt_error *err) {
  const dtl_prompt *prompt = s->prompt;
  const dt_prefix *prefix = shared ? shared : prompt->prefix;
  dt_status status;
  if (prefix) {
    status = dt_seq_start_from(s->run->session, s->run->seq, prefix, &s->options, err);
  } else {
    int32_t *ids;
    int n;
    status = prompt_ids(s->pair, prompt, &ids, &n, err);
    if (!status) {
      if (n == 0) {
        free(ids);
        return dtl_fail(err, DT_EINPUT, "the prompt is empty, expected at least one token");
      }
      status = (s->request->session ? dt_seq_continue : dt_seq_start)(s->run->session, s->run->seq, ids, n, &s->options,
                                                                      err);
      free(ids);
    }
  }
  return status;
}

dt_status slot_open(slot *s, dt_pair *pair, dt_error *err) {
  const dtl_request *request = s->request;
  const dtl_policy_info *policy = &s->policy->info;
  s->pair = pair;
  s->prompt = &request->prompts[s->number / (request->answers ? request->answers : 1)];
  s->options = request->seq;
  s->options.sampling.seed += (uint64_t)s->number;
  s->options.candidates = policy->candidates;
  s->emitted = 0, s->enough = false, s->at = 0;
  dt_pair_info info;
  dt_pair_describe(pair, &info);
  if (!(s->run = calloc(1, sizeof *s->run))) return out_of_memory(err);
  s->run->drafts = policy->draft != DTL_NO_DRAFT && info.draft.path;
  s->run->candidates = policy->candidates;
  s->run->notes = &s->result->notes;
  s->run->temp = (double)s->options.sampling.temp;
  if (request->on_origin && !(s->origin = malloc((size_t)info.target.context))) return out_of_memory(err);
  return fill_head(s, &info, err);
}

dt_status slot_start(slot *s, dt_session *session, int seq, dt_prefix **shared, dt_error *err) {
  dtl_run *run = s->run;
  s->start_ms = dt_clock_ms();
  run->session = session;
  run->seq = seq;
  run->tree = dt_seq_tree(session, seq);
  dt_status status = start_sequence(s, shared ? *shared : NULL, err);
  if (!status && shared && !*shared && !s->prompt->prefix) status = dt_prefix_take(session, seq, shared, err);
  if (status) return status;
  s->at = dt_seq_length(session, seq);
  if (s->request->trace) trace_begin(s->request->trace, &s->traced, s->pair, run, s->result);
  return DT_OK;
}

static bool interrupted(const slot *s) { return s->enough || (s->request->interrupt && *s->request->interrupt); }

bool slot_runs(const slot *s) { return dt_seq_finish(s->run->session, s->run->seq) == DT_RUNNING && !interrupted(s); }

void slot_committed(slot *s, double policy_ms) {
  emit_block(s);
  if (s->request->trace) trace_iteration(s->request->trace, &s->traced, s->run, policy_ms);
  notes_committed(s->run);
}

dt_status slot_end(slot *s, const dt_error *failure, dt_error *err) {
  dtl_result *r = s->result;
  const dtl_run *run = s->run;
  size_t len;
  const char *text = dt_seq_text(run->session, run->seq, &len);
  if (len > s->emitted) emit(s, text + s->emitted, len - s->emitted);
  double wall = dt_clock_ms() - s->start_ms;
  dt_status status = fill_tail(s, err);
  const dt_stats *t = &r->stats;
  double known = t->draft_ms + t->verify_ms + t->commit_ms + r->policy_ms + (t->shared_prefix ? 0 : t->prompt_ms);
  r->other_ms = wall > known ? wall - known : 0;
  if (failure) {
    r->finish_reason = failure->status == DT_EPOLICY ? "policy" : "error";
  } else if (!status) {
    dt_finish finish = dt_seq_finish(run->session, run->seq);
    r->finish_reason = finish != DT_RUNNING ? finish_name(finish) : "interrupted";
  }
  if (s->request->trace) trace_end(s->request->trace, &s->traced, r);
  return status;
}

void slot_close(slot *s) {
  free(s->run), s->run = NULL;
  free(s->origin), s->origin = NULL;
}

void dtl_result_free(dtl_result *result) {
  if (!result) return;
  free(result->tokens), free(result->prompt_ids);
  free(result->text), free(result->policy), free(result->params);
  free(result->target), free(result->draft), free(result->backend);
  free((dt_bias *)result->adjustments.bias), free((char *)result->adjustments.grammar);
  free((char *)result->adjustments.reasoning.begin), free((char *)result->adjustments.reasoning.end);
  free(result->logprobs), free(result->prompt_logprobs);
  free(result->top_ids), free(result->top_logps);
#define FREE(name, of_draft) free(result->name);
  DT_PAIR_FACTS(FREE)
#undef FREE
  memset(result, 0, sizeof *result);
}
