/* A sequence that continues with a longer prompt gives the same text as one that starts with that prompt, whatever it
 * did before. */
#include "unit.h"

#include "dtrun.h"
#include "dtrun_fake.h"

#include <limits.h>
#include <stdlib.h>

enum { CONTEXT = 400, LONG = 900 };

static dt_pair *scripted(void) {
  dt_pair *pair;
  ok(dt_pair_open_fake(&(dt_fake_options){.vocab = 50, .context = CONTEXT, .draft_context = 250, .eos = -1}, &pair,
                       &err));
  return pair;
}

static dt_pair *bundled(void) {
  dt_pair *pair;
  dt_pair_options options = {.target = SOURCE_DIR "/models/mini-target", .draft = SOURCE_DIR "/models/mini-draft"};
  ok(dt_pair_open(&options, &pair, &err));
  return pair;
}

/* A model with delta layers, which drafts for itself. */
static dt_pair *hybrid(void) {
  dt_pair *pair;
  const char *file = SOURCE_DIR "/tests/golden/logits/gguf_qwen35/model.gguf";
  ok(dt_pair_open(&(dt_pair_options){.target = file, .draft = file}, &pair, &err));
  return pair;
}

/* The context of a session: LONG if the model has that many positions. */
static int context_of(const dt_pair *pair) {
  dt_pair_info info;
  dt_pair_describe(pair, &info);
  return info.target.context < LONG ? CONTEXT : LONG;
}

static dt_session *session(dt_pair *pair, bool draft) {
  dt_session *s;
  ok(dt_session_open(pair, &(dt_session_options){.sequences = 1, .context = context_of(pair), .use_draft = draft}, &s,
                     &err));
  return s;
}

/* Runs one iteration of at most `depth` guesses in a chain of two branches. Some iterations end before their commit. */
static void iterate(dt_session *s, uint64_t *seed, int depth) {
  int seq = 0, first = 0, last;
  dt_verdict v;
  dt_committed c;
  ok(dt_rollback(s, 0, &err));
  for (int i = 0; i < depth && first >= 0; i++) {
    ok(dt_draft_step(s, &(dt_node_ref){.node = first}, 1, &err));
    ok(dt_tree_branch(dt_seq_tree(s, 0), first, 2, &first, &last, &err));
    if (last < first) break;
  }
  if (random_next(seed) % 9 == 0) return;
  ok(dt_verify_tree(s, &seq, 1, &v, &err));
  if (random_next(seed) % 9 == 0) return;
  ok(dt_commit(s, &seq, 1, random_next(seed) % 5 ? 0 : DT_COMMIT_REBUILD, &c, &err));
}

static void run(dt_session *s, uint64_t *seed, int iterations, int deepest) {
  while (iterations-- && dt_seq_finish(s, 0) == DT_RUNNING)
    iterate(s, seed, (int)(random_next(seed) % (uint32_t)(deepest + 1)));
}

/* The tokens of plain decoding after the prompt: n tokens in all, malloc'd. */
static int32_t *plain(dt_pair *pair, const int32_t *prompt, int n_prompt, const dt_seq_options *options, int *n) {
  dt_session *s = session(pair, false);
  uint64_t seed = 0;
  dt_seq_options whole = *options;
  whole.piece = 0;
  ok(dt_seq_start(s, 0, prompt, n_prompt, &whole, &err));
  while (dt_seq_finish(s, 0) == DT_RUNNING) iterate(s, &seed, 0);
  *n = dt_seq_length(s, 0);
  int32_t *tokens = malloc((size_t)*n * sizeof *tokens);
  memcpy(tokens, dt_seq_tokens(s, 0), (size_t)*n * sizeof *tokens);
  dt_session_close(s);
  return tokens;
}

/* Runs the part of the prompt that a start in pieces left. */
static void run_prompt(dt_session *s, uint64_t *seed) {
  int left;
  ok(dt_seq_prompt(s, 0, 0, &left, &err));
  while (left) {
    int before = left, rows = 1 + (int)(random_next(seed) % 9);
    ok(dt_seq_prompt(s, 0, rows, &left, &err));
    assert_int_equal(left, before > rows ? before - rows : 0);
  }
}

/* Runs the turns of one conversation: each is a part of the text so far and a few more tokens. forgets: the cache may
 * drop a text that continues differently. Returns how often something was cached. */
static int converse(dt_pair *pair, bool draft, uint64_t seed, int turns, int vocab, bool forgets) {
  int32_t prompt[LONG] = {3, 1, 4, 1, 5};
  int n = forgets ? 500 : 5, cached = 0, deepest = draft ? 5 : 0;
  dt_session *s = session(pair, draft);
  for (int turn = 0; turn < turns; turn++) {
    dt_seq_options options = {
        .max_tokens = 30, .ignore_eos = true, .sampling = {.seed = seed, .temp = random_next(&seed) % 2 ? 0.8f : 0}};
    options.piece = (int)(random_next(&seed) % 12);
    int length = turn ? dt_seq_length(s, 0) : 0, expected = 0;
    if (turn) { /* everything left of the old text is cached, except for the last token, which never had a row */
      n = 1 + (int)(random_next(&seed) % (uint32_t)length);
      memcpy(prompt, dt_seq_tokens(s, 0), (size_t)n * sizeof *prompt);
      expected = n < length ? n : length - 1;
      int more = 1 + (int)(random_next(&seed) % 20);
      for (int i = 0; i < more; i++) prompt[n++] = (int32_t)(random_next(&seed) % (uint32_t)vocab);
    }
    ok(dt_seq_continue(s, 0, prompt, n, &options, &err));
    run_prompt(s, &seed);
    dt_stats st;
    dt_seq_stats(s, 0, &st);
    assert_int_equal(st.prompt_tokens, n);
    cached += st.cached_tokens > 0;
    if (!forgets || st.cached_tokens)
      assert_in_range(st.cached_tokens, expected, n - 1); /* more if a random token happens to equal the old one */
    if (turn % 3 == 2) {                                  /* some sequences stop in the middle of a turn */
      run(s, &seed, 3, deepest);
      continue;
    }
    while (dt_seq_finish(s, 0) == DT_RUNNING) run(s, &seed, 1, deepest);
    int n_want;
    int32_t *want = plain(pair, prompt, n, &options, &n_want);
    assert_int_equal(dt_seq_length(s, 0), n_want);
    assert_memory_equal(dt_seq_tokens(s, 0), want, (size_t)n_want * sizeof *want);
    free(want);
  }
  dt_session_close(s);
  return cached;
}

static void it_gives_what_one_run_on_the_whole_text_gives(void **state) {
  (void)state;
  dt_pair *pair = scripted();
  for (uint64_t seed = 1; seed <= 60; seed++) converse(pair, seed % 4 != 0, seed, 8, 50, false);
  dt_pair_close(pair);
  pair = bundled();
  for (uint64_t seed = 1; seed <= 4; seed++) converse(pair, seed % 4 != 0, seed, 5, 4096, false);
  dt_pair_close(pair);
  int cached = 0, turns = 0;
  pair = hybrid();
  for (uint64_t seed = 1; seed <= 20; seed++, turns += 5) cached += converse(pair, seed % 4 != 0, seed, 5, 258, true);
  assert_in_range(cached, turns / 5, turns * 3 / 5); /* the first turns find nothing cached, some of the others do */
  dt_pair_close(pair);
}

static void a_prompt_that_does_not_fit_leaves_the_sequence_as_it_was(void **state) {
  (void)state;
  static const int32_t prompt[CONTEXT] = {3, 1, 4};
  dt_seq_options options = {.max_tokens = 9};
  uint64_t seed = 5;
  int n;
  dt_pair *pair = scripted();
  int32_t *want = plain(pair, prompt, 3, &options, &n);
  dt_session *s = session(pair, true);
  ok(dt_seq_continue(s, 0, prompt, 3, &options, &err));
  run(s, &seed, 2, 5);
  fails(dt_seq_continue(s, 0, prompt, CONTEXT, &options, &err), DT_ECONTEXT, "the prompt has 400 tokens");
  fails(dt_seq_continue(s, 0, prompt, 0, &options, &err), DT_EINPUT, "the prompt is empty");
  fails(dt_seq_continue(s, 1, prompt, 3, &options, &err), DT_ESTATE, "no sequence 1");
  while (dt_seq_finish(s, 0) == DT_RUNNING) run(s, &seed, 1, 5);
  assert_memory_equal(dt_seq_tokens(s, 0), want, (size_t)n * sizeof *want);
  ok(dt_seq_continue(s, 0, prompt, CONTEXT - 1, &options, &err));
  free(want);
  dt_session_close(s);
  dt_pair_close(pair);
}

/* The tokens of a blank start are zeros. */
static void a_prompt_of_zeros_reuses_nothing_of_a_blank_start(void **state) {
  (void)state;
  static const int32_t prompt[12] = {[11] = 7};
  dt_seq_options options = {.max_tokens = 9};
  dt_pair *pair = bundled();
  dt_session *s = session(pair, true);
  dt_prefix *prefix;
  dt_stats stats;
  int n;
  int32_t *want = plain(pair, prompt, 12, &options, &n);
  ok(dt_seq_start_blank(s, 0, 20, NULL, &err));
  assert_int_equal(dt_seq_rows(s, 0), 0);
  fails(dt_prefix_take(s, 0, &prefix, &err), DT_ESTATE, "no rows");
  fails(dt_prefix_save(s, 0, 20, &prefix, &err), DT_ESTATE, "no rows");
  for (int turn = 0; turn < 2; turn++) {
    uint64_t seed = 5;
    ok(dt_seq_continue(s, 0, prompt, 12, &options, &err));
    dt_seq_stats(s, 0, &stats);
    assert_int_equal(stats.cached_tokens, turn ? 11 : 0);
    while (dt_seq_finish(s, 0) == DT_RUNNING) run(s, &seed, 1, 5);
    assert_memory_equal(dt_seq_tokens(s, 0), want, (size_t)n * sizeof *want);
  }
  free(want);
  dt_session_close(s);
  dt_pair_close(pair);
}

static void a_prompt_in_pieces_takes_no_part_until_it_is_whole(void **state) {
  (void)state;
  static const int32_t prompt[] = {3, 1, 4, 1, 5, 9, 2, 6};
  enum { N = 8 };
  int seq = 0, left;
  dt_verdict v;
  dt_pair *pair = scripted();
  dt_session *s = session(pair, true);
  fails(dt_seq_prompt(s, 0, 1, &left, &err), DT_ESTATE, "sequence 0 is not started");
  fails(dt_seq_prompt(s, 1, 1, &left, &err), DT_ESTATE, "no sequence 1");
  for (int piece = 1; piece <= N; piece++) { /* N - 1 rows are needed */
    ok(dt_seq_start(s, 0, prompt, N, &(dt_seq_options){.max_tokens = 9, .piece = piece}, &err));
    ok(dt_seq_prompt(s, 0, 0, &left, &err));
    assert_int_equal(left, piece < N - 1 ? N - 1 - piece : 0);
    if (left) fails(dt_verify_tree(s, &seq, 1, &v, &err), DT_ESTATE, "sequence 0 is not started");
    ok(dt_seq_prompt(s, 0, INT_MAX, &left, &err));
    assert_int_equal(left, 0);
    ok(dt_verify_tree(s, &seq, 1, &v, &err));
    ok(dt_seq_prompt(s, 0, 5, &left, &err)); /* nothing is left to run */
    assert_int_equal(left, 0);
  }
  dt_session_close(s);
  dt_pair_close(pair);
}

static void the_pieces_of_a_prompt_tell_its_log_probabilities(void **state) {
  (void)state;
  static const int32_t prompt[] = {3, 1, 4, 1, 5, 9, 2, 6};
  enum { N = 8 };
  float whole[N], logp;
  const int32_t *token;
  const float *top;
  int left, n;
  dt_pair *pair = bundled();
  dt_session *s = session(pair, false);
  dt_seq_options options = {.max_tokens = 9, .logprobs = {.wanted = true, .top = 3, .prompt = true}};
  for (int piece = 0; piece < N; piece++) {
    options.piece = piece;
    ok(dt_seq_start(s, 0, prompt, N, &options, &err));
    do ok(dt_seq_prompt(s, 0, piece, &left, &err));
    while (left);
    for (int i = 1; i < N; i++) {
      ok(dt_seq_logprobs(s, 0, i, piece ? &logp : &whole[i], &token, &top, &n, &err));
      assert_int_equal(n, 3);
      if (piece) assert_memory_equal(&logp, &whole[i], sizeof logp);
    }
  }
  dt_session_close(s);
  dt_pair_close(pair);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_gives_what_one_run_on_the_whole_text_gives),
      cmocka_unit_test(a_prompt_that_does_not_fit_leaves_the_sequence_as_it_was),
      cmocka_unit_test(a_prompt_of_zeros_reuses_nothing_of_a_blank_start),
      cmocka_unit_test(a_prompt_in_pieces_takes_no_part_until_it_is_whole),
      cmocka_unit_test(the_pieces_of_a_prompt_tell_its_log_probabilities),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
