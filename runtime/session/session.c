/* Sequences of a session: opening, the prompt pass, prefixes. primitives.c has their iterations, queries.c what
 * can be asked of them. All memory is taken when the session opens. */
#include "session/session.h"

#include "backend/chunks.h"
#include "session/room.h"
#include "session/row_experts.h"
#include "system/min_max.h"
#include "system/need.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static dt_status open_sequence(sequence *q, int context, dt_error *err) {
  dt_status s = dt_tree_open(&q->tree, err);
  if (s) return s;
  q->tokens = malloc((size_t)context * sizeof(int32_t));
  q->text_end = malloc((size_t)context * sizeof(size_t));
  q->slot = malloc((1 + DT_TREE_ENTRIES) * sizeof(int32_t));
  return q->tokens && q->text_end && q->slot ? DT_OK : dt_fail_memory(err, "a sequence", (size_t)context * 4);
}

/* Opens room for the rows of a whole text, or of some sequences with the largest trees, and for the longest paths of
 * one sequence. */
static dt_status open_rows(dt_session *s, dt_error *err) {
  int tree = 1 + DT_TREE_VERIFY, most = dt_min(s->sequences, PASS_SEQUENCES) * tree, rows = dt_max(most, s->context);
  dt_status status = pass_open(&s->rows, rows, (size_t)dt_max(rows, tree * DT_TREE_VERIFY), err);
  if (status) return status;
  size_t all = (size_t)s->sequences * (size_t)tree;
  s->wanted = malloc((size_t)rows * sizeof(int32_t));
  s->choice = malloc(all * sizeof(int32_t));
  if (!s->wanted || !s->choice) return dt_fail_memory(err, "the rows of a session", all * sizeof(int32_t));
  return row_adjustments_open(&s->adjustments, s->rows.capacity, s->rows.path_capacity, err);
}

/* Resets a sequence to its state in a new session. */
static void reset_sequence(sequence *q) {
  text_free(&q->text);
  adjustments_close(&q->adjustments);
  logprobs_close(&q->logs);
  *q = (sequence){.tokens = q->tokens,
                  .text_end = q->text_end,
                  .tree = q->tree,
                  .slot = q->slot,
                  .candidate = q->candidate,
                  .candidate_logp = q->candidate_logp,
                  .choice_logp = q->choice_logp,
                  .experts = q->experts};
}

static void free_session(dt_session *s) {
  if (!s) return;
  for (int i = 0; s->seq && i < s->sequences; i++) {
    sequence *q = &s->seq[i];
    dt_tree_close(q->tree);
    text_free(&q->text);
    adjustments_close(&q->adjustments);
    logprobs_close(&q->logs);
    free(q->tokens), free(q->text_end), free(q->slot);
    free(q->candidate), free(q->candidate_logp), free(q->choice_logp), free(q->experts);
  }
  if (s->target) s->pair->ops->free_cache(s->target);
  if (s->draft) s->draft->ops->close(s->draft);
  pass_close(&s->rows);
  free(s->seq), free(s->text), free(s->sampling), free(s->draft_sampling), free(s->wanted), free(s->choice);
  free(s->candidate), free(s->candidate_logp), free(s->choice_logp), free(s->experts);
  row_adjustments_close(&s->adjustments);
  grammar_cache_close(&s->grammars);
  free(s);
}

/* Returns the pair's idle session if it suits the request; otherwise frees it, before more memory is taken. */
static dt_session *take_idle(dt_pair *pair, int sequences, int context, bool use_draft) {
  dt_session *s = pair->idle;
  pair->idle = NULL;
  if (!s || s->sequences != sequences || s->context != context || (use_draft && !s->draft)) {
    free_session(s);
    return NULL;
  }
  for (int i = 0; i < sequences; i++) reset_sequence(&s->seq[i]);
  s->drafts = use_draft;
  return s;
}

static dt_status open_drafter(dt_session *s, int context, dt_error *err) {
  const pair_draft *draft = &s->pair->draft;
  dt_status (*open)(const dt_pair *, int, int, const dt_sampling *, const dt_cache *, drafter **, dt_error *) =
      draft->distances         ? draft_medusa_open
      : draft->cross_attention ? draft_cross_attention_open
      : draft->info.block      ? draft_block_open
                               : draft_model_open;
  s->drafts = true;
  return open(s->pair, s->sequences, context, s->draft_sampling, s->target, &s->draft, err);
}

static dt_status check_window(const dt_pair *pair, dt_window window, dt_error *err) {
  if (window.last < 0 || window.sinks < 0)
    return dt_fail(err, DT_EINPUT, "window: %d and sinks: %d are out of range: at least 0", window.last, window.sinks);
  if (window.sinks && !window.last)
    return dt_fail(err, DT_EINPUT,
                   "sinks: %d without a window: give --window, the number of most recent tokens that are seen",
                   window.sinks);
  if (window.last && !pair->ops->windows)
    return dt_fail(err, DT_EINPUT, "window: the backend %s does not support it (--backend cpu does)", pair->ops->name);
  return DT_OK;
}

dt_status dt_session_open(dt_pair *pair, const dt_session_options *o, dt_session **out, dt_error *err) {
  NEED(pair, "pair");
  NEED(o, "options");
  NEED(out, "out");
  int most = pair->target_info.context, context = o->context ? o->context : pair_context(pair);
  if (o->sequences < 1 || o->sequences > 4096)
    return dt_fail(err, DT_EINPUT, "sequences: %d is out of range: 1..4096", o->sequences);
  if (most < 2)
    return dt_fail(err, DT_EINPUT, "%s has a context of %d: at least 2 positions are needed", pair->target_info.path,
                   most);
  if (context < 2 || context > most)
    return dt_fail(err, DT_EINPUT, "context: %d is out of range: 2..%d (%s has %d positions%s)", context, most,
                   pair->target_info.path, most,
                   pair->target_info.window         ? " in its sliding window"
                   : pair->target_info.rope_context ? ", for which its rotation was computed when it was loaded"
                                                    : "");
  if (o->use_draft && !pair->draft.weights)
    return dt_fail(err, DT_EINPUT, "a session with a draft needs a pair with a draft model");
  dt_status status = check_window(pair, o->window, err);
  if (status) return status;
  dt_session *s = take_idle(pair, o->sequences, context, o->use_draft);
  if (s) {
    s->rows.window = o->window;
    *out = s;
    return DT_OK;
  }
  status = caches_fit(pair, o->sequences, context, o->use_draft, err);
  if (status) return status;
  s = calloc(1, sizeof *s);
  if (!s) return dt_fail_memory(err, "a session", sizeof *s);
  s->pair = pair;
  s->sequences = o->sequences;
  s->context = context;
  s->seq = calloc((size_t)s->sequences, sizeof *s->seq);
  s->sampling = calloc((size_t)s->sequences, sizeof *s->sampling);
  s->draft_sampling = calloc((size_t)s->sequences, sizeof *s->draft_sampling);
  s->text = calloc((size_t)s->sequences, sizeof *s->text);
  bool room = s->seq && s->sampling && s->draft_sampling && s->text;
  status = room ? open_rows(s, err) : dt_fail_memory(err, "sequences", sizeof *s->seq);
  for (int i = 0; !status && i < s->sequences; i++) status = open_sequence(&s->seq[i], context, err);
  if (!status) status = experts_open(s, err);
  if (!status) status = pair->ops->create_cache(pair->target, s->sequences, target_slots(context), &s->target, err);
  if (!status && o->use_draft) status = open_drafter(s, context, err);
  s->rows.window = o->window;
  if (status) {
    free_session(s);
    return status;
  }
  *out = s;
  return DT_OK;
}

/* Keeps the session's memory in pair->idle, so that the next session of its shape opens without allocating. Frees the
 * session kept before; dt_pair_close frees the last one. */
void dt_session_close(dt_session *s) {
  if (!s) return;
  free_session(s->pair->idle);
  s->pair->idle = s;
  s->pair->free_idle = free_session;
}

const dt_pair *dt_session_pair(const dt_session *s) { return s ? s->pair : NULL; }

dt_status session_check(const dt_session *s, int seq, dt_error *err) {
  if (seq < 0 || seq >= s->sequences)
    return dt_fail(err, DT_ESTATE, "there is no sequence %d (the session has 0..%d)", seq, s->sequences - 1);
  if (!s->seq[seq].started)
    return dt_fail(err, DT_ESTATE, "sequence %d is not started, or a commit of it failed: start it", seq);
  return DT_OK;
}

draft_text session_text(sequence *q) {
  return (draft_text){q->tokens, q->length, q->tree, q->adjusted ? &q->adjustments : NULL, &q->stats};
}

/* A node deeper than the number of tokens still wanted, minus one, would be useless: the token after its parent ends
 * the text. */
void session_begin_tree(dt_session *s, int seq) {
  sequence *q = &s->seq[seq];
  int left = q->limit - q->length, deepest = s->pair->target_info.deepest;
  int room = left > 0 ? left - 1 : 0;
  dt_tree_reset(q->tree, q->tokens[q->length - 1], deepest ? dt_min(room, deepest) : room, s->pair->target_info.vocab);
  if (q->adjusted) adjustments_begin_tree(&q->adjustments);
  kv_begin(&q->target, q->length - 1);
  if (s->drafts) s->draft->ops->begin(s->draft, seq, q->length);
  q->accepted = 0;
}

static dt_status check_sampling(const dt_sampling *p, dt_error *err) {
  if (!(p->temp == 0 || (p->temp >= 0.001f && p->temp <= 100)))
    return dt_fail(err, DT_EINPUT, "temp: %g is out of range: 0, or 0.001 to 100", (double)p->temp);
  if (p->top_k < 0) return dt_fail(err, DT_EINPUT, "top_k: %d is out of range: at least 1, or 0 for all", p->top_k);
  if (!(p->top_p >= 0 && p->top_p <= 1))
    return dt_fail(err, DT_EINPUT, "top_p: %g is out of range: above 0, at most 1", (double)p->top_p);
  if (!(p->min_p >= 0 && p->min_p <= 1))
    return dt_fail(err, DT_EINPUT, "min_p: %g is out of range: 0 to 1", (double)p->min_p);
  return DT_OK;
}

static dt_status check_place(const dt_session *s, int seq, dt_error *err) {
  if (seq >= 0 && seq < s->sequences) return DT_OK;
  return dt_fail(err, DT_ESTATE, "there is no sequence %d (the session has 0..%d)", seq, s->sequences - 1);
}

/* How the mark that ends an answer is found. */
typedef struct {
  const char *text;               /* a stop string; NULL: none */
  int32_t token;                  /* -1: none */
  int32_t all[MODEL_MAX_EOS + 1]; /* [n] all tokens that end the text */
  int n;
} ending;

static ending ending_of(const dt_pair *p, const dt_seq_options *o) {
  const bool marked = o->end && !o->ignore_eos && !o->adjustments.grammar;
  ending e = {.token = marked ? pair_mark(p, o->end) : -1, .n = p->n_eos};
  memcpy(e.all, p->eos, sizeof p->eos);
  if (e.token >= 0 && !pair_is_eos(p, e.token)) e.all[e.n++] = e.token;
  if (marked && e.token < 0) e.text = o->end;
  return e;
}

dt_status dt_check_options(const dt_seq_options *o, dt_error *err) {
  NEED(o, "options");
  if (o->piece < 0) return dt_fail(err, DT_EINPUT, "piece: %d is out of range: at least 1 row, or 0 for all", o->piece);
  if (o->max_tokens < 1 && o->max_tokens != -1)
    return dt_fail(err, DT_EINPUT, "tokens: %d is out of range: at least 1, or -1 to fill the context", o->max_tokens);
  dt_status status = need_list(o->stop, o->n_stop, "dt_seq_options", "stop", err);
  if (status) return status;
  if (o->candidates < 0 || o->candidates > DT_TARGET_CANDIDATES)
    return dt_fail(err, DT_EINPUT, "candidates: %d is out of range: 0..%d", o->candidates, DT_TARGET_CANDIDATES);
  if (!(status = need_list(o->adjustments.bias, o->adjustments.n_bias, "dt_seq_options", "bias", err)))
    status = adjustments_check(&o->adjustments, o, err);
  if (!status) status = logprobs_check(&o->logprobs, err);
  return status ? status : check_sampling(&o->sampling, err);
}

static dt_status check_start(const dt_session *s, int seq, const int32_t *prompt, int n, const dt_seq_options *o,
                             dt_error *err) {
  int vocab = s->pair->target_info.vocab;
  ending end = ending_of(s->pair, o);
  if (check_place(s, seq, err)) return DT_ESTATE;
  if (n < 1) return dt_fail(err, DT_EINPUT, "the prompt is empty: give at least one token");
  if (n >= s->context)
    return dt_fail(
        err, DT_ECONTEXT,
        "the prompt has %d tokens, but in a context of %d it can have at most %d, to leave room for one more", n,
        s->context, s->context - 1);
  for (int i = 0; i < n; i++)
    if (prompt[i] < 0 || prompt[i] >= vocab)
      return dt_fail(err, DT_EINPUT, "prompt token %d is %d, which is out of range: 0..%d", i + 1, prompt[i],
                     vocab - 1);
  dt_status status = dt_check_options(o, err);
  if (!status) status = adjustments_check_ids(&o->adjustments, vocab, end.all, end.n, err);
  return status;
}

/* Takes room for the candidates of `rows` rows, unless there is room. */
static bool room_for_rows(int32_t **id, float **logp, float **choice, int rows) {
  size_t n = (size_t)rows;
  if (!*id) *id = malloc(n * ROW_TOP * sizeof **id);
  if (!*logp) *logp = malloc(n * ROW_TOP * sizeof **logp);
  if (!*choice) *choice = malloc(n * sizeof **choice);
  return *id && *logp && *choice;
}

static dt_status find_masks(dt_session *s, const char *grammar, masks **out, dt_error *err) {
  const vocabulary *v;
  dt_status status = pair_vocabulary(s->pair, &v, err);
  return status ? status : grammar_cache_find(&s->grammars, v, grammar, out, err);
}

/* Prepares a start, except for computing rows. */
static dt_status begin(dt_session *s, int seq, const int32_t *prompt, int n, const dt_seq_options *o, dt_error *err) {
  sequence *q = &s->seq[seq];
  text_stream text = {0};
  adjustments adjusting = {0};
  logprobs logs = {0};
  bool adjusted = dt_adjustments_wanted(&o->adjustments), reports = o->candidates > 0 || o->logprobs.wanted;
  if (reports && !(room_for_rows(&s->candidate, &s->candidate_logp, &s->choice_logp, s->rows.capacity) &&
                   room_for_rows(&q->candidate, &q->candidate_logp, &q->choice_logp, 1 + DT_TREE_VERIFY)))
    return dt_fail_memory(err, "the candidates of a pass", (size_t)s->rows.capacity * ROW_TOP * 8);
  ending end = ending_of(s->pair, o);
  dt_status status = text_init(&text, o->stop, o->n_stop, err);
  if (!status && end.text) status = text_add_stop(&text, end.text, err);
  masks *of = NULL;
  if (!status && o->adjustments.grammar) status = find_masks(s, o->adjustments.grammar, &of, err);
  if (!status && adjusted) status = adjustments_open(&adjusting, &o->adjustments, of, s->context, end.all, end.n, err);
  if (!status) status = adjustments_limit(&adjusting, s->pair, &o->adjustments.reasoning, err);
  if (!status) status = logprobs_open(&logs, &o->logprobs, s->context, err);
  if (status) {
    text_free(&text);
    adjustments_close(&adjusting);
    return status;
  }
  text_free(&q->text);
  adjustments_close(&q->adjustments);
  logprobs_close(&q->logs);
  q->text = text, q->adjustments = adjusting, q->logs = logs;
  q->adjusted = adjusted;
  if (adjusted) adjustments_prompt(&q->adjustments, prompt, n);
  q->start_ms = dt_clock_ms();
  q->started = q->begun = q->blank = false; /* until its rows are computed */
  q->finish = DT_RUNNING;
  q->length = q->prompt = n;
  q->chunked = o->logprobs.prompt ? 0 : chunks_rows(s->pair->ops->chunk, n);
  memcpy(q->tokens, prompt, (size_t)n * sizeof(int32_t));
  bool bounded = o->max_tokens > 0 && o->max_tokens <= s->context - n;
  q->limit = bounded ? n + o->max_tokens : s->context;
  q->at_limit = bounded ? DT_FINISH_LENGTH : DT_FINISH_CONTEXT;
  q->ignore_eos = o->ignore_eos;
  q->end = end.token;
  q->candidates = o->candidates;
  s->sampling[seq] = s->draft_sampling[seq] = o->sampling;
  if (o->uncoupled) s->draft_sampling[seq].temp = 0;
  q->stats = (dt_stats){.prompt_tokens = n};
  q->drafts_prompt_ms = 0;
  kv_init(&q->target, target_slots(s->context));
  return DT_OK;
}

/* Sets how many rows of the cache a sequence reuses: at most `rows`. */
static void keep_rows(dt_session *s, int seq, int rows) {
  const dt_backend_ops *ops = s->pair->ops;
  s->seq[seq].target.rows = ops->keep ? ops->keep(s->target, seq, rows) : rows;
}

static void ready(dt_session *s, int seq) {
  s->seq[seq].started = s->seq[seq].fresh = true;
  session_begin_tree(s, seq);
}

/* Computes the rows of the prompt that the target's cache lacks, up to row n-1: none, or whole chunks, or also rows
 * after the last whole chunk. Log-probabilities of the prompt need all of its rows. */
static dt_status prompt_rows(dt_session *s, int seq, int n, dt_error *err) {
  sequence *q = &s->seq[seq];
  int first = q->target.rows, top = q->logs.asked.top;
  pass_begin(&s->rows, 1);
  pass_text(&s->rows, seq, q->tokens, first, n);
  dt_rows rows = pass_rows(&s->rows);
  rows.prompt = first < q->chunked;
  for (int i = 0; i < rows.n; i++) s->wanted[i] = i;
  dt_out out = {.want = DT_WANT_BOTH,
                .n = rows.n,
                .row = s->wanted,
                .given = q->tokens + first + 1,
                .logp = s->choice_logp,
                .k = dt_max(top, 1),
                .top_id = s->candidate,
                .top_logp = s->candidate_logp};
  bool reports = q->logs.asked.prompt;
  dt_status status =
      rows.n ? s->pair->ops->forward(s->pair->target, s->target, &rows, reports ? &out : NULL, err) : DT_OK;
  if (status) return status;
  q->target.rows = n;
  for (int i = 0; i < rows.n && reports; i++)
    logprobs_put(&q->logs, first + i + 1, s->choice_logp[i], s->candidate + (ptrdiff_t)i * out.k,
                 s->candidate_logp + (ptrdiff_t)i * out.k);
  return DT_OK;
}

/* Computes at most `most` missing prompt rows of the draft. *left is the number of rows that it still lacks. */
static dt_status draft_prompt(dt_session *s, int seq, int most, int *left, dt_error *err) {
  draft_text text = session_text(&s->seq[seq]);
  *left = 0;
  return s->drafts ? s->draft->ops->prompt(s->draft, seq, &text, most, left, err) : DT_OK;
}

/* The same, if the draft's rows are computed in pieces. */
static dt_status draft_rows(dt_session *s, int seq, int most, int *left, dt_error *err) {
  *left = 0;
  return s->seq[seq].drafts ? draft_prompt(s, seq, most, left, err) : DT_OK;
}

/* Runs a piece of the prompt. After the last one the sequence has started. */
static dt_status run_piece(dt_session *s, int seq, int most, dt_error *err) {
  sequence *q = &s->seq[seq];
  const int missing = q->prompt - 1 - q->target.rows;
  int n = chunks_piece(s->pair->ops->chunk, q->target.rows, missing, q->chunked, most), left;
  double start = dt_clock_ms();
  q->begun = false;
  dt_status status = prompt_rows(s, seq, q->target.rows + n, err);
  if (status) return status;
  q->target_prompt_ms = q->stats.prompt_ms += n ? dt_clock_ms() - start : 0;
  if ((status = draft_rows(s, seq, n ? 0 : most, &left, err))) return status;
  q->begun = left || q->target.rows < q->prompt - 1;
  if (!q->begun) ready(s, seq);
  return DT_OK;
}

/* Starts a sequence whose arguments were checked. The first `same` tokens are the same as before. */
static dt_status start(dt_session *s, int seq, const int32_t *prompt, int n, const dt_seq_options *o, int same,
                       dt_error *err) {
  sequence *q = &s->seq[seq];
  int cached = dt_min(same, q->target.rows), had = q->chunked;
  dt_status status = begin(s, seq, prompt, n, o, err);
  if (status) return status;
  keep_rows(s, seq, chunks_alike(s->pair->ops->chunk, cached, had, q->chunked));
  q->stats.cached_tokens = q->target.rows;
  q->drafts = o->drafts && o->piece;
  if (s->drafts) s->draft->ops->start(s->draft, seq, n, same);
  return run_piece(s, seq, o->piece ? o->piece : n, err);
}

dt_status dt_seq_prompt(dt_session *s, int seq, int rows, int *left, dt_error *err) {
  NEED(s, "session");
  NEED(left, "left");
  if (rows < 0) return dt_fail(err, DT_EINPUT, "prompt: %d rows are out of range: at least 0", rows);
  bool begun = seq >= 0 && seq < s->sequences && s->seq[seq].begun;
  dt_status status = !begun ? session_check(s, seq, err) : rows ? run_piece(s, seq, rows, err) : DT_OK;
  if (status) return status;
  const sequence *q = &s->seq[seq];
  *left = 0;
  if (q->begun) status = draft_rows(s, seq, 0, left, err);
  if (q->begun) *left += q->prompt - 1 - q->target.rows;
  return status;
}

dt_status dt_seq_start(dt_session *s, int seq, const int32_t *prompt, int n, const dt_seq_options *o, dt_error *err) {
  NEED(s, "session");
  NEED_LIST(prompt, n, "prompt");
  NEED(o, "options");
  dt_status status = check_start(s, seq, prompt, n, o, err);
  return status ? status : start(s, seq, prompt, n, o, 0, err);
}

dt_status dt_seq_continue(dt_session *s, int seq, const int32_t *prompt, int n, const dt_seq_options *o,
                          dt_error *err) {
  NEED(s, "session");
  NEED_LIST(prompt, n, "prompt");
  NEED(o, "options");
  dt_status status = check_start(s, seq, prompt, n, o, err);
  if (status) return status;
  const sequence *q = &s->seq[seq];
  int same = 0, most = o->logprobs.prompt || q->blank ? 0 : dt_min(n - 1, q->length);
  while (same < most && q->tokens[same] == prompt[same]) same++;
  return start(s, seq, prompt, n, o, same, err);
}

dt_status dt_seq_start_blank(dt_session *s, int seq, int n, const dt_sampling *sampling, dt_error *err) {
  dt_seq_options options = {.max_tokens = -1, .ignore_eos = true};
  NEED(s, "session");
  if (sampling) options.sampling = *sampling;
  int32_t *zeros = calloc(n > 0 && n < s->context ? (size_t)n : 1, sizeof *zeros); /* other lengths are refused later */
  if (!zeros) return dt_fail_memory(err, "a blank text", (size_t)n * sizeof *zeros);
  dt_status status = check_start(s, seq, zeros, n, &options, err);
  if (!status) status = begin(s, seq, zeros, n, &options, err);
  free(zeros);
  if (status) return status;
  sequence *q = &s->seq[seq];
  q->blank = true;
  keep_rows(s, seq, 0);
  if (n > 1) status = pass_blank(&s->rows, s->pair->ops, s->pair->target, s->target, seq, n - 1, err);
  q->target.rows = n - 1;
  if (s->drafts && !status) status = s->draft->ops->blank(s->draft, seq, n, err);
  if (!status) ready(s, seq);
  return status;
}

/* Makes a prefix of the first n tokens and `rows` rows of a sequence, for the target alone. */
static dt_status copy_rows(const dt_session *s, int seq, int n, int rows, dt_prefix **out, dt_error *err) {
  dt_prefix *p = calloc(1, sizeof *p);
  int32_t *tokens = malloc((size_t)n * sizeof(int32_t));
  if (!p || !tokens) {
    free(p), free(tokens);
    return dt_fail_memory(err, "a prefix", (size_t)n * sizeof(int32_t));
  }
  memcpy(tokens, s->seq[seq].tokens, (size_t)n * sizeof(int32_t));
  *p = (dt_prefix){.pair = s->pair, .window = s->rows.window, .tokens = tokens, .n = n, .rows = rows};
  p->chunked = dt_min(s->seq[seq].chunked, rows);
  p->bytes = dt_rows_bytes(s, rows);
  dt_status status = rows ? s->pair->ops->snapshot(s->target, seq, rows, &p->target, err) : DT_OK;
  if (status)
    dt_prefix_free(p);
  else
    *out = p;
  return status;
}

/* Adds the drafter's rows. */
static dt_status copy_draft(const dt_session *s, int seq, dt_prefix *p, dt_error *err) {
  if (!s->drafts) return DT_OK;
  p->draft_ops = s->draft->ops;
  return p->draft_ops->save(s->draft, seq, p->n, &p->draft, err);
}

dt_status dt_prefix_take(dt_session *s, int seq, dt_prefix **out, dt_error *err) {
  NEED(s, "session");
  NEED(out, "out");
  dt_status status = session_check(s, seq, err);
  if (status) return status;
  sequence *q = &s->seq[seq];
  if (q->blank) return dt_fail(err, DT_ESTATE, "sequence %d has no rows that can be copied", seq);
  if (!q->fresh)
    return dt_fail(err, DT_ESTATE,
                   "sequence %d has gone on since its prompt pass: take the prefix right after the start", seq);
  dt_prefix *p;
  if ((status = copy_rows(s, seq, q->length, q->target.rows, &p, err))) return status;
  p->target_ms = q->target_prompt_ms;
  int left;
  status = draft_prompt(s, seq, INT_MAX, &left, err);
  if (!status) status = copy_draft(s, seq, p, err);
  p->draft_ms = q->stats.prompt_ms - q->target_prompt_ms + q->drafts_prompt_ms;
  if (status) {
    dt_prefix_free(p);
    return status;
  }
  *out = p;
  return DT_OK;
}

dt_status dt_prefix_save(dt_session *s, int seq, int n, dt_prefix **out, dt_error *err) {
  dt_prefix *p;
  NEED(s, "session");
  NEED(out, "out");
  if (n < 1) return dt_fail(err, DT_EINPUT, "prefix: %d tokens are out of range: at least 1", n);
  int rows = dt_min(n, dt_seq_rows(s, seq));
  if (rows < 1) return dt_fail(err, DT_ESTATE, "sequence %d has no rows", seq);
  dt_status status = copy_rows(s, seq, rows, rows, &p, err);
  if (status) return status;
  status = copy_draft(s, seq, p, err);
  if (status)
    dt_prefix_free(p);
  else
    *out = p;
  return status;
}

static dt_status check_prefix(const dt_session *s, const dt_prefix *p, dt_error *err) {
  if (p->pair != s->pair) return dt_fail(err, DT_EINPUT, "the prefix was made with another pair");
  if (p->window.last != s->rows.window.last || p->window.sinks != s->rows.window.sinks)
    return dt_fail(err, DT_EINPUT, "the prefix was made with another window: %d and %d sinks", p->window.last,
                   p->window.sinks);
  return DT_OK;
}

/* Copies a prefix's rows into a sequence, whose text begins with its tokens. */
static dt_status restore_rows(dt_session *s, int seq, const dt_prefix *p, dt_error *err) {
  dt_status status = p->target ? s->pair->ops->restore(s->target, seq, p->target, err) : DT_OK;
  if (s->drafts && !status) {
    if (p->draft_ops)
      status = p->draft_ops->restore(s->draft, seq, p->draft, p->n, err);
    else
      s->draft->ops->start(s->draft, seq, p->n, 0);
  }
  int rows = p->target ? dt_min(p->rows, p->n - 1) : 0;
  if (!status) keep_rows(s, seq, chunks_alike(s->pair->ops->chunk, rows, p->chunked, s->seq[seq].chunked));
  return status;
}

dt_status dt_seq_adopt(dt_session *s, int seq, const dt_prefix *p, dt_error *err) {
  NEED(s, "session");
  NEED(p, "prefix");
  dt_status status = check_prefix(s, p, err);
  if (!status) status = check_place(s, seq, err);
  if (status) return status;
  if (p->n > s->context)
    return dt_fail(err, DT_ECONTEXT, "the prefix has %d tokens, but the context is %d", p->n, s->context);
  sequence *q = &s->seq[seq];
  q->started = q->begun = q->blank = false;
  q->length = 0; /* until its rows are copied */
  q->chunked = p->chunked;
  kv_init(&q->target, target_slots(s->context));
  if ((status = restore_rows(s, seq, p, err))) return status;
  memcpy(q->tokens, p->tokens, (size_t)p->n * sizeof(int32_t));
  q->length = p->n;
  keep_rows(s, seq, p->rows);
  return DT_OK;
}

dt_status dt_seq_start_from(dt_session *s, int seq, const dt_prefix *p, const dt_seq_options *o, dt_error *err) {
  NEED(s, "session");
  NEED(p, "prefix");
  NEED(o, "options");
  dt_status status = check_prefix(s, p, err);
  if (status) return status;
  if (o->logprobs.prompt)
    return dt_fail(
        err, DT_EINPUT,
        "echo: log-probabilities of a prefix are not available, since its pass is over: give its text instead");
  status = check_start(s, seq, p->tokens, p->n, o, err);
  if (!status) status = begin(s, seq, p->tokens, p->n, o, err);
  if (!status) status = restore_rows(s, seq, p, err);
  if (status) return status;
  sequence *q = &s->seq[seq];
  q->target_prompt_ms = q->stats.prompt_ms = p->target_ms;
  q->drafts_prompt_ms = p->draft_ms;
  q->stats.shared_prefix = true;
  q->start_ms = dt_clock_ms() - q->stats.prompt_ms; /* as if the prompt pass had run now */
  status = prompt_rows(s, seq, p->n - 1, err);      /* none, unless the cache cannot continue from all saved rows */
  if (!status) ready(s, seq);
  return status;
}

void dt_prefix_free(dt_prefix *p) {
  if (!p) return;
  if (p->target) p->pair->ops->free_snapshot(p->target);
  if (p->draft_ops) p->draft_ops->forget(p->draft);
  free(p->tokens);
  free(p);
}

const int32_t *dt_prefix_tokens(const dt_prefix *p, int *n) {
  if (n) *n = p ? p->n : 0;
  return p ? p->tokens : NULL;
}

size_t dt_rows_bytes(const dt_session *s, int n) {
  if (!s || n < 1) return 0;
  size_t bytes = s->pair->ops->cache_bytes(s->pair->target, n);
  if (s->drafts) bytes += s->pair->ops->cache_bytes(s->pair->draft.weights, n);
  return bytes;
}

size_t dt_prefix_bytes(const dt_prefix *p) { return p ? p->bytes : 0; }

double dt_prefix_ms(const dt_prefix *p) { return p ? p->target_ms + p->draft_ms : 0; }
