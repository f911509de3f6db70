/* Samples have the right distribution, through the whole engine, on a scripted pair of 6 tokens. Texts of 3 tokens are
 * sampled with many seeds (the first argument; 30000 by default), counted, and compared with their exact probabilities.
 *
 * The test is Pearson's chi-square at level 0.001. Its power is 99 % against frequencies that are off by 1.2 % (root
 * mean square, relative) at a million seeds, or by 7 % at 30000. tests/mutants/sampling.sh breaks the engine in several
 * ways and checks that this test fails. */
#include "chi_square.h"
#include "unit.h"

#include "dtrun.h"
#include "dtrun_fake.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { VOCAB = 6, DEPTH = 3, OUTCOMES = VOCAB * VOCAB * VOCAB, START = 0 };

static uint64_t seeds = 30000;

/* The probabilities of the next token after each token. After 1 2 the target has others. */
static const float target_after[VOCAB][VOCAB] = {
    {0.40f, 0.25f, 0.15f, 0.10f, 0.06f, 0.04f}, {0.05f, 0.05f, 0.50f, 0.20f, 0.10f, 0.10f},
    {0.15f, 0.15f, 0.15f, 0.15f, 0.20f, 0.20f}, {0.02f, 0.70f, 0.10f, 0.08f, 0.05f, 0.05f},
    {0.30f, 0.05f, 0.05f, 0.30f, 0.15f, 0.15f}, {0.20f, 0.20f, 0.10f, 0.10f, 0.30f, 0.10f}};
static const float target_after_1_2[VOCAB] = {0.60f, 0.02f, 0.08f, 0.10f, 0.10f, 0.10f};
static const float draft_after[VOCAB][VOCAB] = {
    {0.25f, 0.40f, 0.10f, 0.15f, 0.05f, 0.05f}, {0.10f, 0.05f, 0.45f, 0.20f, 0.15f, 0.05f},
    {0.50f, 0.10f, 0.10f, 0.10f, 0.10f, 0.10f}, {0.05f, 0.50f, 0.15f, 0.20f, 0.05f, 0.05f},
    {0.10f, 0.30f, 0.10f, 0.20f, 0.20f, 0.10f}, {0.30f, 0.10f, 0.10f, 0.10f, 0.20f, 0.20f}};

static dt_pair *open_pair(void) {
  static const int32_t ids[VOCAB] = {0, 1, 2, 3, 4, 5}, one_two[] = {1, 2};
  dt_fake_rule target[VOCAB + 1], draft[VOCAB];
  for (int t = 0; t < VOCAB; t++) {
    target[t] = (dt_fake_rule){&ids[t], 1, ids, target_after[t], VOCAB};
    draft[t] = (dt_fake_rule){&ids[t], 1, ids, draft_after[t], VOCAB};
  }
  target[VOCAB] = (dt_fake_rule){one_two, 2, ids, target_after_1_2, VOCAB};
  dt_pair *pair;
  dt_fake_options o = {.vocab = VOCAB,
                       .context = 16,
                       .eos = -1,
                       .target = target,
                       .n_target = VOCAB + 1,
                       .draft = draft,
                       .n_draft = VOCAB};
  ok(dt_pair_open_fake(&o, &pair, &err));
  return pair;
}

/* The distribution from which tokens are sampled, by the definition in sample.h. */
static void allowed(const float *p, const dt_sampling *s, double *q) {
  int order[VOCAB];
  double sum = 0, ahead = 0, kept = 0;
  int top_k = s->top_k ? s->top_k : VOCAB;
  for (int i = 0; i < VOCAB; i++) {
    int at = i;
    for (; at > 0 && p[order[at - 1]] < p[i]; at--) order[at] = order[at - 1];
    order[at] = i;
    q[i] = pow((double)p[i], 1 / (double)s->temp);
  }
  for (int k = 0; k < top_k; k++) sum += q[order[k]];
  for (int k = 0; k < VOCAB; k++) {
    int id = order[k];
    bool in = k < top_k && (s->top_p == 0 || ahead < (double)s->top_p * sum) && q[id] >= (double)s->min_p * q[order[0]];
    ahead += q[id];
    if (!in) q[id] = 0;
    kept += q[id];
  }
  for (int i = 0; i < VOCAB; i++) q[i] /= kept;
}

static void exact_probabilities(const dt_sampling *s, double *p) {
  for (int o = 0; o < OUTCOMES; o++) {
    int text[1 + DEPTH] = {START, o / (VOCAB * VOCAB), o / VOCAB % VOCAB, o % VOCAB};
    p[o] = 1;
    for (int d = 0; d < DEPTH; d++) {
      double q[VOCAB];
      bool other = d > 0 && text[d - 1] == 1 && text[d] == 2;
      allowed(other ? target_after_1_2 : target_after[text[d]], s, q);
      p[o] *= q[text[d + 1]];
    }
  }
}

/* Grows a full tree: three guesses, then two below each, as deep as there is room. */
static void grow(dt_session *s) {
  dt_tree *t = dt_seq_tree(s, 0);
  dt_node_ref level[1 + VOCAB * VOCAB] = {{.seq = 0}};
  int n = 1, first, last;
  for (int b = 3; dt_tree_depth_room(t) > 0; b = 2) {
    int begin = t->nodes;
    ok(dt_draft_step(s, level, n, &err));
    for (int i = 0; i < n; i++) ok(dt_tree_branch(t, level[i].node, b, &first, &last, &err));
    for (n = 0; begin + n < t->nodes; n++) level[n] = (dt_node_ref){.seq = 0, .node = begin + n};
  }
}

/* The number of the text that a seed gives. */
static int outcome(dt_session *s, dt_seq_options *o, uint64_t seed, bool trees, long *accepted) {
  static const int32_t prompt[] = {START};
  dt_verdict v;
  dt_committed c;
  int seq = 0, number = 0;
  o->sampling.seed = seed;
  ok(dt_seq_start(s, 0, prompt, 1, o, &err));
  while (dt_seq_finish(s, 0) == DT_RUNNING) {
    ok(dt_rollback(s, 0, &err));
    if (trees) grow(s);
    ok(dt_verify_tree(s, &seq, 1, &v, &err));
    ok(dt_commit(s, &seq, 1, 0, &c, &err));
    for (int i = 0; i < c.n; i++) number = number * VOCAB + c.tokens[i];
    *accepted += v.accepted;
  }
  return number;
}

static void check_distribution(const char *name, dt_seq_options o, bool trees) {
  static double p[OUTCOMES];
  static long count[OUTCOMES];
  dt_pair *pair = open_pair();
  dt_session *s;
  long accepted = 0;
  chi_square x = {0};
  o.max_tokens = DEPTH;
  exact_probabilities(&o.sampling, p);
  memset(count, 0, sizeof count);
  ok(dt_session_open(pair, &(dt_session_options){.sequences = 1, .use_draft = trees}, &s, &err));
  for (uint64_t seed = 0; seed < seeds; seed++) count[outcome(s, &o, seed, trees, &accepted)]++;
  for (int i = 0; i < OUTCOMES; i++) {
    double expected = p[i] * (double)seeds;
    if (p[i] == 0 && count[i] > 0) fail_msg("%s: outcome %d is impossible but occurred %ld times", name, i, count[i]);
    if (p[i] > 0) chi_square_add(&x, (double)count[i], expected);
  }
  printf("%s: chi-square %.1f of %d outcomes, critical %.1f; %.2f accepted per text\n", name, x.sum, x.bins,
         chi_square_critical(&x), (double)accepted / (double)seeds);
  if (x.sum > chi_square_critical(&x)) fail_msg("%s: not the target's distribution", name);
  if (trees) assert_true(accepted > (long)seeds / 2);
  dt_session_close(s);
  dt_pair_close(pair);
}

static const dt_sampling filtered = {.temp = 0.7f, .top_k = 5, .top_p = 0.8f, .min_p = 0.12f};

static void plain_decoding_samples_from_the_target(void **state) {
  (void)state;
  check_distribution("plain", (dt_seq_options){.sampling = {.temp = 1}}, false);
  check_distribution("plain, temp 1.5", (dt_seq_options){.sampling = {.temp = 1.5f}}, false);
  check_distribution("plain, filtered", (dt_seq_options){.sampling = filtered}, false);
}

static void trees_sample_from_the_target(void **state) {
  (void)state;
  check_distribution("trees", (dt_seq_options){.sampling = {.temp = 1}, .uncoupled = true}, true);
  check_distribution("trees, filtered", (dt_seq_options){.sampling = filtered, .uncoupled = true}, true);
}

static void coupled_trees_sample_from_the_target(void **state) {
  (void)state;
  check_distribution("coupled trees", (dt_seq_options){.sampling = {.temp = 1}}, true);
  check_distribution("coupled trees, filtered", (dt_seq_options){.sampling = filtered}, true);
}

/* The three samples of a text are independent. The test of the distribution would notice a dependence only through the
 * texts' probabilities. */
static void a_seed_gives_one_text_however_it_is_drafted(void **state) {
  (void)state;
  dt_pair *pair = open_pair();
  dt_session *s;
  long accepted = 0;
  ok(dt_session_open(pair, &(dt_session_options){.sequences = 1, .use_draft = true}, &s, &err));
  for (uint64_t seed = 0; seed < 3000; seed++) {
    dt_seq_options o = {.max_tokens = DEPTH, .sampling = seed % 2 ? filtered : (dt_sampling){.temp = 1}};
    int plain = outcome(s, &o, seed << 33, false, &accepted), coupled = outcome(s, &o, seed << 33, true, &accepted);
    assert_int_equal(coupled, plain);
    o.uncoupled = true;
    assert_int_equal(outcome(s, &o, seed << 33, true, &accepted), plain);
  }
  dt_session_close(s);
  dt_pair_close(pair);
}

static void parameters_out_of_range_are_refused(void **state) {
  (void)state;
  static const struct {
    dt_sampling sampling;
    const char *message;
  } wrong[] = {
      {{.temp = -1}, "temp: -1 is out of range: 0, or 0.001 to 100"},
      {{.temp = NAN}, "temp: nan is out of range"},
      {{.temp = 1e-6f}, "temp: 1e-06 is out of range"},
      {{.temp = 1, .top_k = -1}, "top_k: -1 is out of range: at least 1"},
      {{.temp = 1, .top_p = 1.5f}, "top_p: 1.5 is out of range: above 0, at most 1"},
      {{.temp = 1, .min_p = -0.5f}, "min_p: -0.5 is out of range: 0 to 1"},
  };
  dt_pair *pair = open_pair();
  dt_session *s;
  ok(dt_session_open(pair, &(dt_session_options){.sequences = 1}, &s, &err));
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    dt_seq_options o = {.max_tokens = 1, .sampling = wrong[i].sampling};
    fails(dt_seq_start(s, 0, &(int32_t){START}, 1, &o, &err), DT_EINPUT, wrong[i].message);
  }
  dt_session_close(s);
  dt_pair_close(pair);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plain_decoding_samples_from_the_target),
      cmocka_unit_test(trees_sample_from_the_target),
      cmocka_unit_test(coupled_trees_sample_from_the_target),
      cmocka_unit_test(a_seed_gives_one_text_however_it_is_drafted),
      cmocka_unit_test(parameters_out_of_range_are_refused),
  };
  if (argc > 1) seeds = strtoull(argv[1], NULL, 10);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
