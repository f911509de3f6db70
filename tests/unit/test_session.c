/* The state machine and the four primitives, on a scripted pair. Its models read their text back from cache slots, so a
 * wrong slot, prefix, path or move changes the output. */
#include "scripted.h"

#include "pair/pair.h"

#include <math.h>
#include <stdlib.h>

/* Runs draft steps on random nodes, branches, adds tokens, and makes duplicates. */
static void grow_at_random(dt_session *s, int seq, uint64_t *seed) {
  dt_tree *t = dt_seq_tree(s, seq);
  for (int turn = (int)(random_next(seed) % 12); turn > 0; turn--) {
    dt_node_ref refs[4];
    int n = 1 + (int)(random_next(seed) % 4), first, last, v;
    for (int i = 0; i < n; i++)
      refs[i] = (dt_node_ref){.seq = seq, .node = (int)(random_next(seed) % (uint32_t)t->nodes)};
    if (random_next(seed) % 4) {
      ok(dt_draft_step(s, refs, n, &err));
      for (int i = 0; i < n; i++)
        ok(dt_tree_branch(t, refs[i].node, (int)(random_next(seed) % 4), &first, &last, &err));
    } else
      ok(dt_tree_add(t, refs[0].node, (int32_t)(random_next(seed) % VOCAB), -1, &v, &err));
  }
}

static void random_trees_give_plain_decodings_tokens(void **state) {
  (void)state;
  int n;
  long accepted = 0;
  dt_pair *pair = fake((dt_fake_options){0});
  int32_t *want = plain(pair, 250, &n);
  for (uint64_t seed = 1; seed <= 40; seed++) {
    uint64_t r = seed;
    dt_session *s = session(pair, 1, true);
    start(s, 0, 250);
    while (dt_seq_finish(s, 0) == DT_RUNNING) {
      int seq = 0;
      dt_verdict v;
      dt_committed c;
      ok(dt_rollback(s, 0, &err));
      grow_at_random(s, 0, &r);
      if (random_next(&r) % 5 == 0) {
        ok(dt_rollback(s, 0, &err));
        grow_at_random(s, 0, &r);
      }
      if (random_next(&r) % 3 == 0) ok(dt_tree_keep_best(dt_seq_tree(s, 0), (int)(random_next(&r) % 9), &err));
      ok(dt_verify_tree(s, &seq, 1, &v, &err));
      if (random_next(&r) % 7 == 0) continue; /* rolls back after verifying */
      ok(dt_commit(s, &seq, 1, random_next(&r) % 4 ? 0 : DT_COMMIT_REBUILD, &c, &err));
      accepted += c.accepted;
    }
    assert_int_equal(dt_seq_finish(s, 0), DT_FINISH_LENGTH);
    assert_int_equal(dt_seq_length(s, 0), n);
    assert_memory_equal(dt_seq_tokens(s, 0), want, (size_t)n * sizeof *want);
    dt_session_close(s);
  }
  assert_true(accepted > 1000);
  free(want);
  dt_pair_close(pair);
}

static void sequences_share_passes_and_keep_apart(void **state) {
  (void)state;
  enum { B = 3 };
  dt_pair *pair = fake((dt_fake_options){0});
  dt_session *s = session(pair, B, true), *alone = session(pair, 1, true);
  for (int i = 0; i < B; i++)
    ok(dt_seq_start(s, i, PROMPT + i, 5 - i, &(dt_seq_options){.max_tokens = 60 + 10 * i}, &err));
  uint64_t r = 9;
  for (;;) {
    int seqs[B], n = 0;
    dt_verdict v[B];
    dt_committed c[B];
    dt_node_ref refs[2 * B];
    for (int i = B - 1; i >= 0; i--)
      if (dt_seq_finish(s, i) == DT_RUNNING) {
        ok(dt_rollback(s, i, &err));
        refs[n] = (dt_node_ref){.seq = i, .node = 0};
        seqs[n++] = i;
      }
    if (!n) break;
    ok(dt_draft_step(s, refs, n, &err));
    for (int i = 0; i < n; i++) { /* two levels; the nodes of the sequences are mixed */
      int first, last;
      ok(dt_tree_branch(dt_seq_tree(s, seqs[i]), 0, 2, &first, &last, &err));
      refs[i] = (dt_node_ref){.seq = seqs[i], .node = last >= first ? first : 0};
      refs[n + i] = (dt_node_ref){.seq = seqs[i], .node = last >= first ? last : 0};
    }
    ok(dt_draft_step(s, refs, 2 * n, &err));
    for (int i = 0; i < 2 * n; i++) {
      int first, last;
      ok(dt_tree_branch(dt_seq_tree(s, refs[i].seq), refs[i].node, 1 + (int)(random_next(&r) % 2), &first, &last,
                        &err));
    }
    ok(dt_verify_tree(s, seqs, n, v, &err));
    ok(dt_commit(s, seqs, n, 0, c, &err));
  }
  for (int i = 0; i < B; i++) {
    ok(dt_seq_start(alone, 0, PROMPT + i, 5 - i, &(dt_seq_options){.max_tokens = 60 + 10 * i}, &err));
    while (dt_seq_finish(alone, 0) == DT_RUNNING) plain_iteration(alone, 0);
    assert_int_equal(dt_seq_length(alone, 0), dt_seq_length(s, i));
    assert_memory_equal(dt_seq_tokens(alone, 0), dt_seq_tokens(s, i), (size_t)dt_seq_length(s, i) * sizeof(int32_t));
  }
  dt_session_close(alone);
  dt_session_close(s);
  dt_pair_close(pair);
}

static void a_level_costs_one_pass_and_a_known_node_none(void **state) {
  (void)state;
  dt_stats st;
  int first, last;
  dt_pair *pair = fake((dt_fake_options){0});
  dt_session *s = session(pair, 1, true);
  start(s, 0, 50);
  dt_node_ref refs[3] = {{.seq = 0}};
  ok(dt_draft_step(s, refs, 1, &err));
  dt_seq_stats(s, 0, &st);
  assert_int_equal(st.draft_passes, 1);
  assert_int_equal(st.draft_rows, 1);
  ok(dt_draft_step(s, refs, 1, &err));
  dt_seq_stats(s, 0, &st);
  assert_int_equal(st.draft_passes, 1);
  ok(dt_tree_branch(dt_seq_tree(s, 0), 0, 3, &first, &last, &err));
  for (int i = 0; i < 3; i++) refs[i].node = first + i;
  ok(dt_draft_step(s, refs, 3, &err));
  dt_seq_stats(s, 0, &st);
  assert_int_equal(st.draft_passes, 2);
  assert_int_equal(st.draft_rows, 4);
  ok(dt_draft_step(s, refs, 0, &err)); /* an empty list does nothing */
  dt_session_close(s);
  dt_pair_close(pair);
}

static void ancestors_without_a_row_ride_along(void **state) {
  (void)state;
  dt_stats st;
  int v = 0;
  dt_pair *pair = fake((dt_fake_options){0});
  dt_session *s = session(pair, 1, true);
  start(s, 0, 50);
  for (int i = 0; i < 5; i++) ok(dt_tree_add(dt_seq_tree(s, 0), v, i, -1, &v, &err));
  ok(dt_draft_step(s, &(dt_node_ref){.seq = 0, .node = v}, 1, &err));
  dt_seq_stats(s, 0, &st);
  assert_int_equal(st.draft_passes, 1);
  assert_int_equal(st.draft_rows, 6); /* the root and five nodes */
  assert_non_null(dt_tree_draft_of(dt_seq_tree(s, 0), 3));
  dt_session_close(s);
  dt_pair_close(pair);
}

static void the_draft_catches_up_after_plain_iterations(void **state) {
  (void)state;
  dt_stats st;
  dt_pair *pair = fake((dt_fake_options){0});
  dt_session *s = session(pair, 1, true), *fresh = session(pair, 1, true);
  start(s, 0, 250);
  assert_int_equal(dt_seq_unread(s, 0), 7);
  for (int i = 0; i < 120; i++) plain_iteration(s, 0);
  assert_int_equal(dt_seq_unread(s, 0), 7 + 120);
  ok(dt_rollback(s, 0, &err));
  ok(dt_draft_step(s, &(dt_node_ref){.seq = 0, .node = 0}, 1, &err));
  dt_seq_stats(s, 0, &st);
  assert_int_equal(st.draft_rows, 121);
  assert_int_equal(dt_seq_unread(s, 0), 0);
  ok(dt_seq_start(fresh, 0, dt_seq_tokens(s, 0), dt_seq_length(s, 0), &(dt_seq_options){.max_tokens = 10}, &err));
  ok(dt_draft_step(fresh, &(dt_node_ref){.seq = 0, .node = 0}, 1, &err));
  const dt_tree_draft *a = dt_tree_draft_of(dt_seq_tree(s, 0), 0), *b = dt_tree_draft_of(dt_seq_tree(fresh, 0), 0);
  assert_memory_equal(a->token, b->token, sizeof a->token);
  for (int i = 0; i < 2; i++) { /* the last token is not among them */
    plain_iteration(s, 0);
    assert_int_equal(dt_seq_unread(s, 0), i);
  }
  dt_session_close(fresh);
  dt_session_close(s);
  dt_pair_close(pair);
}

static void a_call_in_the_wrong_state_changes_nothing(void **state) {
  (void)state;
  int seq = 0, bad = 4;
  dt_verdict v;
  dt_committed c;
  dt_pair *pair = fake((dt_fake_options){0});
  dt_session *s = session(pair, 1, true), *without = session(pair, 1, false);
  fails(dt_rollback(s, 0, &err), DT_ESTATE, "not started");
  start(s, 0, 50);
  start(without, 0, 50);
  fails(dt_commit(s, &seq, 1, 0, &c, &err), DT_ESTATE, "verify_tree comes first");
  fails(dt_verify_tree(s, &bad, 1, &v, &err), DT_ESTATE, "there is no sequence 4");
  fails(dt_draft_step(s, &(dt_node_ref){.seq = 0, .node = 3}, 1, &err), DT_ESTATE, "there is no node 3");
  fails(dt_draft_step(without, &(dt_node_ref){.seq = 0, .node = 0}, 1, &err), DT_ESTATE, "no draft model is in use");
  ok(dt_verify_tree(s, &seq, 1, &v, &err));
  fails(dt_verify_tree(s, &seq, 1, &v, &err), DT_ESTATE, "commit or rollback comes next");
  fails(dt_draft_step(s, &(dt_node_ref){.seq = 0, .node = 0}, 1, &err), DT_ESTATE, "commit or rollback comes next");
  ok(dt_commit(s, &seq, 1, 0, &c, &err));
  fails(dt_commit(s, &seq, 1, 0, &c, &err), DT_ESTATE, "the iteration is committed");
  assert_int_equal(dt_seq_length(s, 0), 9);
  dt_session_close(without);
  dt_session_close(s);
  dt_pair_close(pair);
}

static void the_text_ends_inside_an_accepted_block(void **state) {
  (void)state;
  /* the target counts up; so does the draft */
  dt_fake_rule rules[VOCAB];
  int32_t id[VOCAB + 1];
  float one = 1;
  for (int i = 0; i <= VOCAB; i++) id[i] = i % VOCAB;
  for (int i = 0; i < VOCAB; i++)
    rules[i] = (dt_fake_rule){.context = &id[i], .context_len = 1, .token = &id[i + 1], .p = &one, .count = 1};
  struct {
    int tokens;
    int32_t eos;
    bool ignore;
    const char *stop;
    int want;
    dt_finish finish;
    const char *text;
  } c[] = {
      {5, -1, false, NULL, 5, DT_FINISH_LENGTH, " 7 8 9 10 11"},
      {1, -1, false, NULL, 1, DT_FINISH_LENGTH, " 7"},
      {20, 9, false, NULL, 3, DT_FINISH_EOS, " 7 8"},
      {5, 9, true, NULL, 5, DT_FINISH_LENGTH, " 7 8 9 10 11"},
      {20, -1, false, " 10", 4, DT_FINISH_STOP, " 7 8 9"},
      {20, -1, false, "9 1", 4, DT_FINISH_STOP, " 7 8 "},
      {-1, -1, false, NULL, 22, DT_FINISH_CONTEXT, NULL},
      {22, -1, false, NULL, 22, DT_FINISH_LENGTH, NULL},
  };
  for (size_t i = 0; i < sizeof c / sizeof *c; i++)
    for (int chain = 0; chain <= 8; chain += 4) {
      dt_pair *pair = fake((dt_fake_options){
          .context = 30, .eos = c[i].eos, .target = rules, .n_target = VOCAB, .draft = rules, .n_draft = VOCAB});
      dt_session *s = session(pair, 1, true);
      dt_stats st;
      char shown[256] = "";
      size_t len;
      int blocks = 0;
      ok(dt_seq_start(
          s, 0, PROMPT, 8,
          &(dt_seq_options){
              .max_tokens = c[i].tokens, .ignore_eos = c[i].ignore, .stop = &c[i].stop, .n_stop = c[i].stop != NULL},
          &err));
      while (dt_seq_finish(s, 0) == DT_RUNNING) {
        int seq = 0, first, last, u = 0;
        dt_verdict v;
        dt_committed b;
        ok(dt_rollback(s, 0, &err));
        for (int k = 0; k < chain; k++, u = first) {
          ok(dt_draft_step(s, &(dt_node_ref){.seq = 0, .node = u}, 1, &err));
          ok(dt_tree_branch(dt_seq_tree(s, 0), u, 1, &first, &last, &err));
          if (last < first) break;
        }
        ok(dt_verify_tree(s, &seq, 1, &v, &err));
        ok(dt_commit(s, &seq, 1, 0, &b, &err));
        strncat(shown, b.text, b.text_len);
        blocks++;
      }
      dt_seq_stats(s, 0, &st);
      assert_int_equal(dt_seq_finish(s, 0), c[i].finish);
      assert_int_equal(st.generated, c[i].want);
      assert_true(chain == 0 ? blocks == c[i].want : blocks <= (c[i].want + chain) / (chain + 1) + 1);
      if (c[i].text) assert_string_equal(shown, c[i].text);
      const char *text = dt_seq_text(s, 0, &len);
      assert_int_equal(len, strlen(shown));
      assert_memory_equal(text, shown, len);
      for (int k = 0; k < st.generated; k++) assert_int_equal(dt_seq_tokens(s, 0)[8 + k], 7 + k);
      dt_session_close(s);
      dt_pair_close(pair);
    }
}

static void a_block_says_where_its_tokens_come_from(void **state) {
  (void)state;
  int32_t five = 5, seven = 7;
  float one = 1;
  dt_fake_rule target[] = {{&five, 1, &seven, &one, 1}, {NULL, 0, &five, &one, 1}};
  dt_pair *pair = fake((dt_fake_options){.target = target, .n_target = 2});
  dt_session *s = session(pair, 1, false);
  const struct {
    int guess, second; /* second: -1 means that there is no such node */
    int accepted;
    bool corrected;
  } c[] = {{-1, -1, 0, false}, {5, -1, 1, false}, {9, -1, 0, true}, {5, 7, 2, false}, {5, 9, 1, true}};
  for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
    int seq = 0, u = 0;
    dt_verdict verdict;
    dt_committed block;
    start(s, 0, 20);
    if (c[i].guess >= 0) ok(dt_tree_add(dt_seq_tree(s, 0), 0, c[i].guess, -1, &u, &err));
    if (c[i].second >= 0) ok(dt_tree_add(dt_seq_tree(s, 0), u, c[i].second, -1, &u, &err));
    ok(dt_verify_tree(s, &seq, 1, &verdict, &err));
    ok(dt_commit(s, &seq, 1, 0, &block, &err));
    assert_int_equal(block.accepted, c[i].accepted);
    assert_int_equal(block.corrected, c[i].corrected);
    for (int k = 0; k < block.n; k++) /* each token's text is a space and a digit */
      assert_int_equal(dt_seq_text_ends(s, 0)[8 + k], 2 * (k + 1));
  }
  dt_session_close(s);
  dt_pair_close(pair);
}

static void a_draft_with_fewer_positions_stops_drafting_and_never_ends_the_run(void **state) {
  (void)state;
  int n;
  dt_stats st;
  dt_pair *pair = fake((dt_fake_options){.draft_context = 20});
  int32_t *want = plain(pair, 40, &n);
  dt_session *s = session(pair, 1, true);
  start(s, 0, 40);
  while (dt_seq_finish(s, 0) == DT_RUNNING) {
    int seq = 0, first, last, u = 0;
    dt_verdict v;
    dt_committed c;
    ok(dt_rollback(s, 0, &err));
    for (int k = 0; k < 6; k++, u = first) {
      ok(dt_draft_step(s, &(dt_node_ref){.seq = 0, .node = u}, 1, &err));
      ok(dt_tree_branch(dt_seq_tree(s, 0), u, 1, &first, &last, &err));
      if (last < first) break;
    }
    ok(dt_verify_tree(s, &seq, 1, &v, &err));
    ok(dt_commit(s, &seq, 1, 0, &c, &err));
  }
  dt_seq_stats(s, 0, &st);
  assert_memory_equal(dt_seq_tokens(s, 0), want, (size_t)n * sizeof *want);
  assert_true(st.accepted > 0);
  dt_session_close(s);
  free(want);
  dt_pair_close(pair);
}

static void a_closed_session_serves_the_next_of_its_shape_as_if_new(void **state) {
  (void)state;
  dt_node_ref root = {.seq = 0};
  dt_pair *pair = fake((dt_fake_options){0});
  dt_session *first = session(pair, 1, true), *s;
  start(first, 0, 20);
  ok(dt_draft_step(first, &root, 1, &err));
  dt_session_close(first);
  s = session(pair, 1, false);
  assert_ptr_equal(s, first);
  fails(dt_rollback(s, 0, &err), DT_ESTATE, "sequence 0 is not started");
  start(s, 0, 20);
  plain_iteration(s, 0);
  fails(dt_draft_step(s, &root, 1, &err), DT_ESTATE, "draft");
  dt_session_close(s);
  s = session(pair, 1, true);
  assert_ptr_equal(s, first);
  start(s, 0, 20);
  ok(dt_draft_step(s, &root, 1, &err));
  dt_session_close(s);
  s = session(pair, 2, false);
  start(s, 1, 20);
  dt_session_close(s);
  s = session(pair, 2, true); /* the one that is kept has no draft cache */
  start(s, 1, 20);
  root.seq = 1;
  ok(dt_draft_step(s, &root, 1, &err));
  dt_session_close(s);
  dt_pair_close(pair);
}

static void a_prompt_must_fit(void **state) {
  (void)state;
  int32_t prompt[40] = {0};
  dt_pair *pair = fake((dt_fake_options){.context = 30});
  dt_session *s = session(pair, 1, true);
  dt_seq_options o = {.max_tokens = 5};
  fails(dt_seq_start(s, 0, prompt, 0, &o, &err), DT_EINPUT, "the prompt is empty");
  fails(dt_seq_start(s, 0, prompt, 30, &o, &err), DT_ECONTEXT,
        "the prompt has 30 tokens, but in a context of 30 it can have at most 29");
  prompt[3] = VOCAB;
  fails(dt_seq_start(s, 0, prompt, 4, &o, &err), DT_EINPUT, "prompt token 4 is 50, which is out of range: 0..49");
  o.max_tokens = 0;
  fails(dt_seq_start(s, 0, prompt, 3, &o, &err), DT_EINPUT, "tokens: 0 is out of range");
  fails(dt_session_open(pair, &(dt_session_options){.sequences = 1, .context = 31}, &s, &err), DT_EINPUT,
        "context: 31 is out of range: 2..30");
  o.max_tokens = -1;
  ok(dt_seq_start(s, 0, prompt, 1, &o, &err)); /* one token: no prompt pass */
  plain_iteration(s, 0);
  dt_session_close(s);
  dt_pair_close(pair);
}

/* Sequences of one pass have as many candidates as each asked for, also in a session that has served others. */
static void each_sequence_has_the_candidates_that_it_asked_for(void **state) {
  (void)state;
  static const int32_t tokens[] = {7, 3, 9};
  static const float p[] = {0.5f, 0.25f, 0.125f};
  static const dt_fake_rule rule = {.token = tokens, .p = p, .count = 3};
  dt_pair *pair = fake((dt_fake_options){.target = &rule, .n_target = 1});
  const int32_t *token;
  const float *logp;
  int count;
  for (int round = 0; round < 2; round++) {
    dt_session *s = session(pair, 3, false);
    int asked[] = {0, 8, 2}, seqs[] = {0, 1, 2}, v;
    dt_verdict verdicts[3];
    for (int i = 0; i < 3; i++) {
      dt_seq_options options = {.max_tokens = 9, .candidates = asked[i]};
      ok(dt_seq_start(s, i, PROMPT, 8, &options, &err));
      ok(dt_tree_add(dt_seq_tree(s, i), 0, 20 + i, 0, &v, &err));
      ok(dt_tree_add(dt_seq_tree(s, i), 0, 7, 0, &v, &err));
      ok(dt_tree_keep(dt_seq_tree(s, i), &v, 1, &err));
      assert_int_equal(dt_seq_candidates(s, i, 0, &token, &logp, &count, NULL), DT_ESTATE);
    }
    ok(dt_verify_tree(s, seqs, 3, verdicts, &err));
    for (int i = 0; i < 3; i++) {
      for (int node = 0; node <= 2; node += 2) {
        ok(dt_seq_candidates(s, i, node, &token, &logp, &count, &err));
        assert_int_equal(count, asked[i]);
        for (int k = 0; k < asked[i] && k < 3; k++) {
          assert_int_equal(token[k], rule.token[k]);
          assert_true(fabsf(expf(logp[k]) - rule.p[k]) < 1e-6f);
        }
      }
      assert_int_equal(dt_seq_candidates(s, i, 1, &token, &logp, &count, NULL), DT_ESTATE);
      assert_int_equal(dt_seq_candidates(s, i, 3, &token, &logp, &count, NULL), DT_ESTATE);
    }
    assert_int_equal(dt_seq_candidates(s, 3, 0, &token, &logp, &count, NULL), DT_ESTATE);
    for (int bad = -1; bad <= DT_TARGET_CANDIDATES + 1; bad += DT_TARGET_CANDIDATES + 2) {
      dt_seq_options options = {.max_tokens = 9, .candidates = bad};
      assert_int_equal(dt_seq_start(s, 0, PROMPT, 8, &options, NULL), DT_EINPUT);
    }
    dt_session_close(s);
  }
  dt_pair_close(pair);
}

static void a_nan_ends_the_run_only_where_plain_decoding_would_see_it(void **state) {
  (void)state;
  int32_t nine = 9, seven = 7, five = 5;
  float nan_p = NAN, one = 1;
  dt_fake_rule target[] = {{&nine, 1, &seven, &nan_p, 1}, {NULL, 0, &five, &one, 1}};
  dt_pair *pair = fake((dt_fake_options){.target = target, .n_target = 2});
  dt_session *s = session(pair, 1, true);
  int seq = 0, v;
  dt_verdict verdict;
  dt_committed c;
  start(s, 0, 5);
  ok(dt_tree_add(dt_seq_tree(s, 0), 0, 9, -1, &v, &err)); /* a rejected guess after which the target returns NaN */
  ok(dt_verify_tree(s, &seq, 1, &verdict, &err));
  assert_int_equal(verdict.bonus, 5);
  ok(dt_commit(s, &seq, 1, 0, &c, &err));
  ok(dt_seq_start(s, 0, &nine, 1, &(dt_seq_options){.max_tokens = 5}, &err));
  fails(dt_verify_tree(s, &seq, 1, &verdict, &err), DT_EDEVICE, "returned NaN at position 0");
  dt_session_close(s);
  dt_pair_close(pair);
}

static void a_nan_ends_its_own_sequence_only(void **state) {
  (void)state;
  int32_t nine = 9, seven = 7, five = 5;
  float nan_p = NAN, one = 1;
  dt_fake_rule target[] = {{&nine, 1, &seven, &nan_p, 1}, {NULL, 0, &five, &one, 1}};
  dt_pair *pair = fake((dt_fake_options){.target = target, .n_target = 2});
  dt_session *s = session(pair, 3, false);
  int seqs[] = {0, 1, 2};
  dt_verdict verdicts[3];
  dt_committed c;
  start(s, 0, 5);
  ok(dt_seq_start(s, 1, &nine, 1, &(dt_seq_options){.max_tokens = 5}, &err));
  start(s, 2, 5);
  fails(dt_verify_tree(s, seqs, 3, verdicts, &err), DT_EDEVICE, "returned NaN at position 0");
  assert_int_equal(verdicts[0].bonus, 5);
  assert_int_equal(verdicts[1].bonus, -1);
  assert_int_equal(verdicts[2].bonus, 5);
  ok(dt_commit(s, &seqs[0], 1, 0, &c, &err));
  ok(dt_commit(s, &seqs[2], 1, 0, &c, &err));
  dt_session_close(s);
  dt_pair_close(pair);
}

static size_t half_a_mebibyte(const dt_weights *w, int slots) {
  (void)w, (void)slots;
  return 1 << 19;
}

static size_t seven_mebibytes(const dt_backend *b) {
  (void)b;
  return 7 << 20;
}

static size_t a_kibibyte_a_slot(const dt_weights *w, int slots) {
  (void)w;
  return (size_t)slots << 10;
}

static size_t a_mebibyte_for_passes(const dt_weights *w, int sequences, int slots) {
  (void)w, (void)sequences, (void)slots;
  return 1 << 20;
}

static void a_context_is_refused_that_does_not_fit(void **state) {
  (void)state;
  dt_pair *pair = fake((dt_fake_options){.context = 100000});
  dt_pair_info info;
  dt_pair_describe(pair, &info);
  assert_int_equal(info.context, DT_CONTEXT);
  const dt_backend_ops *real = pair->ops;
  dt_backend_ops small = *real;
  small.cache_bytes = a_kibibyte_a_slot;
  small.bytes_free = seven_mebibytes; /* 7168 slots, of which 257 are for the tree */
  pair->ops = &small;
  dt_session *s;
  fails(dt_session_open(pair, &(dt_session_options){.sequences = 1, .context = 6912}, &s, &err), DT_EINPUT,
        "the cache of a context of 6912 needs 0.00684 GiB, but only 0.00684 GiB are free: a context of 6911 fits");
  ok(dt_session_open(pair, &(dt_session_options){.sequences = 1, .context = 6911}, &s, &err));
  dt_session_close(s);
  ok(dt_session_open(pair, &(dt_session_options){.sequences = 1}, &s, &err)); /* DT_CONTEXT, not 100000 */
  dt_session_close(s);
  fails(dt_session_open(pair, &(dt_session_options){.sequences = 1, .context = 100001}, &s, &err), DT_EINPUT,
        "context: 100001 is out of range: 2..100000");
  small.scratch_bytes = a_mebibyte_for_passes;
  fails(dt_session_open(pair, &(dt_session_options){.sequences = 1, .context = 5888}, &s, &err), DT_EINPUT,
        "the cache of a context of 5888 needs 0.00684 GiB, but only 0.00684 GiB are free: a context of 5887 fits");
  ok(dt_session_open(pair, &(dt_session_options){.sequences = 1, .context = 5887}, &s, &err));
  dt_session_close(s);
  pair->ops = real;
  dt_pair_close(pair);
}

static void sequences_are_refused_that_do_not_fit(void **state) {
  (void)state;
  dt_pair *pair = fake((dt_fake_options){.context = 100});
  const dt_backend_ops *real = pair->ops;
  dt_backend_ops small = *real;
  small.cache_bytes = half_a_mebibyte;
  small.bytes_free = seven_mebibytes;
  pair->ops = &small;
  dt_session *s;
  fails(
      dt_session_open(pair, &(dt_session_options){.sequences = 8, .use_draft = true}, &s, &err), DT_EINPUT,
      "the caches of 8 sequences with a context of 100 need 0.00781 GiB, but only 0.00684 GiB are free: at most 7 fit");
  ok(dt_session_open(pair, &(dt_session_options){.sequences = 7, .use_draft = true}, &s, &err));
  dt_session_close(s);
  ok(dt_session_open(pair, &(dt_session_options){.sequences = 14}, &s, &err)); /* without a draft twice as many fit */
  dt_session_close(s);
  small.scratch_bytes = a_mebibyte_for_passes; /* for the cache of each model */
  fails(
      dt_session_open(pair, &(dt_session_options){.sequences = 6, .use_draft = true}, &s, &err), DT_EINPUT,
      "the caches of 6 sequences with a context of 100 need 0.00781 GiB, but only 0.00684 GiB are free: at most 5 fit");
  ok(dt_session_open(pair, &(dt_session_options){.sequences = 5, .use_draft = true}, &s, &err));
  dt_session_close(s);
  pair->ops = real;
  dt_pair_close(pair);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_trees_give_plain_decodings_tokens),
      cmocka_unit_test(sequences_share_passes_and_keep_apart),
      cmocka_unit_test(a_level_costs_one_pass_and_a_known_node_none),
      cmocka_unit_test(a_context_is_refused_that_does_not_fit),
      cmocka_unit_test(ancestors_without_a_row_ride_along),
      cmocka_unit_test(the_draft_catches_up_after_plain_iterations),
      cmocka_unit_test(a_call_in_the_wrong_state_changes_nothing),
      cmocka_unit_test(the_text_ends_inside_an_accepted_block),
      cmocka_unit_test(a_block_says_where_its_tokens_come_from),
      cmocka_unit_test(a_draft_with_fewer_positions_stops_drafting_and_never_ends_the_run),
      cmocka_unit_test(a_closed_session_serves_the_next_of_its_shape_as_if_new),
      cmocka_unit_test(a_prompt_must_fit),
      cmocka_unit_test(each_sequence_has_the_candidates_that_it_asked_for),
      cmocka_unit_test(a_nan_ends_the_run_only_where_plain_decoding_would_see_it),
      cmocka_unit_test(a_nan_ends_its_own_sequence_only),
      cmocka_unit_test(sequences_are_refused_that_do_not_fit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
