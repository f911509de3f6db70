/* The text stream: what is held back, where a stop string cuts, and invalid UTF-8. */
#include "text/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BAD "\xEF\xBF\xBD"

static void start(text_stream *t, int n_stop, const char *const *stop) {
  dt_error err;
  assert_int_equal(text_init(t, stop, n_stop, &err), DT_OK);
}

static void push(text_stream *t, const char *bytes) {
  dt_error err;
  assert_int_equal(text_push(t, bytes, strlen(bytes), &err), DT_OK);
}

static void expect_take(text_stream *t, bool final, const char *expected) {
  size_t len;
  const char *bytes = text_take(t, final, &len);
  assert_non_null(bytes);
  assert_int_equal(len, strlen(expected));
  assert_memory_equal(bytes, expected, len);
}

static void bytes_are_shown_once_and_in_order(void **state) {
  (void)state;
  text_stream t;
  start(&t, 0, NULL);
  expect_take(&t, false, "");
  push(&t, "Hel");
  expect_take(&t, false, "Hel");
  expect_take(&t, false, "");
  push(&t, "lo");
  push(&t, "!");
  expect_take(&t, true, "lo!");
  expect_take(&t, true, "");
  text_free(&t);
}

static void half_a_character_is_held_back(void **state) {
  (void)state;
  text_stream t;
  start(&t, 0, NULL);
  push(&t, "a\xF0");
  expect_take(&t, false, "a");
  push(&t, "\x9F\x98");
  expect_take(&t, false, "");
  push(&t, "\x80z");
  expect_take(&t, false, "\xF0\x9F\x98\x80z");
  push(&t, "\xC3");
  expect_take(&t, false, "");
  expect_take(&t, true, "\xC3"); /* at the end: raw, as it is */
  text_free(&t);
}

static void bytes_that_can_never_become_a_character_are_shown_raw(void **state) {
  (void)state;
  text_stream t;
  start(&t, 0, NULL);
  push(&t, "\xFF\x80\xC0");
  expect_take(&t, false, "\xFF\x80\xC0");
  push(&t, "\xE0\x80"); /* E0 80 is overlong: no continuation makes it valid */
  expect_take(&t, false, "\xE0\x80");
  push(&t, "\xED\xA0"); /* a surrogate */
  expect_take(&t, false, "\xED\xA0");
  push(&t, "\xE2\x82"); /* but this may become U+20AC */
  expect_take(&t, false, "");
  push(&t, "x");
  expect_take(&t, false, "\xE2\x82x");
  text_free(&t);
}

static void nul_bytes_pass_through(void **state) {
  (void)state;
  text_stream t;
  dt_error err;
  size_t len;
  start(&t, 1, (const char *[]){"b"});
  assert_int_equal(text_push(&t, "a\0c", 3, &err), DT_OK);
  assert_memory_equal(text_take(&t, false, &len), "a\0c", 3);
  assert_int_equal(len, 3);
  text_free(&t);
}

static void a_stop_string_cuts_before_itself(void **state) {
  (void)state;
  text_stream t;
  start(&t, 1, (const char *[]){"END"});
  push(&t, "text END and more");
  assert_true(t.stopped);
  assert_int_equal(t.len, 5);
  expect_take(&t, false, "text ");
  expect_take(&t, true, "");
  text_free(&t);
}

static void a_stop_string_is_found_across_token_borders(void **state) {
  (void)state;
  text_stream t;
  start(&t, 1, (const char *[]){"\n\nUser:"});
  push(&t, "yes.\n");
  expect_take(&t, false, "yes.");
  push(&t, "\nUs");
  expect_take(&t, false, "");
  assert_false(t.stopped);
  push(&t, "er: hi");
  assert_true(t.stopped);
  expect_take(&t, true, "");
  text_free(&t);
}

static void what_turns_out_not_to_be_a_stop_string_is_shown(void **state) {
  (void)state;
  text_stream t;
  start(&t, 1, (const char *[]){"stop"});
  push(&t, "a sto");
  expect_take(&t, false, "a ");
  push(&t, "ne");
  expect_take(&t, false, "stone");
  push(&t, "st");
  expect_take(&t, false, "");
  expect_take(&t, true, "st");
  text_free(&t);
}

static void a_failed_start_may_hide_a_later_one(void **state) {
  (void)state;
  text_stream t;
  start(&t, 1, (const char *[]){"ab"});
  push(&t, "a");
  expect_take(&t, false, "");
  push(&t, "a");
  expect_take(&t, false, "a"); /* the second a may be the beginning of the stop string */
  push(&t, "b");
  assert_true(t.stopped);
  expect_take(&t, true, "");
  assert_int_equal(t.len, 1);
  text_free(&t);

  start(&t, 1, (const char *[]){"abab!"});
  push(&t, "ab");
  push(&t, "ab");
  push(&t, "ab");
  expect_take(&t, false, "ab");
  push(&t, "!");
  assert_true(t.stopped);
  expect_take(&t, true, "");
  text_free(&t);
}

static void of_several_stop_strings_the_earliest_in_the_text_cuts(void **state) {
  (void)state;
  text_stream t;
  start(&t, 3, (const char *[]){"late", "arly", "early"});
  push(&t, "so early, not late");
  assert_true(t.stopped);
  expect_take(&t, true, "so ");
  text_free(&t);

  start(&t, 2, (const char *[]){"abc", "ab"}); /* both begin at the same place */
  push(&t, "xabc");
  assert_true(t.stopped);
  expect_take(&t, true, "x");
  text_free(&t);

  start(&t, 2, (const char *[]){"abcdef", "cd"}); /* the longest possible start is held back */
  push(&t, "xabc");
  expect_take(&t, false, "x");
  push(&t, "d");
  assert_true(t.stopped);
  expect_take(&t, true, "ab");
  text_free(&t);
}

static void a_stop_string_of_one_byte_holds_nothing_back(void **state) {
  (void)state;
  text_stream t;
  start(&t, 1, (const char *[]){"\n"});
  push(&t, "abc");
  expect_take(&t, false, "abc");
  push(&t, "\n");
  assert_true(t.stopped);
  expect_take(&t, true, "");
  text_free(&t);
}

static void a_stop_string_may_begin_inside_a_character(void **state) {
  (void)state;
  text_stream t;
  start(&t, 1, (const char *[]){"\xE2\x82\xAC!"});
  push(&t, "1\xE2\x82\xAC");
  expect_take(&t, false, "1");
  push(&t, "?");
  expect_take(&t, false, "\xE2\x82\xAC?");
  push(&t, "\xE2\x82");
  push(&t, "\xAC!");
  assert_true(t.stopped);
  text_free(&t);
}

static void every_way_to_cut_a_text_into_tokens_shows_the_same_text(void **state) {
  (void)state;
  static const char text[] = "a\xC3\xA9 aab\xF0\x9F\x98\x80 abaabaab|rest";
  const char *const stop[] = {"abaab|", "aab|x", "\x80 abb"};
  size_t n = strlen(text);
  for (unsigned long cuts = 0; cuts < 1ul << 14; cuts++) { /* cuts after byte i if bit i % 14 is set */
    text_stream t;
    dt_error err;
    char shown[sizeof text] = "";
    size_t shown_len = 0, len;
    start(&t, 3, stop);
    for (size_t from = 0, i = 1; i <= n && !t.stopped; i++) {
      if (i < n && !(cuts >> (i % 14) & 1)) continue;
      assert_int_equal(text_push(&t, text + from, i - from, &err), DT_OK);
      const char *more = text_take(&t, false, &len);
      memcpy(shown + shown_len, more, len);
      shown_len += len;
      from = i;
    }
    const char *more = text_take(&t, true, &len);
    memcpy(shown + shown_len, more, len);
    shown_len += len;
    assert_true(t.stopped);
    assert_int_equal(shown_len, strlen("a\xC3\xA9 aab\xF0\x9F\x98\x80 aba"));
    assert_memory_equal(shown, text, shown_len);
    text_free(&t);
  }
}

static void an_empty_stop_string_is_refused(void **state) {
  (void)state;
  text_stream t;
  dt_error err;
  assert_int_equal(text_init(&t, (const char *[]){"a", ""}, 2, &err), DT_EINPUT);
  assert_string_equal(err.message, "stop string 2 is empty: give at least one byte");
  text_free(&t);
}

static void a_push_after_the_stop_is_refused(void **state) {
  (void)state;
  text_stream t;
  dt_error err;
  start(&t, 1, (const char *[]){"."});
  push(&t, "a.");
  assert_int_equal(text_push(&t, "b", 1, &err), DT_ESTATE);
  expect_take(&t, true, "a");
  text_free(&t);
}

static void invalid_utf8_becomes_one_replacement_per_maximal_subpart(void **state) {
  (void)state;
  /* the right-hand sides are Python's bytes.decode(errors="replace") */
  static const struct {
    const char *bytes, *text;
  } cases[] = {
      {"", ""},
      {"plain ASCII, longer than eight bytes", "plain ASCII, longer than eight bytes"},
      {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"},
      {"\x80", BAD},
      {"\x80\xBF", BAD BAD},
      {"\xC0\xAF", BAD BAD},
      {"\xC2", BAD},
      {"\xC2"
       "A",
       BAD "A"},
      {"\xE0\x80\x80", BAD BAD BAD},
      {"\xE1\x80", BAD},
      {"\xE1\x80"
       "A",
       BAD "A"},
      {"\xE1\x80\xC3\xA9", BAD "\xC3\xA9"},
      {"\xED\xA0\x80", BAD BAD BAD},
      {"\xED\x9F\xBF", "\xED\x9F\xBF"},
      {"\xEF\xBF\xBF", "\xEF\xBF\xBF"},
      {"\xF0\x80\x80\x80", BAD BAD BAD BAD},
      {"\xF0\x90\x80", BAD},
      {"\xF1\x80\x80\xE1\x80\xC2", BAD BAD BAD},
      {"\xF4\x8F\xBF\xBF", "\xF4\x8F\xBF\xBF"},
      {"\xF4\x90\x80\x80", BAD BAD BAD BAD},
      {"\xF5\x80", BAD BAD},
      {"\xFE\xFF", BAD BAD},
      {"a\xF1\x80\x80\xE1\x80\xC2"
       "b\x80"
       "c\x80\xBF"
       "d",
       "a" BAD BAD BAD "b" BAD "c" BAD BAD "d"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    size_t len;
    char *text = text_to_utf8(cases[i].bytes, strlen(cases[i].bytes), &len);
    assert_non_null(text);
    assert_string_equal(text, cases[i].text);
    assert_int_equal(len, strlen(cases[i].text));
    free(text);
  }
}

static void lossy_text_keeps_nul_bytes_and_needs_no_length(void **state) {
  (void)state;
  char *text = text_to_utf8("a\0\xFF", 3, NULL);
  assert_memory_equal(text, "a\0" BAD, 6);
  free(text);
  text = text_to_utf8(NULL, 0, NULL);
  assert_string_equal(text, "");
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes_are_shown_once_and_in_order),
      cmocka_unit_test(half_a_character_is_held_back),
      cmocka_unit_test(bytes_that_can_never_become_a_character_are_shown_raw),
      cmocka_unit_test(nul_bytes_pass_through),
      cmocka_unit_test(a_stop_string_cuts_before_itself),
      cmocka_unit_test(a_stop_string_is_found_across_token_borders),
      cmocka_unit_test(what_turns_out_not_to_be_a_stop_string_is_shown),
      cmocka_unit_test(a_failed_start_may_hide_a_later_one),
      cmocka_unit_test(of_several_stop_strings_the_earliest_in_the_text_cuts),
      cmocka_unit_test(a_stop_string_of_one_byte_holds_nothing_back),
      cmocka_unit_test(a_stop_string_may_begin_inside_a_character),
      cmocka_unit_test(every_way_to_cut_a_text_into_tokens_shows_the_same_text),
      cmocka_unit_test(an_empty_stop_string_is_refused),
      cmocka_unit_test(a_push_after_the_stop_is_refused),
      cmocka_unit_test(invalid_utf8_becomes_one_replacement_per_maximal_subpart),
      cmocka_unit_test(lossy_text_keeps_nul_bytes_and_needs_no_length),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
