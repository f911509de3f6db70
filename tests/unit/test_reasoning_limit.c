/* Limits on reasoning: what is forced after the nodes of random trees is what the definition forces after the text and
 * the node's path. */
#include "scripted.h"

#include "draft/reasoning_limit.h"
#include "reasoning_reference.h"

enum { IDS = 5, LENGTH = 12, NODES = 60, ANY = -1, NONE = -2 };

static const dt_reasoning_limit LIMITS[] = {
    {.begin = "1", .end = "2", .tokens = 0},
    {.begin = " 1\n", .end = "\n 2 3\n", .tokens = 2},
    {.begin = "1 1", .end = "2 2 3", .tokens = 4},
    {.begin = "1", .end = "2 3 2 3 4", .tokens = 6}, /* a beginning of the mark is repeated in it */
    {.begin = "1", .end = "2", .open = true, .tokens = 0},
    {.begin = "1", .end = "0 2 0", .open = true, .tokens = 3},
    {.begin = "1", .end = "4 4 4 4 4", .open = true, .tokens = 9},
};

/* What the definition allows after n generated tokens: a forced id, ANY id, or NONE. */
static int expected(const dt_pair *pair, const dt_reasoning_limit *limit, const int32_t *forced, int n_forced,
                    const int32_t *tokens, int n) {
  int at = reasoning_reached(pair, limit, tokens, n);
  if (at < 0) return ANY;
  for (int i = 0; at + i < n && i < n_forced; i++)
    if (tokens[at + i] != forced[i]) return NONE;
  return n - at < n_forced ? forced[n - at] : ANY;
}

/* Compares all answers about a node with `what` may follow it. */
static void check_node(reasoning_limit *l, const dt_tree *t, int node, int what) {
  int left;
  int32_t forced = reasoning_limit_forced(l, t, node, &left);
  const uint64_t *mask = reasoning_limit_mask(l, t, node);
  assert_int_equal(forced, what >= 0 ? what : -1);
  assert_true(!mask == (what == ANY));
  for (int32_t id = 0; id < VOCAB; id++) {
    bool may = what == ANY || what == id;
    assert_true(reasoning_limit_allow(l, t, node, id) == may);
    assert_true(!mask || (mask[id / 64] >> id % 64 & 1) == may);
  }
}

typedef struct {
  int any, forced, none;
} seen;

/* Grows a random tree over the text of n tokens and asks about its nodes, some of them before others exist. */
static void check_tree(const dt_pair *pair, reasoning_limit *l, const dt_reasoning_limit *limit, const int32_t *forced,
                       int n_forced, int32_t *tokens, int n, dt_tree *t, uint64_t *r, seen *saw) {
  dt_tree_reset(t, 0, NODES, VOCAB);
  reasoning_limit_begin_tree(l);
  for (int i = 0; i < NODES; i++) {
    int parent = random_next(r) % 3 ? t->nodes - 1 : (int)(random_next(r) % (uint32_t)t->nodes), left, node;
    int32_t id = reasoning_limit_forced(l, t, parent, &left);
    if (id < 0 || random_next(r) % 4 == 0) id = (int32_t)(random_next(r) % IDS);
    ok(dt_tree_add(t, parent, id, -1, &node, &err));
    if (random_next(r) % 2 && i < NODES - 1) continue;
    node = i < NODES - 1 ? (int)(random_next(r) % (uint32_t)t->nodes) : node;
    for (int u = node; u > 0; u = t->parent[u]) tokens[n + t->depth[u] - 1] = t->token[u];
    int what = expected(pair, limit, forced, n_forced, tokens, n + t->depth[node]);
    check_node(l, t, node, what);
    saw->any += what == ANY, saw->forced += what >= 0, saw->none += what == NONE;
  }
}

static void paths_are_limited_as_the_texts_that_they_make(void **state) {
  (void)state;
  dt_pair *pair = fake((dt_fake_options){0});
  dt_tree *tree;
  ok(dt_tree_open(&tree, &err));
  for (size_t k = 0; k < sizeof LIMITS / sizeof *LIMITS; k++) {
    int32_t *forced;
    int n_forced;
    seen saw = {0};
    ok(dt_encode_whole(pair, LIMITS[k].end, strlen(LIMITS[k].end), &forced, &n_forced, &err));
    for (uint64_t seed = 1; seed <= 200; seed++) {
      int32_t tokens[LENGTH + NODES];
      uint64_t r = seed;
      reasoning_limit *l;
      ok(reasoning_limit_open(pair, &LIMITS[k], false, &l, &err));
      for (int n = 0; n < LENGTH; n++) {
        int left;
        check_tree(pair, l, &LIMITS[k], forced, n_forced, tokens, n, tree, &r, &saw);
        if (random_next(&r) % 4 == 0) /* a tree that is dropped */
          check_tree(pair, l, &LIMITS[k], forced, n_forced, tokens, n, tree, &r, &saw);
        tokens[n] = reasoning_limit_forced(l, tree, 0, &left);
        if (tokens[n] < 0) tokens[n] = n < 2 && random_next(&r) % 3 ? 1 : (int32_t)(random_next(&r) % IDS);
        reasoning_limit_token(l, tokens[n]);
      }
      reasoning_limit_close(l);
    }
    if (saw.any < 1000 || saw.forced < 300 || saw.none < 100)
      fail_msg("limit %zu: %d nodes before any id, %d before a forced one, %d before none", k, saw.any, saw.forced,
               saw.none);
    free(forced);
  }
  reasoning_limit_close(NULL);
  dt_tree_close(tree);
  dt_pair_close(pair);
}

static void forced_ids_are_verified_together_and_others_not_at_all(void **state) {
  (void)state;
  dt_pair *pair = fake((dt_fake_options){0});
  dt_session *s = session(pair, 1, false);
  const dt_seq_options o = {.max_tokens = 9, .adjustments.reasoning = {.end = "7 42 8", .open = true}};
  static const int32_t ids[] = {7, 42, 8};
  int seq = 0, node = 0, other, left;
  int32_t id;
  bool may;
  dt_verdict v;
  ok(dt_seq_start(s, 0, PROMPT, 8, &o, &err));
  assert_false(dt_seq_has_grammar(s, 0));
  for (int i = 0; i < 3; i++) {
    ok(dt_seq_forced(s, 0, node, &id, &left, &err));
    assert_int_equal(id, ids[i]);
    assert_int_equal(left, i == 0 ? 5 : i == 1 ? 2 : 0); /* " 42 8", " 8" */
    ok(dt_seq_allowed(s, 0, node, 9, &may, &err));
    assert_false(may);
    ok(dt_tree_add(dt_seq_tree(s, 0), node, 9, -1, &other, &err));
    ok(dt_tree_add(dt_seq_tree(s, 0), other, id, -1, &other, &err)); /* nothing may follow a forbidden id */
    ok(dt_tree_add(dt_seq_tree(s, 0), node, id, -1, &node, &err));
  }
  ok(dt_seq_forced(s, 0, node, &id, &left, &err));
  ok(dt_seq_allowed(s, 0, node, 9, &may, &err));
  assert_true(id == -1 && left == 0 && may);
  ok(dt_verify_tree(s, &seq, 1, &v, &err));
  assert_true(v.drafted == 3 && v.accepted == 3);
  dt_session_close(s);
  dt_pair_close(pair);
}

/* Adds a node with each forced id in turn, and checks that `other` may not stand there, or that nothing is forced. */
static void check_forced(const char *grammar, const int32_t *ids, const int32_t *other, int n) {
  dt_pair *pair = fake((dt_fake_options){0});
  dt_session *s = session(pair, 1, false);
  const dt_seq_options o = {.max_tokens = 9,
                            .adjustments = {.grammar = grammar, .reasoning = {.end = "7 42 8", .open = true}}};
  int seq = 0, node = 0, left;
  int32_t id;
  bool may;
  dt_verdict v;
  ok(dt_seq_start(s, 0, PROMPT, 8, &o, &err));
  for (int i = 0; i < n; i++) {
    ok(dt_seq_forced(s, 0, node, &id, &left, &err));
    assert_int_equal(id, ids[i]);
    ok(dt_seq_allowed(s, 0, node, ids[i], &may, &err));
    assert_true(may);
    ok(dt_seq_allowed(s, 0, node, other[i], &may, &err));
    assert_false(may);
    ok(dt_tree_add(dt_seq_tree(s, 0), node, ids[i], -1, &node, &err));
  }
  ok(dt_verify_tree(s, &seq, 1, &v, &err));
  assert_true(v.drafted == n && v.accepted == n);
  dt_session_close(s);
  dt_pair_close(pair);
}

static void a_grammar_decides_where_the_limit_has_an_effect(void **state) {
  (void)state;
  check_forced("root ::= \" 7\" (\" 42 8\" | \" 6\") \" 5\" \" 3\"*", (int32_t[]){7, 42, 8, 5},
               (int32_t[]){6, 6, 42, 3}, 4);
  check_forced("root ::= \" 7\" \" 6\" \" 8\" \" 3\"*", (int32_t[]){7, 6, 8}, (int32_t[]){6, 42, 42},
               3); /* 42 may not come */
  check_forced("root ::= \" 5\" \" 7\" \" 3\"*", (int32_t[]){5, 7}, (int32_t[]){7, 42}, 2);
}

static void zeros_and_a_number_without_marks_limit_nothing(void **state) {
  (void)state;
  assert_false(dt_adjustments_wanted(&(dt_adjustments){0}));
  assert_false(dt_adjustments_wanted(&(dt_adjustments){.reasoning.tokens = 5}));
  assert_false(dt_adjustments_wanted(&(dt_adjustments){.reasoning = {.end = "1", .tokens = -1}}));
  assert_true(dt_adjustments_wanted(&(dt_adjustments){.reasoning = {.end = "1"}}));
  const dt_seq_options o = {
      .max_tokens = 1,
      .adjustments = {.grammar = "root ::= \"1\"", .reasoning = {.end = "1", .open = true, .tokens = -1}}};
  ok(dt_check_options(&o, &err));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(paths_are_limited_as_the_texts_that_they_make),
      cmocka_unit_test(forced_ids_are_verified_together_and_others_not_at_all),
      cmocka_unit_test(a_grammar_decides_where_the_limit_has_an_effect),
      cmocka_unit_test(zeros_and_a_number_without_marks_limit_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
