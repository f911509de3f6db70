/* A session keeps the grammars that its texts had last. */
#include "scripted.h"

#include "byte_grammar.h"
#include "session/session.h"

#include <stdio.h>

static const masks *find(grammar_cache *c, const vocabulary *v, const char *gbnf) {
  masks *m = NULL;
  ok(grammar_cache_find(c, v, gbnf, &m, &err));
  assert_string_equal(masks_grammar(m), gbnf);
  return m;
}

/* The n-th of some grammars. */
static const char *nth(int n) {
  static char gbnf[50];
  snprintf(gbnf, sizeof gbnf, "root ::= \"%d\"", n);
  return gbnf;
}

static void a_grammar_is_compiled_once(void **state) {
  (void)state;
  vocabulary *v = bytes();
  grammar_cache c = {0};
  const masks *a = find(&c, v, "root ::= \"a\""), *b = find(&c, v, "root ::= \"b\"");
  assert_ptr_not_equal(a, b);
  for (int i = 0; i < 5; i++) {
    assert_ptr_equal(find(&c, v, "root ::= \"a\""), a);
    assert_ptr_equal(find(&c, v, "root ::= \"b\""), b);
  }
  assert_int_equal(c.n, 2);
  masks *m;
  fails(grammar_cache_find(&c, v, "root ::= c", &m, &err), DT_EINPUT, "c");
  assert_int_equal(c.n, 2);
  assert_ptr_equal(c.of[0], b);
  grammar_cache_close(&c);
  vocabulary_close(v);
}

static void the_oldest_is_dropped(void **state) {
  (void)state;
  vocabulary *v = bytes();
  grammar_cache c = {0};
  masks *first = masks_hold((masks *)find(&c, v, nth(0)));
  for (int i = 1; i < GRAMMAR_CACHE; i++) find(&c, v, nth(i));
  assert_ptr_equal(find(&c, v, nth(0)), first); /* 1 is the oldest now */
  find(&c, v, nth(GRAMMAR_CACHE));
  assert_int_equal(c.n, GRAMMAR_CACHE);
  assert_ptr_equal(find(&c, v, nth(0)), first);
  for (int i = 0; i < c.n; i++) assert_string_not_equal(masks_grammar(c.of[i]), nth(1));
  for (int i = 2; i < GRAMMAR_CACHE; i++) find(&c, v, nth(i)); /* all others are there, so none is dropped */
  assert_ptr_equal(find(&c, v, nth(0)), first);
  for (int i = 1; i < 2 * GRAMMAR_CACHE; i++) find(&c, v, nth(i));
  assert_true(takes(first, "0")); /* a text that has a reference goes on */
  masks_release(first);
  grammar_cache_close(&c);
  vocabulary_close(v);
}

/* Reaches states of `megabytes` in all. */
static void grow(masks *m, size_t megabytes) {
  int place = masks_enter(m);
  while (masks_bytes(m) < megabytes << 20) masks_take(m, place, '(', false);
  masks_leave(m, place);
}

static void grammars_that_need_much_memory_are_dropped(void **state) {
  (void)state;
  static const char *const of[] = {"root ::= \"(\" root | \"a\"", "root ::= \"(\" root \")\" | \"b\"",
                                   "root ::= \"(\" root \")\" | \"c\"", "root ::= \"(\" root \")\" | \"d\""};
  vocabulary *v = bytes();
  grammar_cache c = {0};
  find(&c, v, of[0]);
  for (int i = 1; i < 4; i++) {
    masks *m = (masks *)find(&c, v, of[i]);
    masks_limit(m, SIZE_MAX);
    grow(m, i < 3 ? 100 : 260);
  }
  find(&c, v, of[3]); /* the last one stays, however large it is */
  assert_int_equal(c.n, 1);
  assert_true(masks_bytes(c.of[0]) > GRAMMAR_CACHE_BYTES);
  find(&c, v, of[0]);
  assert_int_equal(c.n, 1);
  find(&c, v, of[1]);
  assert_int_equal(c.n, 2);
  grammar_cache_close(&c);
  vocabulary_close(v);
}

static void a_grammar_that_ran_out_of_memory_is_compiled_again(void **state) {
  (void)state;
  vocabulary *v = bytes();
  grammar_cache c = {0};
  masks *m = (masks *)find(&c, v, nth(5));
  masks_limit(m, 0);
  masks_enter(m);
  fails(masks_failure(m, &err), DT_EINPUT, "MiB");
  masks *again = (masks *)find(&c, v, nth(5));
  assert_ptr_not_equal(again, m);
  ok(masks_failure(again, &err));
  assert_true(takes(again, "5"));
  grammar_cache_close(&c);
  vocabulary_close(v);
}

static void begin(dt_session *s, int seq, const char *grammar) {
  const dt_seq_options o = {.max_tokens = 20, .adjustments.grammar = grammar};
  ok(dt_seq_start(s, seq, PROMPT, 8, &o, &err));
}

static void expect_beginning(const dt_session *s, int seq, const char *expected) {
  size_t len;
  const char *text = dt_seq_text(s, seq, &len);
  assert_true(len >= strlen(expected));
  assert_memory_equal(text, expected, strlen(expected));
}

static void sequences_with_different_grammars_run_at_once(void **state) {
  (void)state;
  static const char *const grammar[] = {"root ::= \" 7 5 8\" (\" 9\")*", "root ::= \" 1 2 3\" (\" 4\")*"};
  dt_pair *pair = fake((dt_fake_options){0});
  dt_session *s = session(pair, 2, false);
  const masks *of[2] = {0};
  for (int turn = 0; turn < 3; turn++) {
    for (int seq = 0; seq < 2; seq++) begin(s, seq, grammar[(seq + turn) % 2]);
    for (int i = 0; i < 4; i++)
      for (int seq = 0; seq < 2; seq++) plain_iteration(s, seq);
    for (int seq = 0; seq < 2; seq++) {
      int which = (seq + turn) % 2;
      expect_beginning(s, seq, which ? " 1 2 3 4" : " 7 5 8 9");
      if (!of[which]) of[which] = s->seq[seq].adjustments.masks;
      assert_ptr_equal(s->seq[seq].adjustments.masks, of[which]);
    }
  }
  assert_int_equal(s->grammars.n, 2);
  dt_session_close(s);
  dt_pair_close(pair);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_grammar_is_compiled_once),
      cmocka_unit_test(the_oldest_is_dropped),
      cmocka_unit_test(grammars_that_need_much_memory_are_dropped),
      cmocka_unit_test(a_grammar_that_ran_out_of_memory_is_compiled_again),
      cmocka_unit_test(sequences_with_different_grammars_run_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
