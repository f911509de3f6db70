/* Queries of a session's sequences. */
#include "session/session.h"

#include "backend/chunks.h"
#include "system/min_max.h"
#include "system/need.h"

/* NULL: no such sequence. */
static const sequence *find(const dt_session *s, int seq) {
  return s && seq >= 0 && seq < s->sequences ? &s->seq[seq] : NULL;
}

dt_tree *dt_seq_tree(dt_session *s, int seq) { return find(s, seq) ? s->seq[seq].tree : NULL; }

int dt_seq_length(const dt_session *s, int seq) { return find(s, seq) ? s->seq[seq].length : 0; }

int dt_seq_rows(const dt_session *s, int seq) {
  const sequence *q = find(s, seq);
  return q && !q->blank ? q->target.rows : 0;
}

/* How many of `rows` rows over these tokens, the first `had` of which were computed in chunks, a prompt can use. */
static int reusable(const dt_pair *pair, const int32_t *tokens, int rows, int had, const int32_t *prompt, int n) {
  const int chunk = pair->ops->chunk, most = prompt ? dt_min(rows, n - 1) : 0;
  int same = 0;
  while (same < most && tokens[same] == prompt[same]) same++;
  return same ? chunks_alike(chunk, same, had, chunks_rows(chunk, n)) : 0;
}

int dt_seq_reusable(const dt_session *s, int seq, const int32_t *prompt, int n) {
  const sequence *q = find(s, seq);
  return q ? reusable(s->pair, q->tokens, dt_seq_rows(s, seq), q->chunked, prompt, n) : 0;
}

int dt_prefix_reusable(const dt_prefix *p, const int32_t *prompt, int n) {
  return p ? reusable(p->pair, p->tokens, p->rows, p->chunked, prompt, n) : 0;
}

const int32_t *dt_seq_tokens(const dt_session *s, int seq) { return find(s, seq) ? s->seq[seq].tokens : NULL; }

int dt_seq_left(const dt_session *s, int seq) {
  const sequence *q = find(s, seq);
  return q && q->finish == DT_RUNNING ? q->limit - q->length : 0;
}

int dt_seq_unread(const dt_session *s, int seq) {
  const sequence *q = find(s, seq);
  if (!q || !q->length || !s->drafts) return 0;
  int there, all = s->draft->ops->rows(s->draft, seq, q->length - 1, &there);
  bool free = q->drafts_prompt_ms == 0 ||
              q->stats.draft_passes; /* before the first step, the rows of a prefix still count as unprocessed */
  return free ? all - there : all;
}

bool dt_seq_is_coupled(const dt_session *s, int seq) { return find(s, seq) && s->draft_sampling[seq].temp > 0; }

dt_finish dt_seq_finish(const dt_session *s, int seq) { return find(s, seq) ? s->seq[seq].finish : DT_NO_SEQUENCE; }

const char *dt_seq_text(const dt_session *s, int seq, size_t *len) {
  const sequence *q = find(s, seq);
  if (len) *len = q ? q->text.len : 0;
  return q ? q->text.bytes : NULL;
}

const size_t *dt_seq_text_ends(const dt_session *s, int seq) { return find(s, seq) ? s->seq[seq].text_end : NULL; }

dt_status dt_seq_logprobs(const dt_session *s, int seq, int at, float *logp, const int32_t **token, const float **top,
                          int *n, dt_error *err) {
  NEED(s, "session");
  NEED(logp, "logp");
  NEED(token, "token");
  NEED(top, "top");
  NEED(n, "n");
  const sequence *q = find(s, seq);
  if (!q) return dt_fail(err, DT_ESTATE, "there is no sequence %d (the session has 0..%d)", seq, s->sequences - 1);
  const logprobs *l = &q->logs;
  if (at < 0 || at >= q->length || !l->there || !l->there[at])
    return dt_fail(err, DT_ESTATE, "logprobs: nothing is known about token %d of sequence %d", at, seq);
  *logp = l->logp[at];
  *token = l->top_id + (ptrdiff_t)at * l->asked.top, *top = l->top_logp + (ptrdiff_t)at * l->asked.top;
  for (*n = 0; *n < l->asked.top && (*token)[*n] >= 0;) ++*n;
  return DT_OK;
}

void dt_seq_stats(const dt_session *s, int seq, dt_stats *stats) {
  const sequence *q = find(s, seq);
  if (stats) *stats = q ? q->stats : (dt_stats){0};
}
