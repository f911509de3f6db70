/* The four primitives: draft_step, verify_tree, commit, rollback, over any number of sequences at once. A call checks
 * everything first; what fails in a check has changed nothing. */
#include "accept.h"
#include "session_impl.h"

#include <stdlib.h>
#include <string.h>

/* Sequences that are named and still run, each in a phase between `from` and `to`. */
static dt_status check_running(const dt_session *s, int seq, tree_phase from, tree_phase to, const char *call,
                               dt_error *err) {
  dt_status status = session_check(s, seq, err);
  if (status) return status;
  const sequence *q = &s->seq[seq];
  if (q->finish != DT_RUNNING) return dt_fail(err, DT_ESTATE, "%s: the text of sequence %d is finished", call, seq);
  tree_phase phase = q->tree->phase;
  if (phase >= from && phase <= to) return DT_OK;
  return dt_fail(err, DT_ESTATE, "%s: %s", call,
                 phase == TREE_SEALED     ? "keep has settled the tree; verify_tree comes next"
                 : phase == TREE_VERIFIED ? "the tree is verified; commit or rollback comes next"
                 : phase == TREE_FROZEN   ? "the iteration is committed; its step must return"
                                          : "the tree is not verified; verify_tree comes first");
}

/* ---- draft_step -------------------------------------------------------------------------------------------------------- */

/* The draft model cannot embed a token past its vocabulary (the target's padding): any other stands in for it, since a
 * draft only guesses. */
static int32_t draftable(const dt_session *s, int32_t token) { return token < s->shared_vocab ? token : 0; }

static void own(dt_session *s, int seq, int node) {
  s->owner[s->rows.n - 1].seq = seq;
  s->owner[s->rows.n - 1].node = node;
}

/* Committed tokens that lack a row: all but the last RIDE_ALONG in a pass of their own. */
static dt_status catch_up(dt_session *s, int seq, dt_error *err) {
  sequence *q = &s->seq[seq];
  int last = q->length - RIDE_ALONG;
  if (q->draft.rows >= last) return DT_OK;
  pass_begin(&s->rows, 1);
  for (int i = q->draft.rows; i < last; i++) *pass_row(&s->rows, seq, draftable(s, q->tokens[i]), i, i, 1) = i;
  dt_rows rows = pass_rows(&s->rows);
  dt_status status = s->pair->ops->forward(s->pair->draft, s->draft, &rows, NULL, err);
  if (status) return status;
  q->draft.rows = last;
  q->stats.draft_passes++;
  q->stats.draft_rows += rows.n;
  return DT_OK;
}

/* The last committed tokens that lack a row ride along; the root's row is the tree's when it is asked for. */
static void add_text(dt_session *s, int seq, bool with_root) {
  sequence *q = &s->seq[seq];
  int first = q->draft.rows;
  if (with_root && first > q->length - 1) first = q->length - 1;
  for (int i = first; i < q->length; i++) {
    *pass_row(&s->rows, seq, draftable(s, q->tokens[i]), i, i, 1) = i;
    own(s, seq, i == q->length - 1 ? 0 : -1);
  }
}

/* A row for node u and, before it, for its ancestors that have none. */
static void add_node(dt_session *s, int seq, int u) {
  sequence *q = &s->seq[seq];
  const dt_tree *t = q->tree;
  int missing = 0;
  for (int v = u; v > 0 && q->draft_slot[v] < 0; v = t->parent[v]) missing++;
  if (q->length - 1 + t->depth[u] >= s->draft_context || q->draft.next + missing > q->draft.capacity) return;
  for (; missing > 0; missing--) {
    int v = u;
    for (int up = missing - 1; up > 0; up--) v = t->parent[v];
    q->draft_slot[v] = kv_reserve(&q->draft);
    int32_t *path = pass_row(&s->rows, seq, draftable(s, t->token[v]), q->draft_slot[v], q->length, t->depth[v]);
    for (int a = v; a > 0; a = t->parent[a]) path[t->depth[a] - 1] = q->draft_slot[a];
    own(s, seq, v);
  }
}

static dt_status run_draft(dt_session *s, dt_error *err) {
  dt_out out = {.want = DT_WANT_TOPK,
                .row = s->wanted,
                .sampling = s->draft_sampling,
                .k = DT_CANDIDATES,
                .vocab = s->shared_vocab,
                .top_id = s->top_id,
                .top_logp = s->top_logp,
                .confidence = s->confidence,
                .entropy = s->entropy};
  for (int i = 0; i < s->rows.n; i++)
    if (s->owner[i].node >= 0) s->wanted[out.n++] = i;
  dt_rows rows = pass_rows(&s->rows);
  dt_status status = s->pair->ops->forward(s->pair->draft, s->draft, &rows, &out, err);
  if (status) return status;
  for (int j = 0; j < out.n; j++) {
    dt_tree *t = s->seq[s->owner[s->wanted[j]].seq].tree;
    int u = s->owner[s->wanted[j]].node;
    tree_draft *d = t->draft[u] < 0 ? tree_new_draft(t, u) : NULL;
    if (!d) continue;
    const int32_t *id = s->top_id + (size_t)j * DT_CANDIDATES;
    for (d->count = 0; d->count < DT_CANDIDATES && id[d->count] >= 0;) d->count++;
    memcpy(d->token, id, sizeof d->token);
    memcpy(d->logp, s->top_logp + (size_t)j * DT_CANDIDATES, sizeof d->logp);
    d->confidence = s->confidence[j];
    d->entropy = s->entropy[j];
  }
  return DT_OK;
}

/* One sequence's share of the pass: rows for its nodes among those named that have no result yet. */
static void add_nodes(dt_session *s, int seq, const dt_node_ref *nodes, int n) {
  sequence *q = &s->seq[seq];
  bool any = false, root = false;
  for (int i = 0; i < n; i++)
    if (nodes[i].seq == seq && q->tree->draft[nodes[i].node] < 0) any = true, root |= nodes[i].node == 0;
  if (!any || q->length > s->draft_context) return;
  add_text(s, seq, root);
  for (int i = 0; i < n; i++)
    if (nodes[i].seq == seq && nodes[i].node > 0 && q->tree->draft[nodes[i].node] < 0) add_node(s, seq, nodes[i].node);
}

dt_status dt_draft_step(dt_session *s, const dt_node_ref *nodes, int n, dt_error *err) {
  if (!s->draft) return dt_fail(err, DT_ESTATE, "draft_step: no draft model is in use");
  dt_status status = DT_OK;
  for (int i = 0; i < n && !status; i++) {
    status = check_running(s, nodes[i].seq, TREE_OPEN, TREE_OPEN, "draft_step", err);
    if (!status) status = tree_check(s->seq[nodes[i].seq].tree, nodes[i].node, "draft_step", err);
  }
  if (status) return status;
  double start = dt_clock_ms();
  int longest = 1;
  for (int i = 0; i < n && !status; i++) {
    const sequence *q = &s->seq[nodes[i].seq];
    if (q->tree->deepest > longest) longest = q->tree->deepest;
    if (q->tree->draft[nodes[i].node] < 0 && q->length <= s->draft_context) status = catch_up(s, nodes[i].seq, err);
  }
  if (status) return status;
  pass_begin(&s->rows, longest < DT_TREE_DRAFTS ? longest : DT_TREE_DRAFTS); /* deeper rows do not fit the cache */
  for (int seq = 0; seq < s->sequences; seq++) add_nodes(s, seq, nodes, n);
  if (s->rows.n) status = run_draft(s, err);
  for (int i = 0; i < s->rows.n && status; i++)
    if (s->owner[i].node > 0) s->seq[s->owner[i].seq].draft_slot[s->owner[i].node] = -1;
  if (status) return status;
  for (int i = 0; i < n; i++) {
    dt_tree *t = s->seq[nodes[i].seq].tree;
    if (t->draft[nodes[i].node] < 0) tree_no_draft(t, nodes[i].node);
  }
  double ms = dt_clock_ms() - start;
  for (int i = 0; i < s->rows.n; i++) { /* rows of a sequence lie together */
    sequence *q = &s->seq[s->owner[i].seq];
    q->stats.draft_rows++;
    if (i > 0 && s->owner[i - 1].seq == s->owner[i].seq) continue;
    q->draft.rows = q->length;
    q->fresh = false;
    q->stats.draft_passes++;
    q->stats.draft_ms += ms;
  }
  return DT_OK;
}

/* ---- verify_tree ------------------------------------------------------------------------------------------------------- */

/* Rows for the root and every kept node. */
static void add_tree(dt_session *s, int seq) {
  sequence *q = &s->seq[seq];
  const dt_tree *t = q->tree;
  kv_begin(&q->target, q->length - 1);
  q->target_slot[0] = kv_reserve(&q->target);
  *pass_row(&s->rows, seq, t->token[0], q->target_slot[0], q->length - 1, 1) = q->target_slot[0];
  for (int i = 0; i < t->n_kept; i++) {
    int v = t->kept_node[i];
    q->target_slot[v] = kv_reserve(&q->target);
    int32_t *path = pass_row(&s->rows, seq, t->token[v], q->target_slot[v], q->length, t->depth[v]);
    for (int a = v; a > 0; a = t->parent[a]) path[t->depth[a] - 1] = q->target_slot[a];
  }
}

static int deepest_kept(const dt_tree *t) {
  int depth = 0;
  for (int i = 0; i < t->n_kept; i++)
    if (t->depth[t->kept_node[i]] > depth) depth = t->depth[t->kept_node[i]];
  return depth;
}

dt_status dt_verify_tree(dt_session *s, const int *seqs, int n, dt_verdict *verdicts, dt_error *err) {
  dt_status status = DT_OK;
  for (int i = 0; i < n && !status; i++) status = check_running(s, seqs[i], TREE_OPEN, TREE_SEALED, "verify_tree", err);
  for (int i = 0; i < n && !status; i++) status = tree_seal(s->seq[seqs[i]].tree, err);
  if (status) return status;
  double start = dt_clock_ms();
  int longest = 1;
  for (int i = 0; i < n; i++) {
    verdicts[i] = (dt_verdict){.seq = seqs[i], .depth = deepest_kept(s->seq[seqs[i]].tree), .bonus = -1};
    if (verdicts[i].depth > longest) longest = verdicts[i].depth;
  }
  pass_begin(&s->rows, longest);
  for (int i = 0; i < n; i++) add_tree(s, seqs[i]);
  dt_rows rows = pass_rows(&s->rows);
  for (int i = 0; i < rows.n; i++) s->wanted[i] = i;
  dt_out out = {.want = DT_WANT_ARGMAX, .n = rows.n, .row = s->wanted, .sampling = s->sampling, .argmax = s->choice};
  status = s->pair->ops->forward(s->pair->target, s->target, &rows, &out, err);
  if (status) return status;
  double ms = dt_clock_ms() - start;
  const int32_t *choice = s->choice;
  for (int i = 0; i < n; i++) {
    sequence *q = &s->seq[seqs[i]];
    dt_verdict *v = &verdicts[i];
    q->accepted = v->accepted = accept_path(q->tree, choice, q->path, &q->bonus);
    choice += 1 + q->tree->n_kept;
    v->path = q->path;
    v->bonus = q->bonus;
    v->drafted = q->tree->n_kept;
    if (v->bonus < 0) { /* elsewhere in the tree a NaN is harmless: plain decoding would not have seen it */
      status = dt_fail(err, DT_EDEVICE, "the target model %s returned NaN at position %d", s->pair->target_info.path,
                       q->length - 1 + v->accepted);
      continue;
    }
    q->fresh = false;
    q->stats.iterations++;
    q->stats.drafted += v->drafted;
    q->stats.depth_sum += v->depth;
    q->stats.verify_ms += ms;
    for (int d = 1; d <= v->depth; d++) q->stats.verified_at[d]++;
  }
  return status;
}

/* ---- commit ------------------------------------------------------------------------------------------------------------ */

/* Did the target pass over guesses behind the last accepted node? */
static bool guessed_wrong(const sequence *q) {
  const dt_tree *t = q->tree;
  for (int v = t->first_child[q->accepted ? q->path[q->accepted - 1] : 0]; v >= 0; v = t->next_sibling[v])
    if (t->kept[v]) return true;
  return false;
}

/* Appends accepted tokens and bonus token up to where the text ends. */
static dt_status append_block(dt_session *s, sequence *q, dt_committed *block, dt_error *err) {
  char buffer[16];
  int begin = q->length;
  while (q->finish == DT_RUNNING && q->length - begin <= q->accepted) {
    int i = q->length - begin;
    int32_t token = i < q->accepted ? q->tree->token[q->path[i]] : q->bonus;
    size_t len;
    const char *bytes = pair_token_bytes(s->pair, token, buffer, &len);
    bool eos = !q->ignore_eos && pair_is_eos(s->pair, token);
    dt_status status = eos ? DT_OK : text_push(&q->text, bytes, len, err); /* the end-of-text that ends is not shown */
    if (status) return status;
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
  return DT_OK;
}

/* Keeps the rows of the old root and of the accepted nodes that stand before the new root. */
static dt_status keep_target(dt_session *s, int seq, int nodes, dt_error *err) {
  sequence *q = &s->seq[seq];
  s->keep[0] = q->target_slot[0];
  for (int i = 0; i < nodes; i++) s->keep[1 + i] = q->target_slot[q->path[i]];
  int moves = kv_keep(&q->target, s->keep, 1 + nodes, s->from, s->to);
  return moves ? s->pair->ops->move(s->target, seq, s->from, s->to, moves, err) : DT_OK;
}

/* In the draft cache the leading run of accepted nodes that have rows, if the text before them has. */
static dt_status keep_draft(dt_session *s, int seq, int before, int nodes, dt_error *err) {
  sequence *q = &s->seq[seq];
  int run = 0;
  if (q->draft.rows == before)
    while (run < nodes && q->draft_slot[q->path[run]] >= 0) s->keep[run] = q->draft_slot[q->path[run]], run++;
  int moves = kv_keep(&q->draft, s->keep, run, s->from, s->to);
  return moves ? s->pair->ops->move(s->draft, seq, s->from, s->to, moves, err) : DT_OK;
}

/* The rows of one committed block, by moving them or, with rebuild, by adding them to the pass that computes them again. */
static dt_status commit_rows(dt_session *s, int seq, int before, int nodes, bool rebuild, dt_error *err) {
  sequence *q = &s->seq[seq];
  dt_status status = DT_OK;
  if (rebuild) {
    pass_text(&s->rows, seq, q->tokens, before - 1, q->length - 1);
    q->target.rows = q->length - 1;
  } else
    status = keep_target(s, seq, nodes, err);
  return !status && s->draft ? keep_draft(s, seq, before, nodes, err) : status;
}

dt_status dt_commit(dt_session *s, const int *seqs, int n, unsigned flags, dt_committed *blocks, dt_error *err) {
  dt_status status = DT_OK;
  for (int i = 0; i < n && !status; i++)
    status = check_running(s, seqs[i], TREE_VERIFIED, TREE_VERIFIED, "commit", err);
  if (status) return status;
  double start = dt_clock_ms();
  pass_begin(&s->rows, 1);
  for (int i = 0; i < n && !status; i++) {
    int before = s->seq[seqs[i]].length;
    blocks[i] = (dt_committed){.seq = seqs[i]};
    status = append_block(s, &s->seq[seqs[i]], &blocks[i], err);
    if (!status) status = commit_rows(s, seqs[i], before, blocks[i].n - 1, flags & DT_COMMIT_REBUILD, err);
  }
  dt_rows rows = pass_rows(&s->rows);
  if (!status && rows.n) status = s->pair->ops->forward(s->pair->target, s->target, &rows, NULL, err);
  if (status) return status;
  double now = dt_clock_ms();
  for (int i = 0; i < n; i++) {
    sequence *q = &s->seq[seqs[i]];
    dt_stats *st = &q->stats;
    q->tree->phase = TREE_FROZEN;
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

/* ---- rollback ---------------------------------------------------------------------------------------------------------- */

dt_status dt_rollback(dt_session *s, int seq, dt_error *err) {
  dt_status status = session_check(s, seq, err);
  if (status) return status;
  sequence *q = &s->seq[seq];
  if (q->finish != DT_RUNNING) return dt_fail(err, DT_ESTATE, "rollback: the text of sequence %d is finished", seq);
  session_begin_tree(s, q); /* the rows of the tree are forgotten with it */
  return DT_OK;
}
