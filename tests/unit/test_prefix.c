/* Rows that are copied: prefixes of prompts, and of any text, start other sequences. */
#include "scripted.h"

/* Starts a text and checks that it continues as plain decoding does. Returns how many rows of the prompt were
 * computed. */
static int rows_run(dt_session *s, int seq, const int32_t *prompt, int n, const int32_t *want, int length) {
  dt_stats st;
  ok(dt_seq_continue(s, seq, prompt, n, &(dt_seq_options){.max_tokens = length - n}, &err));
  while (dt_seq_finish(s, seq) == DT_RUNNING) plain_iteration(s, seq);
  assert_int_equal(dt_seq_length(s, seq), length);
  assert_memory_equal(dt_seq_tokens(s, seq), want, (size_t)length * sizeof *want);
  dt_seq_stats(s, seq, &st);
  return n - 1 - st.cached_tokens;
}

static void saved_rows_serve_other_sequences(void **state) {
  (void)state;
  int n;
  dt_prefix *all, *part;
  dt_pair *pair = fake((dt_fake_options){0});
  int32_t *want = plain(pair, 30, &n);
  dt_session *s = session(pair, 2, true);
  fails(dt_prefix_save(s, 0, 5, &all, &err), DT_ESTATE, "no rows");
  start(s, 0, 30);
  while (dt_seq_finish(s, 0) == DT_RUNNING) plain_iteration(s, 0);
  assert_int_equal(dt_seq_rows(s, 0), n - 1);
  ok(dt_prefix_save(s, 0, 1000, &all, &err)); /* all rows that exist */
  ok(dt_prefix_save(s, 0, 5, &part, &err));
  assert_int_equal(dt_prefix_bytes(all), dt_rows_bytes(s, n - 1));
  assert_int_equal(dt_prefix_bytes(part), dt_rows_bytes(s, 5));
  ok(dt_seq_adopt(s, 1, all, &err));
  assert_int_equal(dt_seq_finish(s, 1) == DT_RUNNING && dt_seq_left(s, 1) > 0, 0);
  assert_int_equal(rows_run(s, 1, want, n - 3, want, n), 0);
  ok(dt_seq_adopt(s, 1, part, &err));
  assert_int_equal(rows_run(s, 1, want, 8, want, n), 2);
  ok(dt_seq_adopt(s, 0, part, &err)); /* also by its own sequence */
  assert_int_equal(rows_run(s, 0, want, 12, want, n), 6);
  dt_prefix_free(all), dt_prefix_free(part);
  dt_session_close(s);
  free(want);
  dt_pair_close(pair);
}

static void the_drafts_prompt_counts_where_they_are_asked(dt_session *s, dt_prefix *prefix) {
  double prompt_ms[3];
  for (int asked = 0; asked < 3; asked++) { /* never; at once; in the second iteration */
    dt_stats st;
    ok(dt_seq_start_from(s, 0, prefix, &(dt_seq_options){.max_tokens = 30}, &err));
    for (int i = 1; i <= 2; i++) {
      ok(dt_rollback(s, 0, &err));
      assert_int_equal(dt_seq_unread(s, 0), asked && i > asked ? 0 : 7 + i - 1);
      if (i == asked) ok(dt_draft_step(s, &(dt_node_ref){.seq = 0, .node = 0}, 1, &err));
      if (i == asked) assert_int_equal(dt_seq_unread(s, 0), 0);
      plain_iteration(s, 0);
    }
    dt_seq_stats(s, 0, &st);
    prompt_ms[asked] = st.prompt_ms;
    assert_true(st.total_ms >= st.prompt_ms);
  }
  assert_true(prompt_ms[1] > prompt_ms[0] && prompt_ms[2] == prompt_ms[1]);
}

static void a_prefix_starts_any_number_of_sequences(void **state) {
  (void)state;
  int n;
  dt_prefix *prefix;
  dt_pair *pair = fake((dt_fake_options){0});
  int32_t *want = plain(pair, 30, &n);
  dt_session *maker = session(pair, 1, true), *s = session(pair, 2, true);
  start(maker, 0, 1);
  ok(dt_prefix_take(maker, 0, &prefix, &err));
  plain_iteration(maker, 0);
  fails(dt_prefix_take(maker, 0, &prefix, &err), DT_ESTATE, "right after the start");
  for (int i = 0; i < 2; i++) {
    dt_stats st;
    ok(dt_seq_start_from(s, i, prefix, &(dt_seq_options){.max_tokens = 30}, &err));
    while (dt_seq_finish(s, i) == DT_RUNNING) plain_iteration(s, i);
    assert_memory_equal(dt_seq_tokens(s, i), want, (size_t)n * sizeof *want);
    dt_seq_stats(s, i, &st);
    assert_true(st.shared_prefix);
  }
  the_drafts_prompt_counts_where_they_are_asked(s, prefix);
  dt_prefix_free(prefix);
  dt_session_close(maker);

  maker = session(pair, 1, false); /* it has nothing for a drafter, which reads the prompt itself */
  start(maker, 0, 1);
  ok(dt_prefix_take(maker, 0, &prefix, &err));
  ok(dt_seq_start_from(s, 0, prefix, &(dt_seq_options){.max_tokens = 30}, &err));
  ok(dt_draft_step(s, &(dt_node_ref){.seq = 0, .node = 0}, 1, &err));
  ok(dt_seq_start(s, 1, PROMPT, 8, &(dt_seq_options){.max_tokens = 30}, &err));
  ok(dt_draft_step(s, &(dt_node_ref){.seq = 1, .node = 0}, 1, &err));
  const dt_tree_draft *a = dt_tree_draft_of(dt_seq_tree(s, 0), 0), *b = dt_tree_draft_of(dt_seq_tree(s, 1), 0);
  assert_memory_equal(a->token, b->token, sizeof a->token);
  dt_prefix_free(prefix);
  dt_session_close(maker);
  dt_session_close(s);
  free(want);
  dt_pair_close(pair);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_prefix_starts_any_number_of_sequences),
      cmocka_unit_test(saved_rows_serve_other_sequences),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
