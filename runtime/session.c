/* Sequences of a session: opening, the prompt pass, prefixes, what can be asked of them. Their iterations are in
 * primitives.c. All memory is taken when the session opens. */
#include "session_impl.h"

#include <stdlib.h>
#include <string.h>

#define NODES (1 + DT_TREE_ENTRIES)

static int min(int a, int b) { return a < b ? a : b; }

static dt_status open_sequence(sequence *q, int context, dt_error *err) {
  dt_status s = tree_open(&q->tree, err);
  if (s) return s;
  q->tokens = malloc((size_t)context * sizeof(int32_t));
  q->text_end = malloc((size_t)context * sizeof(size_t));
  q->target_slot = malloc(NODES * sizeof(int32_t));
  q->draft_slot = malloc(NODES * sizeof(int32_t));
  return q->tokens && q->text_end && q->target_slot && q->draft_slot
             ? DT_OK
             : dt_fail_memory(err, "a sequence", (size_t)context * 4);
}

/* The arrays of one pass: as many rows as the prompt, all trees verified at once, or all drafts of a level need. */
static dt_status open_rows(dt_session *s, dt_error *err) {
  size_t drafts = (size_t)s->sequences * (DT_TREE_DRAFTS + RIDE_ALONG),
         verify = (size_t)s->sequences * (1 + DT_TREE_VERIFY);
  size_t rows = drafts > (size_t)s->context ? drafts : (size_t)s->context;
  size_t path = drafts * (DT_TREE_DRAFTS + 1);
  dt_status status = pass_open(&s->rows, (int)rows, path > rows ? path : rows, err);
  if (status) return status;
  s->owner = malloc(rows * sizeof *s->owner);
  s->wanted = malloc(rows * sizeof(int32_t));
  s->choice = malloc(verify * sizeof(int32_t));
  s->top_id = malloc(drafts * DT_CANDIDATES * sizeof(int32_t));
  s->top_logp = malloc(drafts * DT_CANDIDATES * sizeof(float));
  s->confidence = malloc(drafts * sizeof(float));
  s->entropy = malloc(drafts * sizeof(float));
  return s->owner && s->wanted && s->choice && s->top_id && s->top_logp && s->confidence && s->entropy
             ? DT_OK
             : dt_fail_memory(err, "the rows of a session", drafts * DT_CANDIDATES * 8);
}

/* As a sequence is when its session opens. */
static void reset_sequence(sequence *q) {
  text_free(&q->text);
  *q = (sequence){.tokens = q->tokens,
                  .text_end = q->text_end,
                  .tree = q->tree,
                  .target_slot = q->target_slot,
                  .draft_slot = q->draft_slot};
}

/* The pair's idle session if it can serve as what is asked for; else it is freed, before more memory is taken. */
static dt_session *take_idle(dt_pair *pair, int sequences, int context, bool use_draft) {
  dt_session *s = pair->idle;
  pair->idle = NULL;
  if (!s || s->sequences != sequences || s->context != context || (use_draft && !s->draft_cache)) {
    session_free(s);
    return NULL;
  }
  for (int i = 0; i < sequences; i++) reset_sequence(&s->seq[i]);
  s->draft = use_draft ? s->draft_cache : NULL;
  return s;
}

/* A sequence's in the target's cache: its context, and the largest tree with its root. */
static int target_slots(int context) { return context + 1 + DT_TREE_VERIFY; }

/* Whether the caches of several sequences fit in what memory is left; that of one is the backend's to refuse. */
static dt_status check_room(const dt_pair *pair, int sequences, int context, int draft_slots, dt_error *err) {
  size_t each = pair->ops->cache_bytes(pair->target, target_slots(context));
  if (draft_slots) each += pair->ops->cache_bytes(pair->draft, draft_slots);
  size_t left = pair->ops->bytes_free(pair->backend), most = each ? left / each : SIZE_MAX;
  if (sequences == 1 || (size_t)sequences <= most) return DT_OK;
  return dt_fail(err, DT_EINPUT,
                 "the caches of %d sequences with a context of %d need %.3g GiB and %.3g are free: at most %zu fit",
                 sequences, context, (double)each * sequences / (1 << 30), (double)left / (1 << 30), most);
}

dt_status dt_session_open(dt_pair *pair, const dt_session_options *o, dt_session **out, dt_error *err) {
  int most = pair->target_info.context, context = o->context ? o->context : most;
  if (o->sequences < 1 || o->sequences > 4096)
    return dt_fail(err, DT_EINPUT, "sequences: %d is out of range: 1..4096", o->sequences);
  if (context < 2 || context > most)
    return dt_fail(err, DT_EINPUT, "context: %d is out of range: 2..%d (%s has %d positions)", context, most,
                   pair->target_info.path, most);
  if (o->use_draft && !pair->draft)
    return dt_fail(err, DT_EINPUT, "a session with a draft needs a pair with a draft model");
  dt_session *s = take_idle(pair, o->sequences, context, o->use_draft);
  if (s) {
    *out = s;
    return DT_OK;
  }
  int draft_context = o->use_draft ? min(context, pair->draft_info.context) : 0,
      draft_slots = o->use_draft ? draft_context + DT_TREE_DRAFTS : 0;
  dt_status status = check_room(pair, o->sequences, context, draft_slots, err);
  if (status) return status;
  s = calloc(1, sizeof *s);
  if (!s) return dt_fail_memory(err, "a session", sizeof *s);
  s->pair = pair;
  s->sequences = o->sequences;
  s->context = context;
  s->seq = calloc((size_t)s->sequences, sizeof *s->seq);
  s->sampling = calloc((size_t)s->sequences, sizeof *s->sampling);
  s->draft_sampling = calloc((size_t)s->sequences, sizeof *s->draft_sampling);
  bool room = s->seq && s->sampling && s->draft_sampling;
  status = room ? open_rows(s, err) : dt_fail_memory(err, "sequences", sizeof *s->seq);
  for (int i = 0; !status && i < s->sequences; i++) status = open_sequence(&s->seq[i], context, err);
  if (!status) status = pair->ops->create_cache(pair->target, s->sequences, target_slots(context), &s->target, err);
  if (!status && o->use_draft) {
    s->draft_context = draft_context;
    s->shared_vocab = min(pair->target_info.vocab, pair->draft_info.vocab);
    status = pair->ops->create_cache(pair->draft, s->sequences, draft_slots, &s->draft_cache, err);
    s->draft = s->draft_cache;
  }
  if (status) {
    session_free(s);
    return status;
  }
  *out = s;
  return DT_OK;
}

void dt_session_close(dt_session *s) {
  if (!s) return;
  session_free(s->pair->idle);
  s->pair->idle = s;
}

void session_free(dt_session *s) {
  if (!s) return;
  for (int i = 0; s->seq && i < s->sequences; i++) {
    sequence *q = &s->seq[i];
    tree_close(q->tree);
    text_free(&q->text);
    free(q->tokens), free(q->text_end), free(q->target_slot), free(q->draft_slot);
  }
  if (s->target) s->pair->ops->free_cache(s->target);
  if (s->draft_cache) s->pair->ops->free_cache(s->draft_cache);
  pass_close(&s->rows);
  free(s->seq), free(s->sampling), free(s->draft_sampling), free(s->owner), free(s->wanted), free(s->choice);
  free(s->top_id), free(s->top_logp), free(s->confidence), free(s->entropy);
  free(s);
}

dt_status session_check(const dt_session *s, int seq, dt_error *err) {
  if (seq < 0 || seq >= s->sequences)
    return dt_fail(err, DT_ESTATE, "there is no sequence %d (the session has 0..%d)", seq, s->sequences - 1);
  if (!s->seq[seq].started) return dt_fail(err, DT_ESTATE, "sequence %d is not started", seq);
  return DT_OK;
}

/* A node deeper than the tokens still wanted minus one would be cut away: the token after its parent ends the text. */
void session_begin_tree(dt_session *s, sequence *q) {
  int left = q->limit - q->length;
  memset(q->draft_slot, 0xff, (size_t)q->tree->nodes * sizeof(int32_t));
  tree_reset(q->tree, q->tokens[q->length - 1], left > 0 ? left - 1 : 0, s->pair->target_info.vocab);
  kv_begin(&q->target, q->length - 1);
  kv_begin(&q->draft, q->length);
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

static dt_status check_start(const dt_session *s, int seq, const int32_t *prompt, int n, const dt_seq_options *o,
                             dt_error *err) {
  int vocab = s->pair->target_info.vocab;
  if (seq < 0 || seq >= s->sequences)
    return dt_fail(err, DT_ESTATE, "there is no sequence %d (the session has 0..%d)", seq, s->sequences - 1);
  if (n < 1) return dt_fail(err, DT_EINPUT, "the prompt is empty: give at least one token");
  if (o->max_tokens < 1 && o->max_tokens != -1)
    return dt_fail(err, DT_EINPUT, "tokens: %d is out of range: at least 1, or -1 for as many as the context holds",
                   o->max_tokens);
  if (n >= s->context)
    return dt_fail(err, DT_ECONTEXT, "the prompt has %d tokens and the context %d: at most %d leave room for one more",
                   n, s->context, s->context - 1);
  for (int i = 0; i < n; i++)
    if (prompt[i] < 0 || prompt[i] >= vocab)
      return dt_fail(err, DT_EINPUT, "prompt token %d is %d: out of range 0..%d", i + 1, prompt[i], vocab - 1);
  return check_sampling(&o->sampling, err);
}

/* Everything of a start but the rows. */
static dt_status begin(dt_session *s, int seq, const int32_t *prompt, int n, const dt_seq_options *o, dt_error *err) {
  sequence *q = &s->seq[seq];
  text_stream text;
  dt_status status = text_init(&text, o->stop, o->n_stop, err);
  if (status) return status;
  text_free(&q->text);
  q->text = text;
  q->start_ms = dt_clock_ms();
  q->started = false; /* until its rows are there */
  q->finish = DT_RUNNING;
  q->length = q->prompt = n;
  memcpy(q->tokens, prompt, (size_t)n * sizeof(int32_t));
  bool bounded = o->max_tokens > 0 && o->max_tokens <= s->context - n;
  q->limit = bounded ? n + o->max_tokens : s->context;
  q->at_limit = bounded ? DT_FINISH_LENGTH : DT_FINISH_CONTEXT;
  q->ignore_eos = o->ignore_eos;
  s->sampling[seq] = s->draft_sampling[seq] = o->sampling;
  if (o->uncoupled) s->draft_sampling[seq].temp = 0;
  q->stats = (dt_stats){.prompt_tokens = n};
  kv_init(&q->target, target_slots(s->context));
  kv_init(&q->draft, s->draft ? s->draft_context + DT_TREE_DRAFTS : 0);
  return DT_OK;
}

static void ready(dt_session *s, sequence *q) {
  memset(q->draft_slot, 0xff, NODES * sizeof(int32_t));
  q->started = q->fresh = true;
  session_begin_tree(s, q);
}

/* Rows 0..n-1 of the prompt in one model's cache. */
static dt_status prompt_rows(dt_session *s, int seq, dt_weights *w, dt_cache *c, kv_slots *kv, int n, dt_error *err) {
  pass_begin(&s->rows, 1);
  pass_text(&s->rows, seq, s->seq[seq].tokens, 0, n);
  dt_rows rows = pass_rows(&s->rows);
  rows.prompt = true;
  dt_status status = n ? s->pair->ops->forward(w, c, &rows, NULL, err) : DT_OK;
  if (!status) kv->rows = n;
  return status;
}

dt_status dt_seq_start(dt_session *s, int seq, const int32_t *prompt, int n, const dt_seq_options *o, dt_error *err) {
  dt_status status = check_start(s, seq, prompt, n, o, err);
  if (!status) status = begin(s, seq, prompt, n, o, err);
  if (status) return status;
  sequence *q = &s->seq[seq];
  status = prompt_rows(s, seq, s->pair->target, s->target, &q->target, n - 1, err);
  double target_done_ms = dt_clock_ms();
  if (!status && s->draft)
    status = prompt_rows(s, seq, s->pair->draft, s->draft, &q->draft, min(n - 1, s->draft_context), err);
  if (status) return status;
  q->draft_prompt_ms = dt_clock_ms() - target_done_ms;
  q->stats.prompt_ms = target_done_ms - q->start_ms + q->draft_prompt_ms;
  ready(s, q);
  return DT_OK;
}

/* Rows 0..n-1 in one model's cache as copies of one, which is computed in the last of their slots. */
static dt_status blank_rows(dt_session *s, int seq, dt_weights *w, dt_cache *c, kv_slots *kv, int n, dt_error *err) {
  if (n < 1) return DT_OK;
  pass_begin(&s->rows, 1);
  *pass_row(&s->rows, seq, s->seq[seq].tokens[0], n - 1, 0, 1) = n - 1;
  dt_rows rows = pass_rows(&s->rows);
  dt_status status = s->pair->ops->forward(w, c, &rows, NULL, err);
  for (int at = 0; at < n - 1 && !status;) {
    int count = min(n - 1 - at, DT_TREE_VERIFY);
    for (int i = 0; i < count; i++) s->from[i] = n - 1, s->to[i] = at++;
    status = s->pair->ops->move(c, seq, s->from, s->to, count, err);
  }
  if (!status) kv->rows = n;
  return status;
}

dt_status dt_seq_start_blank(dt_session *s, int seq, int n, dt_error *err) {
  dt_seq_options options = {.max_tokens = -1, .ignore_eos = true};
  int32_t *zeros = calloc(n > 0 ? (size_t)n : 1, sizeof *zeros);
  if (!zeros) return dt_fail_memory(err, "a blank text", (size_t)n * sizeof *zeros);
  dt_status status = check_start(s, seq, zeros, n, &options, err);
  if (!status) status = begin(s, seq, zeros, n, &options, err);
  free(zeros);
  if (status) return status;
  sequence *q = &s->seq[seq];
  status = blank_rows(s, seq, s->pair->target, s->target, &q->target, n - 1, err);
  if (!status && s->draft)
    status = blank_rows(s, seq, s->pair->draft, s->draft, &q->draft, min(n - 1, s->draft_context), err);
  if (!status) ready(s, q);
  return status;
}

dt_status dt_prefix_take(dt_session *s, int seq, dt_prefix **out, dt_error *err) {
  dt_status status = session_check(s, seq, err);
  if (status) return status;
  sequence *q = &s->seq[seq];
  if (!q->fresh)
    return dt_fail(err, DT_ESTATE,
                   "sequence %d has gone on since its prompt pass: take the prefix right after the start", seq);
  dt_prefix *p = calloc(1, sizeof *p);
  int32_t *tokens = malloc((size_t)q->length * sizeof(int32_t));
  if (!p || !tokens) {
    free(p), free(tokens);
    return dt_fail_memory(err, "a prefix", (size_t)q->length * sizeof(int32_t));
  }
  memcpy(tokens, q->tokens, (size_t)q->length * sizeof(int32_t));
  *p = (dt_prefix){.pair = s->pair,
                   .tokens = tokens,
                   .n = q->length,
                   .draft_rows = q->draft.rows,
                   .target_ms = q->stats.prompt_ms - q->draft_prompt_ms,
                   .draft_ms = q->draft_prompt_ms};
  if (q->target.rows) status = s->pair->ops->snapshot(s->target, seq, q->target.rows, &p->target, err);
  if (!status && q->draft.rows) status = s->pair->ops->snapshot(s->draft, seq, q->draft.rows, &p->draft, err);
  if (status) {
    dt_prefix_free(p);
    return status;
  }
  *out = p;
  return DT_OK;
}

dt_status dt_seq_start_from(dt_session *s, int seq, const dt_prefix *p, const dt_seq_options *o, dt_error *err) {
  if (p->pair != s->pair) return dt_fail(err, DT_EINPUT, "the prefix was made with another pair");
  dt_status status = check_start(s, seq, p->tokens, p->n, o, err);
  if (!status) status = begin(s, seq, p->tokens, p->n, o, err);
  if (status) return status;
  sequence *q = &s->seq[seq];
  if (p->target) status = s->pair->ops->restore(s->target, seq, p->target, err);
  if (!status && s->draft && p->draft && p->draft_rows <= s->draft_context) {
    status = s->pair->ops->restore(s->draft, seq, p->draft, err);
    q->draft.rows = p->draft_rows; /* what the prefix lacks is made up at the first draft step */
  }
  if (status) return status;
  q->target.rows = p->n - 1;
  q->stats.prompt_ms = p->target_ms + (s->draft ? p->draft_ms : 0);
  q->stats.shared_prefix = true;
  q->start_ms = dt_clock_ms() - q->stats.prompt_ms; /* as if the prompt pass had run now */
  ready(s, q);
  return DT_OK;
}

void dt_prefix_free(dt_prefix *p) {
  if (!p) return;
  if (p->target) p->pair->ops->free_snapshot(p->target);
  if (p->draft) p->pair->ops->free_snapshot(p->draft);
  free(p->tokens);
  free(p);
}

const int32_t *dt_prefix_tokens(const dt_prefix *p, int *n) {
  *n = p->n;
  return p->tokens;
}

double dt_prefix_ms(const dt_prefix *p) { return p->target_ms + p->draft_ms; }

dt_tree *dt_seq_tree(dt_session *s, int seq) { return s->seq[seq].tree; }

int dt_seq_length(const dt_session *s, int seq) { return s->seq[seq].length; }

const int32_t *dt_seq_tokens(const dt_session *s, int seq) { return s->seq[seq].tokens; }

int dt_seq_left(const dt_session *s, int seq) {
  const sequence *q = &s->seq[seq];
  return q->finish == DT_RUNNING ? q->limit - q->length : 0;
}

dt_finish dt_seq_finish(const dt_session *s, int seq) { return s->seq[seq].finish; }

const char *dt_seq_text(const dt_session *s, int seq, size_t *len) {
  *len = s->seq[seq].text.len;
  return s->seq[seq].text.bytes;
}

const size_t *dt_seq_text_ends(const dt_session *s, int seq) { return s->seq[seq].text_end; }

void dt_seq_stats(const dt_session *s, int seq, dt_stats *stats) { *stats = s->seq[seq].stats; }
