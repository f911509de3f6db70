/* Grammars: compared with the C library's regular expressions, which use another automaton; masks compared with single
 * tokens; bounds and messages. */
#include "byte_grammar.h"

#include "grammar/gbnf.h"

#include <regex.h>
#include <stdio.h>

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

/* Writes the same random expression in both languages. */
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
  char text[WORDS][40];
} words;

static const char *word_of(const void *of, int32_t id, bool first, char buffer[16], size_t *len) {
  (void)buffer;
  const char *text = ((const words *)of)->text[id];
  text += first && *text == ' ';
  *len = strlen(text);
  return text;
}

static vocabulary *read_words(const words *w) {
  vocabulary *v;
  ok(vocabulary_open(WORDS, word_of, w, (int32_t[]){3, WORDS - 1}, 2, &v, &err));
  return v;
}

static bool is_in(const uint64_t *mask, int32_t id) { return mask[id / 64] >> id % 64 & 1; }

/* The vocabulary: the letters a to d, a mark in two pieces, the same as tokens 10 and 11, and a byte that no text may
 * have. */
static void tokens_are_demanded_whatever_their_texts_are(void **state) {
  (void)state;
  words *w = calloc(1, sizeof *w);
  for (int i = 4; i < 8; i++) sprintf(w->text[i], "%c", 'a' + i - 4);
  strcpy(w->text[8], "<m"), strcpy(w->text[9], ">"), strcpy(w->text[10], "<m>"), strcpy(w->text[11], "<m>");
  strcpy(w->text[12], "\xFF"), strcpy(w->text[13], "<m>a");
  vocabulary *v = read_words(w);
  static const struct {
    const char *grammar;
    int32_t text[4], may[6]; /* zero ends them */
    int32_t forced;
    const char *then;
  } of[] = {
      {"root ::= <m> \"a\" <[11]> \"b\"", {0}, {10}, 10, "a"},
      {"root ::= <m> \"a\" <[11]> \"b\"", {10}, {4}, -1, "a"},
      {"root ::= <m> \"a\" <[11]> \"b\"", {10, 4}, {11}, 11, "b"},
      {"root ::= <m> \"a\" <[11]> \"b\"", {10, 4, 11}, {5}, -1, "b"},
      {"root ::= \"<m>\" \"a\"", {0}, {8, 10, 11, 13}, -1, "<m>a"},
      {"root ::= <m> \"b\" | \"<m>\" \"a\"", {0}, {8, 10, 11, 13}, -1, ""}, /* token 10 may mean either */
      {"root ::= <m> \"b\" | \"<m>\" \"a\"", {10}, {4, 5}, -1, ""},
      {"root ::= <m> \"b\" | \"<m>\" \"a\"", {11}, {4}, -1, "a"},
      {"root ::= <m> | <[11]> | <[7]>", {0}, {7, 10, 11}, -1, ""},
      {"root ::= <[11]>{2} \"c\"?", {11}, {11}, 11, ""},
      {"root ::= .* <[11]> \"a\"", {4, 5}, {4, 5, 6, 7, 8, 9}, -1, ""}, /* and others: below */
  };
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
    masks *m = read_grammar(v, of[i].grammar);
    const int place = masks_enter(m);
    char forced[17] = "";
    int32_t token;
    for (int k = 0; k < 4 && of[i].text[k]; k++) masks_take(m, place, of[i].text[k], false);
    const int32_t at = masks_state(m, place);
    for (int32_t id = 4; id < 14; id++) {
      bool may = false;
      for (int k = 0; k < 6; k++) may |= of[i].may[k] == id;
      if (strchr(of[i].grammar, '*')) may = id != 12;
      assert_int_equal(masks_allow(m, at, id, false), may);
      assert_int_equal(is_in(masks_of(m, at, false), id), may);
    }
    forced[masks_forced(m, at, &token, forced, 16)] = '\0';
    assert_int_equal(token, of[i].forced);
    assert_string_equal(forced, of[i].then);
    masks_release(m);
  }
  masks *m;
  fails(masks_open(v, "root ::= <n>", &m, &err), DT_EINPUT, "the vocabulary has no token <n>");
  fails(masks_open(v, "root ::= <[400]>", &m, &err), DT_EINPUT, "token <[400]> is out of range 0..399");
  fails(masks_open(v, "root ::= <[3]>", &m, &err), DT_EINPUT, "or the token ends the text");
  vocabulary_close(v);
  free(w);
}

/* Compares along random texts. */
static void masks_have_single_tokens(const vocabulary *v, const char *gbnf, int turns) {
  uint64_t r = {11};
  masks *m = read_grammar(v, gbnf);
  int place = masks_enter(m), allowed = 0, refused = 0;
  for (int turn = 0; turn < turns; turn++) {
    int32_t at = masks_state(m, place);
    for (int n = 0; at != MASKS_NOWHERE && n < 30; n++) {
      const uint64_t *mask = masks_of(m, at, n == 0);
      int32_t next = MASKS_NOWHERE;
      int some = 0;
      for (int32_t id = 0; id < WORDS; id++) {
        bool may = masks_allow(m, at, id, n == 0);
        if ((mask[id / 64] >> id % 64 & 1) != may)
          fail_msg("%s: the mask is wrong for token %d after %d others", gbnf, id, n);
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
}

static void a_mask_has_the_tokens_that_are_allowed_one_by_one(void **state) {
  (void)state;
  uint64_t r = {11};
  words w = {0};
  for (int i = 0; i < WORDS; i++)
    for (int k = 0, n = (int)(random_next(&r) % 6); k < n; k++) w.text[i][k] = "ab ,\"x"[random_next(&r) % 6];
  vocabulary *v = read_words(&w);
  assert_true(v->differ);
  masks_have_single_tokens(
      v, "root ::= item (\",\" item)*\nitem ::= \"a\"+ | \"\\\"\" [ab ]* \"\\\"\" | \" \" item \"x\"", 300);
  vocabulary_close(v);
}

/* Some tokens consist of letters that a grammar does not distinguish, with lengths up to and above the one at which
 * they are handled as such. Other tokens contain other letters. */
static void masks_of_letters_depend_on_the_room_left(void **state) {
  (void)state;
  static const char *const of[] = {
      "root ::= \"!\" | [^!\\x00-\\x1F]{0,70} \"!\"",        /* a bounded string */
      "root ::= [^!]* \"!\"",                                /* an endless one */
      "root ::= ([e-t]{3} [e-o] | [e-t]{3} [e-f0!])* \"!\"", /* places that differ only after some letters */
      "root ::= [e-s]{0,40} \"!\" root",                     /* 15 letters, 16 and 17 */
      "root ::= [e-t]{0,40} \"!\" root",
      "root ::= [e-u]{0,40} \"!\" root",
      "root ::= [d-z]{0,9} x [b-x]{0,9} x [c-w]{0,9} x [a-v]{0,9} x [e-u]{0,40} x root\nx ::= [!0]", /* many sets */
  };
  uint64_t r = {13};
  words w = {0};
  for (int i = 0; i < WORDS; i++) {
    int n = (int)(i % 4 ? random_next(&r) % 10 : random_next(&r) % 38); /* only a few are long */
    for (int k = 0; k < n; k++) w.text[i][k] = "efghijklmnop"[random_next(&r) % 12];
    if (n && random_next(&r) % 3 == 0) w.text[i][random_next(&r) % (unsigned)n] = "!0z\n\xc3\xa9"[random_next(&r) % 6];
  }
  vocabulary *v = read_words(&w);
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) masks_have_single_tokens(v, of[i], 20);
  vocabulary_close(v);
}

/* Tokens with characters of several bytes, whole and in parts, and bytes that are no characters. */
static void read_wide_words(words *w) {
  static const char *const part[] = {"e",
                                     "f",
                                     "g",
                                     " ",
                                     "\x7f",
                                     "\xc3\xa9",
                                     "\xe6\x97\xa5",
                                     "\xef\xbf\xbf",
                                     "\xc3",
                                     "\xa9",
                                     "\xe6\x97",
                                     "\x97\xa5",
                                     "\xf0\x9f\x98\x80",
                                     "\xf0\x9f",
                                     "\x98\x80",
                                     "\xe0\x80",
                                     "\xed\xa0",
                                     "\xf4\x90",
                                     "!",
                                     "\xff"};
  uint64_t r = {19};
  for (int i = 0; i < WORDS; i++) {
    int n = (int)(i % 5 ? random_next(&r) % 4 : random_next(&r) % 9);
    for (int k = 0; k < n; k++) strcat(w->text[i], part[random_next(&r) % (i % 3 ? 8 : 20)]);
  }
  static const char *const no_character[] = {
      "\xed\xa0\x80", "e\xed\xbf\xbf",    "\xe0\x80\xaf",     "\xe0\x9f\xbf",     "\xc0\xaf",
      "\xc1\xbf",     "\xf4\x90\x80\x80", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf5\x80\x80\x80"};
  for (int i = 0; i < 20; i++) strcpy(w->text[50 + i], part[i]);
  for (int i = 0; i < 10; i++) strcpy(w->text[80 + i], no_character[i]);
}

/* Tokens of characters of several bytes count as letters where a grammar does not distinguish them. */
static void masks_of_wide_characters_depend_on_the_room_left(void **state) {
  (void)state;
  static const char *const of[] = {
      "root ::= [^!\\\\\\x00-\\x1F]* \"!\"",                   /* an endless string */
      "root ::= [^!\\\\\\x00-\\x1F\\x7F]{0,9} \"!\" root",     /* a bounded one */
      "root ::= [^!\\u00e9]{0,20} \"!\" root",                 /* one character differs */
      "root ::= ([^!]{3} [^!\\u65e5])* \"!\"",                 /* it differs after some */
      "root ::= ([^!]{2} [^!e])* \"!\"",                       /* so does a letter */
      "root ::= [e-z\\u0080-\\U0010FFFF]{0,12} [! ] root",     /* another set with all of them */
      "root ::= [e-z\\u0800-\\uFFFF]{0,12} [! ] root",         /* those of three bytes */
      "root ::= ([e-z] | [\\u0080-\\U0010FFFF] \" \")* \"!\"", /* places after them differ */
      "root ::= \"\\u65e5\"* [e-z]{0,12} [! ] root",
  };
  words w = {0};
  read_wide_words(&w);
  vocabulary *v = read_words(&w);
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) masks_have_single_tokens(v, of[i], 40);
  vocabulary_close(v);
}

/* More sets than a vocabulary keeps. */
static void grammars_share_the_sets_of_a_vocabulary(void **state) {
  (void)state;
  words w = {0};
  read_wide_words(&w);
  vocabulary *v = read_words(&w);
  for (int turn = 0; turn < 2; turn++)
    for (int i = 0; i < 70; i++) {
      char gbnf[100];
      snprintf(gbnf, sizeof gbnf, "root ::= [%c-%ce-h]{0,9} [! ] root", 'A' + i % 10, 'R' + i / 10);
      masks_have_single_tokens(v, gbnf, 3);
    }
  vocabulary_close(v);
}

/* Places in repetitions, far from their ends and near them, in nested repetitions and in recursion, with tokens shorter
 * and longer than what is left. */
static void masks_of_repetitions_depend_on_the_items_left(void **state) {
  (void)state;
  static const char *const of[] = {
      "root ::= [e-p]{0,70} [!0]",
      "root ::= [e-p]{45} \"!\" root",
      "root ::= [e-p]{37,} [!0]",
      "root ::= [e-p]{6} [e-h]{6} \"!\" root",
      "root ::= ([e-p] [!0]?){3,60} \" \" root",
      "root ::= ([e-p]? \"!\"?){40,60} \" \"", /* items that may be empty */
      "root ::= ([e-p]? \"!\"?){5} (\" \" \"0\"?){0,5} \" \"",
      "root ::= ([e-p] | [e-p] [e-p]){0,40} \"!\"", /* nearly all texts can be parsed in two ways */
      "root ::= ([e-h]{1,9} | \" \" [e-p]{2,12}){0,40} \"!\"",
      "root ::= (\" \"? [e-p]{1,12} \"!\"){4,9} \"0\"",
      "root ::= ([e-p]{0,5} (\" \" [e-p]{5,9}){0,7} \"!\"){0,6} \"0\"",
      "root ::= [e-p]{0,12} (\" \" root){0,6} \"!\"",
      "root ::= (((((((((\"!\"{0,9} \"e\"){1,9} \"f\"){1,9} \"g\"){1,9} \"h\"){1,9} \"i\"){1,9} \"j\"){1,9} "
      "\"k\"){1,9} \"l\")"
      "{1,9} \"m\"){0,9} \" \"",
  };
  uint64_t r = {17};
  words w = {0};
  for (int i = 0; i < WORDS; i++) {
    int n = (int)(i % 3 ? random_next(&r) % 9 : random_next(&r) % 38);
    for (int k = 0; k < n; k++) w.text[i][k] = "efghijklmnop"[random_next(&r) % 12];
    for (int k = (int)(random_next(&r) % 3); n && k > 0; k--)
      w.text[i][random_next(&r) % (unsigned)n] = "!0z !"[random_next(&r) % 5];
    if (n && random_next(&r) % 3 == 0) w.text[i][0] = ' ';
  }
  static const char *const ordered[] = {
      "!",    "0",   "z",   " ",     "e",      "f",      "g",       "h",       "i",    "j",   "k",
      "l",    "m",   "!e",  "ee",    "ef",     "fe",     "efg",     "eefeg",   "!!ef", "gh",  "ghi",
      "hijk", "jkl", "klm", "!!!!!", "e!!!ef", "fgefgh", "efghijk", "fghijke", "lm",   "lm ", "fghijklm "};
  for (size_t i = 0; i < sizeof ordered / sizeof *ordered; i++) strcpy(w.text[100 + i], ordered[i]);
  vocabulary *v = read_words(&w);
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) masks_have_single_tokens(v, of[i], 25);
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
    int32_t token;
    for (const char *at = of[i].text; *at; at++) masks_take(m, place, (uint8_t)*at, false);
    forced[masks_forced(m, masks_state(m, place), &token, forced, 16)] = '\0';
    assert_string_equal(forced, of[i].forced);
    masks_release(m);
  }
  vocabulary_close(v);
}

/* It needs a state for each set of positions of a in the last 13 letters. */
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
      refused += at == MASKS_NOWHERE; /* the grammar accepts all of them */
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
  fails(masks_failure(small, &err), DT_EINPUT, "its states need more than 0 MiB");
  masks_release(small);
  masks_release(large);
  vocabulary_close(v);
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
      {"root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: rule root is defined twice"},
      {"root ::= \"a", "does not end in its line"},
      {"root ::= [a", "does not end in its line"},
      {"root ::= (\"a\"", "expected )"},
      {"root = \"a\"", "expected ::="},
      {"root ::= *", "there is nothing before"},
      {"root ::= \"a\" ]", "expected the end of the line"},
      {"root ::= \"\\q\"", "unknown escape"},
      {"root ::= \"\\u12\"", "expected 4 hexadecimal digits"},
      {"root ::= \"\\ud800\"", "U+D800 is not a character"},
      {"root ::= \"\\U00110000\"", "U+110000 is not a character"},
      {"root ::= [b-a]", "ends before it begins"},
      {"root ::= []", "this class contains no character"},
      {"root ::= [^\\x00-\\U0010FFFF]", "this class contains no character"},
      {"root ::= \"a\"{x}", "expected a number"},
      {"root ::= \"a\"{2,1}", "{2,1}: the maximum is less"},
      {"root ::= \"a\"{2", "expected }"},
      {"root ::= \"a\"{999999999999}", "more than 262144 repetitions"},
      {"root ::= !<think>", "line 1, column 10: the negation of a token (!) is not supported"},
      {"root ::= <think\n>", "line 1, column 10: expected a token, as in <think> or <[1000]>"},
      {"root ::= <[think]>", "expected the id of a token, as in <[1000]>"},
      {"root ::= <[7>", "expected the id of a token, as in <[1000]>"},
      {"root ::= <[99999999999]>", "more than 100000000 tokens"},
      {"root ::= \"\xff\"", "byte 10 is not UTF-8"},
      {"root ::= root \"a\"", "rule root begins with itself"},
      {"root ::= a\na ::= (\"x\"? b)*\nb ::= a \"y\"", "begins with itself"},
      {"root ::= \"a\"\nc ::= d? c | \"b\"\nd ::= \"e\"", "rule c begins with itself"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) reads(strdup(bad[i][0]), bad[i][1]);
  rules r;
  fails(gbnf_read("root ::= \0", 10, &r, &err), DT_EINPUT, "byte 9 is NUL");
  rules_free(&r);
  reads(repeated("root ::= \"\" #", "a", GBNF_BYTES - 13, ""), NULL);
  reads(repeated("root ::= \"\" #", "a", GBNF_BYTES - 12, ""), "4000001 bytes, the maximum is 4000000");
  char *closed = repeated("\"a\"", ")", GBNF_DEPTH, ""), *more = repeated("\"a\"", ")", GBNF_DEPTH + 1, "");
  reads(repeated("root ::= ", "(", GBNF_DEPTH, closed), NULL);
  reads(repeated("root ::= ", "(", GBNF_DEPTH + 1, more), "more than 256 nested parentheses");
  free(closed), free(more);
  reads(strdup("root ::= \"a\"{0,131080}"), "more than 262144 parts");
  reads(strdup("root ::= (\"a\"{0,131080} \"b\")"), "more than 262144 parts");
  reads(strdup("root ::= \"a\"{0,100000}"), NULL);
  reads(repeated("root ::= \"a\"", " | \"a\"", 16000, ""), NULL);
}

/* A grammar with exactly this many parts: one item repeated often, and empty texts. */
static void parts_are_counted_exactly(void **state) {
  (void)state;
  rules r;
  const char *most = "root ::= \"a\"{0,131000}";
  ok(gbnf_read(most, strlen(most), &r, &err));
  int missing = RULES_NODES - (r.n - 1);
  rules_free(&r);
  assert_in_range(missing, 1, 1000);
  for (int more = -1; more <= 1; more++) {
    char *gbnf = repeated(most, " \"\"", missing + more, "");
    if (more > 0)
      fails(gbnf_read(gbnf, strlen(gbnf), &r, &err), DT_EINPUT, "more than 262144 parts");
    else
      ok(gbnf_read(gbnf, strlen(gbnf), &r, &err));
    assert_int_equal(r.n - 1, more > 0 ? RULES_NODES : RULES_NODES + more);
    rules_free(&r);
    free(gbnf);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_reads_what_llama_cpp_writes),
      cmocka_unit_test(regular_grammars_take_what_regular_expressions_match),
      cmocka_unit_test(tokens_are_demanded_whatever_their_texts_are),
      cmocka_unit_test(a_mask_has_the_tokens_that_are_allowed_one_by_one),
      cmocka_unit_test(masks_of_letters_depend_on_the_room_left),
      cmocka_unit_test(masks_of_wide_characters_depend_on_the_room_left),
      cmocka_unit_test(grammars_share_the_sets_of_a_vocabulary),
      cmocka_unit_test(masks_of_repetitions_depend_on_the_items_left),
      cmocka_unit_test(states_are_dropped_and_texts_go_on),
      cmocka_unit_test(forced_text_is_all_that_may_follow),
      cmocka_unit_test(a_text_goes_on_where_guesses_find_no_room),
      cmocka_unit_test(mistakes_and_bounds_are_one_line),
      cmocka_unit_test(parts_are_counted_exactly),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
