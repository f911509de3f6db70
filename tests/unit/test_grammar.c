/* Grammars: against the C library's regular expressions, which are another automaton; masks against single tokens; bounds and messages. */
#include "rig.h"

#include "grammar/gbnf.h"
#include "grammar/masks.h"
#include "grammar/schema.h"

#include <regex.h>
#include <stdio.h>

enum { END = 256 }; /* ids below are bytes */

static const char *byte_of(const void *of, int32_t id, bool first, char buffer[16], size_t *len) {
  (void)of, (void)first;
  *len = id != END;
  buffer[0] = (char)id;
  return buffer;
}

static vocabulary *bytes(void) {
  vocabulary *v;
  ok(vocabulary_open(END + 1, byte_of, NULL, &(int32_t){END}, 1, &v, &err));
  return v;
}

static masks *read_grammar(const vocabulary *v, const char *gbnf) {
  masks *m;
  ok(masks_open(v, gbnf, &m, &err));
  return m;
}

/* Whether the grammar takes all of the text. */
static bool takes(masks *m, const char *text) {
  int place = masks_enter(m);
  int32_t at = masks_state(m, place);
  for (; *text; text++) at = masks_step(m, at, (uint8_t)*text, false);
  masks_leave(m, place);
  return masks_allow(m, at, END, false);
}

static void it_reads_what_llama_cpp_writes(void **state) {
  (void)state;
  static const struct {
    const char *grammar, *yes[4], *no[4];
  } of[] = {
      {"root ::= \"a\"", {"a"}, {"", "b", "aa"}},
      {"# a comment\nroot ::= # another\n  x\n\nx ::= \"a\" |\n \"b\"\n", {"a", "b"}, {"", "ab"}},
      {"root ::= ( \"a\"\n | \"b\" )\n", {"a", "b"}, {"ab"}},
      {"root ::= \"\"", {""}, {"a"}},
      {"root ::= | \"a\"", {"", "a"}, {"aa"}},
      {"root ::= \"ab\"*", {"", "ab", "abab"}, {"a", "abb"}},
      {"root ::= \"a\"{2} \"b\"{1,2} \"c\"{2,}", {"aabcc", "aabbccc"}, {"abcc", "aabbbcc", "aabc"}},
      {"root ::= \"a\"{0,2}", {"", "a", "aa"}, {"aaa"}},
      {"root ::= \"a\"{0}", {""}, {"a"}},
      {"root ::= [^a]", {"b", "\n", "\xc3\xa9", "\xf0\x9f\x98\x80"}, {"a", "\xc3", "\xed\xa0\x80"}},
      {"root ::= [^a-z\\n-]", {"A", "\xef\xbf\xbd"}, {"q", "\n", "-"}},
      {"root ::= [a-]+", {"a-", "-"}, {"b", ""}},
      {"root ::= [\\]\\[\\\\]", {"]", "[", "\\"}, {"a"}},
      {"root ::= .", {"a", "\n", "\xe2\x82\xac"}, {"", "ab"}},
      {"root ::= [\\u00e9-\\U0001F600]",
       {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"},
       {"e", "\xc3\xa8", "\xf0\x9f\x98\x81"}},
      {"root ::= \"\\x41\\t\\\"\"", {"A\t\""}, {"A"}},
      {"root ::= \"(\" root \")\" | \"x\"", {"x", "(x)", "((x))"}, {"(x", "x)", "()"}},
      {"root ::= \"a\" root | \"b\"", {"b", "ab", "aaab"}, {"a", "ba"}},
      {"root ::= (\"a\"* \"b\"*)*", {"", "abba", "b"}, {"c"}},
      {"root ::= e \"a\"\ne ::= | \"b\" e", {"a", "bba"}, {"b"}},
  };
  vocabulary *v = bytes();
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
    masks *m = read_grammar(v, of[i].grammar);
    for (int k = 0; k < 4 && of[i].yes[k]; k++)
      if (!takes(m, of[i].yes[k])) fail_msg("%s: refuses '%s'", of[i].grammar, of[i].yes[k]);
    for (int k = 0; k < 4 && of[i].no[k]; k++)
      if (takes(m, of[i].no[k])) fail_msg("%s: takes '%s'", of[i].grammar, of[i].no[k]);
    masks_release(m);
  }
  vocabulary_close(v);
}

/* The same random expression in both languages. */
static void write_both(uint64_t *r, int depth, char *gbnf, char *regex) {
  char *g = gbnf + strlen(gbnf), *x = regex + strlen(regex);
  switch (depth ? random_next(r) % 6 : random_next(r) % 2) {
  case 0: strcpy(g, random_next(r) % 2 ? "\"a\" " : "\"b\" "), strcpy(x, strstr(g, "a") ? "a" : "b"); break;
  case 1: strcpy(g, "[a-b] "), strcpy(x, "[a-b]"); break;
  case 2:
  case 3:
    write_both(r, depth - 1, gbnf, regex);
    write_both(r, depth - 1, gbnf, regex);
    break;
  case 4:
    strcpy(g, "("), strcpy(x, "(");
    write_both(r, depth - 1, gbnf, regex);
    strcat(gbnf, "| "), strcat(regex, "|");
    write_both(r, depth - 1, gbnf, regex);
    strcat(gbnf, ") "), strcat(regex, ")");
    break;
  default: {
    static const char *const times[] = {"*", "+", "?", "{2}", "{1,}", "{0,2}", "{1,3}"};
    const char *how = times[random_next(r) % 7];
    strcpy(g, "("), strcpy(x, "(");
    write_both(r, depth - 1, gbnf, regex);
    sprintf(gbnf + strlen(gbnf), ")%s ", how), sprintf(regex + strlen(regex), ")%s", how);
  }
  }
}

static void regular_grammars_take_what_regular_expressions_match(void **state) {
  (void)state;
  uint64_t r = {7};
  int matched = 0, cases = 0;
  vocabulary *v = bytes();
  for (int i = 0; i < 300; i++) {
    char gbnf[8192] = "root ::= ", regex[8192] = "^(";
    regex_t compiled;
    write_both(&r, 4, gbnf, regex);
    strcat(regex, ")$");
    assert_int_equal(regcomp(&compiled, regex, REG_EXTENDED | REG_NOSUB), 0);
    masks *m = read_grammar(v, gbnf);
    for (int n = 0; n <= 6; n++)
      for (unsigned bits = 0; bits < 1u << n; bits++, cases++) {
        char text[8] = "";
        for (int k = 0; k < n; k++) text[k] = bits >> k & 1 ? 'b' : 'a';
        bool should = regexec(&compiled, text, 0, NULL, 0) == 0;
        matched += should;
        if (takes(m, text) != should) fail_msg("%s: '%s' should be %s", gbnf, text, should ? "taken" : "refused");
      }
    regfree(&compiled);
    masks_release(m);
  }
  assert_true(matched > cases / 20 && matched < cases * 19 / 20);
  vocabulary_close(v);
}

enum { WORDS = 400 };
typedef struct {
  char text[WORDS][8];
} words;

static const char *word_of(const void *of, int32_t id, bool first, char buffer[16], size_t *len) {
  (void)buffer;
  const char *text = ((const words *)of)->text[id];
  text += first && *text == ' ';
  *len = strlen(text);
  return text;
}

static void a_mask_has_the_tokens_that_are_allowed_one_by_one(void **state) {
  (void)state;
  uint64_t r = {11};
  words w = {0};
  for (int i = 0; i < WORDS; i++)
    for (int k = 0, n = (int)(random_next(&r) % 6); k < n; k++) w.text[i][k] = "ab ,\"x"[random_next(&r) % 6];
  vocabulary *v;
  int32_t ends[] = {3, WORDS - 1};
  ok(vocabulary_open(WORDS, word_of, &w, ends, 2, &v, &err));
  assert_true(v->differ);
  masks *m =
      read_grammar(v, "root ::= item (\",\" item)*\nitem ::= \"a\"+ | \"\\\"\" [ab ]* \"\\\"\" | \" \" item \"x\"");
  int place = masks_enter(m), allowed = 0, refused = 0;
  for (int turn = 0; turn < 300; turn++) {
    int32_t at = masks_state(m, place);
    for (int n = 0; at != MASKS_NOWHERE && n < 30; n++) {
      const uint64_t *mask = masks_of(m, at, n == 0);
      int32_t next = MASKS_NOWHERE;
      int some = 0;
      for (int32_t id = 0; id < WORDS; id++) {
        bool may = masks_allow(m, at, id, n == 0);
        assert_int_equal(mask[id / 64] >> id % 64 & 1, may);
        allowed += may, refused += !may;
        if (may && random_next(&r) % (unsigned)++some == 0) next = masks_step(m, at, id, n == 0);
      }
      at = next;
    }
  }
  assert_true(allowed > 1000 && refused > 1000);
  for (int i = 0; i < (masks_ids(m) + 63) / 64; i++) assert_int_equal(masks_of(m, MASKS_NOWHERE, false)[i], 0);
  masks_leave(m, place);
  masks_release(m);
  vocabulary_close(v);
}

static void states_are_dropped_and_texts_go_on(void **state) {
  (void)state;
  enum { DEEP = 400000 };
  vocabulary *v = bytes();
  masks *m = read_grammar(v, "root ::= \"(\" root \")\" | [acegikmoqsuwy]");
  int place = masks_enter(m), other = masks_enter(m), dropped = 0;
  int32_t start = masks_state(m, other), last = start;
  for (int i = 0; i < 2 * DEEP + 1; i++) {
    masks_take(m, place, i < DEEP ? '(' : i > DEEP ? ')' : 'c', false);
    assert_true(masks_state(m, place) != MASKS_NOWHERE);
    dropped += masks_state(m, place) < last;
    last = masks_state(m, place);
  }
  assert_true(dropped > 0);
  assert_true(masks_allow(m, masks_state(m, place), END, false) && !masks_allow(m, masks_state(m, place), ')', false));
  assert_true(masks_allow(m, masks_state(m, other), '(', false) && !masks_allow(m, masks_state(m, other), END, false));
  masks_release(m);
  vocabulary_close(v);
}

static void forced_text_is_all_that_may_follow(void **state) {
  (void)state;
  static const struct {
    const char *grammar, *text, *forced;
  } of[] = {
      {"root ::= \"abc\"", "", "abc"},
      {"root ::= \"abc\"", "ab", "c"},
      {"root ::= \"abc\"", "abc", ""},
      {"root ::= \"abc\"", "b", ""},
      {"root ::= \"ab\" \"c\"?", "", "ab"},
      {"root ::= \"abcd\" | \"abce\"", "", "abc"},
      {"root ::= x \",\" x\nx ::= [a-b] \"\xc3\xa9.\"", "a", "\xc3\xa9.,"},
      {"root ::= [a-a] [b-c]", "", "a"},
      {"root ::= \"(\" root \")\" | \"x\"", "((x", "))"},
      {"root ::= \"a\"{200}", "a", "aaaaaaaaaaaaaaaa"},
  };
  vocabulary *v = bytes();
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
    masks *m = read_grammar(v, of[i].grammar);
    int place = masks_enter(m);
    char forced[17] = "";
    for (const char *at = of[i].text; *at; at++) masks_take(m, place, (uint8_t)*at, false);
    forced[masks_forced(m, masks_state(m, place), forced, 16)] = '\0';
    assert_string_equal(forced, of[i].forced);
    masks_release(m);
  }
  vocabulary_close(v);
}

/* A state for each set of places of the last a's. */
static const char many_states[] = "root ::= [ab]* \"a\" [ab]{13} \"!\"";

static void a_text_goes_on_where_guesses_find_no_room(void **state) {
  (void)state;
  enum { LIMIT = 1 << 17, LENGTH = 300, GUESSES = 14, MASK = (END + 64) / 64 };
  vocabulary *v = bytes();
  masks *small = read_grammar(v, many_states), *large = read_grammar(v, many_states);
  int of_small = masks_enter(small), of_large = masks_enter(large), refused = 0;
  masks_limit(small, LIMIT);
  uint64_t r = {3};
  for (int i = 0; i < LENGTH; i++) {
    for (int guess = 0; guess < 300; guess++) {
      int32_t at = masks_state(small, of_small);
      for (int k = 0; k < GUESSES && at != MASKS_NOWHERE; k++)
        at = masks_step(small, at, "ab"[random_next(&r) % 2], false);
      refused += at == MASKS_NOWHERE; /* the grammar allows all of them */
    }
    assert_memory_equal(masks_of_text(small, of_small, false), masks_of_text(large, of_large, false), MASK * 8);
    int32_t next = "ab"[random_next(&r) % 2];
    masks_take(small, of_small, next, false);
    masks_take(large, of_large, next, false);
    assert_true(masks_state(small, of_small) != MASKS_NOWHERE);
    ok(masks_failure(small, &err));
  }
  assert_true(refused > LENGTH);
  masks_limit(small, 1);
  masks_take(small, of_small, 'b', false);
  assert_false(masks_of_text(small, of_small, false)['b' / 64] >> 'b' % 64 & 1);
  fails(masks_failure(small, &err), DT_EDEVICE, "more than 0 MiB for its states");
  masks_release(small);
  masks_release(large);
  vocabulary_close(v);
}

/* head, n times middle, tail */
static char *repeated(const char *head, const char *middle, int n, const char *tail) {
  size_t each = strlen(middle);
  char *text = malloc(strlen(head) + each * (size_t)n + strlen(tail) + 1);
  assert_non_null(text);
  char *at = stpcpy(text, head);
  for (int i = 0; i < n; i++) at = stpcpy(at, middle);
  strcpy(at, tail);
  return text;
}

static void reads(char *gbnf, const char *message) {
  rules r;
  if (message)
    fails(gbnf_read(gbnf, strlen(gbnf), &r, &err), DT_EINPUT, message);
  else
    ok(gbnf_read(gbnf, strlen(gbnf), &r, &err));
  rules_free(&r);
  free(gbnf);
}

static void mistakes_and_bounds_are_one_line(void **state) {
  (void)state;
  static const char *const bad[][2] = {
      {"", "there is no rule root"},
      {"a ::= \"b\"", "there is no rule root"},
      {"root ::= x", "line 1, column 10: there is no rule x"},
      {"root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: rule root is there already"},
      {"root ::= \"a", "does not end in its line"},
      {"root ::= [a", "does not end in its line"},
      {"root ::= (\"a\"", "expected )"},
      {"root = \"a\"", "expected ::="},
      {"root ::= *", "nothing stands before"},
      {"root ::= \"a\" ]", "expected the end of the line"},
      {"root ::= \"\\q\"", "an unknown escape"},
      {"root ::= \"\\u12\"", "expected 4 hexadecimal digits"},
      {"root ::= \"\\ud800\"", "U+D800 is not a character"},
      {"root ::= \"\\U00110000\"", "U+110000 is not a character"},
      {"root ::= [b-a]", "ends before it begins"},
      {"root ::= []", "no character is in this class"},
      {"root ::= [^\\x00-\\U0010FFFF]", "no character is in this class"},
      {"root ::= \"a\"{x}", "expected a number"},
      {"root ::= \"a\"{2,1}", "{2,1}: the most is less"},
      {"root ::= \"a\"{2", "expected }"},
      {"root ::= \"a\"{999999999999}", "more than 262144 repetitions"},
      {"root ::= <think>", "tokens (<name>, <[id]>) are not read"},
      {"root ::= \"\xff\"", "byte 10 is not UTF-8"},
      {"root ::= root \"a\"", "rule root begins with itself"},
      {"root ::= a\na ::= (\"x\"? b)*\nb ::= a \"y\"", "begins with itself"},
      {"root ::= \"a\"\nc ::= d? c | \"b\"\nd ::= \"e\"", "rule c begins with itself"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) reads(strdup(bad[i][0]), bad[i][1]);
  rules r;
  fails(gbnf_read("root ::= \0", 10, &r, &err), DT_EINPUT, "a NUL byte at 9");
  rules_free(&r);
  reads(repeated("root ::= \"", "a", GBNF_BYTES - 11, "\""), NULL);
  reads(repeated("root ::= \"", "a", GBNF_BYTES - 10, "\""), "100001 bytes, at most 100000");
  char *closed = repeated("\"a\"", ")", GBNF_DEPTH, ""), *more = repeated("\"a\"", ")", GBNF_DEPTH + 1, "");
  reads(repeated("root ::= ", "(", GBNF_DEPTH, closed), NULL);
  reads(repeated("root ::= ", "(", GBNF_DEPTH + 1, more), "more than 256 parentheses");
  free(closed), free(more);
  reads(strdup("root ::= \"a\"{0,131080}"), "more than 262144 parts");
  reads(strdup("root ::= \"a\"{0,100000}"), NULL);
  reads(repeated("root ::= \"a\"", " | \"a\"", 16000, ""), NULL);
}

static void texts_of_a_schema_are_those_that_it_takes(void **state) {
  (void)state;
  static const struct {
    const char *schema, *yes[4], *no[4];
  } of[] = {
      {"true", {"1", "[]", "{\"a\":[1,null]}", "\"\\u00e9\""}, {"", "01", "[1,]", "\"\\ud800\""}},
      {"{\"type\":\"integer\"}", {"0", "-12"}, {"1.5", "1e3", "01", "true"}},
      {"{\"type\":[\"number\",\"null\"]}", {"1.5e-3", "null", "7"}, {"\"7\"", ".5", "1."}},
      {"{\"type\":\"string\",\"minLength\":1,\"maxLength\":2}",
       {"\"a\"", "\"\xc3\xa9z\"", "\"\\n\""},
       {"\"\"", "\"abc\"", "\"\n\""}},
      {"{\"enum\":[\"a\\\"b\",1,null],\"type\":[\"string\",\"integer\"]}", {"\"a\\\"b\"", "1"}, {"null", "\"a\""}},
      {"{\"const\":{\"k\":[true]}}", {"{\"k\":[true]}"}, {"{}", "true"}},
      {"{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"minItems\":2,\"maxItems\":3}",
       {"[true, false]", "[true,true,true]"},
       {"[true]", "[1,2]", "[true,true,true,true]"}},
      {"{\"type\":\"array\",\"maxItems\":0}", {"[]", "[ ]"}, {"[1]"}},
      {"{\"type\":\"array\",\"minItems\":1}", {"[1]", "[[],{}]"}, {"[]"}},
      {"{\"properties\":{\"a\":{\"type\":\"null\"},\"b\":true,\"c\":{\"type\":\"null\"}},\"required\":[\"b\"]}",
       {"{\"b\":1}", "{\"a\":null,\"b\": 2}", "{\"b\":{},\"c\":null}", "{\"a\":null,\"b\":\"\",\"c\":null}"},
       {"{}", "{\"a\":null}", "{\"c\":null,\"b\":1}", "{\"b\":1,\"d\":1}"}},
      {"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"null\"},\"b\":{\"type\":\"null\"}}}",
       {"{}", "{\"b\":null}", "{\"a\":null}", "{\"a\":null,\"b\":null}"},
       {"{,}", "{\"b\":null,}"}},
      {"{\"type\":\"object\",\"additionalProperties\":false}", {"{}"}, {"{\"a\":1}"}},
      {"{\"type\":\"object\"}", {"{}", "{\"a\":1,\"b\":[]}"}, {"[]", "{a:1}"}},
      {"{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}]}",
       {"null", "[null,[null]]"},
       {"[1]", "{}"}},
      {"{\"$ref\":\"#/$defs/n\",\"$defs\":{\"x\":true,\"n\":{\"type\":\"null\",\"title\":\"t\"}}}", {"null"}, {"1"}},
  };
  static const char *const bad[][2] = {
      {"", "not JSON"},
      {"{} x", "not JSON"},
      {"{\"const\":\"\xff\"}", "byte 10 is not UTF-8"},
      {"{\"const\":\"a\\u0000\"}", "no text in it may have \\u0000"},
      {"{\"$ref\":\"#/$defs/a\",\"$defs\":[true]}", "$defs: expected an object"},
      {"3", "a schema is an object or true"},
      {"false", "false takes nothing"},
      {"{\"type\":\"string\",\"pattern\":\"a\"}", "the keyword pattern is not known"},
      {"{\"items\":{\"oneOf\":[]}}", "the keyword oneOf is not known"},
      {"{\"type\":\"text\"}", "type: string, integer"},
      {"{\"type\":\"string\",\"minItems\":1}", "minItems is not of the type"},
      {"{\"minLength\":1,\"minItems\":1}", "keywords of several types"},
      {"{\"minLength\":-1}", "minLength: expected a whole number"},
      {"{\"minLength\":1.5}", "minLength: expected a whole number"},
      {"{\"minLength\":2,\"maxLength\":1}", "maxLength is less than minLength"},
      {"{\"minItems\":2,\"maxItems\":1}", "maxItems is less than minItems"},
      {"{\"required\":[\"a\"]}", "there is no property a"},
      {"{\"properties\":{},\"additionalProperties\":true}", "only false is known"},
      {"{\"enum\":[1],\"type\":\"string\"}", "enum: a list of values of the type"},
      {"{\"const\":1,\"type\":\"integer\"}", "const with type: give one of them"},
      {"{\"anyOf\":[]}", "anyOf: a list of schemas"},
      {"{\"$ref\":\"#/x\"}", "$ref: there is no #/x"},
  };
  vocabulary *v = bytes();
  char *gbnf;
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
    ok(schema_to_gbnf(of[i].schema, &gbnf, &err));
    masks *m = read_grammar(v, gbnf);
    for (int k = 0; k < 4 && of[i].yes[k]; k++)
      if (!takes(m, of[i].yes[k])) fail_msg("%s: refuses '%s'", of[i].schema, of[i].yes[k]);
    for (int k = 0; k < 4 && of[i].no[k]; k++)
      if (takes(m, of[i].no[k])) fail_msg("%s: takes '%s'", of[i].schema, of[i].no[k]);
    masks_release(m);
    free(gbnf);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    fails(schema_to_gbnf(bad[i][0], &gbnf, &err), DT_EINPUT, bad[i][1]);
  char *deep = repeated("", "{\"items\":", SCHEMA_DEPTH - 1, "true"), *last = repeated(deep, "}", SCHEMA_DEPTH - 1, "");
  ok(schema_to_gbnf(last, &gbnf, &err));
  free(gbnf), free(deep), free(last);
  deep = repeated("", "{\"items\":", SCHEMA_DEPTH + 1, "true"), last = repeated(deep, "}", SCHEMA_DEPTH + 1, "");
  fails(schema_to_gbnf(last, &gbnf, &err), DT_EINPUT, "more than 100 schemas in each other");
  free(deep), free(last);
  vocabulary_close(v);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_reads_what_llama_cpp_writes),
      cmocka_unit_test(regular_grammars_take_what_regular_expressions_match),
      cmocka_unit_test(a_mask_has_the_tokens_that_are_allowed_one_by_one),
      cmocka_unit_test(states_are_dropped_and_texts_go_on),
      cmocka_unit_test(forced_text_is_all_that_may_follow),
      cmocka_unit_test(a_text_goes_on_where_guesses_find_no_room),
      cmocka_unit_test(texts_of_a_schema_are_those_that_it_takes),
      cmocka_unit_test(mistakes_and_bounds_are_one_line),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
