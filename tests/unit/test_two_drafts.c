/* A second draft in addition to the first: each guesses and computes as if it were the only one. The reference is that
 * draft alone, in a pair and a session of its own, which does the same with the same trees. */
#include "scripted.h"

#include <limits.h>

enum { SEQUENCES = 2, CONTEXT = 200, ALONE = 2, NODES = 12 };

#define MODEL(name) SOURCE_DIR "/models/" name

/* Both drafts together, and each alone. */
typedef struct {
  dt_pair *pair[1 + ALONE];
  dt_session *s[1 + ALONE];
} trio;

static trio open_trio(const char *first, const char *second) {
  const char *const target = MODEL("mini-target");
  const dt_pair_options o[1 + ALONE] = {{.target = target, .draft = first, .draft2 = second, .threads = 1},
                                        {.target = target, .draft = first, .threads = 1},
                                        {.target = target, .draft = second, .threads = 1}};
  const dt_session_options how = {.sequences = SEQUENCES, .context = CONTEXT, .use_draft = true};
  trio t;
  for (int i = 0; i <= ALONE; i++) {
    ok(dt_pair_open(&o[i], &t.pair[i], &err));
    ok(dt_session_open(t.pair[i], &how, &t.s[i], &err));
  }
  return t;
}

static void close_trio(trio *t) {
  for (int i = 0; i <= ALONE; i++) dt_session_close(t->s[i]), dt_pair_close(t->pair[i]);
}

#define EACH_OF(t, call)                                                                                               \
  for (int i_ = 0; i_ <= ALONE; i_++) {                                                                                \
    dt_session *s = (t)->s[i_];                                                                                        \
    ok(call);                                                                                                          \
  }

/* Drafts from a node of the trees, with both drafts and with this one alone. */
static void expect_the_same_guesses(trio *t, int seq, int u, int draft) {
  dt_tree *both = dt_seq_tree(t->s[0], seq);
  assert_true(dt_tree_use_draft(both, u, draft));
  const dt_tree_draft *x = dt_tree_draft_of(both, u), *y = dt_tree_draft_of(dt_seq_tree(t->s[1 + draft], seq), u);
  if (!y || memcmp(x, y, sizeof *x)) fail_msg("node %d, draft %d: the guesses differ from those alone", u, draft);
}

/* Adds a child to node u of all three trees. */
static void add(trio *t, int seq, int u, int32_t token) {
  int v;
  EACH_OF(t, dt_tree_add(dt_seq_tree(s, seq), u, token, 0, &v, &err));
}

/* Grows the trees of both sequences by the guesses of both drafts in turn; one call has nodes of both. */
static void grow(trio *t, uint64_t *seed) {
  for (int turn = 0; turn < 5; turn++) {
    dt_node_ref refs[4], alone[ALONE][4];
    int n[ALONE] = {0};
    for (int i = 0; i < 4; i++) {
      int seq = (int)(random_next(seed) % SEQUENCES), draft = (int)(random_next(seed) % 2);
      int node = (int)(random_next(seed) % (uint32_t)dt_seq_tree(t->s[0], seq)->nodes);
      refs[i] = (dt_node_ref){.seq = seq, .node = node, .draft = draft};
      alone[draft][n[draft]++] = (dt_node_ref){.seq = seq, .node = node};
    }
    ok(dt_draft_step(t->s[0], refs, 4, &err));
    for (int d = 0; d < ALONE; d++) ok(dt_draft_step(t->s[1 + d], alone[d], n[d], &err));
    for (int i = 0; i < 4; i++) expect_the_same_guesses(t, refs[i].seq, refs[i].node, refs[i].draft);
    for (int i = 0; i < 4; i++) {
      const dt_tree_draft *d = dt_tree_draft_of(dt_seq_tree(t->s[0], refs[i].seq), refs[i].node);
      if (d->count && dt_seq_tree(t->s[0], refs[i].seq)->nodes < NODES)
        add(t, refs[i].seq, refs[i].node, d->token[random_next(seed) % 2]);
    }
  }
}

/* The two drafts of one session computed the same rows as each of them alone. */
static void expect_the_same_rows(const trio *t, int seq) {
  dt_stats st[1 + ALONE];
  for (int i = 0; i <= ALONE; i++) dt_seq_stats(t->s[i], seq, &st[i]);
  assert_int_equal(st[0].draft_rows, st[1].draft_rows + st[2].draft_rows);
}

/* Runs one iteration of both sequences. Returns how many guesses of the first one were accepted. */
static int iterate(trio *t, uint64_t *seed) {
  int seqs[] = {0, 1}, accepted = 0;
  for (int seq = 0; seq < SEQUENCES; seq++) EACH_OF(t, dt_rollback(s, seq, &err));
  if (random_next(seed) % 5) grow(t, seed); /* otherwise it is a plain iteration */
  if (random_next(seed) % 6 == 0) {         /* repeats it */
    for (int seq = 0; seq < SEQUENCES; seq++) EACH_OF(t, dt_rollback(s, seq, &err));
    grow(t, seed);
  }
  unsigned flags = random_next(seed) % 4 ? 0 : DT_COMMIT_REBUILD;
  dt_verdict v[SEQUENCES];
  dt_committed c[SEQUENCES];
  for (int i = 0; i <= ALONE; i++) {
    ok(dt_verify_tree(t->s[i], seqs, SEQUENCES, v, &err));
    ok(dt_commit(t->s[i], seqs, SEQUENCES, flags, c, &err));
    accepted = c[0].accepted;
  }
  for (int seq = 0; seq < SEQUENCES; seq++) expect_the_same_rows(t, seq);
  return accepted;
}

/* Starts both sequences with the text and the rows of the first one. */
static void reuse_rows(trio *t, bool whole) {
  const dt_seq_options o = {.max_tokens = 40, .ignore_eos = true};
  int32_t text[CONTEXT];
  int n = dt_seq_length(t->s[0], 0) / 2;
  memcpy(text, dt_seq_tokens(t->s[0], 0), (size_t)n * sizeof *text);
  for (int i = 0; i <= ALONE; i++) {
    dt_prefix *prefix;
    ok(dt_prefix_save(t->s[i], 0, whole ? CONTEXT : n - 3, &prefix, &err));
    ok(dt_seq_adopt(t->s[i], 1, prefix, &err));
    assert_int_equal(dt_prefix_bytes(prefix), dt_rows_bytes(t->s[i], whole ? dt_seq_rows(t->s[i], 0) : n - 3));
    for (int seq = 0; seq < SEQUENCES; seq++) ok(dt_seq_continue(t->s[i], seq, text, n, &o, &err));
    dt_prefix_free(prefix);
  }
}

/* Starts from a prefix that has the rows of the prompt for each draft. */
static void start_from_a_prefix(trio *t) {
  const dt_seq_options o = {.max_tokens = 40, .ignore_eos = true};
  for (int i = 0; i <= ALONE; i++) {
    dt_prefix *prefix;
    ok(dt_seq_start(t->s[i], 0, PROMPT, 8, &o, &err));
    ok(dt_prefix_take(t->s[i], 0, &prefix, &err));
    for (int seq = 0; seq < SEQUENCES; seq++) ok(dt_seq_start_from(t->s[i], seq, prefix, &o, &err));
    dt_prefix_free(prefix);
  }
}

/* Runs the prompt in pieces, including the drafts' rows: as many as both need alone. */
static void start_in_pieces(trio *t) {
  const dt_seq_options o = {.max_tokens = 40, .ignore_eos = true, .piece = 3, .drafts = true};
  int pieces[1 + ALONE] = {0};
  for (int i = 0; i <= ALONE; i++)
    for (int seq = 0; seq < SEQUENCES; seq++) {
      int left;
      ok(dt_seq_start(t->s[i], seq, PROMPT, 8, &o, &err));
      ok(dt_seq_prompt(t->s[i], seq, 0, &left, &err));
      for (; left; pieces[i]++) {
        int before = left;
        ok(dt_seq_prompt(t->s[i], seq, 3, &left, &err));
        assert_in_range(before - left, 1, 3);
      }
    }
  assert_true(pieces[0] >= pieces[1] && pieces[0] >= pieces[2]);
}

static void each_draft_guesses_as_if_it_were_alone(void **state) {
  (void)state;
  static const char *const drafts[][2] = {{MODEL("mini-draft"), "exit:3"},
                                          {"exit:2", MODEL("mini-draft")},
                                          {MODEL("mini-draft"), MODEL("mini-head")},
                                          {MODEL("mini-head"), "exit:4"}};
  for (size_t k = 0; k < sizeof drafts / sizeof *drafts; k++) {
    trio t = open_trio(drafts[k][0], drafts[k][1]);
    uint64_t seed = 7 + k;
    int accepted = 0;
    for (int round = 0; round < 4; round++) {
      if (round == 0) start_from_a_prefix(&t);
      if (round == 1 || round == 2) reuse_rows(&t, round == 1);
      if (round == 3) start_in_pieces(&t);
      for (int i = 0; i < 8 && dt_seq_finish(t.s[0], 0) == DT_RUNNING && dt_seq_finish(t.s[0], 1) == DT_RUNNING; i++)
        accepted += iterate(&t, &seed);
    }
    assert_true(accepted > 5);
    close_trio(&t);
  }
}

/* ---- what is there ----------------------------------------------------------------------------------------------- */

static void a_node_has_the_guesses_of_the_draft_that_was_asked_last(void **state) {
  (void)state;
  static const int32_t one[] = {11}, two[] = {22};
  static const float sure[] = {0.9f};
  const dt_fake_rule first = {.count = 1, .token = one, .p = sure}, second = {.count = 1, .token = two, .p = sure};
  dt_pair *pair = fake((dt_fake_options){
      .two_drafts = true, .draft = &first, .n_draft = 1, .draft2 = &second, .n_draft2 = 1, .draft_context = 100});
  dt_session *s = session(pair, 1, true);
  dt_tree *t = dt_seq_tree(s, 0);
  dt_stats st;
  int a, b, v = 0;
  start(s, 0, 100);
  for (int i = 0; i < 3; i++) ok(dt_tree_add(t, v, i, 0, &v, &err));
  ok(dt_draft_step(s, &(dt_node_ref){.node = 3}, 1, &err));
  for (int u = 0; u <= 3; u++) assert_int_equal(dt_tree_draft_of(t, u)->token[0], 11); /* also from ancestors */
  ok(dt_draft_step(s, &(dt_node_ref){.node = 2, .draft = 1}, 1, &err));
  for (int u = 0; u <= 3; u++) /* nodes with guesses keep them: only node 2 was drafted from */
    assert_int_equal(dt_tree_draft_of(t, u)->token[0], u == 2 ? 22 : 11);
  ok(dt_tree_branch(t, 2, 1, &a, &b, &err));
  assert_int_equal(t->token[a], 22);
  dt_seq_stats(s, 0, &st);
  assert_int_equal(st.draft_rows, 4 + 3);
  ok(dt_draft_step(s, &(dt_node_ref){.node = 2}, 1, &err)); /* its guesses exist already */
  ok(dt_draft_step(s, &(dt_node_ref){.node = 1, .draft = 1}, 1, &err));
  assert_int_equal(dt_tree_draft_of(t, 2)->token[0], 11);
  assert_int_equal(dt_tree_draft_of(t, 1)->token[0], 22);
  dt_seq_stats(s, 0, &st);
  assert_int_equal(st.draft_rows, 4 + 3);
  assert_false(dt_tree_use_draft(t, 3, 1)); /* this draft has not read that node */
  assert_int_equal(dt_tree_draft_of(t, 3)->token[0], 11);
  start(s, 0, 100);
  ok(dt_draft_step(s, &(dt_node_ref){.node = 0, .draft = 1}, 1, &err));
  for (int draft = -1; draft <= 2; draft++) assert_int_equal(dt_seq_unread(s, 0, draft), draft ? 0 : 7);
  dt_session_close(s);
  dt_pair_close(pair);
}

/* A tree has room for DT_TREE_DRAFTS results, of all drafts together. */
static void both_drafts_share_the_room_for_results(void **state) {
  (void)state;
  enum { HALF = DT_TREE_DRAFTS / 2 };
  dt_pair *pair = fake((dt_fake_options){.two_drafts = true, .context = 2 * DT_TREE_DRAFTS});
  dt_session *s = session(pair, 1, true);
  dt_tree *t = dt_seq_tree(s, 0);
  dt_node_ref refs[2][DT_TREE_DRAFTS];
  start(s, 0, -1);
  ok(dt_tree_limit(t, DT_TREE_ENTRIES, &err));
  for (int i = 0; i < DT_TREE_DRAFTS; i++) {
    int v;
    ok(dt_tree_add(t, i / 25, i % 25, 0, &v, &err));
    for (int d = 0; d < 2; d++) refs[d][i] = (dt_node_ref){.node = i, .draft = d};
  }
  ok(dt_draft_step(s, refs[0], HALF, &err));
  ok(dt_draft_step(s, refs[1], HALF - 1, &err));
  assert_int_equal(dt_tree_draft_room(t), 1);
  ok(dt_draft_step(s, refs[1], HALF, &err));
  assert_int_equal(dt_tree_draft_room(t), 0);
  assert_true(dt_tree_draft_of(t, HALF - 1)->count > 0);
  for (int d = 0; d < 2; d++) {
    ok(dt_draft_step(s, &(dt_node_ref){.node = HALF, .draft = d}, 1, &err));
    assert_int_equal(dt_tree_draft_of(t, HALF)->count, 0);
  }
  dt_session_close(s);
  dt_pair_close(pair);
}

static void a_session_has_the_drafts_of_its_pair(void **state) {
  (void)state;
  static const int none[] = {INT_MIN, -1, 2, INT_MAX};
  dt_pair *pair = fake((dt_fake_options){.two_drafts = true}), *single = fake((dt_fake_options){0});
  dt_session *s = session(pair, 1, true), *one = session(single, 1, true);
  dt_pair_info info;
  dt_pair_describe(pair, &info);
  assert_true(info.drafts == 2 && info.second.path == info.draft2 && info.draft2_dtype && !info.draft2_head);
  dt_pair_describe(single, &info);
  assert_true(info.drafts == 1 && !info.draft2 && !info.draft2_dtype);
  start(s, 0, 20), start(one, 0, 20);
  for (int i = 0; i < 4; i++)
    fails(dt_draft_step(s, &(dt_node_ref){.draft = none[i]}, 1, &err), DT_ESTATE, "(the session has 0..1)");
  fails(dt_draft_step(one, &(dt_node_ref){.draft = 1}, 1, &err), DT_ESTATE,
        "draft_step: there is no draft 1 (the session has 0..0)");
  ok(dt_draft_step(s, &(dt_node_ref){.draft = 1}, 1, &err));
  assert_int_equal(dt_rows_bytes(s, 5) - dt_rows_bytes(one, 5), dt_rows_bytes(s, 5) / 3);
  dt_session_close(s);
  s = session(pair, 1, false); /* in the memory of the session before */
  start(s, 0, 20);
  fails(dt_draft_step(s, &(dt_node_ref){.draft = 1}, 1, &err), DT_ESTATE, "no draft model is in use");
  dt_session_close(s), dt_session_close(one);
  dt_pair_close(pair), dt_pair_close(single);
}

static void a_draft_that_cannot_be_the_second_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *first, *second, *why;
  } cases[] = {
      {NULL, "exit:3", "draft2: exit:3 is a second draft, but there is no first: give the first with --draft"},
      {"exit:3", "/nowhere", "/nowhere"},
      {"exit:3", "exit:6", "exit:6 is out of range"},
      {MODEL("mini-head"), MODEL("mini-head"), "are both draft heads, but only one of two drafts can be a head"},
  };
  dt_pair *pair;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int optional = 0; optional < 2; optional++) {
      const dt_pair_options o = {.target = MODEL("mini-target"),
                                 .draft = cases[i].first,
                                 .draft2 = cases[i].second,
                                 .draft_optional = optional,
                                 .threads = 1};
      fails(dt_pair_open(&o, &pair, &err), DT_EINPUT, cases[i].why);
    }
  /* a first draft that may be missing if it is the only one is required if there is a second */
  const dt_pair_options o = {
      .target = MODEL("mini-target"), .draft = "/nowhere", .draft2 = "exit:3", .draft_optional = true, .threads = 1};
  fails(dt_pair_open(&o, &pair, &err), DT_EINPUT, "/nowhere");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_draft_guesses_as_if_it_were_alone),
                                     cmocka_unit_test(a_node_has_the_guesses_of_the_draft_that_was_asked_last),
                                     cmocka_unit_test(both_drafts_share_the_room_for_results),
                                     cmocka_unit_test(a_session_has_the_drafts_of_its_pair),
                                     cmocka_unit_test(a_draft_that_cannot_be_the_second_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
