/* The token tree, the accepted path, and the slots of a cache, which are all pure functions of their inputs. */
#include "unit.h"

#include "backend/kv.h"
#include "tree/accept.h"
#include "tree/tree.h"

#include <math.h>
#include <stdio.h>

static int setup(void **state) { return dt_tree_open((dt_tree **)state, NULL); }

static int teardown(void **state) {
  dt_tree_close(*state);
  return 0;
}

static int add(dt_tree *t, int u, int32_t token, float logp) {
  int v;
  ok(dt_tree_add(t, u, token, logp, &v, &err));
  return v;
}

/* Gives node u the candidates 10, 11, .. with falling probabilities. */
static void draft(dt_tree *t, int u, int count) {
  dt_tree_draft *d = dt_tree_new_draft(t, u);
  d->count = count;
  for (int i = 0; i < count; i++) d->token[i] = 10 + i, d->logp[i] = -1.0f - (float)i;
  d->confidence = 0.5f;
}

static void nodes_know_parent_depth_and_cumulative_log_probability(void **state) {
  dt_tree *t = *state;
  dt_tree_reset(t, 7, 100, 1000);
  int a = add(t, 0, 1, -0.5f), b = add(t, a, 2, -0.25f);
  assert_int_equal(t->token[0], 7);
  assert_int_equal(t->parent[b], a);
  assert_int_equal(t->depth[b], 2);
  assert_true(t->cumlogp[b] == -0.75);
  assert_int_equal(dt_tree_size(t), 2);
  assert_int_equal(dt_tree_room(t), DT_TREE_VERIFY - 2);
  assert_int_equal(dt_tree_depth_room(t), 98);
}

static void adding_a_child_twice_returns_the_first(void **state) {
  dt_tree *t = *state;
  dt_tree_reset(t, 7, 100, 1000);
  int a = add(t, 0, 1, -0.5f);
  assert_int_equal(add(t, 0, 1, -3), a);
  assert_int_equal(dt_tree_size(t), 1);
}

static void no_room_is_a_value(void **state) {
  dt_tree *t = *state;
  dt_tree_reset(t, 7, 1, 1000);
  ok(dt_tree_limit(t, 2, &err));
  int a = add(t, 0, 1, 0);
  assert_int_equal(add(t, a, 2, 0), -1); /* too deep */
  add(t, 0, 2, 0);
  assert_int_equal(add(t, 0, 3, 0), -1); /* too many */
  assert_int_equal(add(t, 0, 2, 0), 2);  /* exists already, so it is still found */
}

static void branch_adds_the_likeliest_children_that_are_not_there(void **state) {
  dt_tree *t = *state;
  int first, last;
  dt_tree_reset(t, 7, 100, 1000);
  add(t, 0, 11, 0);
  draft(t, 0, 4);
  ok(dt_tree_branch(t, 0, 2, &first, &last, &err));
  assert_int_equal(last - first + 1, 2);
  assert_int_equal(t->token[first], 10);
  assert_int_equal(t->token[last], 12);
  ok(dt_tree_branch(t, 0, 9, &first, &last, &err));
  assert_int_equal(last - first + 1, 1); /* only token 13 was left */
  ok(dt_tree_branch(t, 0, 9, &first, &last, &err));
  assert_int_equal(last, first - 1);
  ok(dt_tree_branch(t, 0, -3, &first, &last, &err));
  assert_int_equal(last, first - 1);
}

static void branch_best_adds_the_likeliest_paths_of_several_nodes(void **state) {
  dt_tree *t = *state;
  dt_tree_reset(t, 7, 100, 1000);
  int a = add(t, 0, 1, -0.5f), b = add(t, 0, 2, -1.5f), first, last;
  draft(t, a, 4), draft(t, b, 4); /* paths: a -1.5, -2.5, -3.5, ..; b -2.5, -3.5, .. */
  add(t, a, 10, -1);
  const int32_t ids[] = {a, b};
  ok(dt_tree_branch_best(t, ids, 2, 4, &first, &last, &err));
  assert_int_equal(last - first + 1, 4);
  const int parents[] = {a, b, a, b}, tokens[] = {11, 10, 12, 11}; /* a's 10 exists already; ties go to a */
  for (int i = 0; i < 4; i++) {
    assert_int_equal(t->parent[first + i], parents[i]);
    assert_int_equal(t->token[first + i], tokens[i]);
  }
  ok(dt_tree_branch_best(t, ids, 2, 99, &first, &last, &err)); /* no more than exist */
  assert_int_equal(last - first + 1, 3);
  ok(dt_tree_branch_best(t, ids, 2, 1, &first, &last, &err));
  assert_int_equal(last, first - 1);
  ok(dt_tree_branch_best(t, ids, 0, 1, &first, &last, &err));
  assert_int_equal(last, first - 1);
}

static void branch_best_is_cut_by_room_and_depth_and_needs_candidates(void **state) {
  dt_tree *t = *state;
  int first, last;
  dt_tree_reset(t, 7, 2, 1000);
  ok(dt_tree_limit(t, 4, &err));
  int a = add(t, 0, 1, -0.5f), deep = add(t, a, 1, -0.1f);
  const int32_t ids[] = {deep, a, 0};
  fails(dt_tree_branch_best(t, ids, 3, 1, &first, &last, &err), DT_ESTATE, "call draft_step first");
  draft(t, deep, 4), draft(t, a, 4), draft(t, 0, 4);
  ok(dt_tree_branch_best(t, ids, 3, 9, &first, &last, &err));
  assert_int_equal(last - first + 1, 2); /* nothing is added below the deepest level */
  assert_int_equal(t->parent[first], 0);
  assert_int_equal(t->parent[last], a);
}

static void branch_is_cut_by_room_and_depth(void **state) {
  dt_tree *t = *state;
  int first, last;
  dt_tree_reset(t, 7, 1, 1000);
  draft(t, 0, 4);
  ok(dt_tree_limit(t, 3, &err));
  ok(dt_tree_branch(t, 0, 4, &first, &last, &err));
  assert_int_equal(last - first + 1, 3);
  dt_tree_reset(t, 7, 1, 1000);
  int a = add(t, 0, 1, 0);
  draft(t, a, 4);
  ok(dt_tree_branch(t, a, 4, &first, &last, &err));
  assert_int_equal(last, first - 1);
}

static void misuse_is_named(void **state) {
  dt_tree *t = *state;
  int v, last;
  dt_tree_reset(t, 7, 100, 1000);
  fails(dt_tree_add(t, 1, 0, 0, &v, &err), DT_ESTATE, "there is no node 1 (the tree has 0..0)");
  fails(dt_tree_add(t, 0, 1000, 0, &v, &err), DT_ESTATE, "token: 1000 is out of range: 0..999");
  fails(dt_tree_add(t, 0, 1, 0.5f, &v, &err), DT_ESTATE, "at most 0");
  fails(dt_tree_add(t, 0, 1, NAN, &v, &err), DT_ESTATE, "at most 0");
  fails(dt_tree_branch(t, 0, 1, &v, &last, &err), DT_ESTATE, "call draft_step first");
  fails(dt_tree_limit(t, 0, &err), DT_ESTATE, "out of range: 1..4096");
  add(t, 0, 1, 0), add(t, 0, 2, 0);
  fails(dt_tree_limit(t, 1, &err), DT_ESTATE, "below the tree's present size 2");
  ok(dt_tree_seal(t, &err));
  fails(dt_tree_add(t, 0, 3, 0, &v, &err), DT_ESTATE, "keep has settled");
  fails(dt_tree_keep_best(t, 1, &err), DT_ESTATE, "keep has settled");
}

static void best_sorts_by_probability_then_by_id(void **state) {
  dt_tree *t = *state;
  int32_t out[300];
  uint64_t seed = 1;
  dt_tree_reset(t, 7, 100, 100000);
  for (int i = 0; i < 250; i++) add(t, 0, i, -(float)(random_next(&seed) % 40));
  for (int k = 0; k <= 260; k += 13) {
    int n = dt_tree_best(t, k, 1, 250, out);
    assert_int_equal(n, k < 250 ? k : 250);
    for (int i = 1; i < n; i++)
      assert_true(t->logp[out[i - 1]] > t->logp[out[i]] ||
                  (t->logp[out[i - 1]] == t->logp[out[i]] && out[i - 1] < out[i]));
    int above = 0; /* no better node was left out */
    for (int v = 1; v <= 250 && n; v++)
      above += t->logp[v] > t->logp[out[n - 1]] || (t->logp[v] == t->logp[out[n - 1]] && v < out[n - 1]);
    assert_int_equal(above, n ? n - 1 : 0);
  }
  assert_int_equal(dt_tree_best(t, 5, 10, 9, out), 0);
  assert_int_equal(dt_tree_best(t, 5, 10, 12, out), 3);
}

static void keep_wants_a_closed_set(void **state) {
  dt_tree *t = *state;
  dt_tree_reset(t, 7, 100, 1000);
  int a = add(t, 0, 1, -1), b = add(t, a, 2, -1), c = add(t, 0, 3, -1);
  fails(dt_tree_keep(t, (int32_t[]){b, c}, 2, &err), DT_ESTATE, "node 2 is kept without its parent 1");
  fails(dt_tree_keep(t, (int32_t[]){9}, 1, &err), DT_ESTATE, "there is no node 9");
  ok(dt_tree_keep(t, (int32_t[]){c, 0, a, c}, 4, &err));
  assert_int_equal(t->n_kept, 2);
  assert_int_equal(t->kept_node[0], a);
  assert_int_equal(t->kept_node[1], c);
}

static void keep_best_is_closed_even_under_ties(void **state) {
  dt_tree *t = *state;
  uint64_t seed = 3;
  for (int round = 0; round < 50; round++) {
    dt_tree_reset(t, 7, 1000, 100000);
    for (int i = 0; i < 200; i++)
      add(t, (int)(random_next(&seed) % (uint32_t)t->nodes), i, -(float)(random_next(&seed) % 2));
    ok(dt_tree_keep_best(t, 60, &err)); /* fails if the set is not closed */
    assert_int_equal(t->n_kept, 60);
  }
}

static void more_nodes_than_a_pass_verifies_need_keep(void **state) {
  dt_tree *t = *state;
  dt_tree_reset(t, 7, 100, 100000);
  ok(dt_tree_limit(t, DT_TREE_ENTRIES, &err));
  for (int i = 0; i < DT_TREE_ENTRIES; i++) assert_int_equal(add(t, 0, i, -1), i + 1);
  assert_int_equal(add(t, 0, 99999, -1), -1);
  fails(dt_tree_seal(t, &err), DT_ESTATE, "call keep first");
  fails(dt_tree_keep_best(t, 257, &err), DT_ESTATE, "out of range: 0..256");
  ok(dt_tree_keep_best(t, 256, &err));
  assert_int_equal(t->n_kept, 256);
}

static void the_accepted_path_follows_the_target(void **state) {
  dt_tree *t = *state;
  int32_t path[DT_TREE_VERIFY], bonus;
  dt_tree_reset(t, 7, 100, 1000);
  int a = add(t, 0, 1, -1), b = add(t, 0, 2, -1), c = add(t, b, 3, -1), d = add(t, b, 4, -1), e = add(t, d, 5, -1);
  ok(dt_tree_seal(t, &err));
  assert_int_equal(accept_path(t, (int32_t[]){2, 9, 4, 9, 5, 8}, path, &bonus), 3);
  assert_int_equal(path[0], b);
  assert_int_equal(path[1], d);
  assert_int_equal(path[2], e);
  assert_int_equal(bonus, 8);
  assert_int_equal(t->verdict[a], 0);
  assert_int_equal(t->verdict[b], 1);
  assert_int_equal(t->verdict[c], 0);
}

static void what_was_not_kept_is_not_accepted(void **state) {
  dt_tree *t = *state;
  int32_t path[DT_TREE_VERIFY], bonus;
  dt_tree_reset(t, 7, 100, 1000);
  int a = add(t, 0, 1, -1), b = add(t, a, 2, -1);
  ok(dt_tree_keep(t, (int32_t[]){a}, 1, &err));
  assert_int_equal(accept_path(t, (int32_t[]){1, 2}, path, &bonus), 1);
  assert_int_equal(bonus, 2);
  assert_int_equal(t->verdict[b], -1);
}

static void an_empty_tree_yields_the_bonus_token(void **state) {
  dt_tree *t = *state;
  int32_t path[1], bonus;
  dt_tree_reset(t, 7, 100, 1000);
  ok(dt_tree_seal(t, &err));
  assert_int_equal(accept_path(t, (int32_t[]){5}, path, &bonus), 0);
  assert_int_equal(bonus, 5);
}

static void where_the_target_has_no_token_its_last_one_is_the_bonus(void **state) {
  dt_tree *t = *state;
  int32_t path[DT_TREE_VERIFY], bonus;
  dt_tree_reset(t, 7, 100, 1000);
  add(t, add(t, 0, 1, 0), 2, 0);
  ok(dt_tree_seal(t, &err));
  assert_int_equal(accept_path(t, (int32_t[]){1, 2, -1}, path, &bonus), 1);
  assert_int_equal(bonus, 2);
  assert_int_equal(t->phase, TREE_VERIFIED);
  dt_tree_reset(t, 7, 100, 1000);
  add(t, 0, 1, 0);
  ok(dt_tree_seal(t, &err));
  assert_int_equal(accept_path(t, (int32_t[]){1, -1}, path, &bonus), 0);
  assert_int_equal(bonus, 1);
  assert_int_equal(t->phase, TREE_VERIFIED);
  dt_tree_reset(t, 7, 100, 1000);
  add(t, 0, 1, 0);
  ok(dt_tree_seal(t, &err));
  assert_int_equal(accept_path(t, (int32_t[]){-1, 2}, path, &bonus), 0);
  assert_int_equal(bonus, -1);
  assert_int_equal(t->phase, TREE_SEALED);
}

static void slots_of_a_kept_path_close_up(void **state) {
  (void)state;
  kv_slots kv;
  int32_t from[8], to[8];
  kv_init(&kv, 20);
  kv.rows = 10;
  kv_begin(&kv, 10);
  for (int i = 0; i < 10; i++) assert_int_equal(kv_reserve(&kv), 10 + i);
  assert_int_equal(kv_reserve(&kv), -1);
  assert_int_equal(kv_keep(&kv, (int32_t[]){10, 13, 14, 19}, 4, from, to), 3);
  assert_memory_equal(from, ((int32_t[]){13, 14, 19}), 12);
  assert_memory_equal(to, ((int32_t[]){11, 12, 13}), 12);
  assert_int_equal(kv.rows, 14);
  assert_int_equal(kv_reserve(&kv), 14);
}

#define tree_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* With eight ids of a vocabulary of eight, nothing is left out, and the calibrated softmax is exact. */
static void a_calibrated_draft_is_the_softmax_of_scores_through_the_scale(void **state) {
  dt_tree *t = *state;
  dt_tree_reset(t, 0, 4, 8);
  for (int k = 0; k < 3; k++) {
    double scale = (double[]){0.1, 0.7, 10}[k], sum = 0, total = 0, entropy = 0, p[8], q[8];
    dt_tree_draft d = {.count = 8};
    for (int i = 0; i < 8; i++) sum += p[i] = exp(-0.3 * i * i);
    for (int i = 0; i < 8; i++) {
      d.logp[i] = d.own[i] = (float)log(p[i] / sum);
      total += q[i] = pow(p[i], 1 / scale);
    }
    for (int i = 0; i < 8; i++) entropy -= q[i] / total * log(q[i] / total);
    ok(dt_tree_calibrate(t, (dt_tree_calibration){.scale = scale, .slope = 1, .share = 1}, &err));
    dt_tree_calibrate_draft(t, &d);
    for (int i = 0; i < 8; i++) {
      assert_true(fabs((double)d.logp[i] - log(q[i] / total)) < 1e-4);
      assert_true(fabs((double)d.own[i] - log(p[i] / sum)) < 1e-6);
    }
    assert_true(fabs((double)d.confidence - q[0] / total) < 1e-4 && fabs((double)d.entropy - entropy) < 1e-3);
  }
  dt_tree_reset(t, 0, 4, 8);
  dt_tree_draft same = {.count = 2, .logp = {-1, -2}, .confidence = 0.25f}, before = same;
  dt_tree_calibrate_draft(t, &same);
  assert_memory_equal(&same, &before, sizeof same);
}

/* Compares with the two steps of tree.h, written in a simple way. The noise of the fourth id is large, so a lean
 * changes the order. */
static void a_lean_orders_candidates_anew_and_odds_are_those_asked_for(void **state) {
  dt_tree *t = *state;
  const double own[4] = {0.5, 0.3, 0.15, 0.05}, noise[4] = {0, 0.2, 0.1, 2.2};
  const int32_t falling[4] = {0, 3, 1, 2}, leaning[4] = {3, 0, 1, 2};
  for (int k = 0; k < 5; k++) {
    dt_tree_calibration s = ((dt_tree_calibration[]){{1, -0.4, 1, 0, 1},
                                                     {0.6, -0.4, 0.8, 0.3, 0.5},
                                                     {0.6, 0, 2, -1, 1},
                                                     {2, 0, 1, -10, 0.25},
                                                     {0.1, 0, 10, 10, 1}})[k];
    double score[4], sum = 0, p[4], said = 0, entropy = 0;
    dt_tree_draft d = {.count = 4};
    for (int i = 0; i < 4; i++) sum += exp(score[i] = log(own[i]) + noise[i]);
    for (int j = 0; j < 4; j++) {
      int i = falling[j];
      d.token[j] = i, d.logp[j] = (float)(score[i] - log(sum)), d.own[j] = (float)log(own[i]);
    }
    dt_tree_reset(t, 0, 4, 4);
    ok(dt_tree_calibrate(t, s, &err));
    dt_tree_calibrate_draft(t, &d);
    const int32_t *order = s.lean < 0 ? leaning : falling;
    sum = 0;
    for (int j = 0; j < 4; j++) sum += p[j] = exp((score[order[j]] + s.lean * log(own[order[j]])) / s.scale);
    double odds = exp(s.shift) * pow(p[0] / (sum - p[0]), s.slope), least = s.share * p[1] / (sum - p[0]);
    double top = odds > least ? odds / (1 + odds) : least / (1 + least); /* it stays the likeliest one */
    for (int j = 1; j < 4; j++) p[j] *= s.share * (1 - top) / (sum - p[0]);
    p[0] = top;
    double nobody = (1 - top) * (1 - s.share);
    for (int j = 0; j < 4; j++) {
      assert_int_equal(d.token[j], order[j]);
      assert_true(fabs(exp((double)d.logp[j]) - p[j]) < 1e-5 && fabs(exp((double)d.own[j]) - own[order[j]]) < 1e-6);
      assert_true(j == 0 || d.logp[j] <= d.logp[j - 1]);
      said += exp((double)d.logp[j]);
      if (p[j] > 0) entropy -= p[j] * log(p[j]);
    }
    if (nobody > 0) entropy -= nobody * log(nobody);
    assert_true(said < 1 - nobody + 1e-6 && fabs((double)d.confidence - p[0]) < 1e-5 &&
                fabs((double)d.entropy - entropy) < 1e-4);
  }
}

/* Impossible ids stay impossible. If no other id is possible, the first one is certain. */
static void impossible_candidates_stay_so(void **state) {
  dt_tree *t = *state;
  dt_tree_reset(t, 0, 4, 4);
  ok(dt_tree_calibrate(t, (dt_tree_calibration){0.6, -0.5, 2, 1, 1}, &err));
  dt_tree_draft d = {
      .count = 3, .token = {2, 1, 0}, .logp = {0, -INFINITY, -INFINITY}, .own = {0, -INFINITY, -INFINITY}};
  dt_tree_calibrate_draft(t, &d);
  assert_true(d.logp[0] == 0 && isinf(d.logp[1]) && isinf(d.logp[2]) && d.confidence == 1 && d.entropy == 0);
  assert_int_equal(d.token[0], 2);
}

static void calibration_has_bounds(void **state) {
  dt_tree *t = *state;
  const double low[5] = {0.1, -1, 0.1, -10, 0.01}, high[5] = {10, 1, 10, 10, 1};
  const char *message[5] = {"scale %g is out of range: 0.1..10", "lean %g is out of range: -1..1",
                            "slope %g is out of range: 0.1..10", "shift %g is out of range: -10..10",
                            "share %g is out of range: 0.01..1"};
  for (int i = 0; i < 5; i++)
    for (int k = 0; k < 5; k++) {
      double of[5] = {1, 0, 1, 0, 1}, bad = ((double[]){low[i] - 0.01, high[i] + 0.01, (double)NAN})[k % 3];
      of[i] = k == 3 ? low[i] : k == 4 ? high[i] : bad;
      dt_tree_calibration s = {of[0], of[1], of[2], of[3], of[4]};
      char text[80];
      dt_tree_reset(t, 0, 4, 8);
      if (k >= 3) {
        ok(dt_tree_calibrate(t, s, &err));
        continue;
      }
      snprintf(text, sizeof text, message[i], bad);
      fails(dt_tree_calibrate(t, s, &err), DT_ESTATE, text);
    }
  ok(dt_tree_keep_best(t, 0, &err));
  fails(dt_tree_calibrate(t, (dt_tree_calibration){1, 0, 1, 0, 1}, &err), DT_ESTATE,
        "keep has settled what is verified");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      tree_test(nodes_know_parent_depth_and_cumulative_log_probability),
      tree_test(adding_a_child_twice_returns_the_first),
      tree_test(no_room_is_a_value),
      tree_test(branch_adds_the_likeliest_children_that_are_not_there),
      tree_test(branch_is_cut_by_room_and_depth),
      tree_test(branch_best_adds_the_likeliest_paths_of_several_nodes),
      tree_test(branch_best_is_cut_by_room_and_depth_and_needs_candidates),
      tree_test(misuse_is_named),
      tree_test(best_sorts_by_probability_then_by_id),
      tree_test(keep_wants_a_closed_set),
      tree_test(keep_best_is_closed_even_under_ties),
      tree_test(more_nodes_than_a_pass_verifies_need_keep),
      tree_test(the_accepted_path_follows_the_target),
      tree_test(what_was_not_kept_is_not_accepted),
      tree_test(an_empty_tree_yields_the_bonus_token),
      tree_test(where_the_target_has_no_token_its_last_one_is_the_bonus),
      cmocka_unit_test(slots_of_a_kept_path_close_up),
      tree_test(a_calibrated_draft_is_the_softmax_of_scores_through_the_scale),
      tree_test(a_lean_orders_candidates_anew_and_odds_are_those_asked_for),
      tree_test(impossible_candidates_stay_so),
      tree_test(calibration_has_bounds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
