/* The four primitives: draft_step, verify_tree, commit, rollback, for any number of sequences at once. A call first
 * checks everything; if a check fails, nothing has changed. */
#include "session/row_experts.h"
#include "session/session.h"
#include "system/min_max.h"
#include "system/need.h"
#include "tree/accept.h"

#include <stdlib.h>
#include <string.h>

/* Checks that the sequence exists, is running, and is in a phase between `from` and `to`. */
static dt_status check_running(const dt_session *s, int seq, dt_tree_phase from, dt_tree_phase to, const char *call,
                               dt_error *err) {
  dt_status status = session_check(s, seq, err);
  if (status) return status;
  const sequence *q = &s->seq[seq];
  if (q->finish != DT_RUNNING) return dt_fail(err, DT_ESTATE, "%s: the text of sequence %d is finished", call, seq);
  dt_tree_phase phase = q->tree->phase;
  if (phase >= from && phase <= to) return DT_OK;
  return dt_fail(err, DT_ESTATE, "%s: %s", call,
                 phase == TREE_SEALED     ? "keep has settled the tree; verify_tree comes next"
                 : phase == TREE_VERIFIED ? "the tree is verified; commit or rollback comes next"
                 : phase == TREE_FROZEN   ? "the iteration is committed; its step must return"
                                          : "the tree is not verified; verify_tree comes first");
}

/* The same for a list of sequences, each listed once. */
static dt_status check_list(dt_session *s, const int *seqs, int n, dt_tree_phase from, dt_tree_phase to,
                            const char *call, dt_error *err) {
  dt_status status = DT_OK;
  int named = 0;
  for (; named < n && !status; named++) {
    status = check_running(s, seqs[named], from, to, call, err);
    if (!status && s->seq[seqs[named]].named)
      status = dt_fail(err, DT_ESTATE, "%s: sequence %d is named twice", call, seqs[named]);
    if (status) break;
    s->seq[seqs[named]].named = true;
  }
  while (named > 0) s->seq[seqs[--named]].named = false;
  return status;
}

/* ---- draft_step -------------------------------------------------------------------------------------------------- */

dt_status dt_draft_step(dt_session *s, const dt_node_ref *nodes, int n, dt_error *err) {
  NEED(s, "session");
  NEED_LIST(nodes, n, "nodes");
  if (!s->drafts) return dt_fail(err, DT_ESTATE, "draft_step: no draft model is in use");
  dt_status status = DT_OK;
  for (int i = 0; i < n && !status; i++) {
    status = check_running(s, nodes[i].seq, TREE_OPEN, TREE_OPEN, "draft_step", err);
    if (!status) status = dt_tree_check(s->seq[nodes[i].seq].tree, nodes[i].node, "draft_step", err);
    if (!status && nodes[i].width < 0)
      status = dt_fail(err, DT_EINPUT, "draft_step: width: %d is out of range: at least 0", nodes[i].width);
  }
  if (status) return status;
  for (int i = 0; i < n; i++) {
    sequence *q = &s->seq[nodes[i].seq];
    q->fresh = false;
    s->text[nodes[i].seq] = session_text(q);
  }
  return n ? s->draft->ops->step(s->draft, s->text, nodes, n, err) : DT_OK;
}

/* ---- verify_tree ------------------------------------------------------------------------------------------------- */

/* Adds the adjustments of the next row, which is node v's. */
static void add_adjustments(dt_session *s, const sequence *q, int v) {
  row_adjustments_put(&s->adjustments, s->rows.n, q->adjusted ? &q->adjustments : NULL, q->tree, v);
}

/* Adds rows for the root and every kept node. */
static void add_tree(dt_session *s, int seq) {
  sequence *q = &s->seq[seq];
  const dt_tree *t = q->tree;
  add_adjustments(s, q, 0);
  kv_begin(&q->target, q->length - 1);
  q->slot[0] = kv_reserve(&q->target);
  *pass_row(&s->rows, seq, t->token[0], q->slot[0], q->length - 1, 1) = q->slot[0];
  for (int i = 0; i < t->n_kept; i++) {
    int v = t->kept_node[i];
    q->slot[v] = kv_reserve(&q->target);
    add_adjustments(s, q, v);
    int32_t *path = pass_row(&s->rows, seq, t->token[v], q->slot[v], q->length, t->depth[v]);
    for (int a = v; a > 0; a = t->parent[a]) path[t->depth[a] - 1] = q->slot[a];
  }
}

/* The number of candidates that the sequence needs of a row. */
static int row_top(const sequence *q) {
  int logs = q->logs.asked.wanted ? dt_max(q->logs.asked.top, 1) : 0;
  return dt_max(q->candidates, logs);
}

/* Gives each sequence the candidates of its rows, which are adjacent. */
static void take_candidates(dt_session *s, const dt_rows *rows, int k) {
  for (int i = 0, row = 0; i < rows->n; i++, row++) {
    if (i > 0 && rows->sequence[i] != rows->sequence[i - 1]) row = 0;
    const sequence *q = &s->seq[rows->sequence[i]];
    size_t from = (size_t)i * (size_t)k, to = (size_t)row * ROW_TOP, n = (size_t)row_top(q);
    if (!n) continue;
    q->choice_logp[row] = s->choice_logp[i];
    memcpy(q->candidate + to, s->candidate + from, n * sizeof *q->candidate);
    memcpy(q->candidate_logp + to, s->candidate_logp + from, n * sizeof *q->candidate_logp);
  }
}

/* Removes the tokens after rows at which the grammar allows no token. */
static dt_status take_back_forbidden(const dt_session *s, const dt_rows *rows, int32_t *choice, dt_error *err) {
  for (int i = 0; i < rows->n; i++) {
    const sequence *q = &s->seq[rows->sequence[i]];
    if (!q->adjusted || !q->adjustments.masks) continue;
    dt_status status = masks_failure(q->adjustments.masks, err);
    if (status) return status;
    if (choice[i] >= 0 && !adjustment_allows(&s->adjustments.row[i], choice[i])) choice[i] = -1;
  }
  return DT_OK;
}

/* Runs the collected rows. Writes the target's tokens after them to *choice, and moves *choice past them. */
static dt_status verify_rows(dt_session *s, int32_t **choice, dt_error *err) {
  dt_rows rows = pass_rows(&s->rows);
  int k = 0;
  bool adjusted = false;
  for (int i = 0; i < rows.n; i++) {
    const sequence *q = &s->seq[rows.sequence[i]];
    s->wanted[i] = i, k = dt_max(k, row_top(q)), adjusted |= q->adjusted;
  }
  dt_out out = {.want = k ? DT_WANT_BOTH : DT_WANT_ARGMAX,
                .n = rows.n,
                .row = s->wanted,
                .sampling = s->sampling,
                .adjustments = adjusted ? s->adjustments.row : NULL,
                .argmax = *choice,
                .logp = k ? s->choice_logp : NULL,
                .k = k,
                .top_id = s->candidate,
                .top_logp = s->candidate_logp,
                .experts = s->experts,
                .experts_read = &s->experts_read};
  dt_status status = s->pair->ops->forward(s->pair->target, s->target, &rows, &out, err);
  if (!status && adjusted) status = take_back_forbidden(s, &rows, *choice, err);
  if (!status && k) take_candidates(s, &rows, k);
  if (!status) experts_take(s, &rows);
  *choice += rows.n;
  pass_begin(&s->rows, s->rows.path_stride);
  row_adjustments_begin(&s->adjustments);
  return status;
}

/* Leaves guesses that the adjustments forbid out of the pass. */
static void drop_forbidden(const sequence *q) {
  if (!q->adjusted || !adjustments_forbid(&q->adjustments)) return;
  dt_tree *t = q->tree;
  int n = 0;
  for (int i = 0; i < t->n_kept; i++) {
    int32_t v = t->kept_node[i];
    t->kept[v] = adjustments_allow(&q->adjustments, t, t->parent[v], t->token[v]);
    if (t->kept[v]) t->kept_node[n++] = v;
  }
  t->n_kept = n;
}

static int deepest_kept(const dt_tree *t) {
  int depth = 0;
  for (int i = 0; i < t->n_kept; i++)
    if (t->depth[t->kept_node[i]] > depth) depth = t->depth[t->kept_node[i]];
  return depth;
}

/* The failure of a row on the text's own path. */
static dt_status gave_nothing(const dt_session *s, const sequence *q, int accepted, dt_error *err) {
  if (q->adjusted && adjustments_are_stuck(&q->adjustments)) return masks_are_stuck(q->adjustments.masks, err);
  return pair_gave_nan(s->pair, q->length - 1 + accepted, err);
}

dt_status dt_verify_tree(dt_session *s, const int *seqs, int n, dt_verdict *verdicts, dt_error *err) {
  NEED(s, "session");
  NEED_LIST(seqs, n, "seqs");
  NEED_LIST(verdicts, n, "verdicts");
  dt_status status = check_list(s, seqs, n, TREE_OPEN, TREE_SEALED, "verify_tree", err);
  for (int i = 0; i < n && !status; i++) status = dt_tree_check_seal(s->seq[seqs[i]].tree, err);
  if (status || n == 0) return status;
  double start = dt_clock_ms();
  int longest = 1;
  for (int i = 0; i < n; i++) {
    dt_tree *t = s->seq[seqs[i]].tree;
    dt_tree_seal(t, NULL);
    drop_forbidden(&s->seq[seqs[i]]);
    verdicts[i] = (dt_verdict){.seq = seqs[i], .depth = deepest_kept(t), .bonus = -1};
    longest = dt_max(longest, verdicts[i].depth);
  }
  int32_t *choice = s->choice;
  s->experts_read = 0;
  pass_begin(&s->rows, longest);
  for (int i = 0; i < n && !status; i++) {
    if (!pass_fits(&s->rows, 1 + s->seq[seqs[i]].tree->n_kept)) status = verify_rows(s, &choice, err);
    add_tree(s, seqs[i]);
  }
  if (!status) status = verify_rows(s, &choice, err);
  if (status) return status;
  double ms = dt_clock_ms() - start;
  choice = s->choice;
  for (int i = 0; i < n; i++) {
    sequence *q = &s->seq[seqs[i]];
    dt_verdict *v = &verdicts[i];
    q->accepted = v->accepted = accept_path(q->tree, choice, q->path, &q->bonus);
    choice += 1 + q->tree->n_kept;
    v->path = q->path;
    v->bonus = q->bonus;
    v->drafted = q->tree->n_kept;
    v->experts_read = s->experts_read;
    if (v->bonus < 0) { /* a NaN elsewhere in the tree is harmless: plain decoding would not have computed it */
      status = gave_nothing(s, q, v->accepted, err);
      continue;
    }
    q->fresh = false;
    q->stats.iterations++;
    q->stats.drafted += v->drafted;
    q->stats.depth_sum += v->depth;
    q->stats.verify_ms += ms;
    q->stats.experts_read += s->experts_read;
    for (int d = 1; d <= v->depth; d++) q->stats.verified_at[d]++;
  }
  return status;
}

dt_status session_check_verified(const sequence *q, int node, const char *call, dt_error *err) {
  dt_status status = dt_tree_check(q->tree, node, call, err);
  if (!status && q->tree->phase < TREE_VERIFIED)
    status = dt_fail(err, DT_ESTATE, "%s: the tree is not verified yet", call);
  if (!status && !q->tree->kept[node])
    status = dt_fail(err, DT_ESTATE, "%s: node %d was not verified: keep left it out", call, node);
  return status;
}

dt_status dt_seq_candidates(const dt_session *s, int seq, int node, const int32_t **token, const float **logp, int *n,
                            dt_error *err) {
  if (!s || !token || !logp || !n)
    return dt_fail(err, DT_EINPUT, "dt_seq_candidates: session, token, logp or n is NULL");
  dt_status status = session_check(s, seq, err);
  if (status) return status;
  const sequence *q = &s->seq[seq];
  status = session_check_verified(q, node, "candidates", err);
  if (status) return status;
  *token = NULL, *logp = NULL, *n = 0;
  if (!q->candidates) return DT_OK;
  size_t at = (size_t)dt_tree_row(q->tree, node) * ROW_TOP;
  *token = q->candidate + at, *logp = q->candidate_logp + at;
  while (*n < q->candidates && (*token)[*n] >= 0) ++*n;
  return DT_OK;
}

dt_status dt_seq_experts(const dt_session *s, int seq, int node, const int32_t **id, dt_error *err) {
  NEED(s, "session");
  NEED(id, "id");
  dt_status status = session_check(s, seq, err);
  if (!status) status = session_check_verified(&s->seq[seq], node, "experts", err);
  if (status) return status;
  const sequence *q = &s->seq[seq];
  *id = q->experts ? q->experts + (size_t)dt_tree_row(q->tree, node) * experts_of_row(s) : NULL;
  return DT_OK;
}

/* ---- commit ------------------------------------------------------------------------------------------------------ */

/* Whether the target rejected all guesses after the last accepted node. */
static bool guessed_wrong(const sequence *q) {
  const dt_tree *t = q->tree;
  for (int v = t->first_child[q->accepted ? q->path[q->accepted - 1] : 0]; v >= 0; v = t->next_sibling[v])
    if (t->kept[v]) return true;
  return false;
}

/* The i-th token of the block to commit: the accepted tokens, then the bonus token. */
static int32_t block_token(const sequence *q, int i) { return i < q->accepted ? q->tree->token[q->path[i]] : q->bonus; }

static dt_status reserve_text(const dt_session *s, sequence *q, dt_error *err) {
  char buffer[16];
  size_t total = 0, len;
  for (int i = 0; i <= q->accepted; i++)
    pair_token_bytes(s->pair, block_token(q, i), false, buffer, &len), total += len;
  return text_reserve(&q->text, total, err);
}

/* Appends accepted tokens and the bonus token, up to the end of the text. */
static void append_block(dt_session *s, sequence *q, dt_committed *block) {
  char buffer[16];
  int begin = q->length;
  while (q->finish == DT_RUNNING && q->length - begin <= q->accepted) {
    int32_t token = block_token(q, q->length - begin);
    size_t len;
    const char *bytes = pair_token_bytes(s->pair, token, q->length == q->prompt, buffer, &len);
    int row = q->length == begin ? 0 : dt_tree_row(q->tree, q->path[q->length - begin - 1]);
    if (q->logs.asked.wanted)
      logprobs_put(&q->logs, q->length, q->choice_logp[row], q->candidate + (size_t)row * ROW_TOP,
                   q->candidate_logp + (size_t)row * ROW_TOP);
    if (q->adjusted) adjustments_token(&q->adjustments, token);
    bool eos = !q->ignore_eos && (token == q->end || pair_is_eos(s->pair, token));
    if (!eos) text_push(&q->text, bytes, len, NULL); /* the token that ends the text is not shown; there is room */
    q->text_end[q->length] = q->text.len;
    q->tokens[q->length++] = token;
    q->finish = eos                     ? DT_FINISH_EOS
                : q->text.stopped       ? DT_FINISH_STOP
                : q->length == q->limit ? q->at_limit
                                        : DT_RUNNING;
  }
  block->n = q->length - begin;
  block->tokens = q->tokens + begin;
  block->accepted = block->n < q->accepted ? block->n : q->accepted;
  block->corrected = guessed_wrong(q);
  block->text = text_take(&q->text, q->finish != DT_RUNNING, &block->text_len);
  block->finish = q->finish;
}

/* Keeps the cache rows of the old root and of the accepted nodes before the new root. */
static dt_status keep_target(dt_session *s, int seq, int nodes, dt_error *err) {
  sequence *q = &s->seq[seq];
  s->keep[0] = q->slot[0];
  for (int i = 0; i < nodes; i++) s->keep[1 + i] = q->slot[q->path[i]];
  int moves = kv_keep(&q->target, s->keep, 1 + nodes, s->from, s->to);
  return moves ? s->pair->ops->move(s->target, seq, s->from, s->to, moves, err) : DT_OK;
}

/* Runs the collected rows once more. */
static dt_status run_rebuild(dt_session *s, dt_error *err) {
  dt_rows rows = pass_rows(&s->rows);
  pass_begin(&s->rows, 1);
  return rows.n ? s->pair->ops->forward(s->pair->target, s->target, &rows, NULL, err) : DT_OK;
}

/* Keeps the rows of one committed block: moves them or, with rebuild, adds them to the pass that computes them
 * again. */
static dt_status commit_rows(dt_session *s, int seq, int before, int nodes, bool rebuild, dt_error *err) {
  sequence *q = &s->seq[seq];
  dt_status status = DT_OK;
  if (rebuild) {
    if (!pass_fits(&s->rows, q->length - before)) status = run_rebuild(s, err);
    pass_text(&s->rows, seq, q->tokens, before - 1, q->length - 1);
    q->target.rows = q->length - 1;
  } else
    status = keep_target(s, seq, nodes, err);
  if (s->drafts && !status) status = s->draft->ops->keep(s->draft, seq, before, q->path, nodes, err);
  return status;
}

/* After the first draft step, the time of the drafts' prompt pass counts, even if a prefix saved that pass. */
static void count_drafts_prompt(sequence *q) {
  q->stats.prompt_ms += q->drafts_prompt_ms;
  q->start_ms -= q->drafts_prompt_ms;
  q->drafts_prompt_ms = 0;
}

dt_status dt_commit(dt_session *s, const int *seqs, int n, unsigned flags, dt_committed *blocks, dt_error *err) {
  NEED(s, "session");
  NEED_LIST(seqs, n, "seqs");
  NEED_LIST(blocks, n, "blocks");
  if (flags & ~DT_COMMIT_REBUILD)
    return dt_fail(err, DT_EINPUT, "dt_commit: flags = 0x%x, expected 0 or DT_COMMIT_REBUILD", flags);
  dt_status status = check_list(s, seqs, n, TREE_VERIFIED, TREE_VERIFIED, "commit", err);
  for (int i = 0; i < n && !status; i++) status = reserve_text(s, &s->seq[seqs[i]], err);
  if (status) return status;
  double start = dt_clock_ms();
  pass_begin(&s->rows, 1);
  for (int i = 0; i < n; i++) {
    int before = s->seq[seqs[i]].length;
    blocks[i] = (dt_committed){.seq = seqs[i]};
    append_block(s, &s->seq[seqs[i]], &blocks[i]);
    if (!status) status = commit_rows(s, seqs[i], before, blocks[i].n - 1, flags & DT_COMMIT_REBUILD, err);
  }
  if (!status) status = run_rebuild(s, err);
  for (int i = 0; i < n && status; i++) s->seq[seqs[i]].started = false;
  if (status) return status;
  double now = dt_clock_ms();
  for (int i = 0; i < n; i++) {
    sequence *q = &s->seq[seqs[i]];
    dt_stats *st = &q->stats;
    q->tree->phase = TREE_FROZEN;
    if (st->draft_passes) count_drafts_prompt(q);
    if (!st->committed) st->ttft_ms = now - q->start_ms;
    st->total_ms = now - q->start_ms;
    st->commit_ms += now - start;
    st->committed += blocks[i].n;
    st->generated += blocks[i].n;
    st->accepted += blocks[i].accepted;
    for (int d = 1; d <= blocks[i].accepted; d++) st->accepted_at[d]++;
  }
  return DT_OK;
}

/* ---- rollback ---------------------------------------------------------------------------------------------------- */

dt_status dt_rollback(dt_session *s, int seq, dt_error *err) {
  NEED(s, "session");
  dt_status status = session_check(s, seq, err);
  if (status) return status;
  sequence *q = &s->seq[seq];
  if (q->finish != DT_RUNNING) return dt_fail(err, DT_ESTATE, "rollback: the text of sequence %d is finished", seq);
  session_begin_tree(s, seq); /* the tree's rows are dropped with it */
  return DT_OK;
}
