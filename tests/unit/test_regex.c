/* Regular expressions as grammars: messages and bounds. test_golden_grammars.c tests which texts they accept. */
#include "byte_grammar.h"

#include "grammar/gbnf.h"
#include "grammar/regex.h"

static void a_mistake_is_one_line_with_its_column(void **state) {
  (void)state;
  static const char *const bad[][2] = {
      {"a(b", "regular expression, column 2: this parenthesis is not closed"},
      {"a)", "column 2: this ) closes nothing; write \\)"},
      {"a]", "column 2: this ] closes nothing"},
      {"[a", "column 1: this class does not end"},
      {"[]", "column 1: this class contains no character"},
      {"x[^\\s\\S]", "column 2: this class contains no character"},
      {"[b-a]", "column 2: the range ends before it begins"},
      {"[a-\\d]", "column 2: a range needs a character on both sides"},
      {"*", "column 1: there is nothing before this"},
      {"(a|+)", "column 4: there is nothing before this"},
      {"^*", "column 2: there is nothing before this"},
      {"a**", "column 3: this repeats a repetition"},
      {"a{2}{3}", "column 5: this repeats a repetition"},
      {"a{,2}", "column 2: expected {2}, {2,} or {2,5}"},
      {"a{2", "column 2: expected {2}, {2,} or {2,5}"},
      {"a{b}", "column 2: expected {2}, {2,} or {2,5}"},
      {"a{2,1}", "{2,1}: the maximum is less than the minimum"},
      {"a{262145}", "more than 262144 repetitions"},
      {"a{99999999999999999999}", "more than 262144 repetitions"},
      {"a^b", "regular expression: matches no text"},
      {"a$b", "regular expression: matches no text"},
      {"a(?=a)", "regular expression: (?= ) and (?! ) are supported only at the beginning"},
      {"a(?<!b)c", "column 2: only the groups (?: ), (?<name> ), (?= ) and (?! )"},
      {"(?i:a)", "column 1: only the groups (?: ), (?<name> ), (?= ) and (?! )"},
      {"(?<n", "the name of this group does not end"},
      {"(a)\\1", "column 5: back references (\\1) are not supported"},
      {"\\k<n>", "back references (\\k) are not supported"},
      {"\\bword", "column 2: word boundaries (\\b) are not supported"},
      {"\\p{L}", "character properties (\\p) are not supported"},
      {"\\q", "column 2: unknown escape"},
      {"\\01", "column 2: unknown escape"},
      {"\\", "column 2: there is nothing after"},
      {"[\\", "there is nothing after"},
      {"\\x1", "expected 2 hexadecimal digits"},
      {"\\x\x10"
       "0",
       "expected 2 hexadecimal digits"},
      {"\\u{}", "expected 6 hexadecimal digits"},
      {"\\u{61", "expected }"},
      {"\\ud83d", "U+D83D is not a character"},
      {"\\ud83d\\u0061", "U+D83D is not a character"},
      {"\\u{110000}", "U+110000 is not a character"},
      {"\xff", "byte 0 is not UTF-8"},
  };
  char *gbnf;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    fails(regex_to_gbnf(bad[i][0], &gbnf, &err), DT_EINPUT, bad[i][1]);
}

static dt_status compile(const char *regex, dt_error *e) {
  char *gbnf;
  rules r;
  dt_status status = regex_to_gbnf(regex, &gbnf, e);
  if (status) return status;
  status = gbnf_read(gbnf, strlen(gbnf), &r, e);
  rules_free(&r);
  free(gbnf);
  return status;
}

/* Checks a regular expression. message NULL: it is accepted; otherwise it is refused with a message that contains
 * this. */
static void reads(char *regex, const char *message) {
  if (message)
    fails(compile(regex, &err), DT_EINPUT, message);
  else
    ok(compile(regex, &err));
  free(regex);
}

static void bounds_are_where_they_are_said_to_be(void **state) {
  (void)state;
  char *closed = repeated("a", ")", REGEX_DEPTH, ""), *more = repeated("a", ")", REGEX_DEPTH + 1, "");
  reads(repeated("", "(", REGEX_DEPTH - 1, closed), "this ) closes nothing");
  reads(repeated("", "(", REGEX_DEPTH, closed), NULL);
  reads(repeated("", "(", REGEX_DEPTH + 1, more), "column 201: more than 200 nested parentheses");
  free(closed), free(more);
  reads(repeated("", "a", REGEX_BYTES, ""), NULL);
  reads(repeated("", "a", REGEX_BYTES + 1, ""), "expression: 100001 bytes, the maximum is 100000");
  reads(repeated("", "[ab]", 25000, ""), NULL);
  reads(repeated("[", "\\s", 49999, "]"), NULL);
  reads(strdup("a{131000}"), NULL);
  reads(strdup("a{262144}"), "more than 262144 parts");
  reads(strdup("((a{1000}){1000}){1000}"), NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_mistake_is_one_line_with_its_column),
      cmocka_unit_test(bounds_are_where_they_are_said_to_be),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
