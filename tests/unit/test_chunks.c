/* Prompts on a backend that computes whole chunks of their rows in another way. Whatever rows a sequence has from
 * earlier texts or prefixes, and however its prompt is cut into pieces, it continues as after a start with the whole
 * prompt. The scripted backend's tokens depend on which rows were computed in chunks. */
#include "scripted.h"

#include "backend/chunks.h"

enum { CHUNK = 16, CONTEXT = 300, SEQUENCES = 2 };

/* Row p of a prompt with `chunked` rows in chunks: which pass computes it. */
static int kind(int p, int chunked) { return p < chunked ? 0 : 1; }

static void rows_are_alike_up_to_the_first_that_differs(void **state) {
  (void)state;
  for (int had = 0; had <= 6 * CHUNK; had += 8) /* also prefixes that end inside a chunk */
    for (int wants = 0; wants <= 6 * CHUNK; wants += CHUNK)
      for (int rows = had % CHUNK ? had : 0; rows <= (had % CHUNK ? had : 7 * CHUNK); rows++) {
        int expected = 0;
        while (expected < rows && kind(expected, had) == kind(expected, wants)) expected++;
        if (expected < wants) expected -= expected % CHUNK;
        assert_int_equal(chunks_alike(CHUNK, rows, had, wants), expected);
      }
  assert_int_equal(chunks_alike(0, 123, 0, 0), 123);
  assert_int_equal(chunks_rows(0, 1000), 0);
  assert_int_equal(chunks_rows(CHUNK, CHUNK), 0); /* the last token's row is none of the prompt pass */
  assert_int_equal(chunks_rows(CHUNK, CHUNK + 1), CHUNK);
  assert_int_equal(chunks_rows(CHUNK, 3 * CHUNK), 2 * CHUNK);
}

static void pieces_end_where_chunks_do(void **state) {
  (void)state;
  for (int n = 1; n < 5 * CHUNK; n++)
    for (int most = 1; most < 6 * CHUNK; most++) {
      const int wants = chunks_rows(CHUNK, n);
      for (int done = 0; done < n - 1;) {
        const int rows = chunks_piece(CHUNK, done, n - 1 - done, wants, most);
        assert_in_range(rows, 1, most < CHUNK && done < wants ? CHUNK : most);
        done += rows;
        assert_true(done <= n - 1 && (done >= wants || done % CHUNK == 0));
      }
    }
  assert_int_equal(chunks_piece(0, 0, 100, 0, 7), 7);
}

/* The tokens after a start with the whole prompt, in a session of its own. */
static int fresh(dt_pair *pair, const int32_t *prompt, int n, const dt_seq_options *options, int32_t *tokens) {
  dt_session *s = session(pair, 1, false);
  dt_seq_options whole = *options;
  whole.piece = 0;
  ok(dt_seq_start(s, 0, prompt, n, &whole, &err));
  while (dt_seq_finish(s, 0) == DT_RUNNING) plain_iteration(s, 0);
  const int length = dt_seq_length(s, 0);
  memcpy(tokens, dt_seq_tokens(s, 0), (size_t)length * sizeof *tokens);
  dt_session_close(s);
  return length;
}

static int below(uint64_t *seed, int n) { return (int)(random_next(seed) % (uint32_t)n); }

/* Makes a prompt of some first tokens of another text and some new ones. */
static int make_prompt(uint64_t *seed, const int32_t *text, int length, int32_t *prompt) {
  int same = length ? below(seed, length + 1) : 0, n = same + 1 + below(seed, 40);
  n = n > CONTEXT - 30 ? CONTEXT - 30 : n;
  for (int i = 0; i < n; i++) prompt[i] = i < same ? text[i] : below(seed, VOCAB);
  return n;
}

/* A turn: perhaps the rows come from a prefix, perhaps the prompt runs in pieces. Returns the rows that were reused. */
static int turn(dt_pair *pair, dt_session *s, uint64_t *seed, dt_prefix **prefix) {
  int32_t prompt[CONTEXT], expected[CONTEXT];
  const int seq = below(seed, SEQUENCES), other = below(seed, SEQUENCES);
  dt_seq_options options = {.max_tokens = 1 + below(seed, 25), .piece = below(seed, 50), .drafts = below(seed, 2)};
  const int n = make_prompt(seed, dt_seq_tokens(s, other), dt_seq_length(s, other), prompt);
  int reusable = dt_seq_reusable(s, seq, prompt, n), left;
  if (*prefix && below(seed, 3) == 0) {
    ok(dt_seq_adopt(s, seq, *prefix, &err));
    reusable = dt_prefix_reusable(*prefix, prompt, n);
    assert_int_equal(dt_seq_reusable(s, seq, prompt, n), reusable);
  }
  ok(dt_seq_continue(s, seq, prompt, n, &options, &err));
  dt_stats st;
  dt_seq_stats(s, seq, &st);
  assert_int_equal(st.cached_tokens, reusable);
  ok(dt_seq_prompt(s, seq, 0, &left, &err));
  while (left) {
    ok(dt_seq_prompt(s, seq, 1 + below(seed, 40), &left, &err));
    if (below(seed, 20) == 0) return reusable; /* given up in the middle of the prompt */
  }
  if (below(seed, 4) == 0 && !*prefix) ok(dt_prefix_take(s, seq, prefix, &err));
  while (dt_seq_finish(s, seq) == DT_RUNNING) plain_iteration(s, seq);
  const int length = fresh(pair, prompt, n, &options, expected);
  assert_int_equal(dt_seq_length(s, seq), length);
  assert_memory_equal(dt_seq_tokens(s, seq), expected, (size_t)length * sizeof *expected);
  if (below(seed, 4)) return reusable;
  dt_prefix_free(*prefix);
  ok(dt_prefix_save(s, seq, 1 + below(seed, length), prefix, &err));
  return reusable;
}

static void every_text_is_as_after_a_fresh_start(void **state) {
  (void)state;
  dt_pair *pair = fake((dt_fake_options){.context = CONTEXT, .chunks = true});
  dt_session *s = session(pair, SEQUENCES, true);
  dt_prefix *prefix = NULL;
  uint64_t seed = 5;
  long reused = 0;
  for (int i = 0; i < 3000; i++) reused += turn(pair, s, &seed, &prefix);
  assert_true(reused > 3000L * 5);
  dt_prefix_free(prefix);
  dt_session_close(s);
  dt_pair_close(pair);
}

/* A prefix whose prompt was computed for its log-probabilities has no chunks, so a start from it computes them. */
static void a_prefix_without_chunks_is_computed_again(void **state) {
  (void)state;
  enum { N = 50 };
  int32_t prompt[N], expected[CONTEXT];
  dt_pair *pair = fake((dt_fake_options){.context = CONTEXT, .chunks = true});
  dt_session *s = session(pair, 1, false);
  dt_seq_options options = {.max_tokens = 30}, reports = options;
  dt_prefix *prefix;
  uint64_t seed = 6;
  reports.logprobs = (dt_logprobs){.wanted = true, .prompt = true};
  for (int i = 0; i < N; i++) prompt[i] = below(&seed, VOCAB);
  ok(dt_seq_start(s, 0, prompt, N, &reports, &err));
  ok(dt_prefix_take(s, 0, &prefix, &err));
  assert_int_equal(dt_prefix_reusable(prefix, prompt, N), 0);
  ok(dt_seq_start_from(s, 0, prefix, &options, &err));
  while (dt_seq_finish(s, 0) == DT_RUNNING) plain_iteration(s, 0);
  assert_int_equal(dt_seq_length(s, 0), fresh(pair, prompt, N, &options, expected));
  assert_memory_equal(dt_seq_tokens(s, 0), expected, (size_t)dt_seq_length(s, 0) * sizeof *expected);
  dt_prefix_free(prefix);
  dt_session_close(s);
  dt_pair_close(pair);
}

/* Otherwise this file would test nothing. */
static void rows_in_chunks_change_the_text(void **state) {
  (void)state;
  int32_t prompt[40], in_chunks[CONTEXT], plainly[CONTEXT];
  dt_pair *pair = fake((dt_fake_options){.context = CONTEXT, .chunks = true}),
          *other = fake((dt_fake_options){.context = CONTEXT});
  for (int i = 0; i < 40; i++) prompt[i] = i;
  const dt_seq_options options = {.max_tokens = 20};
  fresh(pair, prompt, 40, &options, in_chunks), fresh(other, prompt, 40, &options, plainly);
  assert_memory_not_equal(in_chunks, plainly, 60 * sizeof *plainly);
  dt_pair_close(pair), dt_pair_close(other);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_are_alike_up_to_the_first_that_differs), cmocka_unit_test(pieces_end_where_chunks_do),
      cmocka_unit_test(rows_in_chunks_change_the_text), cmocka_unit_test(every_text_is_as_after_a_fresh_start),
      cmocka_unit_test(a_prefix_without_chunks_is_computed_again)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
