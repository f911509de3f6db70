/* Every bound that dtrun.h states: at the bound, one below and one above, alone and in batches; and what calls refuse.
 * It uses a scripted pair, whose models read their text back from cache slots. */
#include "unit.h"

#include "dtrun_fake.h"
#include "session/session.h"

#include <math.h>
#include <stdlib.h>

enum { VOCAB = 1000, CONTEXT = 6000, CROWD = 2 * PASS_SEQUENCES + 3 };

static const int32_t PROMPT[] = {3, 1, 4, 1, 5};

static dt_pair *fake(dt_fake_options o) {
  dt_pair *pair;
  if (!o.vocab) o.vocab = VOCAB;
  if (!o.context) o.context = CONTEXT;
  o.eos = -1;
  ok(dt_pair_open_fake(&o, &pair, &err));
  return pair;
}

static dt_session *session(dt_pair *pair, int sequences) {
  dt_session *s;
  ok(dt_session_open(pair, &(dt_session_options){.sequences = sequences, .use_draft = true}, &s, &err));
  return s;
}

/* Starts sequence i with a text of its own. */
static void start(dt_session *s, int seq, int i) {
  int32_t prompt[] = {3, 1, 4, 1, 5, i};
  ok(dt_seq_start(s, seq, prompt, 6, &(dt_seq_options){.max_tokens = -1}, &err));
}

static int add(dt_tree *t, int u, int32_t token) {
  int v;
  ok(dt_tree_add(t, u, token, -1, &v, &err));
  return v;
}

/* Shapes of a tree with n nodes: one level, a chain, or combs of a chain and leaves. */
typedef enum { WIDE, DEEP, COMB, SHAPES } outline;
static void grow(dt_tree *t, outline shape, int n) {
  ok(dt_tree_limit(t, DT_TREE_ENTRIES, &err));
  for (int v = 1; v <= n; v++)
    add(t, shape == WIDE || v == 1 ? 0 : shape == DEEP ? v - 1 : v % 2 ? v - 2 : v - 1, v % VOCAB);
}

static int with_candidates(const dt_tree *t) {
  int n = 0;
  for (int v = 0; v < t->nodes; v++) n += dt_tree_draft_of(t, v) && dt_tree_draft_of(t, v)->count > 0;
  return n;
}

static void draft_all(dt_session *s, int sequences) {
  int n = 0, nodes = dt_seq_tree(s, 0)->nodes;
  dt_node_ref *refs = malloc((size_t)(sequences * nodes) * sizeof *refs);
  for (int v = 0; v < nodes; v++) /* mixes the nodes of the sequences */
    for (int seq = 0; seq < sequences; seq++) refs[n++] = (dt_node_ref){.seq = seq, .node = v};
  ok(dt_draft_step(s, refs, n, &err));
  free(refs);
}

static void at_most_512_nodes_are_drafted_from_whatever_the_shape(void **state) {
  (void)state;
  dt_pair *pair = fake((dt_fake_options){0});
  for (outline shape = WIDE; shape < SHAPES; shape++)
    for (int nodes = DT_TREE_DRAFTS - 2; nodes <= DT_TREE_ENTRIES;
         nodes = nodes <= DT_TREE_DRAFTS ? nodes + 1 : 8 * nodes) {
      nodes = nodes < DT_TREE_ENTRIES ? nodes : DT_TREE_ENTRIES;
      dt_session *s = session(pair, 1);
      dt_tree *t = dt_seq_tree(s, 0);
      int seq = 0, want = nodes + 1 < DT_TREE_DRAFTS ? nodes + 1 : DT_TREE_DRAFTS;
      dt_verdict v;
      dt_committed c;
      start(s, 0, 0);
      grow(t, shape, nodes);
      draft_all(s, 1);
      assert_int_equal(with_candidates(t), want);
      for (int u = 0; u < t->nodes; u++) assert_int_equal(dt_tree_draft_of(t, u)->count > 0, u < want);
      draft_all(s, 1); /* a second time, when nothing is left to do */
      ok(dt_tree_keep_best(t, 1, &err));
      ok(dt_verify_tree(s, &seq, 1, &v, &err));
      ok(dt_commit(s, &seq, 1, 0, &c, &err));
      dt_session_close(s);
    }
  dt_pair_close(pair);
}

static void the_bound_holds_over_many_small_steps(void **state) {
  (void)state;
  dt_pair *pair = fake((dt_fake_options){0});
  dt_session *s = session(pair, 1);
  dt_tree *t = dt_seq_tree(s, 0);
  dt_stats st;
  start(s, 0, 0);
  grow(t, COMB, 700);
  for (int v = t->nodes - 1; v >= 0; v -= 3)
    ok(dt_draft_step(s, &(dt_node_ref){.seq = 0, .node = v}, 1, &err)); /* the deepest one first */
  assert_int_equal(with_candidates(t), 468); /* the root, the chain's 350, every third leaf */
  for (int v = 0; v < t->nodes; v++) ok(dt_draft_step(s, &(dt_node_ref){.seq = 0, .node = v}, 1, &err));
  assert_int_equal(with_candidates(t), DT_TREE_DRAFTS);
  dt_seq_stats(s, 0, &st);
  assert_int_equal(st.draft_rows, DT_TREE_DRAFTS);
  dt_session_close(s);
  dt_pair_close(pair);
}

static void a_chain_is_drafted_from_with_all_its_ancestors_or_not_at_all(void **state) {
  (void)state;
  dt_pair *pair = fake((dt_fake_options){0});
  dt_session *s = session(pair, 1);
  dt_tree *t = dt_seq_tree(s, 0);
  for (int depth = DT_TREE_DRAFTS - 2; depth <= DT_TREE_DRAFTS + 1; depth++) {
    start(s, 0, 0); /* the last committed token has no row yet, so it takes up room */
    grow(t, DEEP, depth);
    ok(dt_draft_step(s, &(dt_node_ref){.seq = 0, .node = depth}, 1, &err));
    assert_int_equal(dt_tree_draft_of(t, depth)->count > 0, depth <= DT_TREE_DRAFTS - 1);
    assert_int_equal(with_candidates(t), depth <= DT_TREE_DRAFTS - 1 ? depth + 1 : 1);
    ok(dt_rollback(s, 0, &err)); /* now it has a row, as part of the text */
    grow(t, DEEP, depth);
    ok(dt_draft_step(s, &(dt_node_ref){.seq = 0, .node = depth}, 1, &err));
    assert_int_equal(dt_tree_draft_of(t, depth)->count > 0, depth <= DT_TREE_DRAFTS);
    assert_int_equal(with_candidates(t), depth <= DT_TREE_DRAFTS ? depth : 0);
    if (depth == DT_TREE_DRAFTS) {
      ok(dt_draft_step(s, &(dt_node_ref){.seq = 0, .node = 0}, 1, &err));
      assert_int_equal(dt_tree_draft_of(t, 0)->count, 0);
    }
  }
  dt_session_close(s);
  dt_pair_close(pair);
}

/* Gives more rows than a pass can take, in each of the three kinds of passes. */
static void a_crowd_is_served_in_several_passes_as_each_alone(void **state) {
  (void)state;
  dt_pair *pair = fake((dt_fake_options){0});
  dt_session *s = session(pair, CROWD), *alone = session(pair, 1);
  for (outline shape = WIDE; shape < SHAPES; shape++) {
    int seqs[CROWD];
    dt_verdict v[CROWD], w;
    dt_committed c[CROWD], d;
    for (int i = 0; i < CROWD; i++) {
      start(s, i, i);
      grow(dt_seq_tree(s, i), shape, 600);
      seqs[i] = i;
    }
    draft_all(s, CROWD);
    for (int i = 0; i < CROWD; i++) ok(dt_tree_keep_best(dt_seq_tree(s, i), DT_TREE_VERIFY, &err));
    ok(dt_verify_tree(s, seqs, CROWD, v, &err));
    ok(dt_commit(s, seqs, CROWD, DT_COMMIT_REBUILD, c, &err));
    for (int i = 0; i < CROWD; i++) {
      int seq = 0;
      start(alone, 0, i);
      dt_tree *t = dt_seq_tree(alone, 0), *u = dt_seq_tree(s, i);
      grow(t, shape, 600);
      draft_all(alone, 1);
      assert_int_equal(with_candidates(t), with_candidates(u));
      for (int node = 0; node < t->nodes; node++) {
        const dt_tree_draft *a = dt_tree_draft_of(t, node), *b = dt_tree_draft_of(u, node);
        assert_int_equal(a->count, b->count);
        assert_memory_equal(a->token, b->token, (size_t)a->count * sizeof *a->token);
      }
      ok(dt_tree_keep_best(t, DT_TREE_VERIFY, &err));
      ok(dt_verify_tree(alone, &seq, 1, &w, &err));
      ok(dt_commit(alone, &seq, 1, 0, &d, &err));
      assert_int_equal(c[i].n, d.n);
      assert_memory_equal(c[i].tokens, d.tokens, (size_t)d.n * sizeof *d.tokens);
      dt_stats x, y;
      dt_seq_stats(s, i, &x), dt_seq_stats(alone, 0, &y);
      assert_int_equal(x.draft_passes, y.draft_passes);
      assert_int_equal(x.draft_rows, y.draft_rows);
    }
  }
  dt_session_close(alone);
  dt_session_close(s);
  dt_pair_close(pair);
}

static void rows_and_paths_take_the_same_memory_for_8_sequences_and_256(void **state) {
  (void)state;
  dt_pair *pair = fake((dt_fake_options){.context = 100});
  dt_session *few = session(pair, PASS_SEQUENCES), *many = session(pair, 256);
  assert_int_equal(few->rows.path_capacity, many->rows.path_capacity);
  assert_int_equal(few->rows.capacity, many->rows.capacity);
  assert_true(many->rows.path_capacity * sizeof(int32_t) <= 2 << 20);
  dt_session_close(few);
  dt_session_close(many);
  dt_pair_close(pair);
}

static void at_most_256_nodes_are_verified(void **state) {
  (void)state;
  int seqs[] = {0, 1};
  dt_verdict v[2];
  dt_pair *pair = fake((dt_fake_options){0});
  dt_session *s = session(pair, 2);
  for (int nodes = DT_TREE_VERIFY - 1; nodes <= DT_TREE_VERIFY + 1; nodes++) {
    for (int i = 0; i < 2; i++) start(s, i, i);
    grow(dt_seq_tree(s, 0), WIDE, 3);
    grow(dt_seq_tree(s, 1), DEEP, nodes);
    if (nodes <= DT_TREE_VERIFY) {
      ok(dt_verify_tree(s, seqs, 2, v, &err));
      assert_int_equal(v[1].drafted, nodes);
      assert_int_equal(v[1].depth, nodes);
    } else {
      fails(dt_verify_tree(s, seqs, 2, v, &err), DT_ESTATE, "the tree has 257 nodes and one pass verifies at most 256");
      add(dt_seq_tree(s, 0), 0, 9); /* both can still grow */
      add(dt_seq_tree(s, 1), 0, 9);
      fails(dt_tree_keep_best(dt_seq_tree(s, 1), nodes, &err), DT_ESTATE, "keep: 257 is out of range: 0..256");
      ok(dt_tree_keep_best(dt_seq_tree(s, 1), DT_TREE_VERIFY, &err));
      ok(dt_verify_tree(s, seqs, 2, v, &err));
      assert_int_equal(v[1].drafted, DT_TREE_VERIFY);
    }
  }
  dt_session_close(s);
  dt_pair_close(pair);
}

static void a_tree_has_at_most_4096_nodes(void **state) {
  (void)state;
  dt_pair *pair = fake((dt_fake_options){.vocab = 5000});
  dt_session *s = session(pair, 1);
  dt_tree *t = dt_seq_tree(s, 0);
  start(s, 0, 0);
  fails(dt_tree_limit(t, DT_TREE_ENTRIES + 1, &err), DT_ESTATE, "limit: 4097 is out of range: 1..4096");
  fails(dt_tree_limit(t, 0, &err), DT_ESTATE, "limit: 0 is out of range: 1..4096");
  ok(dt_tree_limit(t, 1, &err));
  assert_int_equal(add(t, 0, 0), 1);
  assert_int_equal(add(t, 0, 1), -1);
  ok(dt_tree_limit(t, DT_TREE_ENTRIES, &err));
  for (int v = 2; v <= DT_TREE_ENTRIES; v++) assert_int_equal(add(t, 0, v), v);
  assert_int_equal(add(t, 0, DT_TREE_ENTRIES + 1), -1);
  dt_session_close(s);
  dt_pair_close(pair);
}

static void a_node_has_at_most_32_candidates(void **state) {
  (void)state;
  for (int vocab = DT_CANDIDATES - 1; vocab <= DT_CANDIDATES + 1; vocab++) {
    dt_pair *pair = fake((dt_fake_options){.vocab = vocab});
    dt_session *s = session(pair, 1);
    start(s, 0, 0);
    draft_all(s, 1);
    assert_int_equal(dt_tree_draft_of(dt_seq_tree(s, 0), 0)->count, vocab < DT_CANDIDATES ? vocab : DT_CANDIDATES);
    dt_session_close(s);
    dt_pair_close(pair);
  }
}

static void a_session_has_1_to_4096_sequences_of_2_positions_or_more(void **state) {
  (void)state;
  dt_pair *pair = fake((dt_fake_options){.context = 3});
  dt_session *s;
  int seq = 4095;
  dt_verdict v;
  dt_committed c;
  fails(dt_session_open(pair, &(dt_session_options){.sequences = 0}, &s, &err), DT_EINPUT,
        "sequences: 0 is out of range: 1..4096");
  fails(dt_session_open(pair, &(dt_session_options){.sequences = 4097}, &s, &err), DT_EINPUT,
        "sequences: 4097 is out of range: 1..4096");
  fails(dt_session_open(pair, &(dt_session_options){.sequences = 1, .context = 1}, &s, &err), DT_EINPUT,
        "context: 1 is out of range: 2..3");
  fails(dt_session_open(pair, &(dt_session_options){.sequences = 1, .context = 4}, &s, &err), DT_EINPUT,
        "context: 4 is out of range: 2..3");
  ok(dt_session_open(pair, &(dt_session_options){.sequences = 4096, .context = 2}, &s, &err));
  fails(dt_seq_start(s, 4096, PROMPT, 1, &(dt_seq_options){.max_tokens = -1}, &err), DT_ESTATE,
        "there is no sequence 4096 (the session has 0..4095)");
  ok(dt_seq_start(s, seq, PROMPT, 1, &(dt_seq_options){.max_tokens = -1}, &err));
  ok(dt_verify_tree(s, &seq, 1, &v, &err));
  ok(dt_commit(s, &seq, 1, 0, &c, &err));
  assert_int_equal(c.finish, DT_FINISH_CONTEXT);
  dt_session_close(s);
  dt_pair_close(pair);
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static void a_sequence_cannot_be_named_twice(void **state) {
  (void)state;
  int twice[] = {0, 2, 1, 2}, once[] = {2, 0, 1};
  dt_verdict v[4];
  dt_committed c[4];
  dt_pair *pair = fake((dt_fake_options){0});
  dt_session *s = session(pair, 3);
  for (int i = 0; i < 3; i++) start(s, i, i);
  dt_node_ref refs[] = {{.seq = 1}, {.seq = 2}, {.seq = 1}}; /* nodes may be named twice */
  ok(dt_draft_step(s, refs, 3, &err));
  fails(dt_verify_tree(s, twice, 4, v, &err), DT_ESTATE, "verify_tree: sequence 2 is named twice");
  ok(dt_verify_tree(s, once, 3, v, &err));
  fails(dt_commit(s, twice, 4, 0, c, &err), DT_ESTATE, "commit: sequence 2 is named twice");
  assert_int_equal(dt_seq_length(s, 2), 6);
  ok(dt_commit(s, once, 3, 0, c, &err));
  assert_int_equal(dt_seq_length(s, 2), 7);
  dt_session_close(s);
  dt_pair_close(pair);
}

static void what_the_target_gave_nan_for_cannot_be_committed(void **state) {
  (void)state;
  int32_t one = 1, seven = 7;
  float nan_p = NAN;
  dt_fake_rule target = {&one, 1, &seven, &nan_p, 1};
  dt_pair *pair = fake((dt_fake_options){.target = &target, .n_target = 1});
  dt_session *s = session(pair, 2);
  int seqs[] = {0, 1};
  dt_verdict v[2];
  dt_committed c[2];
  start(s, 0, 0);
  start(s, 1, 1);
  fails(dt_verify_tree(s, seqs, 2, v, &err), DT_EDEVICE, "returned NaN at position 5");
  fails(dt_commit(s, seqs, 2, 0, c, &err), DT_ESTATE, "verify_tree comes next");
  fails(dt_commit(s, &seqs[1], 1, 0, c, &err), DT_ESTATE, "verify_tree comes next");
  assert_int_equal(dt_seq_length(s, 0), 6);
  ok(dt_commit(s, &seqs[0], 1, 0, c, &err));
  fails(dt_verify_tree(s, &seqs[1], 1, v, &err), DT_EDEVICE, "returned NaN"); /* it reports this each time */
  ok(dt_rollback(s, 1, &err));
  dt_session_close(s);
  dt_pair_close(pair);
}

/* ---- a backend that is looked at, and that fails ----------------------------------------------------------------- */

static struct {
  const dt_backend_ops *real;
  dt_backend_ops ops;
  const dt_weights *draft;
  int draft_vocab, draft_rows, fail;
} spy;

static dt_status spy_forward(dt_weights *w, dt_cache *c, const dt_rows *rows, const dt_out *out, dt_error *err) {
  for (int i = 0; i < rows->n && w == spy.draft; i++) assert_in_range(rows->token[i], 0, spy.draft_vocab - 1);
  if (w == spy.draft) spy.draft_rows += rows->n;
  if (spy.fail && !--spy.fail) return dt_fail(err, DT_EDEVICE, "the spy was told to fail");
  return spy.real->forward(w, c, rows, out, err);
}

static void watch(dt_pair *pair, int draft_vocab) {
  spy.real = pair->ops;
  spy.ops = *pair->ops;
  spy.ops.forward = spy_forward;
  spy.draft = pair->draft.weights;
  spy.draft_vocab = pair->draft.info.vocab = draft_vocab;
  spy.draft_rows = spy.fail = 0;
  pair->ops = &spy.ops;
}

static void a_token_that_the_draft_lacks_never_reaches_it(void **state) {
  (void)state;
  int32_t prompt[80];
  dt_pair *pair = fake((dt_fake_options){0});
  watch(pair, 900);
  dt_session *s = session(pair, 1);
  for (int i = 0; i < 80; i++) prompt[i] = i % 2 ? 899 : 900 + i;
  prompt[40] = VOCAB - 1;
  ok(dt_seq_start(s, 0, prompt, 80, &(dt_seq_options){.max_tokens = 20}, &err));
  assert_int_equal(spy.draft_rows, 0); /* nothing until the draft is used */
  int v = add(dt_seq_tree(s, 0), 0, 900);
  ok(dt_draft_step(s, &(dt_node_ref){.seq = 0, .node = v}, 1, &err));
  assert_int_equal(spy.draft_rows, 79 + 2);
  for (int i = 0; i < dt_tree_draft_of(dt_seq_tree(s, 0), v)->count; i++)
    assert_in_range(dt_tree_draft_of(dt_seq_tree(s, 0), v)->token[i], 0, 899);
  prompt[40] = VOCAB;
  fails(dt_seq_start(s, 0, prompt, 80, &(dt_seq_options){.max_tokens = 20}, &err), DT_EINPUT,
        "prompt token 41 is 1000, which is out of range: 0..999");
  dt_session_close(s);
  dt_pair_close(pair);
}

static void a_prompt_that_the_draft_has_no_room_for_is_not_run_through_it(void **state) {
  (void)state;
  int32_t prompt[32] = {0};
  dt_pair *pair = fake((dt_fake_options){.draft_context = 30});
  watch(pair, VOCAB);
  for (int n = 29; n <= 31; n++) {
    dt_session *s = session(pair, 2);
    dt_prefix *prefix;
    dt_node_ref roots[] = {{.seq = 0}, {.seq = 1}};
    spy.draft_rows = 0;
    ok(dt_seq_start(s, 0, prompt, n, &(dt_seq_options){.max_tokens = 20}, &err));
    ok(dt_prefix_take(s, 0, &prefix, &err));
    ok(dt_seq_start_from(s, 1, prefix, &(dt_seq_options){.max_tokens = 20}, &err));
    assert_int_equal(spy.draft_rows, n <= 30 ? n - 1 : 0);
    ok(dt_draft_step(s, roots, 2, &err));
    for (int i = 0; i < 2; i++) assert_int_equal(dt_tree_draft_of(dt_seq_tree(s, i), 0)->count > 0, n <= 30);
    ok(dt_seq_start_blank(s, 0, n, NULL, &err));
    ok(dt_draft_step(s, roots, 1, &err));
    assert_int_equal(dt_tree_draft_of(dt_seq_tree(s, 0), 0)->count > 0, n <= 30);
    dt_prefix_free(prefix);
    dt_session_close(s);
  }
  dt_pair_close(pair);
}

/* The draft computes the prompt once, with the first draft step. This belongs to no iteration. */
static void the_draft_reads_the_prompt_when_it_is_first_asked(void **state) {
  (void)state;
  int seq = 0;
  dt_verdict v;
  dt_committed c;
  dt_stats at_start, plain, asked, again;
  dt_pair *pair = fake((dt_fake_options){0});
  dt_session *s = session(pair, 1);
  start(s, 0, 0);
  dt_seq_stats(s, 0, &at_start);
  ok(dt_verify_tree(s, &seq, 1, &v, &err));
  ok(dt_commit(s, &seq, 1, 0, &c, &err));
  dt_seq_stats(s, 0, &plain);
  assert_true(plain.prompt_ms == at_start.prompt_ms);
  ok(dt_rollback(s, 0, &err));
  ok(dt_draft_step(s, &(dt_node_ref){.seq = 0, .node = 0}, 1, &err));
  dt_seq_stats(s, 0, &asked);
  assert_true(asked.prompt_ms > plain.prompt_ms);
  assert_int_equal(asked.draft_passes, 1);
  assert_int_equal(asked.draft_rows, 2); /* the prompt's last token, and the one after it */
  ok(dt_rollback(s, 0, &err));
  ok(dt_draft_step(s, &(dt_node_ref){.seq = 0, .node = 0}, 1, &err));
  dt_seq_stats(s, 0, &again);
  assert_true(again.prompt_ms == asked.prompt_ms);
  dt_session_close(s);
  dt_pair_close(pair);
}

static void a_draft_pass_that_failed_leaves_no_trace(void **state) {
  (void)state;
  dt_pair *pair = fake((dt_fake_options){0});
  watch(pair, VOCAB);
  dt_session *s = session(pair, 1);
  dt_tree *t = dt_seq_tree(s, 0);
  dt_node_ref refs[400] = {{.seq = 0}};
  start(s, 0, 0);
  grow(t, COMB, 400);
  spy.fail = 1; /* first the prompt's pass, and then the step's pass after it */
  fails(dt_draft_step(s, refs, 1, &err), DT_EDEVICE, "told to fail");
  spy.fail = 2;
  fails(dt_draft_step(s, refs, 1, &err), DT_EDEVICE, "told to fail");
  for (int i = 0; i < 400; i++) refs[i] = (dt_node_ref){.seq = 0, .node = i + 1};
  for (int turn = 0; turn < 40; turn++) { /* both together need more slots than the cache has */
    spy.fail = 1;
    fails(dt_draft_step(s, refs, 400, &err), DT_EDEVICE, "told to fail");
    assert_int_equal(with_candidates(t), 0);
  }
  ok(dt_draft_step(s, refs, 400, &err));
  assert_int_equal(with_candidates(t), 401);
  dt_session_close(s);
  dt_pair_close(pair);
}

static void a_commit_that_failed_ends_its_sequences(void **state) {
  (void)state;
  int seqs[] = {0, 1};
  dt_verdict v[2];
  dt_committed c[2];
  dt_pair *pair = fake((dt_fake_options){0});
  watch(pair, VOCAB);
  dt_session *s = session(pair, 3);
  for (int i = 0; i < 3; i++) start(s, i, i);
  ok(dt_verify_tree(s, seqs, 2, v, &err));
  spy.fail = 1;
  fails(dt_commit(s, seqs, 2, DT_COMMIT_REBUILD, c, &err), DT_EDEVICE, "told to fail");
  assert_int_equal(dt_seq_length(s, 1), 7); /* what was generated can be read */
  fails(dt_commit(s, seqs, 2, 0, c, &err), DT_ESTATE, "a commit of it failed: start it");
  fails(dt_rollback(s, 0, &err), DT_ESTATE, "start it");
  ok(dt_rollback(s, 2, &err));
  start(s, 0, 0);
  ok(dt_verify_tree(s, seqs, 1, v, &err));
  dt_session_close(s);
  dt_pair_close(pair);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(at_most_512_nodes_are_drafted_from_whatever_the_shape),
      cmocka_unit_test(the_bound_holds_over_many_small_steps),
      cmocka_unit_test(a_chain_is_drafted_from_with_all_its_ancestors_or_not_at_all),
      cmocka_unit_test(a_crowd_is_served_in_several_passes_as_each_alone),
      cmocka_unit_test(rows_and_paths_take_the_same_memory_for_8_sequences_and_256),
      cmocka_unit_test(at_most_256_nodes_are_verified),
      cmocka_unit_test(a_tree_has_at_most_4096_nodes),
      cmocka_unit_test(a_node_has_at_most_32_candidates),
      cmocka_unit_test(a_session_has_1_to_4096_sequences_of_2_positions_or_more),
      cmocka_unit_test(a_sequence_cannot_be_named_twice),
      cmocka_unit_test(what_the_target_gave_nan_for_cannot_be_committed),
      cmocka_unit_test(a_token_that_the_draft_lacks_never_reaches_it),
      cmocka_unit_test(a_prompt_that_the_draft_has_no_room_for_is_not_run_through_it),
      cmocka_unit_test(the_draft_reads_the_prompt_when_it_is_first_asked),
      cmocka_unit_test(a_draft_pass_that_failed_leaves_no_trace),
      cmocka_unit_test(a_commit_that_failed_ends_its_sequences),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
